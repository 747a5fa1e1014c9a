//! `record --ring`: keeps the last minute in memory and saves it when a condition holds.

mod disk;
mod place;
mod pusher;
mod saver;

use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::SIGUSR1;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt::Stop;
use whyslow_base::talk;
use whyslow_model::Ns;
use whyslow_model::text::shown;
use whyslow_record::{
    ControlGroup, FlightOptions, FlightStep, Memory, Names, News, Options, Progress, Term, Topic,
    Trigger,
};

use super::processes::check_processes;
use super::record::{self, Counters, Held};
use crate::cli::{RecordArgs, TopicChange};
use place::Place;
use saver::{Saved, Saver};

fn length(ns: Ns) -> Duration {
    Duration::from_nanos(ns.max(0) as u64)
}

fn options(args: &RecordArgs, ring: Ns, memory: Memory) -> FlightOptions {
    FlightOptions {
        length: length(ring),
        bytes_max: memory.kept,
        when: args
            .flight
            .when
            .as_ref()
            .map_or(Vec::new(), |when| when.0.clone()),
        after: length(args.flight.after),
        cooldown: length(args.flight.cooldown),
    }
}

pub(super) fn run(args: &RecordArgs, ring: Ns, talk: &TalkArgs) -> Result<ExitCode, Failure> {
    let memory = record::memory(args)?;
    let flight = options(args, ring, memory);
    let place = Place::of(args.output.as_deref());
    place.check()?;
    check_processes(&args.pid)?;
    let selected = record::selected(args)?;
    let stop = Stop::new()?;
    let save = save_signal()?;
    let mut options = recorder_options(args, (&place, memory), &flight.when, selected)?;
    let mut child = Held::start(&args.command)?;
    record::restrict(&mut options, args, child.as_ref());
    let disk_max = args.flight.max_disk.max(0) as u64;
    let mut saver = Saver::start(place, disk_max, args.keep_spool, args.push.clone());
    let held = child.as_ref().map(Held::pid);
    let started = Cell::new(None::<Instant>);
    let ending = Ending {
        stop: &stop,
        length: args.length.map(length),
        started: &started,
    };
    let (mut most, mut has_warned) = (0, false);
    let mut counters = Counters::new(talk, held.is_some(), "kept");
    let ready = |ready: &whyslow_record::Ready<'_>| {
        record::print_unavailable(ready);
        if !talk.quiet {
            talk::line(record::started_text(held.is_some(), ending.length));
            print_start(&flight);
        }
        started.set(Some(Instant::now()));
        if let Some(pid) = held {
            Held::resume(pid);
        }
    };
    let each = |news: News<'_>| {
        match news {
            News::At(progress) => {
                most = most.max(progress.spool_bytes);
                record::warn_often(progress, &mut has_warned);
                counters.show(progress);
                if let Some(step) = ending.step(child.as_mut()) {
                    return step;
                }
                if save.swap(false, Ordering::Relaxed) {
                    return FlightStep::Save;
                }
                if let Some(pid) = saver.new_process() {
                    return FlightStep::PassOver(pid);
                }
            }
            News::Triggered(trigger) => print_trigger(trigger, &flight),
            News::Ignored(count) => talk::line(&format!(
                "note: conditions were met {count} more times within --cooldown and ignored"
            )),
            News::Window(window) => saver.save(window),
            News::Last(window) => saver.save_last(window),
        }
        FlightStep::GoOn
    };
    let summary = whyslow_record::fly(&options, &flight, ready, each).map_err(Failure::from);
    counters.end();
    let status = child.map(|child| child.end(started.get().is_some(), talk));
    let saved = saver.finish();
    let status = status.transpose()?.flatten();
    let summary = summary?;
    if !talk.quiet {
        print_end(&summary.progress, most, saved, &stop);
    }
    Ok(record::exit_code(status))
}

/// A flag that is set by SIGUSR1, which requests a save.
fn save_signal() -> Result<Arc<AtomicBool>, Failure> {
    let save = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&save))
        .map_err(|error| Failure::new("cannot handle signals").caused_by(&error))?;
    Ok(save)
}

/// Options of the recorder, with the selected thread names and control groups.
fn recorder_options(
    args: &RecordArgs,
    (place, memory): (&Place, Memory),
    when: &[Term],
    (names, groups): (Vec<Names>, Vec<ControlGroup>),
) -> Result<Options, Failure> {
    let mut options = record::options(args, &place.folder)?;
    check_conditions(when, &options, &args.what)?;
    (options.memory_bytes_max, options.buffer_bytes) = (memory.max, memory.buffer);
    options.only_pids |= !names.is_empty() || !groups.is_empty();
    (options.names, options.groups) = (names, groups);
    options.may_turn = true;
    Ok(options)
}

/// What ends the recording, apart from its command.
struct Ending<'e> {
    stop: &'e Stop,
    length: Option<Duration>,
    /// When recording started.
    started: &'e Cell<Option<Instant>>,
}

