//! `tracks`: the lanes with their names, in display order.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::{Value, json};
use whyslow_model::Window;
use whyslow_tiles::{Lane, Track};

use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;
use crate::thread_names::{Names, Thread};

const LANES: usize = 200;
const LANES_MAX: usize = 5_000;

/// Filters of lanes.
struct Wanted {
    window: Option<Window>,
    pids: Vec<i32>,
    tids: Vec<i32>,
    comms: Option<GlobSet>,
    offset: usize,
    limit: usize,
}

pub(crate) async fn tracks(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&[
        "track", "w", "pid", "tid", "comm", "limit", "offset", "digest",
    ])?;
    let current = shared.recordings.find(&query)?.now();
    let tiles = current.charts.tiles()?;
    let wanted = Wanted {
        window: query.window(&current.opened)?,
        pids: query.numbers("pid")?,
        tids: query.numbers("tid")?,
        comms: globs(query.get("comm"))?,
        offset: query.number("offset", 0)?,
        limit: query.number("limit", LANES)?.min(LANES_MAX),
    };
    let track = query.get("track").map(str::to_owned);
    let found = shared.queue.run(move |_| {
        let names = current.names()?;
        let all = tiles.tracks().iter();
        let picked = all.filter(|found| track.as_ref().is_none_or(|name| *name == found.name));
        let picked: Vec<Value> = picked.map(|track| about(track, &names, &wanted)).collect();
        if picked.is_empty() {
            let error = "unknown track";
            return Err(Refusal::new(StatusCode::NOT_FOUND, error).hint("omit `track` to list all"));
        }
        Ok(picked)
    });
    reply::json_document(&json!({"tracks": found.await?}))
}

fn globs(text: Option<&str>) -> Result<Option<GlobSet>, Refusal> {
    let Some(text) = text else {
        return Ok(None);
    };
    let wrong =
        |error: globset::Error| Refusal::wrong(format!("invalid pattern `{text}`: {error}"));
    let mut set = GlobSetBuilder::new();
    for glob in text.split(',') {
        set.add(Glob::new(glob).map_err(wrong)?);
    }
    Ok(Some(set.build().map_err(wrong)?))
}

fn about(track: &Track, names: &Arc<Names>, wanted: &Wanted) -> Value {
    let is_of_threads = is_of_threads(track);
    let mut lanes: Vec<(&Lane, Option<&Thread>)> = track
        .lanes
        .iter()
        .map(|lane| (lane, names.0.get(&lane.id).filter(|_| is_of_threads)))
        .filter(|(lane, thread)| is_wanted(lane, *thread, wanted))
        .collect();
    order(track, &mut lanes);
    let total = lanes.len();
    let shown = lanes.into_iter().skip(wanted.offset).take(wanted.limit);
    let shown: Vec<Value> = shown
        .map(|(lane, thread)| row(track, lane, thread))
        .collect();
    let left_out = track.left_out;
    json!({
        "track": track.name,
        "values": track.values,
        "groups": track.groups,
        "total": total,
        "offset": wanted.offset,
        "lanes": shown,
        "left_out": {
            "cut": left_out.cut,
            "hidden": left_out.hidden,
            "outside": left_out.outside,
            "without_lane": left_out.without_lane,
        },
    })
}

fn is_of_threads(track: &Track) -> bool {
    !matches!(track.name, "cpus" | "block")
}

fn is_wanted(lane: &Lane, thread: Option<&Thread>, wanted: &Wanted) -> bool {
    let is_then = wanted
        .window
        .is_none_or(|window| lane.first_ns < window.end && lane.last_ns >= window.begin);
    let named = |thread: &Thread| {
        let is_one = |list: &[i32], number: Option<i32>| {
            list.is_empty() || number.is_some_and(|number| list.contains(&number))
        };
        let name = thread.name.as_deref().unwrap_or("");
        is_one(&wanted.pids, thread.pid)
            && is_one(&wanted.tids, Some(thread.tid))
            && wanted
                .comms
                .as_ref()
                .is_none_or(|comms| comms.is_match(name))
    };
    is_then && thread.is_none_or(named)
}

/// Active time: without sleep, idle time and waiting calls.
fn busy_ns(track: &Track, lane: &Lane) -> u64 {
    let quiet: &[usize] = match track.name {
        "states" | "cpus" => &[3],
        "calls" => &[2],
        // Missed samples of a late sampler are no activity of the thread.
        "samples" => &[1, 3],
        _ => &[],
    };
    let times = lane.times_ns.iter().enumerate();
    times
        .filter(|(group, _)| !quiet.contains(group))
        .map(|(_, time)| time)
        .sum()
}

