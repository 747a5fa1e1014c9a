//! A spool of the recorder as a source of events.

use std::ops::ControlFlow;
use std::path::PathBuf;

use whyslow_model::Ns;
use whyslow_model::event::{Loss, LossKind, SyscallArgs};
use whyslow_model::recorder::RECORDER_PID;
use whyslow_model::spool::{ELSEWHERE, Record};
use whyslow_model::{stat, trigger};

use super::ImportError;
use super::account::LogEntry;
use super::session::{RowSink, Session};
use crate::clock::ClockRelation;
use crate::importers::spool::{
    Converted, LeaveOut, Mapper, Names, Place, Reading, SpoolReader, Step, Values, Window,
};

/// Name of the spool in tables.
const LABEL: &str = "spool";

/// Maximum number of clock steps that are listed individually.
const EXAMPLES_MAX: usize = 20;

/// An opened spool.
pub(super) struct SpoolSource {
    pub(super) path: PathBuf,
    pub(super) shift_ns: Ns,
    pub(super) leave_out: LeaveOut,
}

impl SpoolSource {
    pub(super) fn read<S: RowSink>(self, session: &mut Session<'_, S>) -> Result<(), ImportError> {
        let failed = |source| ImportError::Read {
            path: self.path.clone(),
            source,
        };
        let mut reader = SpoolReader::open(&self.path).map_err(failed)?;
        let (mut window, mut mapper) = (Window::default(), Mapper::new(Names::read(&self.path)));
        window.leave_out = self.leave_out;
        let (mut clock, mut is_empty) = (None, true);
        while let Some((block, payload)) = reader.next().map_err(failed)? {
            is_empty = false;
            window.add(payload, block.complete_until);
            if clock.is_none()
                && let Some((monotonic, boot)) = window.clocks.offsets()
            {
                clock = Some(monotonic.saturating_add(self.shift_ns));
                mapper.set_boot_offset(boot.saturating_add(self.shift_ns));
            }
            if let Some(architecture) = window.architecture.take() {
                mapper.set_architecture(&architecture);
            }
            let Some(offset) = clock else { continue };
            if emit(&mut window, &mut mapper, (offset, false), session).is_break() {
                break;
            }
            session.progress(reader.bytes_done, reader.bytes_total);
        }
        if is_empty {
            return Err(ImportError::EmptySpool { path: self.path });
        }
        let _ = emit(
            &mut window,
            &mut mapper,
            (clock.unwrap_or(self.shift_ns), true),
            session,
        );
        account(&reader, &window, session);
        account_clocks(&window, self.shift_ns, session);
        Ok(())
    }
}

/// Relation of the clocks at the start, and after each step.
fn account_clocks<S: RowSink>(window: &Window, shift_ns: Ns, session: &mut Session<'_, S>) {
    let (Some((offset, _)), Some(first)) = (window.clocks.offsets(), window.clocks.first()) else {
        return;
    };
    let offset = offset.saturating_add(shift_ns);
    let ts = |reading: &Reading| offset.saturating_add(reading.monotonic as i64);
    let last = window.clocks.last().unwrap_or(first);
    session.cover(ts(&first), ts(&last));
    let account = &mut session.account;
    let mut relate = |clock: &str, value, ts| {
        let relation = ClockRelation {
            clock: clock.into(),
            frequency: 1_000_000_000,
            value,
            ts,
            shift_ns,
        };
        account.add_clock(LABEL, relation);
    };
    relate("monotonic", 0, offset);
    let steps = window.clocks.steps.iter().map(|(reading, _)| *reading);
    for reading in std::iter::once(first).chain(steps) {
        relate("boottime", reading.boot as i64, ts(&reading));
        relate("realtime", reading.real, ts(&reading));
    }
    let [set, slept] = window.clocks.counts;
    let (mut sets, mut sleeps) = (Vec::new(), Vec::new());
    for (reading, step) in window.clocks.steps.iter().take(EXAMPLES_MAX) {
        let (examples, text) = match *step {
            Step::Set(ns) => (&mut sets, format!("set by {:+.3} s", ns as f64 / 1e9)),
            Step::Slept(ns) => (
                &mut sleeps,
                format!("suspended for {:.3} s", ns as f64 / 1e9),
            ),
        };
        examples.push(LogEntry {
            source: None,
            byte_offset: None,
            ts: Some(ts(reading)),
            text,
        });
    }
    account.add_anomaly(&stat::CLOCK_STEPPED, set, &sets);
    account.add_anomaly(&stat::MACHINE_SUSPENDED, slept, &sleeps);
}