impl Ending<'_> {
    /// The step that ends the recording, once it is due.
    fn step(&self, child: Option<&mut Held>) -> Option<FlightStep> {
        if let Some(signal) = self.stop.from_outside() {
            // The user may be gone, and what led to the end may be of interest.
            return Some(FlightStep::SaveAndEnd(signal));
        }
        let since = self.started.get().map(|started| started.elapsed());
        let is_over = self
            .length
            .is_some_and(|length| since.is_some_and(|since| since >= length));
        let is_done = child.is_some_and(Held::has_ended);
        (is_over || is_done || self.stop.is_requested()).then_some(FlightStep::End)
    }
}

/// Rejects conditions that can never hold.
fn check_conditions(when: &[Term], options: &Options, what: &[TopicChange]) -> Result<(), Failure> {
    for term in when {
        let is_missing = |topic: &Topic| !options.topics.contains(topic);
        if let Some(topic) = term.topic().filter(is_missing) {
            let name = topic.name();
            let message = format!(
                "`{}` needs the topic {name}, which is not recorded",
                term.text
            );
            let hint = format!("record it: --what {}", with(topic, what, options));
            return Err(Failure::usage(message).hint(hint));
        }
        if term.needs_all_calls() && !options.call_min.is_zero() {
            let message = format!(
                "`{}` needs all reads and writes, also short ones",
                term.text
            );
            let hint = "remove --min and --light, which record only long system calls";
            return Err(Failure::usage(message).hint(hint));
        }
        if !term.is_reported() {
            let message = format!("`{}`: this kernel does not report pressure", term.text);
            return Err(Failure::usage(message)
                .hint("boot a kernel with CONFIG_PSI, without psi=0, to get /proc/pressure"));
        }
    }
    Ok(())
}

/// The argument of `--what` that records one more topic: a complete list if one was given.
fn with(topic: Topic, what: &[TopicChange], options: &Options) -> String {
    if what.iter().any(|change| !change.is_signed()) {
        let topics = options.topics.iter().chain([&topic]);
        let topics: Vec<&str> = topics.map(|topic| topic.name()).collect();
        return topics.join(",");
    }
    let others = what.iter().filter(|change| change.topic() != topic);
    let mut changes: Vec<String> = others.map(ToString::to_string).collect();
    if !Topic::DEFAULT.contains(&topic) || changes.is_empty() {
        changes.push(format!("+{}", topic.name()));
    }
    changes.join(",")
}

fn print_start(flight: &FlightOptions) {
    let terms: Vec<&str> = flight.when.iter().map(|term| term.text.as_str()).collect();
    let seconds = flight.length.as_secs_f64();
    let when = if terms.is_empty() {
        String::new()
    } else {
        format!("when {}, ", terms.join(" or "))
    };
    talk::line(&format!(
        "keeping the last {seconds} s in memory (pid {}); saves {when}on SIGUSR1 and when `whyslow explain @flight` runs; press Ctrl-C to stop",
        std::process::id()
    ));
}

fn print_trigger(trigger: &Trigger, flight: &FlightOptions) {
    let term = trigger.term.as_deref().unwrap_or_default();
    talk::line(&format!(
        "{term}: {}; saving in {} s",
        shown(&trigger.what, false),
        flight.after.as_secs_f64()
    ));
}

fn print_end(progress: &Progress, most: u64, saved: Saved, stop: &Stop) {
    print_cost(progress, most, saved.recordings);
    print_dropped(saved);
    if stop.is_requested() && stop.from_outside().is_none() {
        talk::line(
            "note: Ctrl-C does not save what is kept in memory; SIGUSR1, SIGTERM and SIGHUP do",
        );
    }
}

fn print_dropped(saved: Saved) {
    if saved.dropped > 0 {
        talk::line(&format!(
            "note: {} windows were not saved, for the reasons above",
            saved.dropped
        ));
    }
    if saved.waiting > 0 {
        talk::line(&format!(
            "note: {} recordings are waiting to be pushed",
            saved.waiting
        ));
    }
}

fn print_cost(progress: &Progress, most: u64, saved: u64) {
    let seconds = progress.elapsed.as_secs_f64();
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    talk::line(&format!(
        "{} records in {seconds:.1} s, saved {saved} times; the recorder used {:.1} % of a CPU and kept at most {:.1} MiB",
        talk::grouped(progress.records),
        progress.cpu_share() * 100.0,
        mib(most),
    ));
    talk::line(&format!(
        "memory: at most {:.1} MiB used, limit {:.1} MiB (--max-memory)",
        mib(progress.memory),
        mib(progress.memory_max),
    ));
    record::print_memory_short(progress);
    record::print_lost(progress);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_topic_is_added_to_what_was_requested() {
        let check = |what: &[TopicChange], expected: &str| {
            let mut options = Options::new("");
            options.topics = crate::cli::topics(what).expect("valid topics");
            let term = Topic::Work;
            assert_eq!(with(term, what, &options), expected);
        };
        check(&[], "+work");
        check(
            &[
                TopicChange::Add(Topic::Net),
                TopicChange::Remove(Topic::Dns),
            ],
            "+net,-dns,+work",
        );
        check(&[TopicChange::Only(Topic::Block)], "block,work");
        // A default topic that was removed.
        let removed = [
            TopicChange::Remove(Topic::Block),
            TopicChange::Add(Topic::Net),
        ];
        assert_eq!(with(Topic::Block, &removed, &Options::new("")), "+net");
        assert_eq!(
            with(Topic::Block, &removed[..1], &Options::new("")),
            "+block"
        );
    }
}
