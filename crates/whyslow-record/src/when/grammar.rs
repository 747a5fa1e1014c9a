//! Grammar of `--when`: `open>200ms | block>100ms | psi.io>40`.
//!
//! ```text
//! when     = term { "|" term }
//! term     = what ">" limit
//! what     = "open" | "read" | "write" | "sync" | "io" | name of a system call
//!          | "request" | "block" | "sched" | "dns" | "lock" | "psi.cpu" | "psi.io" | "psi.memory"
//! limit    = duration with its unit; after "psi.": a percentage, with or without "%"
//! ```

use std::fmt;
use std::path::Path;

use whyslow_model::syscall::{self, Abi, Op};

use super::pressure;
use crate::programs::Topic;

/// A condition to watch for.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// As typed.
    pub text: String,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// Calls of these names that last longer.
    Call {
        names: Vec<&'static str>,
        /// Only calls on stored files: no pipes, sockets or terminals.
        of_files: bool,
        longer_ns: u64,
    },
    /// Block I/O, from submission to completion.
    Block { longer_ns: u64 },
    /// Run-queue waits.
    Sched { longer_ns: u64 },
    /// Requests served on this machine, from the first read to the last write.
    Request { longer_ns: u64 },
    /// DNS lookups.
    Lookup { longer_ns: u64 },
    /// Kernel lock waits.
    Lock { longer_ns: u64 },
    /// Share of the last ten seconds in which some thread stalled on the resource.
    Pressure {
        resource: &'static str,
        percent: f64,
    },
}

impl Term {
    /// Topic that must be recorded for it.
    pub fn topic(&self) -> Option<Topic> {
        match self.what {
            What::Call { .. } | What::Request { .. } => Some(Topic::Syscalls),
            What::Block { .. } => Some(Topic::Block),
            What::Sched { .. } => Some(Topic::Sched),
            What::Lookup { .. } => Some(Topic::Dns),
            What::Lock { .. } => Some(Topic::Locks),
            What::Pressure { .. } => None,
        }
    }

    /// Whether it depends on calls too short to be recorded by default.
    pub fn needs_all_calls(&self) -> bool {
        matches!(self.what, What::Request { .. })
    }

    /// Whether this machine reports it.
    pub fn is_reported(&self) -> bool {
        match self.what {
            What::Pressure { resource, .. } => {
                pressure::read(Path::new(pressure::FOLDER), resource).is_some()
            }
            _ => true,
        }
    }
}

/// Error in a condition, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhenError {
    /// The complete text.
    pub text: String,
    /// Characters before the position.
    pub at: usize,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for WhenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (character {})", self.why, self.at + 1)?;
        writeln!(f, "  {}", self.text)?;
        write!(f, "  {:>width$}", "^", width = self.at + 1)
    }
}

impl std::error::Error for WhenError {}

/// Groups of calls; calls that do not only concern files are filtered by descriptor.
const OPENS: &[&str] = &["open", "openat", "openat2", "creat"];
const READS: &[&str] = &[
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "getdents64",
];
const WRITES: &[&str] = &["write", "pwrite64", "writev", "pwritev", "pwritev2"];

/// Parses the terms of a condition, one of which must hold. `duration` parses a duration.
pub fn parse_when(
    text: &str,
    duration: impl Fn(&str) -> Result<i64, String>,
) -> Result<Vec<Term>, WhenError> {
    let mut terms = Vec::new();
    let mut begin = 0;
    for part in text.split('|') {
        let blank = part.len() - part.trim_start().len();
        let place = Place {
            text,
            at: begin + blank,
        };
        terms.push(term(part.trim(), &place, &duration)?);
        begin += part.len() + 1;
    }
    Ok(terms)
}

/// A part of the text, with its offset in bytes.
struct Place<'t> {
    text: &'t str,
    at: usize,
}

impl Place<'_> {
    fn fail(&self, bytes: usize, why: impl Into<String>) -> WhenError {
        let before = self.text.get(..self.at + bytes).unwrap_or(self.text);
        WhenError {
            text: self.text.to_owned(),
            at: before.chars().count(),
            why: why.into(),
        }
    }
}

fn term(
    part: &str,
    place: &Place<'_>,
    duration: impl Fn(&str) -> Result<i64, String>,
) -> Result<Term, WhenError> {
    if part.is_empty() {
        return Err(place.fail(0, "missing condition, e.g. open>200ms"));
    }
    let Some((name, limit)) = part.split_once('>') else {
        return Err(place.fail(part.len(), "missing `>` and limit, e.g. open>200ms"));
    };
    let name = name.trim_end();
    let at_limit = part.len() - limit.trim_start().len();
    let limit = limit.trim();
    if limit.is_empty() {
        return Err(place.fail(part.len(), "missing limit, e.g. open>200ms"));
    }
    let what = if let Some(resource) = name.strip_prefix("psi.") {
        part_of_time(resource, limit, place, at_limit)?
    } else {
        let ns = duration(limit).map_err(|why| place.fail(at_limit, why))?;
        let longer_ns = u64::try_from(ns).unwrap_or(0);
        timed(name, longer_ns).ok_or_else(|| {
            let why = format!(
                "unknown condition `{name}`: use a system call or one of open, read, write, sync, io, request, block, sched, dns, lock, psi.cpu, psi.io, psi.memory"
            );
            place.fail(0, why)
        })?
    };
    Ok(Term {
        text: format!("{name}>{limit}"),
        what,
    })
}

