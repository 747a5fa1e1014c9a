use whyslow_model::{Ns, Window};

use super::calendar::Calendar;
use super::duration::parse_duration;
use super::moment::Moment;

/// An operation by its id, as shown in rows: `op:17` (a system call), `block:3`, …
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRef {
    /// Table that contains the row.
    pub table: &'static str,
    /// Number of the row.
    pub id: i64,
}

impl OperationRef {
    /// `None` if the text is not a reference.
    pub fn parse(text: &str) -> Option<Result<Self, String>> {
        let (kind, id) = text.trim().split_once(':')?;
        let table = match kind {
            "op" | "syscall" => "syscall",
            "block" | "block_io" => "block_io",
            "state" | "thread_state" => "thread_state",
            "file" | "file_life" => "file_life",
            "fd" | "fd_life" => "fd_life",
            "irq" => "irq",
            "slice" | "sched_slice" => "sched_slice",
            "reclaim" => "reclaim",
            "dns" | "dns_lookup" => "dns_lookup",
            "query" | "dns_query" => "dns_query",
            "function" | "function_call" => "function_call",
            "lock" | "lock_wait" => "lock_wait",
            "item" | "work_item" => "work_item",
            "tcp" | "tcp_connection" => "tcp_connection",
            "signal" => "signal",
            "stack" | "stack_sample" => "stack_sample",
            "gap" | "sample_gap" => "sample_gap",
            "runtime" | "runtime_event" => "runtime_event",
            "request" => "request",
            "phase" | "request_phase" => "request_phase",
            "finding" => {
                return Some(Err(format!(
                    "`{kind}:` is not supported yet: write op:ID, with the id of a row of `top` or `log`"
                )));
            }
            _ => return None,
        };
        Some(match id.parse() {
            Ok(id) => Ok(Self { table, id }),
            Err(_) => Err(format!("`{id}` in `{text}` is not an id (an integer)")),
        })
    }
}

/// A window as written, not yet resolved against a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowText {
    /// `A..B`, `[A,B]`, `A..`, `..B`.
    Between(Option<Moment>, Option<Moment>),
    /// `A+437ms`.
    From(Moment, Ns),
    /// `T~200ms`: a window of this length centred on T.
    Around(Moment, Ns),
    /// `last 5s`: the end of the recording, or all of a shorter one.
    Last(Ns),
    /// `op:17`: from the start to the end of the operation.
    Operation(OperationRef),
}

/// A duration that is not zero: a window without a length contains nothing.
pub fn parse_length(text: &str) -> Result<Ns, String> {
    match parse_duration(text)? {
        length if length > 0 => Ok(length),
        _ => Err(format!("`{text}` is not the length of a window")),
    }
}

