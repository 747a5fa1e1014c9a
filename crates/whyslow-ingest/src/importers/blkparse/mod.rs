//! What blkparse prints: a line for each step of a request to a block device.
//!
//! Each line becomes one of the text format ([`super::text`]), as those of ftrace do.

mod line;

use std::collections::{BTreeMap, HashMap, HashSet};

use whyslow_model::Ns;
use whyslow_model::event::{BlockRange, Body, Context, Event, Loss, LossKind};

use super::Bad;
use super::{rwbs, text};
use line::{Action, Line};

/// A file in the text format.
#[derive(Debug, Default)]
pub struct Translated {
    /// Its lines, for [`super::text`].
    pub text: String,
    /// The first lines that are not understood.
    pub bad: Vec<Bad>,
    /// Number of all such lines.
    pub bad_count: u64,
    /// Events that no table holds, by name.
    pub unused: BTreeMap<String, u64>,
    /// Events that were translated.
    pub events: u64,
}

/// What lines say of others.
#[derive(Debug, Default)]
struct Known<'t> {
    /// Devices that requests were issued to.
    issued: HashSet<i64>,
    /// The first name of each thread.
    comms: HashMap<i32, &'t str>,
}

/// Whether these first lines are of such a file.
pub fn is_log(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !is_remark(line));
    lines.next().is_some_and(|line| Line::read(line).is_ok())
}

/// `written` is when the file was written last: the trace ends about then, as its times count from its begin.
pub fn translate(log: &str, written: Option<Ns>, bad_max: usize) -> Translated {
    let mut known = Known::default();
    let (mut first, mut last): (Option<Ns>, Option<Ns>) = (None, None);
    for line in log.lines().filter_map(|line| Line::read(line).ok()) {
        first = Some(first.map_or(line.ts, |first| first.min(line.ts)));
        last = last.max(Some(line.ts));
        if line.action == Action::Issue {
            known.issued.insert(line.device);
        }
        if let (Some(tid), Some(comm)) = (line.tid, line.comm) {
            known.comms.entry(tid).or_insert(comm);
        }
    }
    let shift = match (written, last) {
        (Some(written), Some(last)) => written.saturating_sub(last),
        _ => 0,
    };
    let mut done = Translated {
        text: format!("{}\n", text::MAGIC),
        ..Translated::default()
    };
    let mut offset = 0;
    for (number, line) in log.split_inclusive('\n').enumerate() {
        if let (Some(skips), Some(first), Some(last)) = (Skips::read(line), first, last) {
            // Between which of its records they were is not told.
            let loss = Loss {
                ts: first.saturating_add(shift),
                ts_end: Some(last.saturating_add(shift)),
                cpu: None,
                stream: "blkparse",
                kind: LossKind::Events,
                count: skips.count,
            };
            text::write_loss(&loss, &mut done.text);
        } else if !is_remark(line) {
            match Line::read(line) {
                Ok(line) => done.event(&line, shift, &known),
                Err(what) => {
                    done.bad_count += 1;
                    if done.bad.len() < bad_max {
                        done.bad.push(Bad {
                            line: number + 1,
                            offset,
                            what: what.to_owned(),
                        });
                    }
                }
            }
        }
        offset += line.len();
    }
    done
}

impl Translated {
    fn event(&mut self, line: &Line<'_>, shift: Ns, known: &Known<'_>) {
        self.events += 1;
        if let Action::Other(name) = line.action {
            *self.unused.entry(format!("blkparse:{name}")).or_default() += 1;
            return;
        }
        // Some lines have something else where the name stands in others.
        let by_number = || line.tid.and_then(|tid| known.comms.get(&tid).copied());
        let event = Event {
            ts: line.ts.saturating_add(shift),
            cpu: line.cpu,
            context: Context {
                tid: line.tid,
                comm: line.comm.or_else(by_number).map(str::as_bytes),
                ..Context::default()
            },
            body: body_of(line, &known.issued),
        };
        text::write_event(&event, &mut self.text);
    }
}