fn timed(name: &str, longer_ns: u64) -> Option<What> {
    let of_class = |op| syscall::members(op).map(|call| call.name);
    let (names, of_files) = match name {
        "request" => return Some(What::Request { longer_ns }),
        "block" => return Some(What::Block { longer_ns }),
        "sched" => return Some(What::Sched { longer_ns }),
        "dns" => return Some(What::Lookup { longer_ns }),
        "lock" => return Some(What::Lock { longer_ns }),
        "open" => (OPENS.to_vec(), false),
        "read" => (READS.to_vec(), true),
        "write" => (WRITES.to_vec(), true),
        "sync" => (of_class(Op::Sync).collect(), false),
        "io" => {
            let classes = [Op::Sync, Op::Metadata, Op::ReadWrite];
            let of_classes = classes.into_iter().flat_map(of_class);
            let groups = [OPENS, READS, WRITES].into_iter().flatten().copied();
            (groups.chain(of_classes).collect(), true)
        }
        name => {
            let abis = [Abi::X86_64, Abi::Aarch64, Abi::I386, Abi::Arm];
            let mut numbers = abis
                .into_iter()
                .filter_map(|abi| Some((abi, syscall::number_of(abi, name)?)));
            let (abi, nr) = numbers.next()?;
            (vec![syscall::number_name(abi, nr.into())?], false)
        }
    };
    Some(What::Call {
        names,
        of_files,
        longer_ns,
    })
}

fn part_of_time(
    resource: &str,
    limit: &str,
    place: &Place<'_>,
    at_limit: usize,
) -> Result<What, WhenError> {
    let known = ["cpu", "io", "memory"];
    let Some(resource) = known.into_iter().find(|known| *known == resource) else {
        let why = format!("unknown condition `psi.{resource}`: use psi.cpu, psi.io or psi.memory");
        return Err(place.fail(0, why));
    };
    let number = limit.strip_suffix('%').unwrap_or(limit).trim_end();
    let percent = number.parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..100.0).contains(percent));
    let percent = percent.ok_or_else(|| {
        let why = format!("invalid limit `{limit}`: use a percentage below 100, e.g. 40");
        place.fail(at_limit, why)
    })?;
    Ok(What::Pressure { resource, percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Result<i64, String> {
        let number = text.strip_suffix("ms").ok_or("no unit")?;
        let number: i64 = number.parse().map_err(|_| "no number")?;
        Ok(number * 1_000_000)
    }

    #[test]
    fn terms_are_read_with_and_without_blanks() {
        let terms = parse_when(" open>200ms|block > 100ms |psi.io>40 | sched>5ms", ms).unwrap();
        let texts: Vec<_> = terms.iter().map(|term| term.text.as_str()).collect();
        assert_eq!(
            texts,
            ["open>200ms", "block>100ms", "psi.io>40", "sched>5ms"]
        );
        let What::Call {
            names,
            of_files,
            longer_ns,
        } = &terms[0].what
        else {
            panic!("{terms:?}");
        };
        assert!(names.contains(&"openat") && !names.contains(&"socket"));
        assert_eq!((*of_files, *longer_ns), (false, 200_000_000));
        let expected = What::Block {
            longer_ns: 100_000_000,
        };
        assert_eq!(terms[1].what, expected);
        let expected = What::Pressure {
            resource: "io",
            percent: 40.0,
        };
        assert_eq!(terms[2].what, expected);
        let one = parse_when("clock_nanosleep>1ms", ms).unwrap();
        assert!(matches!(&one[0].what, What::Call { names, .. } if names == &["clock_nanosleep"]));
        let request = parse_when("request>300ms", ms).unwrap();
        let longer_ns = 300_000_000;
        assert_eq!(request[0].what, What::Request { longer_ns });
        assert_eq!(request[0].topic(), Some(Topic::Syscalls));
        assert!(request[0].needs_all_calls() && !one[0].needs_all_calls());
        assert!(parse_when("psi.cpu>12.5%", ms).is_ok());
        let io = parse_when("io>1ms", ms).unwrap();
        let What::Call { names, .. } = &io[0].what else {
            panic!("{io:?}");
        };
        for name in ["openat", "read", "fsync", "renameat2", "sendfile"] {
            assert!(names.contains(&name), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let check = |text: &str, at: usize, part: &str| {
            let error = parse_when(text, ms).unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.why.contains(part), "{error}");
        };
        check("", 0, "missing");
        check("open>1ms||block>1ms", 9, "missing");
        check("open>1ms | opne>1ms", 11, "unknown condition `opne`");
        check("open", 4, "`>`");
        check("open>", 5, "limit");
        check("open>  200", 7, "no unit");
        check("öpen>1ms", 0, "unknown condition");
        check("open>ö|x", 5, "no unit");
        check("psi.disk>4", 0, "psi.memory");
        check("psi.io>101", 7, "percentage");
        check("psi.io>NaN", 7, "percentage");
        let error = parse_when("open>1ms | opne>1ms", ms).unwrap_err();
        assert!(error.to_string().ends_with("\n             ^"), "{error}");
    }
}