/// Busy processes first, with their threads together, and the recorder last; CPUs by number.
fn order(track: &Track, lanes: &mut [(&Lane, Option<&Thread>)]) {
    if track.name == "cpus" {
        return;
    }
    let process = |thread: Option<&Thread>, lane: &Lane| match thread.and_then(|thread| thread.upid)
    {
        Some(upid) => (true, upid),
        None => (false, lane.id),
    };
    let mut busy: HashMap<(bool, i32), u64> = HashMap::new();
    for (lane, thread) in lanes.iter() {
        *busy.entry(process(*thread, lane)).or_default() += busy_ns(track, lane);
    }
    lanes.sort_by_cached_key(|(lane, thread)| {
        let process = process(*thread, lane);
        let of_process = busy.get(&process).copied().unwrap_or(0);
        let tid = thread.map(|thread| thread.tid);
        let is_tracer = thread.is_some_and(|thread| thread.is_tracer);
        let rank = (is_tracer, std::cmp::Reverse(of_process));
        (rank, process, tid, lane.id)
    });
}

fn row(track: &Track, lane: &Lane, thread: Option<&Thread>) -> Value {
    let mut row = json!({
        "lane": lane.id,
        "name": null,
        "begin_ns": lane.first_ns,
        "end_ns": lane.last_ns,
        "busy_ns": busy_ns(track, lane),
        "times_ns": lane.times_ns,
        "intervals": lane.intervals,
    });
    if let Some((dev, name)) = &lane.device {
        row["name"] = json!(name);
        row["dev"] = json!(dev);
    } else if let Some(thread) = thread {
        row["name"] = json!(thread.name);
        row["tid"] = json!(thread.tid);
        row["pid"] = json!(thread.pid);
        row["process"] = json!(thread.process);
        row["kernel"] = json!(thread.is_kernel);
    } else if track.name == "cpus" {
        row["name"] = json!(format!("CPU {}", lane.id));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(id: i32, busy: u64) -> Lane {
        Lane {
            id,
            device: None,
            first_ns: 10,
            last_ns: 20,
            intervals: 1,
            times_ns: [busy, 0, 0, 1_000],
        }
    }

    const TRACER: i32 = 9;

    fn thread(tid: i32, upid: i32) -> Thread {
        Thread {
            name: Some(format!("t{tid}")),
            tid,
            pid: Some(upid * 100),
            upid: Some(upid),
            process: None,
            is_kernel: Some(false),
            is_tracer: upid == TRACER,
        }
    }

    fn lanes(wanted: &Wanted) -> (u64, Vec<i64>) {
        let track = Track {
            name: "states",
            values: Vec::new(),
            groups: [""; 4],
            lanes: [(1, 5), (2, 1), (3, 7), (4, 6), (5, 50), (6, 90)]
                .map(|(id, busy)| lane(id, busy))
                .into(),
            left_out: whyslow_tiles::LeftOut::default(),
        };
        let names = [
            (1, thread(12, 1)),
            (2, thread(11, 1)),
            (3, thread(30, 2)),
            (4, thread(10, 1)),
            (6, thread(60, TRACER)),
        ];
        let names = Arc::new(Names(HashMap::from(names)));
        let about = about(&track, &names, wanted);
        let lanes = about["lanes"].as_array().expect("a list").iter();
        let ids = lanes.filter_map(|lane| lane["lane"].as_i64()).collect();
        (about["total"].as_u64().expect("a number"), ids)
    }

    fn all() -> Wanted {
        Wanted {
            window: None,
            pids: Vec::new(),
            tids: Vec::new(),
            comms: None,
            offset: 0,
            limit: 100,
        }
    }

    #[test]
    fn threads_stand_with_their_process_and_busy_ones_first() {
        assert_eq!(lanes(&all()), (6, vec![5, 4, 2, 1, 3, 6]));
        let some = Wanted {
            offset: 1,
            limit: 2,
            ..all()
        };
        assert_eq!(lanes(&some), (6, vec![4, 2]));
        let of_process = Wanted {
            pids: vec![200],
            ..all()
        };
        // Lanes of unknown threads are shown.
        assert_eq!(lanes(&of_process), (2, vec![5, 3]));
        let named = Wanted {
            comms: globs(Some("t1*,x")).expect("patterns"),
            ..all()
        };
        assert_eq!(lanes(&named), (4, vec![5, 4, 2, 1]));
        let later = Wanted {
            window: Some(Window::new(21, 30)),
            ..all()
        };
        assert_eq!(lanes(&later), (0, vec![]));
    }
}
