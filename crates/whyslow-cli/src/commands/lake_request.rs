//! What the Python package is asked, from what was typed.

use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, Moment, WindowText, Zone};
use whyslow_model::Ns;
use whyslow_sources::lake::Request;

use crate::cli::FleetAsk;

/// What the package is asked.
pub(crate) fn request_of(asked: &FleetAsk, lake: String, window: Option<(Ns, Ns)>) -> Request {
    let args = &asked.args;
    Request {
        lake,
        question: asked.question.clone(),
        sql: asked.sql.clone(),
        parameters: asked.parameters.clone(),
        window,
        hosts: args.hosts.clone(),
        cluster: args.cluster.clone(),
        engine: args.engine.clone(),
        memory: args.memory.clone(),
        threads: args.threads,
        passing: !args.recordings.is_empty(),
    }
}

impl FleetAsk {
    /// Counted from now, where it is counted: `-w -1h..` is the last hour. Without a begin it is that of
    /// all recordings, which is none that the clock has.
    pub(crate) fn named_window(&self, zone: &Zone) -> Result<Option<(Ns, Ns)>, Failure> {
        let Some(text) = &self.args.window else {
            return Ok(None);
        };
        let now = jiff::Timestamp::now().as_nanosecond() as Ns;
        let calendar = Calendar {
            // A time of day is one of the last 24 hours.
            begin: now.saturating_sub(86_400_000_000_000),
            end: now,
            zone: zone.clone(),
        };
        let refused = Failure::usage;
        match text {
            WindowText::Between(None, None) => return Ok(None),
            WindowText::Between(None, Some(end)) => {
                let end = end.resolve(&calendar, None).map_err(refused)?;
                return Ok(Some((0, end)));
            }
            WindowText::Between(Some(Moment::FromStart(_)), _)
            | WindowText::From(Moment::FromStart(_), _)
            | WindowText::Around(Moment::FromStart(_), _) => {
                return Err(
                    refused("recordings of a fleet have no begin to count from".into())
                        .hint("count from now (-1h..), or name the time"),
                );
            }
            _ => {}
        }
        let window = text.resolve(&calendar, |_| -> Result<_, Failure> {
            Err(Failure::usage(
                "an operation is in one recording, not in a lake",
            ))
        })?;
        Ok(Some((window.begin, window.end)))
    }
}
