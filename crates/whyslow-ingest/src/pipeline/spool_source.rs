//! A spool of the recorder as a source of events.

use std::ops::ControlFlow;
use std::path::PathBuf;

use whyslow_model::Ns;
use whyslow_model::event::SyscallArgs;
use whyslow_model::spool::Record;
use whyslow_model::stat;

use super::ImportError;
use super::account::LogEntry;
use super::session::{RowSink, Session};
use crate::clock::ClockRelation;
use crate::importers::spool::{Mapper, Names, Place, SpoolReader, Told, Window};

/// What the spool is called in tables.
const LABEL: &str = "spool";

/// A spool to be read.
pub(super) struct SpoolSource {
    pub(super) path: PathBuf,
    pub(super) shift_ns: Ns,
}

impl SpoolSource {
    pub(super) fn read<S: RowSink>(self, session: &mut Session<'_, S>) -> Result<(), ImportError> {
        let failed = |source| ImportError::Read {
            path: self.path.clone(),
            source,
        };
        let mut reader = SpoolReader::open(&self.path).map_err(failed)?;
        let (mut window, mut mapper) = (Window::default(), Mapper::new(Names::read(&self.path)));
        let mut clock = None;
        while let Some((block, payload)) = reader.next().map_err(failed)? {
            window.add(payload, block.complete_until);
            if clock.is_none()
                && let Some((monotonic, real)) = window.clock
            {
                let offset = real.saturating_sub(monotonic as i64);
                let offset = offset.saturating_add(self.shift_ns);
                session.account.add_clock(
                    LABEL,
                    ClockRelation {
                        clock: "monotonic".into(),
                        frequency: 1_000_000_000,
                        value: 0,
                        ts: offset,
                        shift_ns: self.shift_ns,
                    },
                );
                clock = Some(offset);
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
        let _ = emit(
            &mut window,
            &mut mapper,
            (clock.unwrap_or(self.shift_ns), true),
            session,
        );
        account(&reader, &window, session);
        Ok(())
    }
}

/// Hands on what is in order; times are `offset` later on the calendar.
fn emit<S: RowSink>(
    window: &mut Window,
    mapper: &mut Mapper,
    (offset, at_end): (Ns, bool),
    session: &mut Session<'_, S>,
) -> ControlFlow<()> {
    let ready = window.ready(at_end);
    for ordered in &ready {
        let Some((head, record)) = window.record(ordered) else {
            continue;
        };
        let place = Place {
            ts: (ordered.ts as i64).saturating_add(offset),
            is_entry: ordered.is_entry,
            pointed: ordered.pointed.as_deref(),
        };
        let mut frames = Vec::new();
        if matches!(record, Record::Stack(_) | Record::Lock(_)) {
            if let Some(event) = mapper.stack(&head, &record, place.ts, &mut frames) {
                session.event(event)?;
            }
            continue;
        }
        let mut args = SyscallArgs::default();
        match mapper.map(&head, &record, place, &mut args) {
            Told::Event(event) => session.event(event)?,
            Told::Loss(loss) => session.loss(&loss),
            Told::Fact(name, value) => {
                let (name, value) = (
                    String::from_utf8_lossy(name),
                    String::from_utf8_lossy(value),
                );
                session.account.add_fact(LABEL, &name, &value);
            }
            Told::Nothing => {}
        }
    }
    window.forget();
    ControlFlow::Continue(())
}

fn account<S: RowSink>(reader: &SpoolReader, window: &Window, session: &mut Session<'_, S>) {
    let account = &mut session.account;
    account.add_records(window.read, window.damaged);
    account.add_anomaly(&stat::SPOOL_RECORD_DAMAGED, window.damaged, &[]);
    for (kind, count) in &window.kinds {
        account.add_events(LABEL, &format!("{kind:?}"), *count);
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
