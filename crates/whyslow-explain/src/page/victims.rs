//! WHO: the operations that were slow because of the culprit.

use std::fmt::Write as _;

use whyslow_model::Ns;

use super::Drawn;
use super::model::Victim;
use super::names::{call, count, shortened};
use crate::report::Also;
use crate::sentence::length;

/// Victims besides the explained operation that are listed.
const OTHERS: usize = 2;

impl Drawn<'_> {
    /// The explained operation, and other slow operations of the same culprit.
    pub(super) fn victims(&self) -> Vec<Victim> {
        let finding = self.finding;
        let (target, group) = (&finding.target, finding.group.as_ref());
        let usual = finding.baseline.as_ref();
        let first = Victim {
            actor: target.actor.clone(),
            what: operation(&target.kind, &target.what),
            count: group.map_or(1, |group| group.count),
            of: self.number_of_all(),
            dur_ns_max: group.map_or(self.length(), |group| group.dur_ns_max),
            usual_ns: usual.map(|usual| usual.median_ns),
            id: target.id.clone(),
        };
        let others = self.others().map(|also| Victim {
            actor: also.actor.clone(),
            what: operation("operation", &also.what),
            count: also.count,
            of: None,
            dur_ns_max: also.dur_ns,
            usual_ns: None,
            id: also.id.clone(),
        });
        std::iter::once(first).chain(others).collect()
    }

    /// Slow operations of other threads than the culprit.
    fn others(&self) -> impl Iterator<Item = &Also> {
        let culprit = self.culprit.map(|part| &part.culprit);
        let also = self.finding.also.iter();
        also.filter(move |also| culprit.is_none_or(|culprit| culprit.pid != also.actor.pid))
    }

    /// Number of all operations of the kind, slow or not.
    fn number_of_all(&self) -> Option<u64> {
        let finding = self.finding;
        let of_group = finding.group.as_ref().and_then(|group| group.all);
        let of_baseline = finding.baseline.as_ref().filter(|usual| {
            // The calls of the other side of a comparison are other calls.
            finding.target.kind != "request" && !usual.of.ends_with("in the comparison")
        });
        of_group.or(of_baseline.map(|usual| usual.count))
    }

    pub(super) fn who(&self, victims: &[Victim]) -> String {
        let Some(first) = victims.first() else {
            return String::new();
        };
        let mut text = format!("{}: {}.", self.threads(), self.what(first));
        let others: Vec<String> = victims[1..]
            .iter()
            .take(OTHERS)
            .map(|victim| {
                let actor = self.names.actor(&victim.actor);
                let took = length(victim.dur_ns_max);
                match victim.count {
                    1 => format!("{} of {actor} ({took})", victim.what),
                    many => format!("{} {} of {actor} (up to {took})", count(many), victim.what),
                }
            })
            .collect();
        if !others.is_empty() {
            let more = victims.len() - 1 - others.len();
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let _ = write!(text, " Also slowed: {}{more}.", others.join(", "));
        } else if self.other().is_some() && self.finding.group.is_some() {
            // Others were looked for.
            text.push_str(" No other slow operation was attributed to it.");
        }
        text
    }

    /// The slow thread, and the number of others.
    fn threads(&self) -> String {
        let actor = self.names.actor(&self.finding.target.actor);
        let group = self.finding.group.as_ref();
        let (threads, processes) = group.map_or((1, 1), |group| (group.threads, group.processes));
        // Four processes of one name are not one process that made four calls.
        let (others, name) = match processes {
            0 | 1 => (threads.saturating_sub(1), ["thread", "threads"]),
            many => (many - 1, ["process", "processes"]),
        };
        match others {
            0 => actor,
            1 => format!("{actor} and another {}", name[0]),
            many => format!("{actor} and {many} other {}", name[1]),
        }
    }

    /// `2 of 1,031 openat() took 403 and 405 ms (typically 59.0 us)`.
    fn what(&self, victim: &Victim) -> String {
        let finding = self.finding;
        let typically = victim
            .usual_ns
            .map_or_else(String::new, |usual| format!("typically {}", length(usual)));
        let in_parentheses = |text: &str| match text {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        let took = length(self.length());
        match finding.target.kind.as_str() {
            "operation" | "lookup" | "query" => {
                let (number, took) = self.durations(victim);
                let usual = in_parentheses(&typically);
                format!("{number}{} took {took}{usual}", victim.what)
            }
            "request" => {
                let usual = in_parentheses(&typically);
                let mut text = format!("{} took {took}{usual}", victim.what);
                if victim.count > 1 {
                    let of = victim
                        .of
                        .map_or_else(String::new, |all| format!(" of {}", count(all)));
                    let longest = length(victim.dur_ns_max);
                    let _ = write!(
                        text,
                        "; {}{of} requests were slow, up to {longest}",
                        count(victim.count)
                    );
                }
                text
            }
            "thread" => match &finding.group {
                // Its waits with their sum.
                Some(_) => victim.what.clone(),
                None => format!("{} ({took})", victim.what),
            },
            _ => {
                let total = finding.group.as_ref().map_or(0, |group| group.dur_ns_total);
                let more = match victim.count {
                    0 | 1 => String::new(),
                    many => format!("; {} of these, {} in total", count(many), length(total)),
                };
                format!("{} took {took}{more}", victim.what)
            }
        }
    }

    /// `2 of 1,031 ` and `403 and 405 ms`: at most two figures.
    fn durations(&self, victim: &Victim) -> (String, String) {
        let total = self
            .finding
            .group
            .as_ref()
            .map_or(0, |group| group.dur_ns_total);
        let of = victim
            .of
            .filter(|all| *all >= victim.count)
            .map(|all| format!("{} of {} ", count(victim.count), count(all)));
        let longest = victim.dur_ns_max;
        match (victim.count, of) {
            (0 | 1, of) => (of.unwrap_or_default(), length(self.length())),
            (many, of) => {
                let number = of.unwrap_or_else(|| format!("{} ", count(many)));
                let took = match many {
                    2 => both(total - longest, longest),
                    _ => format!("up to {}, {} in total", length(longest), length(total)),
                };
                (number, took)
            }
        }
    }
}

/// The operation without its file, which the drawing shows.
fn operation(kind: &str, what: &str) -> String {
    if kind != "operation" {
        return shortened(what);
    }
    // Only a path is in parentheses, and it may contain some, too.
    what.split_once('(')
        .map_or_else(|| call(what), |(name, _)| call(name))
}

/// `403 and 405 ms`.
fn both(shorter: Ns, longer: Ns) -> String {
    let (first, second) = (length(shorter), length(longer));
    match (first.rsplit_once(' '), second.rsplit_once(' ')) {
        _ if first == second => format!("{second} each"),
        (Some((number, unit)), Some((_, other))) if unit == other => {
            format!("{number} and {second}")
        }
        _ => format!("{first} and {second}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_durations_share_a_unit() {
        assert_eq!(both(403_000_000, 405_000_000), "403 and 405 ms");
        assert_eq!(both(405_100_000, 405_200_000), "405 ms each");
        assert_eq!(both(900_000_000, 1_200_000_000), "900 ms and 1.20 s");
    }

    #[test]
    fn an_operation_is_named_without_its_file() {
        assert_eq!(operation("operation", "openat(/tmp/a(1))"), "openat()");
        assert_eq!(operation("operation", "sync"), "sync()");
        assert_eq!(operation("lookup", "DNS lookup of db"), "DNS lookup of db");
    }
}
