//! Files whose access was delayed by slow requests of a device.
//!
//! A thread that submitted a request and is in a call on a file when the request ends waited for it
//! there, from the later of the two starts. For requests without such a call the reason is shown:
//! the kernel writes back data later, and reads ahead.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::keys::{Key, KeyValue, unknown_object};
use crate::kinds::{BLOCK, IO};
use crate::query::Filter;

const ROWS: usize = 20;
/// Maximum number of requests; of more, the first.
const REQUESTS_MAX: usize = 1 << 18;

struct Request {
    dev: u32,
    ts: Ns,
    ts_end: Ns,
    /// Name of the submitter.
    comm: Option<String>,
    is_waited_for: bool,
}

/// What the calls on a file waited for.
#[derive(Default)]
struct Delayed {
    requests: i64,
    calls: i64,
    time: Ns,
    longest: Ns,
    users: BTreeMap<KeyValue, i64>,
}

/// `from` has the minimum duration of a request for each of these devices.
pub(super) fn table(
    context: &Context<'_>,
    from: &BTreeMap<&str, Ns>,
) -> Result<AnswerTable, AnalysisError> {
    let devs: Vec<&str> = from.keys().copied().collect();
    let mut requests = requests(context, from, &devs)?;
    let mut files: BTreeMap<(u32, String), Delayed> = BTreeMap::new();
    let has_calls = context.has(IO.table.name);
    if has_calls && !requests.is_empty() {
        calls(context, &mut requests, &mut files)?;
    }
    for (utid, request) in requests.iter().flat_map(|(utid, requests)| {
        requests
            .iter()
            .filter(|request| !request.is_waited_for)
            .map(move |request| (*utid, request))
    }) {
        let reason = unknown_object(&why_not(has_calls, utid, request));
        let delayed = files.entry((request.dev, reason)).or_default();
        delayed.requests += 1;
        delayed.longest = delayed.longest.max(request.ts_end - request.ts);
    }
    Ok(shown(context, &devs, files))
}

fn why_not(has_calls: bool, utid: Option<i64>, request: &Request) -> String {
    match (&request.comm, utid) {
        (_, None) => "unknown submitter".into(),
        _ if !has_calls => "system calls not recorded".into(),
        (Some(comm), _) if is_of_kernel(comm) => format!("{} (kernel thread)", family(comm)),
        (_, Some(_)) => {
            "no call waited: readahead, page faults, asynchronous I/O or writeback".into()
        }
    }
}

fn is_of_kernel(comm: &str) -> bool {
    [
        "kworker/",
        "jbd2/",
        "xfsaild/",
        "kswapd",
        "loop",
        "md",
        "dmcrypt_write",
        "btrfs-",
    ]
    .iter()
    .any(|name| {
        comm.strip_prefix(name).is_some_and(|rest| {
            !matches!(*name, "loop" | "md" | "kswapd")
                || rest.starts_with(|letter: char| letter.is_ascii_digit())
        })
    })
}

/// `kworker/u8:2-flush-8:0` → `kworker`.
fn family(comm: &str) -> &str {
    let end = comm.find(|letter: char| letter == '/' || letter.is_ascii_digit());
    &comm[..end.unwrap_or(comm.len())]
}

type ByThread = FxHashMap<Option<i64>, Vec<Request>>;

