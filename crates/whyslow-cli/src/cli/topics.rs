//! `record --what`: a list of topics, or changes to the default topics.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::{Display, Formatter};

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use whyslow_base::failure::Failure;
use whyslow_record::Topic;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TopicArg {
    /// System calls
    Syscalls,
    /// Context switches, wakeups, migrations, signals
    Sched,
    /// Block I/O
    Block,
    /// Interrupt handlers
    Irq,
    /// Inter-processor interrupts
    Ipi,
    /// Contended kernel locks
    Locks,
    /// DNS lookups
    Dns,
    /// Memory reclaim
    Mem,
    /// Writeback, journal commits, throttled writers
    Fs,
    /// Workqueue items
    Work,
    /// TCP connections: opening thread, duration, outcome
    Tcp,
    /// Packets, retransmits and drops
    Net,
    /// Page faults, page-cache fills and removals by file
    Pages,
}

impl TopicArg {
    fn topic(self) -> Topic {
        match self {
            Self::Syscalls => Topic::Syscalls,
            Self::Sched => Topic::Sched,
            Self::Block => Topic::Block,
            Self::Irq => Topic::Irq,
            Self::Ipi => Topic::Ipi,
            Self::Locks => Topic::Locks,
            Self::Dns => Topic::Dns,
            Self::Mem => Topic::Mem,
            Self::Fs => Topic::Fs,
            Self::Work => Topic::Work,
            Self::Tcp => Topic::Tcp,
            Self::Net => Topic::Net,
            Self::Pages => Topic::Pages,
        }
    }

    /// The word that adds it to the default topics, or removes it from them.
    fn change(self) -> &'static str {
        match self {
            Self::Syscalls => "-syscalls",
            Self::Sched => "-sched",
            Self::Block => "-block",
            Self::Irq => "+irq",
            Self::Ipi => "+ipi",
            Self::Locks => "-locks",
            Self::Dns => "-dns",
            Self::Mem => "-mem",
            Self::Fs => "-fs",
            Self::Work => "+work",
            Self::Tcp => "-tcp",
            Self::Net => "+net",
            Self::Pages => "+pages",
        }
    }
}

/// One entry of `--what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicChange {
    /// `locks`: record only the listed topics.
    Only(Topic),
    /// `+locks`: record it in addition to the default topics.
    Add(Topic),
    /// `-locks`: do not record it, although it is a default topic.
    Remove(Topic),
}

impl TopicChange {
    pub(crate) fn topic(self) -> Topic {
        match self {
            Self::Only(topic) | Self::Add(topic) | Self::Remove(topic) => topic,
        }
    }

    /// Whether it changes the default topics instead of replacing them.
    pub(crate) fn is_signed(self) -> bool {
        !matches!(self, Self::Only(_))
    }
}

impl Display for TopicChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let sign = match self {
            Self::Only(_) => "",
            Self::Add(_) => "+",
            Self::Remove(_) => "-",
        };
        write!(f, "{sign}{}", self.topic().name())
    }
}

/// Parses entries of `--what`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopicParser;

impl TypedValueParser for TopicParser {
    type Value = TopicChange;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<TopicChange, clap::Error> {
        let word = value.to_str().unwrap_or_default();
        let (name, change): (&str, fn(Topic) -> TopicChange) =
            if let Some(name) = word.strip_prefix('+') {
                (name, TopicChange::Add)
            } else if let Some(name) = word.strip_prefix('-') {
                (name, TopicChange::Remove)
            } else {
                (word, TopicChange::Only)
            };
        let names = EnumValueParser::<TopicArg>::new();
        let topic = names.parse_ref(command, arg, OsStr::new(name))?;
        Ok(change(topic.topic()))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = TopicArg::value_variants().iter();
        Some(Box::new(values.filter_map(TopicArg::to_possible_value)))
    }
}

/// The topics as shells complete them: by name and as a change of the default topics.
pub(crate) fn completed() -> Vec<PossibleValue> {
    let of = |arg: &TopicArg| {
        let value = arg.to_possible_value()?;
        let signed = PossibleValue::new(arg.change());
        let signed = match value.get_help() {
            Some(help) => signed.help(help.clone()),
            None => signed,
        };
        Some([value, signed])
    };
    let values = TopicArg::value_variants().iter().filter_map(of);
    values.flatten().collect()
}

