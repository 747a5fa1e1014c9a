//! `as TOOL @live`: how often a tool prints, and what has to be recorded for it.

use clap::ArgMatches;
use whyslow_base::failure::Failure;
use whyslow_model::Ns;
use whyslow_record::Topic;
use whyslow_sources::live::{Plan, RecorderChoice};

use crate::front::Positionals;
use crate::front::positionals::seconds;

const SECOND: Ns = 1_000_000_000;
/// As in top.
const TOP: Ns = 3 * SECOND;
/// Names of the window options.
const WINDOWS: [&str; 4] = ["window", "begin", "end", "timerange"];

/// What to record for a tool; `None` if its source is a recording.
pub(crate) fn plan(tool: &str, matches: &ArgMatches) -> Result<Option<Plan>, Failure> {
    // A tool has one of the two arguments. clap reports an unknown argument as an error in debug
    // builds; in release builds it is absent.
    let words = match matches.try_get_many::<String>("words") {
        Ok(Some(words)) => words.cloned().collect(),
        Ok(None) | Err(_) => text(matches, "trace").into_iter().collect::<Vec<_>>(),
    };
    let Some(choice) = words.iter().find_map(|word| RecorderChoice::of(word)) else {
        return Ok(None);
    };
    let is_given = |name: &&&str| matches.try_contains_id(name).unwrap_or(false);
    if let Some(name) = WINDOWS.iter().find(is_given) {
        return Err(
            Failure::usage(format!("cannot use --{name}: @live has no window"))
                .hint("make a recording first: sudo whyslow record -o NAME.wsl"),
        );
    }
    let words = Positionals::sort(&words);
    let is_set = |name: &str| matches!(matches.try_get_one(name), Ok(Some(&true)));
    let topics = match tool {
        // Without CPU statistics, only block requests are needed.
        "iostat" if is_set("device") && !is_set("cpu") => &[Topic::Block],
        _ => topics(tool),
    };
    let mut plan = Plan::of(choice, topics);
    if matches!(
        tool,
        "opensnoop" | "filetop" | "ext4slower" | "gethostlatency"
    ) {
        let pid = matches.try_get_one::<i32>("pid").ok().flatten();
        plan.pids.extend(pid.copied());
    }
    let of = |(interval, count): (Option<Ns>, Option<i64>)| Plan {
        interval,
        count,
        ..plan.clone()
    };
    let plan = match tool {
        "iostat" | "pidstat" | "filetop" | "biolatency" => of(words.interval()?),
        "top" => of((
            Some(delay(matches)?.unwrap_or(TOP)),
            number(matches, "iterations"),
        )),
        "iotop" => {
            if is_set("accumulated") {
                return Err(Failure::usage("cannot use -a with @live")
                    .hint("make a recording first: sudo whyslow record -o NAME.wsl"));
            }
            let delay = delay(matches)?.unwrap_or(SECOND);
            of((Some(delay), number(matches, "iter")))
        }
        "opensnoop" => {
            let length = text(matches, "duration");
            of(lines(length.as_deref().map(seconds).transpose()?))
        }
        "biosnoop" => of(lines(words.number()?.map(seconds).transpose()?)),
        "ext4slower" | "gethostlatency" => of(lines(None)),
        _ => plan,
    };
    Ok(Some(plan))
}

/// Tools that print a line per event print every second, until `length` is over.
fn lines(length: Option<Ns>) -> (Option<Ns>, Option<i64>) {
    match length {
        Some(length) if length < SECOND => (Some(length), Some(1)),
        Some(length) => (Some(SECOND), Some((length + SECOND / 2) / SECOND)),
        None => (Some(SECOND), None),
    }
}

fn delay(matches: &ArgMatches) -> Result<Option<Ns>, Failure> {
    text(matches, "delay").as_deref().map(seconds).transpose()
}

fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.try_get_one(name).ok().flatten().cloned()
}

fn number(matches: &ArgMatches, name: &str) -> Option<i64> {
    matches.try_get_one(name).ok().flatten().copied()
}

