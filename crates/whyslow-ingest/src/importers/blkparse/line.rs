//! Parser for one line of blkparse output.
//!
//! ```text
//!   7,0    0       12     0.000877860   104  M  WS 2064 + 8 [dd]       submitter
//!   7,0    0       13     0.047593620    22  C  WS 0 + 1024 [0]        error
//!   7,0    0        1     0.000000000   104  A  WS 2048 + 8 <- (7,1) 0
//!   7,0    0       90     0.001200000   104  X  WS 0 / 1280 [dd]
//!   8,0    0       91     0.001300000   104  D   R 36 (12 00 00) [x]   a command, with its bytes
//! ```
//!
//! The columns before the action are those of the default format. In a custom format (`-f`) CPU,
//! sequence number and tid may be missing, and device and time may be exchanged.

use whyslow_model::Ns;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'t> {
    pub(super) device: i64,
    pub(super) cpu: Option<i32>,
    pub(super) ts: Ns,
    pub(super) tid: Option<i32>,
    pub(super) action: Action,
    pub(super) rwbs: &'t str,
    pub(super) sector: i64,
    pub(super) sectors: i64,
    /// Size of a command.
    pub(super) bytes: Option<i64>,
    pub(super) comm: Option<&'t str>,
    pub(super) error: i32,
    /// Device and sector that the I/O was remapped from.
    pub(super) from: Option<(i64, i64)>,
    pub(super) split: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Queue,
    BackMerge,
    FrontMerge,
    GetRequest,
    Requeue,
    Issue,
    Complete,
    Insert,
    Split,
    Remap,
    /// An action without a table, by name.
    Other(&'static str),
}

impl Action {
    fn of(letters: &str) -> Option<Self> {
        Some(match letters {
            "Q" => Self::Queue,
            "M" => Self::BackMerge,
            "F" => Self::FrontMerge,
            "G" => Self::GetRequest,
            "R" => Self::Requeue,
            "D" => Self::Issue,
            "C" => Self::Complete,
            "I" => Self::Insert,
            "X" => Self::Split,
            "A" => Self::Remap,
            "P" => Self::Other("plug"),
            "U" => Self::Other("unplug"),
            "UT" => Self::Other("unplug_timer"),
            "S" => Self::Other("sleep_request"),
            "B" => Self::Other("bounce"),
            "m" => Self::Other("message"),
            _ => return None,
        })
    }
}

/// Maximum number of words before the action.
const COLUMNS_MAX: usize = 8;