/// Reports records that were dropped on purpose.
fn lose<S: RowSink>(window: &mut Window, offset: Ns, session: &mut Session<'_, S>) {
    for (ts, cpu) in window.lost.drain(..) {
        let ts = (ts as i64).saturating_add(offset);
        session.loss(&Loss {
            ts,
            ts_end: Some(ts),
            cpu: Some(i32::from(cpu)),
            stream: "dropped on purpose",
            kind: LossKind::Events,
            count: Some(1),
        });
    }
}

/// Passes on sorted records; `offset` converts their times to wall-clock time.
fn emit<S: RowSink>(
    window: &mut Window,
    mapper: &mut Mapper,
    (offset, at_end): (Ns, bool),
    session: &mut Session<'_, S>,
) -> ControlFlow<()> {
    lose(window, offset, session);
    let ready = window.ready(at_end);
    let mut unknown = 0;
    let begin = window.clocks.first().map_or(0, |first| first.monotonic);
    for ordered in &ready {
        let Some((head, record)) = window.record(ordered) else {
            continue;
        };
        let ts = (ordered.ts as i64).saturating_add(offset);
        let place = Place {
            ts,
            is_entry: ordered.is_entry(),
            pointed: ordered.pointed.as_deref(),
        };
        let mut frames = Vec::new();
        if let Record::Round(round) = record {
            window.rounds_missed += u64::from(round.missed);
            continue;
        }
        if matches!(record, Record::Stack(_) | Record::Lock(_) | Record::Wall(_)) {
            if let Some(event) = mapper.stack(&head, &record, place.ts, &mut frames) {
                session.event(event)?;
            }
            continue;
        }
        if matches!(
            record,
            Record::Function(_) | Record::FunctionEnd(_) | Record::Usdt(_)
        ) {
            let mut values = Values::new();
            match window.probe(&head, &record, place.ts, &mut values) {
                // Already in progress at the start of the spool.
                Some(event) if ordered.ts < begin => session.event_before(event)?,
                Some(event) => session.event(event)?,
                None => unknown += 1,
            }
            continue;
        }
        let mut args = SyscallArgs::default();
        let is_repeated = matches!(record, Record::Block(_)) && head.flags & ELSEWHERE != 0;
        match mapper.map(&head, &record, place, &mut args) {
            // Calls and requests in progress at the start of the spool are outside of its time
            // range.
            Converted::Event(event)
                if ordered.ts < begin && (ordered.is_entry() || is_repeated) =>
            {
                session.event_before(event)?;
            }
            Converted::Event(event) => session.event(event)?,
            Converted::Loss(loss) => session.loss(&loss),
            Converted::Fact(name, value) => add_fact(name, value, ts, session),
            Converted::Nothing => {}
        }
    }
    window.probes_unknown += unknown;
    window.forget();
    ControlFlow::Continue(())
}

/// Adds a fact, whose record has this time.
fn add_fact<S: RowSink>(name: &[u8], value: &[u8], ts: Ns, session: &mut Session<'_, S>) {
    let name = String::from_utf8_lossy(name);
    // Only here can its time be converted.
    let value = if name == trigger::TIME {
        ts.to_string().into()
    } else {
        String::from_utf8_lossy(value)
    };
    if name == RECORDER_PID
        && let Ok(pid) = value.parse()
    {
        session.expect_recorder(pid);
    }
    session.account.add_fact(LABEL, &name, &value);
}

fn account<S: RowSink>(reader: &SpoolReader, window: &Window, session: &mut Session<'_, S>) {
    let account = &mut session.account;
    account.add_records(window.read, window.damaged + window.probes_unknown);
    account.add_anomaly(&stat::SPOOL_RECORD_DAMAGED, window.damaged, &[]);
    account.add_anomaly(&stat::WALL_ROUNDS_MISSED, window.rounds_missed, &[]);
    account.add_anomaly(&stat::FUNCTION_UNKNOWN, window.probes_unknown, &[]);
    for (kind, count) in window.kinds.iter() {
        account.add_events(LABEL, &format!("{kind:?}"), count);
    }
    for damage in &reader.damages {
        let example = LogEntry {
            source: Some(damage.file.clone()),
            byte_offset: Some(damage.offset as i64),
            ts: None,
            text: damage.text.clone(),
        };
        account.add_anomaly(damage.stat, damage.count, &[example]);
    }
}