/// Slow requests by submitter, in order of their ends.
fn requests(
    context: &Context<'_>,
    from: &BTreeMap<&str, Ns>,
    devs: &[&str],
) -> Result<ByThread, AnalysisError> {
    let filter = Filter {
        dur_min: from.values().copied().min(),
        ..context.query.filter.clone()
    };
    let mut pass = context.pass_of(&BLOCK, &[], &filter)?;
    let projection = &mut pass.projection;
    let [ts, ts_end, dur, utid] = ["ts", "ts_end", "dur", "utid"].map(|name| projection.need(name));
    let [dev, comm] = ["dev_name", "comm"].map(|name| projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let (mut selected, mut count) = (Vec::new(), 0);
    let mut found = ByThread::default();
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut selected)?;
            let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
            let dur = dur.ints(batch)?;
            let (dev, comm) = (dev.texts(batch)?, comm.texts(batch)?);
            for row in selected.iter().copied() {
                let name = dev.get(row).unwrap_or_default();
                let place = devs.iter().position(|known| *known == name);
                let (Some(place), Some(end)) = (place, ts_end.get(row)) else {
                    continue;
                };
                let least = from.get(name).copied().unwrap_or(Ns::MAX);
                if dur.get(row).is_none_or(|dur| dur < least) {
                    continue;
                }
                count += 1;
                if count > REQUESTS_MAX {
                    return Ok(ControlFlow::Break(()));
                }
                found.entry(utid.get(row)).or_default().push(Request {
                    dev: place as u32,
                    ts: ts.at(row),
                    ts_end: end,
                    comm: comm.get(row).map(str::to_owned),
                    is_waited_for: false,
                });
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    if count > REQUESTS_MAX {
        context.note(format!(
            "files are shown for the first {REQUESTS_MAX} slow requests only (use a shorter window)"
        ));
    }
    for requests in found.values_mut() {
        requests.index_sort_by_key(|request| (request.ts_end, request.ts, request.dev));
    }
    Ok(found)
}

/// Finds the calls that were in progress when requests of their threads ended.
fn calls(
    context: &Context<'_>,
    requests: &mut ByThread,
    files: &mut BTreeMap<(u32, String), Delayed>,
) -> Result<(), AnalysisError> {
    let all = Filter::default();
    let mut pass = context.pass_in(&IO, &[], &all, context.selected())?;
    let projection = &mut pass.projection;
    let [ts, ts_end] = ["ts", "ts_end"].map(|name| projection.need(name));
    let [utid, upid] = ["utid", "upid"].map(|name| projection.need(name));
    let [path, reason] = ["path", "unknown_reason"].map(|name| projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let mut selected = Vec::new();
    let recording_end = context.recording_end();
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut selected)?;
            let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
            let (utid, upid) = (utid.ints(batch)?, upid.ints(batch)?);
            let (path, reason) = (path.texts(batch)?, reason.texts(batch)?);
            for row in selected.iter().copied() {
                let Some(utid) = utid.get(row) else { continue };
                let Some(of_thread) = requests.get_mut(&Some(utid)) else {
                    continue;
                };
                let begin = ts.at(row);
                let end = ts_end.get(row).unwrap_or(recording_end);
                let first = of_thread.partition_point(|request| request.ts_end < begin);
                let count = of_thread[first..].partition_point(|request| request.ts_end <= end);
                let ended = &mut of_thread[first..first + count];
                if ended.is_empty() {
                    continue;
                }
                let object = match (path.get(row), reason.get(row)) {
                    (Some(path), _) => path.to_owned(),
                    (None, reason) => unknown_object(reason.unwrap_or("the call has no file")),
                };
                let user = upid.get(row).map_or(KeyValue::Null, KeyValue::Int);
                add(ended, begin, (&object, &user), files);
            }
            Ok(ControlFlow::Continue(()))
        },
    )
}

/// Adds a call that started at `begin`, and the requests that ended in it.
fn add(
    ended: &mut [Request],
    begin: Ns,
    (object, user): (&str, &KeyValue),
    files: &mut BTreeMap<(u32, String), Delayed>,
) {
    // By device: the part of the call that its requests cover together. The last to end is
    // processed first: every later one ends within the covered time, and only adds what is before
    // it.
    let mut covered: BTreeMap<u32, (Ns, Ns)> = BTreeMap::new();
    for request in ended.iter_mut().rev() {
        // A request that ends exactly when the next call starts delayed the earlier call.
        if std::mem::replace(&mut request.is_waited_for, true) {
            continue;
        }
        let delayed = files.entry((request.dev, object.to_owned())).or_default();
        let (time, covered_from) = covered.entry(request.dev).or_insert_with(|| {
            delayed.calls += 1;
            *delayed.users.entry(user.clone()).or_default() += 1;
            (0, Ns::MAX)
        });
        let from = request.ts.max(begin);
        *time += (request.ts_end.min(*covered_from) - from).max(0);
        *covered_from = from.min(*covered_from);
        delayed.requests += 1;
        delayed.longest = delayed.longest.max(request.ts_end - request.ts);
    }
    for (dev, (time, _)) in covered {
        if let Some(delayed) = files.get_mut(&(dev, object.to_owned())) {
            delayed.time += time;
        }
    }
}

