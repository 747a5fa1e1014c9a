//! `block outliers @live`: slow requests as they complete, and requests by device every interval.
//! The kernel counts, so that this can run for weeks.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whyslow_analysis::{DeviceRef, Filter};
use whyslow_base::args::{Format, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_base::{interrupt, talk};
use whyslow_model::Ns;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::spool::BlockIo;
use whyslow_record::{DeviceTimes, OutlierEvent, OutlierOptions, Period, SlowRequest, device_name};
use whyslow_render::Subject;

const SLOW_MIN: Ns = 500_000_000;
const INTERVAL: Ns = 10_000_000_000;
/// Operation names by their number in `BlockIo::OP`.
const OPS: [&str; 5] = ["read", "write", "flush", "discard", "other"];

/// The part of a query that counting can answer.
pub struct Watched<'w> {
    /// Filters of devices and requests.
    pub filter: &'w Filter,
    /// Interval between two answers; `None` for a single answer.
    pub interval: Option<Ns>,
    /// Maximum number of answers.
    pub count: Option<i64>,
    /// Output options of each answer.
    pub output: &'w OutputArgs,
}

/// Makes the kernel count requests to devices, and prints the slow ones.
pub fn watch(watched: &Watched<'_>, talk: &TalkArgs) -> Result<(), Failure> {
    let options = options(watched.filter, watched.interval, watched.count)?;
    let args = whyslow_render::args_of_many(watched.output)?;
    if !matches!(args.format, Format::Text | Format::Ndjson) {
        return Err(
            Failure::usage("cannot stream slow requests in this format: use text or JSON")
                .hint("omit --format, or use --json"),
        );
    }
    let stop = interrupt::flag()?;
    let printer = Printer::new(&args, talk);
    let mut failure = None;
    let ready = |ready: &whyslow_record::OutlierReady<'_>| {
        for off in ready.off {
            talk::line(&format!(
                "note: unavailable: {} ({})",
                off.provides, off.reason
            ));
        }
        if !talk.quiet {
            talk::line(&head(&options));
        }
    };
    let each = |event: OutlierEvent<'_>| {
        let written = match event {
            OutlierEvent::Slow(request) => printer.slow(request),
            OutlierEvent::Period(period) => printer.period(period),
            OutlierEvent::Nothing => Ok(()),
        };
        match written {
            Err(error) => {
                failure.get_or_insert(error);
                ControlFlow::Break(())
            }
            Ok(()) => flow(&stop),
        }
    };
    whyslow_record::watch_outliers(&options, ready, each)?;
    failure.map_or(Ok(()), Err)
}

fn flow(stop: &AtomicBool) -> ControlFlow<()> {
    if stop.load(Ordering::Relaxed) {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

fn head(options: &OutlierOptions) -> String {
    let end = match options.count {
        Some(count) => format!("{count} times; press Ctrl-C to stop early"),
        None => "press Ctrl-C to stop".to_owned(),
    };
    format!(
        "printing requests of {} or more as they complete, and requests by device every {}; {end}",
        whyslow_render::duration(options.slow_min),
        whyslow_render::duration(options.interval),
    )
}

fn options(
    filter: &Filter,
    interval: Option<Ns>,
    count: Option<i64>,
) -> Result<OutlierOptions, Failure> {
    refuse(filter)?;
    let device = |device: &DeviceRef| match device {
        DeviceRef::Number { major, minor } => Ok((*major as u32) << 20 | *minor as u32 & 0xf_ffff),
        DeviceRef::Name(name) => {
            whyslow_record::device_by_name(name).ok_or_else(|| unknown_device(name))
        }
    };
    let op = |op: &String| {
        let number = OPS.iter().position(|known| known == op);
        number.map(|number| number as u32).ok_or_else(|| {
            Failure::usage(format!("unknown block operation `{op}`"))
                .hint(format!("use one of {}", OPS.join(", ")))
        })
    };
    let bytes = |bytes: Option<i64>| bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let length = |ns: Ns| Duration::from_nanos(ns.max(0) as u64);
    Ok(OutlierOptions {
        slow_min: length(filter.dur_min.unwrap_or(SLOW_MIN)),
        interval: length(interval.unwrap_or(INTERVAL)),
        count: count.map(|count| count.max(1) as u64),
        devices: filter
            .devices
            .iter()
            .map(device)
            .collect::<Result<_, _>>()?,
        ops: filter.ops.iter().map(op).collect::<Result<_, _>>()?,
        bytes_min: bytes(filter.size.or(filter.size_min)).unwrap_or(0),
        bytes_max: bytes(filter.size.or(filter.size_max)),
    })
}

/// Rejects filters that would need every request to be reported.
fn refuse(filter: &Filter) -> Result<(), Failure> {
    let given = [
        (!filter.pids.is_empty(), "--pid"),
        (!filter.tids.is_empty(), "--tid"),
        (!filter.comms.is_empty(), "--comm"),
        (!filter.cpus.is_empty(), "--cpu"),
        (!filter.files.is_empty(), "--file"),
        (!filter.names.is_empty(), "--name"),
        (filter.dur_max.is_some(), "--max"),
        (filter.errors_only, "--errors"),
        (filter.no_tracer, "--no-tracer"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, name)) => Err(Failure::usage(format!(
            "cannot use {name}: the kernel counts requests by device"
        ))
        .hint("use --dev, --op, --size and --min, or `whyslow block top`")),
        None => Ok(()),
    }
}

fn unknown_device(name: &str) -> Failure {
    let entries = std::fs::read_dir("/sys/class/block").into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().replace('!', "/"))
        .collect();
    names.sort();
    Failure::usage(format!("unknown device `{name}`"))
        .hint(format!("devices of this machine: {}", names.join(", ")))
}

