//! `record --ring`: keeps the last minute in memory and saves it when a condition holds.

mod disk;
mod place;
mod pusher;
mod saver;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::SIGUSR1;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::{interrupt, talk};
use whyslow_model::Ns;
use whyslow_model::text::shown;
use whyslow_record::{
    FlightOptions, FlightStep, Memory, News, Options, Progress, Term, Topic, Trigger,
};

use super::processes::check_processes;
use super::record::{self, Held};
use crate::cli::RecordArgs;
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

pub(super) fn run(args: &RecordArgs, ring: Ns, talk: &TalkArgs) -> Result<(), Failure> {
    let memory = record::memory(args)?;
    let flight = options(args, ring, memory);
    let place = Place::of(args.output.as_deref());
    place.check()?;
    check_processes(&args.pid)?;
    let (names, groups) = record::selected(args)?;
    let stop = interrupt::flag()?;
    let save = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&save))
        .map_err(|error| Failure::new("cannot handle signals").caused_by(&error))?;
    check_conditions(&flight.when, &record::options(args, &place.folder, None))?;
    let mut child = Held::start(&args.command)?;
    let mut options = record::options(args, &place.folder, child.as_ref().map(Held::pid));
    (options.memory_bytes_max, options.buffer_bytes) = (memory.max, memory.buffer);
    options.only_pids |= !names.is_empty() || !groups.is_empty();
    (options.names, options.groups) = (names, groups);
    options.may_turn = true;
    let disk_max = args.flight.max_disk.max(0) as u64;
    let mut saver = Saver::start(place, disk_max, args.keep_spool, args.push.clone());
    let start = Instant::now();
    let end = args.length.map(length);
    let held = child.as_ref().map(Held::pid);
    let (mut most, mut has_started, mut has_warned) = (0, false, false);
    let ready = |ready: &whyslow_record::Ready<'_>| {
        record::print_unavailable(ready);
        has_started = true;
        if let Some(pid) = held {
            Held::resume(pid);
        } else if !talk.quiet {
            print_start(&flight);
        }
    };
    let each = |news: News<'_>| {
        match news {
            News::At(progress) => {
                most = most.max(progress.spool_bytes);
                record::warn_often(progress, &mut has_warned);
                let is_over = end.is_some_and(|end| start.elapsed() >= end);
                let is_done = child.as_mut().is_some_and(Held::has_ended);
                if is_over || is_done || stop.load(Ordering::Relaxed) {
                    return FlightStep::End;
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
                "note: conditions held {count} more times within --cooldown and were ignored"
            )),
            News::Window(window) => saver.save(window),
        }
        FlightStep::GoOn
    };
    let summary = whyslow_record::fly(&options, &flight, ready, each).map_err(Failure::from);
    if let Some(child) = child {
        child.leave(has_started, talk);
    }
    let saved = saver.finish();
    let summary = summary?;
    if !talk.quiet {
        print_cost(&summary.progress, most, saved.recordings);
        print_dropped(saved);
    }
    Ok(())
}

/// Rejects conditions that can never hold.
fn check_conditions(when: &[Term], options: &Options) -> Result<(), Failure> {
    for term in when {
        let is_missing = |topic: &Topic| !options.topics.contains(topic);
        if let Some(topic) = term.topic().filter(is_missing) {
            let topics = options.topics.iter().chain([&topic]);
            let topics: Vec<&str> = topics.map(|topic| topic.name()).collect();
            let name = topic.name();
            let message = format!(
                "`{}` needs the topic {name}, which is not recorded",
                term.text
            );
            let hint = format!("record it: --what {}", topics.join(","));
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

fn print_start(flight: &FlightOptions) {
    let terms: Vec<&str> = flight.when.iter().map(|term| term.text.as_str()).collect();
    let seconds = flight.length.as_secs_f64();
    let when = if terms.is_empty() {
        "on SIGUSR1".to_owned()
    } else {
        format!("when {}, or on SIGUSR1", terms.join(" or "))
    };
    talk::line(&format!(
        "keeping the last {seconds} s in memory (pid {}); saves {when}; press Ctrl-C to stop",
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
    let seconds = progress.elapsed.as_secs_f64().max(1e-3);
    talk::line(&format!(
        "{} records in {seconds:.1} s, saved {saved} times; the recorder used {:.1} % of a CPU and kept at most {:.1} MiB",
        talk::grouped(progress.records),
        progress.own_cpu.as_secs_f64() * 100.0 / seconds,
        most as f64 / 1024.0 / 1024.0,
    ));
    record::print_memory(progress);
    if progress.lost > 0 {
        talk::line(&format!(
            "note: {} records were lost because the buffer was full (increase --buffer)",
            talk::grouped(progress.lost)
        ));
    }
}