impl<'t> Line<'t> {
    pub(super) fn read(line: &'t str) -> Result<Self, &'static str> {
        let mut rest = line.trim();
        let (mut device, mut ts, mut action) = (None, None, None);
        let mut numbers = Vec::new();
        // Numbers precede the time (CPU, sequence number) or follow it (tid).
        let mut before_time = 0;
        for _ in 0..COLUMNS_MAX {
            let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let word = word.trim_end_matches(',');
            if let Some(known) = Action::of(word) {
                (action, rest) = (Some(known), behind.trim_start());
                break;
            }
            if let Some(found) = device_of(word) {
                device = Some(found);
            } else if let Some(found) = stamp(word) {
                ts = Some(found);
                before_time = numbers.len();
            } else {
                numbers.push(
                    word.parse::<u32>()
                        .map_err(|_| "unexpected word before the action")?,
                );
            }
            rest = behind.trim_start();
        }
        let action = action.ok_or("missing action (%a)")?;
        let number = |place: usize| {
            numbers
                .get(place)
                .and_then(|number| i32::try_from(*number).ok())
        };
        let mut read = Self {
            device: device.ok_or("missing device (%D)")?,
            cpu: (before_time > 0).then(|| number(0)).flatten(),
            ts: ts.ok_or("missing time (%T.%t)")?,
            tid: (numbers.len() > before_time)
                .then(|| number(before_time))
                .flatten(),
            action,
            rwbs: "N",
            sector: 0,
            sectors: 0,
            bytes: None,
            comm: None,
            error: 0,
            from: None,
            split: None,
        };
        if action != Action::Other("message") {
            let (rwbs, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            if rwbs.is_empty() || !rwbs.bytes().all(|letter| b"RWDFNASM".contains(&letter)) {
                return Err("missing direction (%d)");
            }
            read.rwbs = rwbs;
            read.details(behind.trim())?;
        }
        Ok(read)
    }

    /// Parses what follows the direction.
    fn details(&mut self, text: &'t str) -> Result<(), &'static str> {
        let (head, inside) = bracket(text);
        if self.action == Action::Complete {
            // Negative errors are printed as 16-bit numbers. A custom format may have a name here.
            let error = inside.and_then(|inside| inside.parse::<i32>().ok());
            self.error = error.map_or(0, |error| i32::from(error as i16));
        } else {
            self.comm = inside.filter(|comm| !comm.is_empty() && *comm != "(null)");
        }
        if matches!(self.action, Action::Other(_)) {
            return Ok(());
        }
        // A duration (-t) or the bytes of a command.
        let (head, is_command) = match head.split_once('(') {
            Some((before, _)) if self.action != Action::Remap => (
                before.trim(),
                !before.contains('+') && !before.trim().is_empty(),
            ),
            _ => (head, false),
        };
        const BROKEN: &str = "invalid sector";
        let mut words = head.split_ascii_whitespace();
        let mut number = || match words.next() {
            Some(word) => word.parse::<i64>().map(Some).map_err(|_| BROKEN),
            None => Ok(None),
        };
        let Some(first) = number()? else {
            return Ok(());
        };
        if is_command && self.action != Action::Complete {
            (self.bytes, self.sectors) = (Some(first), first >> 9);
            return Ok(());
        }
        self.sector = first;
        match (words.next(), words.next()) {
            (Some("+"), Some(count)) => self.sectors = count.parse().map_err(|_| BROKEN)?,
            (Some("/"), Some(at)) => self.split = Some(at.parse().map_err(|_| BROKEN)?),
            (None, None) => {}
            _ => return Err(BROKEN),
        }
        if self.action == Action::Remap {
            let (Some("<-"), Some(device), Some(sector)) =
                (words.next(), words.next(), words.next())
            else {
                return Err("missing source of a remap");
            };
            let device = device_of(device.trim_matches(['(', ')'])).ok_or(BROKEN)?;
            self.from = Some((device, sector.parse().map_err(|_| BROKEN)?));
        }
        // In a custom format the length gives the sector of the split.
        if self.action == Action::Split && self.split.is_none() {
            self.split = self.sector.checked_add(self.sectors);
            self.sectors = 0;
        }
        Ok(())
    }
}

/// Text before `[…]`, and the text inside; names may contain brackets, too.
fn bracket(text: &str) -> (&str, Option<&str>) {
    let Some(open) = text.find('[') else {
        return (text.trim(), None);
    };
    let inside = &text[open + 1..];
    let inside = inside.rfind(']').map_or(inside, |close| &inside[..close]);
    (text[..open].trim(), Some(inside))
}

/// `7,0` in the kernel's encoding of device numbers.
fn device_of(word: &str) -> Option<i64> {
    let (major, minor) = word.split_once(',')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(i64::from(major) << 20 | i64::from(minor))
}

/// Seconds with nine decimals.
fn stamp(word: &str) -> Option<Ns> {
    let (seconds, ns) = word.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if ns.len() != 9 || !is_number(ns) || !is_number(seconds) {
        return None;
    }
    let seconds: Ns = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(ns.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds_are_taken_apart() {
        let read = |line| Line::read(line).unwrap_or_else(|what| panic!("{line}: {what}"));
        let line = read("  7,0    3       12     1.000877860   104  M  WS 2064 + 8 [d [x]]");
        assert_eq!(
            (line.device, line.cpu, line.tid),
            (7 << 20, Some(3), Some(104))
        );
        assert_eq!((line.ts, line.action), (1_000_877_860, Action::BackMerge));
        assert_eq!(
            (line.sector, line.sectors, line.comm),
            (2064, 8, Some("d [x]"))
        );
        let line = read("8,16 0 1 0.000000001 22 C FWFSM 1024 + 16 ( 12345) [65531]");
        assert_eq!((line.rwbs, line.sector, line.error), ("FWFSM", 1024, -5));
        let line = read("7,0 0 1 0.000000000 104 A WS 2048 + 8 <- (7,1) 0");
        assert_eq!(line.from, Some((7 << 20 | 1, 0)));
        let line = read("7,0 0 1 0.000000000 104 X WS 0 / 1280 [dd]");
        assert_eq!((line.sector, line.split), (0, Some(1280)));
        let line = read("8,0 0 1 0.000000000 104 D R 1024 (12 00 00) [x]");
        assert_eq!(
            (line.bytes, line.sectors, line.comm),
            (Some(1024), 2, Some("x"))
        );
        let line = read("8,0 0 1 0.000000000 104 C R (12 00 00) [0]");
        assert_eq!((line.sector, line.error), (0, 0));
        let line = read("7,0 0 0 0.049073381 24597 Q FWS [(null)]");
        assert_eq!((line.sectors, line.comm), (0, None));
        let line = read("7,0 0 0 0.057958690 14 C FN 0 [0]");
        assert_eq!((line.sectors, line.sector), (0, 0));
        let line = read("7,0 0 0 0.000000001 104 UT N [dd] 1");
        assert_eq!(line.action, Action::Other("unplug_timer"));
        let line = read("7,0 0 0 0.000000001 104 m N some words: 3");
        assert_eq!(line.action, Action::Other("message"));
    }

    #[test]
    fn columns_may_be_left_out_or_change_places() {
        let line = Line::read("0.000000005 8,1 Q R 5 + 8 [a b]").expect("a line");
        assert_eq!(
            (line.cpu, line.tid, line.ts, line.comm),
            (None, None, 5, Some("a b"))
        );
        let line = Line::read("8,1 2 0.000000005 77 Q R 5 + 8").expect("a line");
        assert_eq!((line.cpu, line.tid, line.comm), (Some(2), Some(77), None));
        for line in [
            "",
            "8,1",
            "8,1 0.000000005 Q",
            "8,1 Q R 5 + 8",
            "0.000000001 Q R 5 + 8",
            "8,1 0.1 Q R 1 + 1",
        ] {
            assert!(Line::read(line).is_err(), "{line}");
        }
    }
}