struct Printer<'p> {
    args: &'p OutputArgs,
    talk: &'p TalkArgs,
    zone: Zone,
    subject: Subject,
}

impl<'p> Printer<'p> {
    fn new(args: &'p OutputArgs, talk: &'p TalkArgs) -> Self {
        let zone = match (args.utc, &args.tz) {
            (true, _) => Zone::utc(),
            (_, Some(zone)) => zone.clone(),
            _ => Zone::local(),
        };
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Self {
            args,
            talk,
            zone,
            subject: Subject {
                name: "@live".to_owned(),
                host: Some(host),
                ..Subject::default()
            },
        }
    }

    fn slow(&self, request: &SlowRequest) -> Result<(), Failure> {
        let mut table = AnswerTable::new("slow", "slow", slow_columns());
        table.rows.push(slow_row(request));
        whyslow_render::write_rows_alone(&table, self.zone.clone(), self.args, self.talk)
    }

    fn period(&self, period: &Period) -> Result<(), Failure> {
        let mut table = AnswerTable::new("devices", "", device_columns());
        table.rows = period.devices.iter().map(device_row).collect();
        let slow = |device: &DeviceTimes| device.slow + device.open > 0;
        let rows = period.devices.iter().enumerate();
        table.outliers = rows
            .filter(|(_, device)| slow(device))
            .map(|(row, _)| row)
            .collect();
        let answer = Answer {
            query: "block outliers".to_owned(),
            window: Some((period.begin, period.end)),
            tables: vec![table],
            caveats: caveats(period),
            ..Answer::default()
        };
        whyslow_render::write(
            answer,
            &self.subject,
            self.zone.clone(),
            whyslow_analysis::Weight::default(),
            self.args,
            self.talk,
        )
    }
}

fn caveats(period: &Period) -> Vec<String> {
    let missed = &period.missed;
    let missed_counts = [
        (missed.requests, "requests not counted: too many in flight"),
        (missed.devices, "requests not counted: too many devices"),
        (
            missed.lines,
            "slow requests counted but not listed: the rate was too high",
        ),
    ];
    let missed_counts = missed_counts.iter().filter(|(count, _)| *count > 0);
    let mut caveats: Vec<String> = missed_counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if period.is_cut {
        caveats.push("this interval was cut short".to_owned());
    }
    caveats
}

fn ns(length: Duration) -> Value {
    Value::Int(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX))
}

fn slow_columns() -> Vec<AnswerColumn> {
    vec![
        AnswerColumn::new("ts_end_ns", "end", Measure::Time),
        AnswerColumn::new("dev", "dev", Measure::Text),
        AnswerColumn::new("op", "op", Measure::Text),
        AnswerColumn::new("sector", "sector", Measure::Count),
        AnswerColumn::new("bytes", "size", Measure::Bytes),
        AnswerColumn::new("dur_ns", "duration", Measure::Duration),
        AnswerColumn::new("queue_ns", "queue", Measure::Duration),
        AnswerColumn::new("device_ns", "device", Measure::Duration),
        AnswerColumn::new("error", "error", Measure::Count),
        AnswerColumn::new("comm", "comm", Measure::Text),
        AnswerColumn::new("pid", "pid", Measure::Count),
        AnswerColumn::new("tid", "tid", Measure::Count),
    ]
}

fn slow_row(request: &SlowRequest) -> Vec<Value> {
    let SlowRequest { dur, queue, .. } = *request;
    // A flush has no sector.
    let sector = i64::try_from(request.sector).ok();
    let error = Some(BlockIo::errno(request.error)).filter(|errno| *errno != 0);
    let (tid, pid, comm) = request
        .submitter
        .clone()
        .map_or_else(Default::default, |made| {
            (
                Some(i64::from(made.0)),
                Some(i64::from(made.1)),
                Some(made.2),
            )
        });
    vec![
        request.ts_end.into(),
        device_name(request.dev).into(),
        op_name(request.rwbs).into(),
        sector.into(),
        i64::from(request.bytes).into(),
        ns(dur),
        queue.map_or(Value::Null, ns),
        queue.map_or_else(|| ns(dur), |queue| ns(dur.saturating_sub(queue))),
        error.map(i64::from).into(),
        comm.into(),
        pid.into(),
        tid.into(),
    ]
}