/// The topics to record: the list, or the default topics with its changes.
pub(crate) fn topics(what: &[TopicChange]) -> Result<BTreeSet<Topic>, Failure> {
    let signed = what.iter().filter(|change| change.is_signed()).count();
    if signed == 0 && !what.is_empty() {
        return Ok(what.iter().map(|change| change.topic()).collect());
    }
    if signed < what.len() {
        return Err(mixed(what));
    }
    let mut topics: BTreeSet<Topic> = Topic::DEFAULT.iter().copied().collect();
    for change in what {
        match change {
            TopicChange::Only(topic) | TopicChange::Add(topic) => topics.insert(*topic),
            TopicChange::Remove(topic) => topics.remove(topic),
        };
    }
    if topics.is_empty() {
        return Err(Failure::usage("--what removes all topics")
            .hint("list the topics to record: --what syscalls,sched"));
    }
    Ok(topics)
}

/// `+` and `-` change the default topics, while names without a sign replace them.
fn mixed(what: &[TopicChange]) -> Failure {
    let list = |words: Vec<String>| words.join(",");
    let changes = what.iter().map(|change| match *change {
        TopicChange::Only(topic) => TopicChange::Add(topic).to_string(),
        change => change.to_string(),
    });
    let kept = what
        .iter()
        .filter(|change| !matches!(change, TopicChange::Remove(_)));
    let names = kept.map(|change| change.topic().name().to_owned());
    Failure::usage("cannot mix topics with and without a sign in --what").hint(format!(
        "change the default topics with --what {}, or replace them with --what {}",
        list(changes.collect()),
        list(names.collect())
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command as Chosen};

    fn read(args: &[&str]) -> Result<Vec<TopicChange>, String> {
        let args = ["whyslow", "record"].iter().chain(args);
        let cli = Cli::try_parse_from(args).map_err(|error| error.to_string())?;
        match cli.command {
            Chosen::Record(args) => Ok(args.what),
            _ => Err("another command".to_owned()),
        }
    }

    fn recorded(args: &[&str]) -> Vec<Topic> {
        let what = read(args).expect("a valid command line");
        topics(&what).expect("valid topics").into_iter().collect()
    }

    fn default_topics() -> BTreeSet<Topic> {
        Topic::DEFAULT.iter().copied().collect()
    }

    #[test]
    fn a_list_without_signs_replaces_the_default_topics() {
        assert_eq!(recorded(&["--what", "locks"]), [Topic::Locks]);
        assert_eq!(
            recorded(&["--what", "net,syscalls"]),
            [Topic::Syscalls, Topic::Net]
        );
    }

    #[test]
    fn signs_change_the_default_topics() {
        let mut expected = default_topics();
        assert_eq!(recorded(&[]), Vec::from_iter(expected.clone()));
        expected.insert(Topic::Net);
        expected.remove(&Topic::Dns);
        let expected = Vec::from_iter(expected);
        assert_eq!(recorded(&["--what", "+net,-dns"]), expected);
        assert_eq!(recorded(&["--what", "-dns", "--what", "+net"]), expected);
        assert_eq!(recorded(&["--what=-dns,+net,+locks,-irq"]), expected);
    }

    #[test]
    fn signs_are_all_or_none() {
        let what = read(&["--what", "+locks,-dns,net"]).expect("valid words");
        let error = topics(&what).expect_err("a mixture");
        assert!(error.is_usage());
        let (message, _, hint) = error.into_parts();
        assert!(message.contains("with and without a sign"), "{message}");
        let hint = hint.expect("a hint");
        assert!(hint.contains("--what +locks,-dns,+net, "), "{hint}");
        assert!(hint.ends_with("--what locks,net"), "{hint}");
        // Nothing would be recorded.
        let all: Vec<_> = Topic::DEFAULT
            .iter()
            .map(|topic| TopicChange::Remove(*topic))
            .collect();
        assert!(topics(&all).is_err_and(|error| error.is_usage()));
    }

    #[test]
    fn unknown_topics_are_refused_with_the_list_of_topics() {
        for word in ["lock", "+lock", "-lock", "+", ""] {
            let error = read(&["--what", word]).expect_err("no such topic");
            assert!(error.contains("--what"), "{error}");
        }
        let error = read(&["--what", "+lock"]).expect_err("no such topic");
        assert!(error.contains("locks"), "{error}");
    }

    #[test]
    fn every_topic_has_a_name_on_the_command_line() {
        let names: Vec<&str> = TopicArg::value_variants()
            .iter()
            .map(|arg| arg.topic().name())
            .collect();
        let all: Vec<&str> = Topic::ALL.iter().map(|topic| topic.name()).collect();
        assert_eq!(names, all);
        for arg in TopicArg::value_variants() {
            let value = arg.to_possible_value().expect("it is not hidden");
            assert_eq!(value.get_name(), arg.topic().name());
        }
        for arg in TopicArg::value_variants() {
            let is_default = Topic::DEFAULT.contains(&arg.topic());
            let sign = if is_default { '-' } else { '+' };
            assert_eq!(arg.change(), format!("{sign}{}", arg.topic().name()));
        }
        assert_eq!(completed().len(), 2 * Topic::ALL.len());
    }
}