fn shown(
    context: &Context<'_>,
    devs: &[&str],
    files: BTreeMap<(u32, String), Delayed>,
) -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("dev", "dev", Measure::Text),
        column("file", "file", Measure::Path),
        column("requests", "slow requests", Measure::Count),
        column("calls", "calls delayed", Measure::Count),
        column("time_ns", "waited", Measure::Duration),
        column("max_ns", "longest request", Measure::Duration).priority(2),
        column("by", "by", Measure::Text).priority(1),
    ];
    let mut table = AnswerTable::new("delayed", "files delayed by slow requests", columns);
    let mut files: Vec<_> = files.into_iter().collect();
    files.index_sort_by(|((dev_a, file_a), a), ((dev_b, file_b), b)| {
        let rank = |delayed: &Delayed| (delayed.time, delayed.requests);
        rank(b)
            .cmp(&rank(a))
            .then_with(|| (dev_a, file_a).cmp(&(dev_b, file_b)))
    });
    for ((dev, file), delayed) in files {
        let mut users: Vec<(KeyValue, i64)> = delayed.users.into_iter().collect();
        users.index_sort_by(|(a, calls_a), (b, calls_b)| {
            calls_b.cmp(calls_a).then_with(|| a.cmp(b))
        });
        let users: Vec<Value> = users
            .into_iter()
            .map(|(user, _)| Key::Process.label(&user, &context.names).into())
            .collect();
        let is_known = delayed.calls > 0;
        table.rows.push(vec![
            devs[dev as usize].into(),
            file.into(),
            delayed.requests.into(),
            delayed.calls.into(),
            is_known.then_some(delayed.time).into(),
            delayed.longest.into(),
            if users.is_empty() {
                Value::Null
            } else {
                Value::List(users)
            },
        ]);
    }
    let rows = table.rows.len();
    let limit = context.limit(ROWS);
    crate::arrange::truncate(&mut table, limit);
    context.note_cut(&table, rows);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(dev: u32, ts: Ns, ts_end: Ns) -> Request {
        Request {
            dev,
            ts,
            ts_end,
            comm: None,
            is_waited_for: false,
        }
    }

    #[test]
    fn a_call_waits_once_for_requests_that_run_together() {
        let mut files = BTreeMap::new();
        // Before the call, overlapping, disjoint, and on another device.
        let mut ended = [
            request(0, 50, 130),
            request(0, 110, 140),
            request(1, 100, 150),
            request(0, 160, 190),
        ];
        add(&mut ended, 100, ("/a", &KeyValue::Int(7)), &mut files);
        let of = |dev: u32| {
            let delayed = &files[&(dev, "/a".to_owned())];
            (
                delayed.requests,
                delayed.calls,
                delayed.time,
                delayed.longest,
            )
        };
        assert_eq!(of(0), (3, 1, 70, 80));
        assert_eq!(of(1), (1, 1, 50, 50));
        // The next call is unrelated to them.
        add(&mut ended, 190, ("/b", &KeyValue::Int(7)), &mut files);
        assert_eq!(files.len(), 2);
    }

    #[test]
    fn threads_of_the_kernel_are_known_by_their_names() {
        for comm in [
            "kworker/u8:2",
            "jbd2/sda1-8",
            "loop7",
            "kswapd0",
            "md127_raid1",
        ] {
            assert!(is_of_kernel(comm), "{comm}");
        }
        for comm in ["looper", "mdadm", "postgres", "kswapdump"] {
            assert!(!is_of_kernel(comm), "{comm}");
        }
        assert_eq!(family("kworker/u8:2-flush-8:0"), "kworker");
        assert_eq!(family("loop7"), "loop");
    }
}
