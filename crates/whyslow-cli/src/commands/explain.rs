use std::fmt::Write as _;
use std::sync::Arc;

use whyslow_analysis::Weight;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, OperationRef, WindowText, Zone};
use whyslow_explain::{
    DESCRIBED_MECHANISMS, Judged, Other, OtherHost, Query, Report, WallClock, explain_across,
    mechanism, victims,
};
use whyslow_model::mechanism::MECHANISMS;
use whyslow_model::row::Row;
use whyslow_model::tables::{RequestRow, SyscallRow};
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use crate::cli::{ExplainArgs, Versus};

pub(super) fn run(args: &ExplainArgs, talk: &TalkArgs) -> Result<(), Failure> {
    if let Some(mechanism) = &args.why {
        return describe_mechanism(mechanism);
    }
    let opened = Opened::find(args.recording.as_deref(), talk)?;
    if let Some(operation) = &args.victims {
        return list_victims(operation, &opened, args, talk);
    }
    let baseline = Baseline::find(args, talk)?;
    let tables = &*opened.tables;
    let other = baseline
        .as_ref()
        .map(|baseline| baseline.other((&opened, tables), baseline.tables(), args))
        .transpose()?;
    let hosts = Hosts::opened_by(args, |name| Ok(Arc::new(Opened::beside(name, talk)?)))?;
    let (report, calendar) = report(args, &opened, tables, other, &hosts.all())?;
    whyslow_render::findings::write(&report, &opened.subject(), &calendar, &args.output, talk)?;
    match report.judged {
        Judged::Findings | Judged::NothingSlow => Ok(()),
        // The answer has the reasons; scripts see that it is not an all-clear.
        Judged::CannotTell => Err(Failure::incomplete(
            "the recording cannot show what was slow",
        )),
    }
}

/// The calls that waited for a call.
fn list_victims(
    operation: &str,
    opened: &Opened,
    args: &ExplainArgs,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let hint = "pass the id of a system call, as `whyslow syscalls top` prints it: op:17";
    let reference = OperationRef::parse(operation)
        .and_then(Result::ok)
        .filter(|reference| reference.table == SyscallRow::TABLE.name)
        .ok_or_else(|| {
            Failure::usage(format!(
                "cannot list the victims of `{operation}`: not a system call"
            ))
            .hint(hint)
        })?;
    let mut answer = victims(&*opened.tables, reference.id)?;
    if let (Some(limit), Some(table)) = (
        args.limit.filter(|limit| *limit > 0),
        answer.tables.first_mut(),
    ) {
        table.rows.truncate(limit);
        table.cut.retain(|(row, _)| *row < limit);
    }
    let zone = opened.calendar(zone(args)).zone;
    let subject = opened.subject();
    whyslow_render::write(answer, &subject, zone, Weight::Count, &args.output, talk)
}

/// The explanation of `opened`; `tables` are its tables, possibly with limits.
pub(crate) fn report(
    args: &ExplainArgs,
    opened: &Opened,
    tables: &dyn Tables,
    other: Option<Other<'_>>,
    hosts: &[OtherHost<'_>],
) -> Result<(Report, Calendar), Failure> {
    let calendar = opened.calendar(zone(args));
    let mut query = Query {
        recording: opened.subject().name,
        tids: args.tid.clone(),
        pids: args.pid.clone(),
        comms: args.comm.clone(),
        limit: args.limit,
        devices: args.dev.clone(),
        clock: clock(args, calendar.zone.clone()),
        ..Query::default()
    };
    if let Some(slow) = &args.slow {
        query.calls.clone_from(&slow.calls);
        query.min = Some(slow.min);
    }
    match args.window.text() {
        // A request is not an operation of one thread: its time is used as the window.
        Some(WindowText::Operation(operation)) if operation.table != "request" => {
            query.operation = Some((operation.table.to_owned(), operation.id));
        }
        None if args.request.is_some() => {
            let table = RequestRow::TABLE.name.to_owned();
            query.operation = args.request.map(|id| (table, id));
        }
        text => query.window = opened.window(text.as_ref(), &calendar)?,
    }
    let mut report = explain_across(tables, &query, other, hosts)?;
    if query.operation.is_none() {
        report.caveats.extend(opened.note(&calendar, query.window));
    }
    Ok((report, calendar))
}

/// What to compare with (`--vs`).
pub(crate) struct Baseline {
    /// `None`: the explained recording itself.
    opened: Option<Arc<Opened>>,
    name: String,
    window: Option<WindowText>,
}

impl Baseline {
    fn find(args: &ExplainArgs, talk: &TalkArgs) -> Result<Option<Self>, Failure> {
        Self::opened_by(args, |name| Ok(Arc::new(Opened::beside(name, talk)?)))
    }

    /// Opens recordings with `open`.
    pub(crate) fn opened_by(
        args: &ExplainArgs,
        open: impl FnOnce(&str) -> Result<Arc<Opened>, Failure>,
    ) -> Result<Option<Self>, Failure> {
        let (mut recording, mut window) = (None, None);
        for given in &args.versus {
            let is_twice = match given {
                Versus::Recording(name) => recording.replace(name.as_str()).is_some(),
                Versus::Window(text) => window.replace(text.clone()).is_some(),
            };
            if is_twice {
                let message =
                    "cannot compare with several windows or recordings: --vs accepts one of each";
                return Err(Failure::usage(message)
                    .hint("run explain once for each: whyslow explain --vs WINDOW"));
            }
        }
        if args.versus.is_empty() {
            return Ok(None);
        }
        let opened = recording.map(open).transpose()?;
        let name = recording.unwrap_or_default().to_owned();
        Ok(Some(Self {
            opened,
            name,
            window,
        }))
    }

    /// The other recording, if one was given.
    pub(crate) fn opened(&self) -> Option<&Opened> {
        self.opened.as_deref()
    }

    /// Tables of the other recording, if one was given.
    pub(crate) fn tables(&self) -> Option<&dyn Tables> {
        self.opened.as_ref().map(|opened| &*opened.tables)
    }

    /// What `explained` is compared with; `tables` are those of the other recording, possibly with
    /// limits.
    pub(crate) fn other<'o>(
        &'o self,
        explained: (&'o Opened, &'o dyn Tables),
        tables: Option<&'o dyn Tables>,
        args: &ExplainArgs,
    ) -> Result<Other<'o>, Failure> {
        let (opened, tables) = match (&self.opened, tables) {
            (Some(opened), Some(tables)) => (&**opened, tables),
            _ => explained,
        };
        let calendar = opened.calendar(zone(args));
        let resolve =
            |text: &WindowText| text.resolve(&calendar, |operation| opened.window_of(operation));
        let window = self.window.as_ref().map(resolve).transpose()?;
        Ok(Other {
            tables,
            window,
            recording: if self.opened.is_some() {
                &self.name
            } else {
                explained.0.name()
            },
            is_same: self.opened.is_none(),
        })
    }
}