impl WindowText {
    /// Parses `A..B`, `A+437ms`, `T~200ms`, `last 5s` or `op:ID`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(length) = text.strip_prefix("last")
            && length.starts_with([' ', '='])
        {
            let length = length.trim_start_matches([' ', '=']);
            return parse_length(length).map(Self::Last);
        }
        if let Some(operation) = OperationRef::parse(text) {
            return operation.map(WindowText::Operation);
        }
        if let Some(inner) = text.strip_prefix('[') {
            // Copied from rows of lttng-analyses, where a `*` may follow the bracket.
            let inner = inner
                .trim_end_matches('*')
                .strip_suffix(']')
                .ok_or_else(|| format!("`{text}` starts with `[` and does not end with `]`"))?;
            let (begin, end) = inner
                .split_once(',')
                .ok_or_else(|| format!("`{text}` has no comma between start and end"))?;
            return Self::between(begin, end);
        }
        if let Some((begin, end)) = text.split_once("..") {
            return Self::between(begin, end);
        }
        if let Some((middle, length)) = text.split_once('~') {
            return Ok(Self::Around(
                Moment::parse(middle)?,
                parse_duration(length)?,
            ));
        }
        // A `+` that is neither the first character nor a zone offset precedes a duration.
        if let Some((begin, length)) = text.rsplit_once('+')
            && !begin.is_empty()
            && let Ok(length) = parse_duration(length)
        {
            return Ok(Self::From(Moment::parse(begin)?, length));
        }
        Moment::parse(text)?;
        Err(format!(
            "`{text}` is a point in time, not a window: write {text}..END, {text}+200ms or {text}~200ms"
        ))
    }

    /// A window from two flags, either of which may be missing.
    pub fn between(begin: &str, end: &str) -> Result<Self, String> {
        let side = |text: &str| -> Result<Option<Moment>, String> {
            match text.trim() {
                "" => Ok(None),
                text => Moment::parse(text).map(Some),
            }
        };
        Ok(Self::Between(side(begin)?, side(end)?))
    }

    /// Resolves it against a recording; `look_up` finds an operation.
    pub fn resolve<E: From<String>>(
        &self,
        calendar: &Calendar,
        look_up: impl FnOnce(&OperationRef) -> Result<Window, E>,
    ) -> Result<Window, E> {
        let window = match self {
            WindowText::Between(begin, end) => {
                let begin_ns = match begin {
                    Some(moment) => moment.resolve(calendar, None)?,
                    None => calendar.begin,
                };
                let end_ns = match end {
                    // Without a start, a time of day must itself be unambiguous.
                    Some(moment) => moment.resolve(calendar, begin.as_ref().map(|_| begin_ns))?,
                    None => calendar.end.saturating_add(1),
                };
                Window::new(begin_ns, end_ns)
            }
            WindowText::From(begin, length) => {
                let begin = begin.resolve(calendar, None)?;
                Window::new(begin, begin.saturating_add(*length))
            }
            WindowText::Around(middle, length) => {
                let begin = middle.resolve(calendar, None)?.saturating_sub(length / 2);
                Window::new(begin, begin.saturating_add(*length))
            }
            WindowText::Last(length) => {
                let begin = calendar.end.saturating_sub(*length);
                Window::new(begin.max(calendar.begin), calendar.end.saturating_add(1))
            }
            WindowText::Operation(operation) => look_up(operation)?,
        };
        if window.end <= window.begin {
            return Err(E::from(
                "the window is empty or ends before it starts".to_owned(),
            ));
        }
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Zone;

    const BEGIN: Ns = 1_421_342_317_216_484_041;
    const END: Ns = 1_421_342_333_821_580_313;
    const T: Ns = 1_421_342_330_432_950_815;

    fn calendar() -> Calendar {
        Calendar {
            begin: BEGIN,
            end: END,
            zone: Zone::parse("America/New_York").expect("bundled"),
        }
    }

    fn resolve(text: &str) -> Result<(Ns, Ns), String> {
        let window = WindowText::parse(text)?.resolve(&calendar(), |operation| {
            match (operation.table, operation.id) {
                ("syscall", 17) => Ok(Window::new(T, T + 437_697_753)),
                ("block_io", 3) | ("request", 4) => Ok(Window::new(T, T + 1)),
                _ => Err("no such operation".to_owned()),
            }
        })?;
        Ok((window.begin, window.end))
    }

    #[test]
    fn each_form_of_a_window() {
        let second = 1_000_000_000;
        let check = |text: &str, begin: Ns, end: Ns| {
            assert_eq!(resolve(text), Ok((begin, end)), "{text}");
        };
        check(
            "[12:18:50.432950815,12:18:50.870648568]",
            T,
            T + 437_697_753,
        );
        check(
            "[12:18:50.432950815,12:18:50.870648568]*",
            T,
            T + 437_697_753,
        );
        check("12:18:50.432950815..12:18:50.870648568", T, T + 437_697_753);
        check(
            "12:18:50.432950815 .. 12:18:50.870648568",
            T,
            T + 437_697_753,
        );
        check(
            "2015-01-15 12:18:50.432950815..12:18:50.870648568",
            T,
            T + 437_697_753,
        );
        check("12:18:50.432950815+437ms", T, T + 437_000_000);
        check(
            "2015-01-15T17:18:50.432950815+00:00+437ms",
            T,
            T + 437_000_000,
        );
        check("12:18:50.432950815~200ms", T - 100_000_000, T + 100_000_000);
        check("+1s..+3.2s", BEGIN + second, BEGIN + 3_200_000_000);
        check("+1s+100ms", BEGIN + second, BEGIN + 1_100_000_000);
        check("-5s..-1s", END - 5 * second, END - second);
        check("-5s..", END - 5 * second, END + 1);
        check("last 5s", END - 5 * second, END + 1);
        check("last  500ms", END - second / 2, END + 1);
        // More than there is.
        check("last 1h", BEGIN, END + 1);
        check("..+2s", BEGIN, BEGIN + 2 * second);
        check("..", BEGIN, END + 1);
        check(
            "1421342330..1421342331",
            1_421_342_330 * second,
            1_421_342_331 * second,
        );
        check(
            "12:18:50..13:18:50",
            1_421_342_330 * second,
            1_421_345_930 * second,
        );
        check("op:17", T, T + 437_697_753);
        check("syscall:17", T, T + 437_697_753);
        check("block:3", T, T + 1);
        check("request:4", T, T + 1);
    }

    #[test]
    fn each_wrong_window_says_what_is_wrong() {
        let check = |text: &str, part: &str| {
            let message = resolve(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        };
        check("12:18:50", "a point in time");
        check("[12:18:50,12:18:51", "does not end with");
        check("[12:18:50]", "no comma");
        check("12:18:50+437", "not a time");
        check("12:18:50~437", "no unit");
        check("+3s..+1s", "before it starts");
        check("+3s..+3s", "before it starts");
        check("op:x", "not an id");
        check("last 5", "no unit");
        check("last 0s", "not the length of a window");
        check("last", "`last` is not a time");
        check("op:99", "no such operation");
        check("finding:1", "not supported yet");
        check("yesterday..today", "`yesterday` is not a time");
        check("", "is not a time");
    }
}
