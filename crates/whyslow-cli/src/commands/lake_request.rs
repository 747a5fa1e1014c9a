//! Requests to the Python package, from the arguments of lake queries.

use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, Moment, WindowText, Zone};
use whyslow_model::Ns;
use whyslow_sources::lake::Request;

use crate::cli::FleetQuery;

/// The request for a query.
pub(crate) fn request_of(query: &FleetQuery, lake: String, window: Option<(Ns, Ns)>) -> Request {
    let args = &query.args;
    Request {
        lake,
        query: query.query.clone(),
        sql: query.sql.clone(),
        parameters: query.parameters.clone(),
        window,
        hosts: args.hosts.clone(),
        cluster: args.cluster.clone(),
        engine: args.engine.clone(),
        memory: args.memory.clone(),
        threads: args.threads,
        passing: !args.recordings.is_empty(),
    }
}

impl FleetQuery {
    /// The window of the flags; relative times count from now: `-w -1h..` is the last hour. A
    /// missing start means the earliest recording, and is returned as 0.
    pub(crate) fn named_window(&self, zone: &Zone) -> Result<Option<(Ns, Ns)>, Failure> {
        let Some(text) = &self.args.window else {
            return Ok(None);
        };
        let now = jiff::Timestamp::now().as_nanosecond() as Ns;
        let calendar = Calendar {
            // A time of day is within the last 24 hours.
            begin: now.saturating_sub(86_400_000_000_000),
            end: now,
            zone: zone.clone(),
        };
        let refused = Failure::usage;
        match text {
            WindowText::Between(None, None) => return Ok(None),
            // The calendar covers a day only.
            WindowText::Last(length) => {
                return Ok(Some((now.saturating_sub(*length), now.saturating_add(1))));
            }
            WindowText::Between(None, Some(end)) => {
                let end = end.resolve(&calendar, None).map_err(refused)?;
                return Ok(Some((0, end)));
            }
            WindowText::Between(Some(Moment::FromStart(_)), _)
            | WindowText::From(Moment::FromStart(_), _)
            | WindowText::Around(Moment::FromStart(_), _) => {
                return Err(refused(
                    "cannot use `+` times with a lake: they count from the start of a recording"
                        .into(),
                )
                .hint("count from now: -w -1h.."));
            }
            _ => {}
        }
        let window = text.resolve(&calendar, |_| -> Result<_, Failure> {
            Err(Failure::usage(
                "cannot use op:ID with a lake: it is a window in a recording",
            ))
        })?;
        Ok(Some((window.begin, window.end)))
    }
}