/// Recordings of other hosts (`--across`).
pub(crate) struct Hosts(Vec<(String, Arc<Opened>)>);

impl Hosts {
    /// Opens recordings with `open`.
    pub(crate) fn opened_by(
        args: &ExplainArgs,
        mut open: impl FnMut(&str) -> Result<Arc<Opened>, Failure>,
    ) -> Result<Self, Failure> {
        let names = args.across.iter();
        let opened = names.map(|name| Ok((name.clone(), open(name)?)));
        let hosts: Vec<_> = opened.collect::<Result<_, Failure>>()?;
        for (index, (name, host)) in hosts.iter().enumerate() {
            if hosts[..index]
                .iter()
                .any(|(_, other)| other.path() == host.path())
            {
                let message =
                    format!("cannot follow requests into {name}: --across lists it twice");
                return Err(Failure::usage(message).hint("name each recording once"));
            }
        }
        Ok(Self(hosts))
    }

    pub(crate) fn opened(&self) -> impl Iterator<Item = &Opened> {
        self.0.iter().map(|(_, opened)| &**opened)
    }

    pub(crate) fn all(&self) -> Vec<OtherHost<'_>> {
        let tables = self.opened().map(|opened| &*opened.tables);
        self.with(tables)
    }

    /// The same with other tables, in the same order.
    pub(crate) fn with<'o>(
        &'o self,
        tables: impl Iterator<Item = &'o dyn Tables>,
    ) -> Vec<OtherHost<'o>> {
        let hosts = self.0.iter().zip(tables);
        hosts
            .map(|((name, _), tables)| OtherHost {
                tables,
                recording: name,
            })
            .collect()
    }
}

/// Times in sentences are absolute, with their date if it is another day, unless `--rel` is given.
fn clock(args: &ExplainArgs, zone: Zone) -> Option<WallClock> {
    let show = move |ts, begin| whyslow_render::moment(ts, begin, &zone);
    (!args.output.rel).then(|| WallClock::new(show))
}

fn zone(args: &ExplainArgs) -> Option<Zone> {
    if args.output.utc {
        Some(Zone::utc())
    } else {
        args.output.tz.clone()
    }
}

/// Prints what a mechanism is, how it is recognised, and what helps.
fn describe_mechanism(id: &str) -> Result<(), Failure> {
    let short = |id: &str| {
        MECHANISMS
            .iter()
            .find(|(of, _)| *of == id)
            .map_or("", |(_, meaning)| meaning)
    };
    let mut text = String::new();
    if id == "list" {
        for mechanism in DESCRIBED_MECHANISMS {
            let _ = writeln!(text, "{:<20} {}", mechanism.id, short(mechanism.id));
        }
        return whyslow_render::to_stdout(&text);
    }
    let Some(mechanism) = mechanism(id) else {
        return Err(Failure::usage(format!("unknown mechanism `{id}`"))
            .hint("list all mechanisms: whyslow explain --why list"));
    };
    let _ = writeln!(text, "{}: {}\n", mechanism.id, short(id));
    let _ = writeln!(text, "{}\n", mechanism.what);
    let _ = writeln!(text, "How it is recognised: {}", mechanism.recognised);
    for advice in mechanism.advice {
        let _ = writeln!(text, "Try: {}", advice.general());
    }
    let _ = writeln!(text, "See: {}", mechanism.reference);
    whyslow_render::to_stdout(&text)
}