fn body_of<'a>(line: &Line<'_>, issued: &HashSet<i64>) -> Body<'a> {
    // A flush that the kernel makes itself has no direction.
    let letters = if line.rwbs == "FN" { "FF" } else { line.rwbs };
    let range = BlockRange {
        dev: line.device,
        sector: line.sector,
        sectors: line.sectors,
        bytes: line.bytes,
        flags: rwbs::from_text(letters.as_bytes(), line.sectors),
        tid: None,
        comm: None,
    };
    let error = Some(line.error);
    match line.action {
        Action::Queue => Body::BlockBioQueue(range),
        Action::BackMerge => Body::BlockBioBackmerge(range),
        Action::FrontMerge => Body::BlockBioFrontmerge(range),
        Action::GetRequest => Body::BlockGetRq(range),
        Action::Requeue => Body::BlockRqRequeue(range),
        Action::Issue => Body::BlockRqIssue(range),
        // What a device that is made of others completes was never issued.
        Action::Complete if issued.contains(&line.device) => Body::BlockRqComplete { range, error },
        Action::Complete => Body::BlockBioComplete { range, error },
        Action::Insert => Body::BlockRqInsert(range),
        Action::Split => Body::BlockSplit {
            range,
            new_sector: line.split.unwrap_or(line.sector),
        },
        Action::Remap => {
            let (old_dev, old_sector) = line.from.unwrap_or((line.device, line.sector));
            Body::BlockBioRemap {
                range,
                old_dev,
                old_sector,
            }
        }
        Action::Other(_) => Body::Other,
    }
}

/// Records of a device that are missing by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Skips {
    count: Option<i64>,
}

impl Skips {
    /// `Skips: 12 forward (1,234 -   0.5%)`: how often, how many; those of none say nothing.
    fn read(line: &str) -> Option<Self> {
        let (times, rest) = line.trim().strip_prefix("Skips:")?.split_once("forward")?;
        let (count, _) = rest.split_once('(')?.1.rsplit_once('-')?;
        let number = |text: &str| {
            // Thousands are parted as the locale has it; great numbers end with a letter.
            let digits: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
            digits.parse::<i64>().ok()
        };
        let count = number(count);
        (number(times) != Some(0) && count != Some(0)).then_some(Self { count })
    }
}

/// What blkparse says besides: sums behind the events, names of files.
fn is_remark(line: &str) -> bool {
    const BEGINS: [&str; 19] = [
        "CPU",
        "Total (",
        "Reads ",
        "Read ",
        "IO unplugs",
        "Writes ",
        "Throughput",
        "Events (",
        "Skips",
        "Input file",
        "Throughput (",
        "PC ",
        "Rd ",
        "Disk ",
        "Device ",
        "Allocation wait",
        "Dispatch wait",
        "Completion wait",
        "=",
    ];
    let line = line.trim();
    line.is_empty() || BEGINS.iter().any(|begin| line.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_blkparse_missed_is_a_loss_over_the_whole_file() {
        let log = |skips: &str| {
            let line = |ts| format!("  7,0 0 1 {ts}.000000000 104 Q R 2048 + 8 [dd]\n");
            format!("{}{}\nEvents (7,0): 2 entries\n{skips}\n", line(1), line(3))
        };
        let lost = |skips: &str| {
            let done = translate(&log(skips), None, 5);
            assert_eq!(done.bad_count, 0);
            let mut lines = done.text.lines().map(str::to_owned);
            lines.find(|line| line.contains(" lost "))
        };
        let loss = "1.000000000 [-] lost kind=events until=3.000000000";
        let expected = format!("{loss} count=1234 stream=blkparse");
        assert_eq!(lost("Skips: 12 forward (1,234 -   0.5%)"), Some(expected));
        let expected = format!("{loss} stream=blkparse");
        assert_eq!(lost("Skips: 12 forward (1,234K -   0.5%)"), Some(expected));
        assert_eq!(lost("Skips: 0 forward (0 -   0.0%)"), None);
    }
}