fn topics(tool: &str) -> &'static [Topic] {
    match tool {
        "biosnoop" | "biolatency" => &[Topic::Block],
        "gethostlatency" => &[Topic::Dns],
        "opensnoop"
        | "filetop"
        | "ext4slower"
        | "lttng-iolatencytop"
        | "lttng-iolatencystats"
        | "lttng-iolatencyfreq"
        | "lttng-iolog" => &[Topic::Syscalls],
        "pidstat" | "iotop" => &[Topic::Syscalls, Topic::Sched, Topic::Block],
        "iostat" => &[Topic::Syscalls, Topic::Sched, Topic::Block, Topic::Irq],
        "top" | "lttng-cputop" => &[Topic::Syscalls, Topic::Sched, Topic::Irq],
        "lttng-irqstats" | "lttng-irqfreq" | "lttng-irqlog" => &[Topic::Irq, Topic::Sched],
        "lttng-schedstats" | "lttng-schedtop" | "lttng-schedfreq" | "lttng-schedlog" => {
            &[Topic::Sched]
        }
        "lttng-memtop" => &[Topic::Mem, Topic::Sched],
        "lttng-iousagetop" => &[Topic::Syscalls, Topic::Block, Topic::Net],
        _ => Topic::DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    fn of(words: &[&str]) -> Result<Option<Plan>, Failure> {
        let tool = crate::list::tools().find(|tool| tool.name == words[0]);
        let tool = tool.expect("it is one");
        let command = (tool.args)(Command::new(tool.name));
        let matches = command.try_get_matches_from(words).expect("it can be read");
        plan(tool.name, &matches)
    }

    #[test]
    fn every_tool_says_how_often_it_prints() {
        let check = |words: &[&str], interval: Option<Ns>, count: Option<i64>| {
            let plan = of(words).expect("a valid command").expect("a live plan");
            assert_eq!((plan.interval, plan.count), (interval, count), "{words:?}");
            assert!(!plan.topics.is_empty());
        };
        check(
            &["iostat", "-x", "@live", "sda", "1", "5"],
            Some(SECOND),
            Some(5),
        );
        check(&["iostat", "@live"], None, None);
        check(&["pidstat", "@live", "2"], Some(2 * SECOND), None);
        check(&["top", "@live"], Some(TOP), None);
        check(
            &["top", "@live", "-d", "0.5", "-n", "2"],
            Some(SECOND / 2),
            Some(2),
        );
        check(&["iotop", "@live"], Some(SECOND), None);
        check(&["opensnoop", "@live"], Some(SECOND), None);
        check(&["opensnoop", "@live", "-d", "7"], Some(SECOND), Some(7));
        check(
            &["biosnoop", "@live", "0.3"],
            Some(3 * SECOND / 10),
            Some(1),
        );
        check(&["ext4slower", "@live", "20"], Some(SECOND), None);
        check(&["gethostlatency", "@live"], Some(SECOND), None);
        check(&["lttng-schedtop", "@live"], None, None);
    }

    #[test]
    fn what_is_not_shown_is_not_recorded() {
        let topics = |words: &[&str]| {
            let plan = of(words).expect("a valid command").expect("a live plan");
            plan.topics.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(topics(&["iostat", "-dx", "@live"]), [Topic::Block]);
        assert!(topics(&["iostat", "-cd", "@live"]).len() > 1);
        assert_eq!(topics(&["opensnoop", "@live"]), [Topic::Syscalls]);
        assert_eq!(topics(&["gethostlatency", "@live"]), [Topic::Dns]);
        let of_one = of(&["opensnoop", "@live", "-p", "77"]).expect("a valid command");
        assert_eq!(of_one.expect("a live plan").pids, [77]);
    }

    #[test]
    fn recordings_are_not_live_and_windows_are_refused() {
        assert!(of(&["iostat", "web.wsl", "1"]).expect("fine").is_none());
        assert!(of(&["lttng-cputop"]).expect("fine").is_none());
        for words in [
            &["iostat", "@live", "-w", "+1s..+2s"][..],
            &[
                "lttng-cputop",
                "@live",
                "--timerange",
                "[12:18:50,12:18:51]",
            ],
            &["iotop", "-a", "@live"],
        ] {
            assert!(of(words).is_err(), "{words:?}");
        }
    }
}