fn op_name(rwbs: u32) -> &'static str {
    OPS.get((rwbs & BlockIo::OP) as usize).unwrap_or(&"other")
}

fn device_columns() -> Vec<AnswerColumn> {
    vec![
        AnswerColumn::new("dev", "dev", Measure::Text),
        AnswerColumn::new("count", "num", Measure::Count),
        AnswerColumn::new("dur_ns_min", "min", Measure::Duration),
        AnswerColumn::new("dur_ns_p50", "p50", Measure::Duration),
        AnswerColumn::new("dur_ns_avg", "avg", Measure::Duration),
        AnswerColumn::new("dur_ns_p99", "p99", Measure::Duration),
        AnswerColumn::new("dur_ns_max", "max", Measure::Duration),
        AnswerColumn::new("slow", "slow", Measure::Count),
        AnswerColumn::new("slow_open", "slow, in flight", Measure::Count),
    ]
}

fn device_row(device: &DeviceTimes) -> Vec<Value> {
    let some = |length: Option<Duration>| length.map_or(Value::Null, ns);
    let average = u128::from(device.count);
    let average = device.sum.as_nanos().checked_div(average);
    let average = average.and_then(|ns| i64::try_from(ns).ok());
    vec![
        device_name(device.dev).into(),
        (device.count as i64).into(),
        some(device.extremes.map(|(min, _)| min)),
        some(device.p50),
        average.into(),
        some(device.p99),
        some(device.extremes.map(|(_, max)| max)),
        (device.slow as i64).into(),
        (device.open as i64).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(change: impl FnOnce(&mut Filter)) -> Result<OutlierOptions, String> {
        let mut filter = Filter::default();
        change(&mut filter);
        options(&filter, None, None).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn filters_are_those_that_the_kernel_can_count_by() {
        let all = taken(|_| {}).expect("nothing to refuse");
        assert_eq!(all.slow_min, Duration::from_millis(500));
        assert_eq!(all.interval, Duration::from_secs(10));
        assert_eq!((all.bytes_min, all.bytes_max, all.count), (0, None, None));
        let some = taken(|filter| {
            filter.ops = vec!["flush".into(), "read".into()];
            filter.size = Some(8192);
            filter.dur_min = Some(1);
            filter.devices = vec![DeviceRef::Number {
                major: 8,
                minor: 16,
            }];
        });
        let some = some.expect("nothing to refuse");
        assert_eq!(some.ops, [2, 0]);
        assert_eq!((some.bytes_min, some.bytes_max), (8192, Some(8192)));
        assert_eq!(some.slow_min, Duration::from_nanos(1));
        assert_eq!(some.devices, [8 << 20 | 16]);
        let refused = |change: fn(&mut Filter), word: &str| {
            let message = taken(change).expect_err("it is refused");
            assert!(message.contains(word), "{message}");
        };
        refused(|filter| filter.pids = vec![1], "--pid");
        refused(|filter| filter.dur_max = Some(1), "--max");
        refused(|filter| filter.ops = vec!["sync".into()], "`sync`");
        refused(
            |filter| filter.devices = vec![DeviceRef::Name("no such".into())],
            "`no such`",
        );
    }

    #[test]
    fn what_is_not_known_is_null() {
        let request = SlowRequest {
            ts_end: 1_000_000_000,
            dur: Duration::from_millis(7),
            queue: None,
            dev: 4095 << 20 | 1,
            sector: u64::MAX,
            bytes: 0,
            rwbs: 2,
            error: 10,
            submitter: None,
        };
        let row = slow_row(&request);
        assert_eq!(row.len(), slow_columns().len());
        let null = slow_columns().into_iter().zip(&row);
        let null = null.filter(|(_, value)| **value == Value::Null);
        let null: Vec<String> = null.map(|(column, _)| column.name).collect();
        assert_eq!(null, ["sector", "queue_ns", "comm", "pid", "tid"]);
        assert_eq!(row[1..3], ["4095:1".into(), "flush".into()]);
        assert_eq!(row[7..9], [7_000_000.into(), 5.into()]);
        let device = DeviceTimes {
            dev: 4095 << 20 | 1,
            count: 0,
            sum: Duration::ZERO,
            extremes: None,
            p50: None,
            p99: None,
            slow: 0,
            open: 3,
        };
        let row = device_row(&device);
        assert_eq!(row.len(), device_columns().len());
        assert_eq!(row[4], Value::Null);
    }
}
