//! Profiles of one shop by several profilers: each agrees with the profiler's other formats, and
//! with measurements of the shop itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use whyslow_ingest::{InMemory, import_in_memory};

const SECOND: i64 = 1_000_000_000;

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("lookups").join(name)
}

fn import(name: &str) -> InMemory {
    import_in_memory(&[fixture(name)]).expect("it can be imported")
}

fn has(imported: &InMemory, stat: &str) -> bool {
    imported.anomalies.iter().any(|one| one.name == stat)
}

fn inflated(path: &Path) -> String {
    let mut text = String::new();
    let file = fs::File::open(path).expect("a fixture");
    MultiGzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("text");
    text
}

/// Slow requests of the shop under a profiler: start and end.
fn slow(kind: &str) -> Vec<(i64, i64)> {
    let truth = fs::read_to_string(fixture("slow/truth.json")).expect("its log");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let requests = truth[kind]["slow"].as_array().expect("requests");
    let time = |request: &Value, key: &str| request[key].as_i64().expect("a time");
    requests
        .iter()
        .map(|request| (time(request, "begin"), time(request, "end")))
        .collect()
}

/// Each sample: frames with the innermost first, start, duration, number of samples it stands for.
fn samples(imported: &InMemory) -> Vec<(Vec<&str>, i64, i64, i64)> {
    let sites: BTreeMap<i64, (Option<i64>, i64)> = imported
        .rows
        .callsite
        .iter()
        .map(|row| (row.id, (row.parent_id, row.frame_id)))
        .collect();
    let names: BTreeMap<i64, &str> = imported
        .rows
        .frame
        .iter()
        .map(|row| {
            (
                row.id,
                row.function.map_or("", |sym| imported.symbols.get(sym)),
            )
        })
        .collect();
    let rows = imported.rows.stack_sample.iter();
    let reported = rows.map(|row| {
        let (mut at, mut frames) = (row.callsite_id, Vec::new());
        while let Some((parent, frame)) = at.and_then(|at| sites.get(&at)) {
            frames.push(names[frame]);
            at = *parent;
        }
        let credits = i64::from(row.credits.unwrap_or(0));
        (frames, row.ts, row.dur.unwrap_or(0), credits)
    });
    reported.collect()
}

/// Times in which all samples of a thread are in a DNS lookup.
fn lookups(imported: &InMemory) -> Vec<(i64, i64)> {
    let samples = samples(imported);
    let mut by_thread: BTreeMap<Option<i32>, Vec<(i64, i64)>> = BTreeMap::new();
    for (row, (frames, ts, dur, _)) in imported.rows.stack_sample.iter().zip(&samples) {
        if !frames.iter().any(|frame| frame.ends_with("getaddrinfo")) {
            continue;
        }
        let of = by_thread.entry(row.utid).or_default();
        match of.last_mut() {
            Some((_, end)) if *ts <= *end + SECOND / 5 => *end = ts + dur,
            _ => of.push((*ts, ts + dur)),
        }
    }
    let all = by_thread.into_values().flatten();
    all.filter(|(begin, end)| end - begin > SECOND).collect()
}

/// Without those truncated by the end of the profile, which the shop could not log.
fn whole_lookups(imported: &InMemory) -> Vec<(i64, i64)> {
    let rows = imported.rows.stack_sample.iter();
    let last = rows.filter_map(|row| row.ts_end).max().expect("samples");
    let mut found = lookups(imported);
    found.retain(|(_, end)| *end < last - SECOND / 5);
    found
}

#[test]
fn slow_lookups_of_py_spy_last_as_long_as_the_shop_measured() {
    for (kind, name, exact) in [
        // The sampler may be late on a busy machine.
        ("chrometrace", "slow/pyspy.chrometrace.gz", 0.5),
        // Each sample has the requested interval, and many were late.
        ("speedscope", "slow/pyspy.speedscope.gz", 0.7),
    ] {
        let imported = import(name);
        let found = whole_lookups(&imported);
        assert_eq!(found.len(), slow(kind).len(), "{name}: {found:?}");
        for (begin, end) in found {
            let length = (end - begin) as f64 / 1e9;
            assert!((length - 5.0).abs() < exact, "{name}: {length}");
        }
        assert!(has(&imported, "SAMPLES_NO_DATES"), "{name}");
    }
}

#[test]
fn dumps_lie_at_the_time_in_their_names() {
    let mut files: Vec<PathBuf> = fs::read_dir(fixture("slow/dumps"))
        .expect("dumps")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let imported = import_in_memory(&files).expect("they can be imported");
    assert!(!has(&imported, "DUMP_UNSTAMPED"));
    let slow = slow("dumps");
    assert!(!slow.is_empty());
    let found = lookups(&imported);
    // The first dump of a lookup may be up to a second late, and stands for the time before it.
    for (from, to) in &slow {
        let is_same =
            |(begin, end): &&(i64, i64)| (begin - from).abs() < SECOND && (end - to).abs() < SECOND;
        assert!(
            found.iter().any(|one| is_same(&one)),
            "{from} {to}: {found:?}"
        );
    }
    let whole = whole_lookups(&imported);
    assert!(whole.len() <= slow.len(), "{whole:?}");
    // The shop reports kernel thread ids, as the dumps do.
    let truth = fs::read_to_string(fixture("slow/truth.json")).expect("its log");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let below = samples(&imported);
    let rows = imported.rows.stack_sample.iter().zip(&below);
    let tids: Vec<Option<i32>> = rows
        .filter(|(_, (frames, ..))| frames.contains(&"getaddrinfo"))
        .map(|(row, _)| row.tid)
        .collect();
    for request in truth["dumps"]["slow"].as_array().expect("requests") {
        let tid = request["tid"].as_i64().expect("a thread") as i32;
        assert!(tids.contains(&Some(tid)), "{tid}: {tids:?}");
    }
}

#[test]
fn both_forms_of_rbspy_have_the_same_samples() {
    for state in ["slow", "fine"] {
        let raw = import(&format!("{state}/rbspy.raw.gz"));
        let other = import(&format!("{state}/rbspy.speedscope.json"));
        let plain = |imported: &InMemory| -> Vec<Vec<String>> {
            let mut rows = samples(imported);
            rows.sort_by_key(|(_, ts, dur, _)| ts + dur);
            let name = |frame: &str| frame.trim_end_matches(" [c function]").to_owned();
            let rows = rows.iter();
            rows.map(|(frames, ..)| frames.iter().map(|frame| name(frame)).collect())
                .collect()
        };
        let (raw_rows, other_rows) = (plain(&raw), plain(&other));
        // The other format has no time for its first sample.
        assert!(
            raw_rows.len() > 200 && raw_rows.len() == other_rows.len(),
            "{}",
            raw_rows.len()
        );
        assert_eq!(raw_rows, other_rows, "{state}");
        for stat in ["SAMPLES_BY_ADDRESS", "SAMPLES_ONE_THREAD"] {
            assert!(has(&raw, stat), "{stat}");
        }
        assert!(!has(&raw, "SAMPLES_NO_DATES") && has(&other, "SAMPLES_NO_DATES"));
    }
    // Its times are wall-clock times.
    let raw = import("slow/rbspy.raw.gz");
    let first = samples(&raw)[0].1;
    let request = slow("rbspy")[0].0;
    assert!((request - first).abs() < 60 * SECOND);
}

/// `stackprof --json` printed the same results.
#[test]
fn the_dump_of_stackprof_says_what_its_json_says() {
    let (dump, json) = (
        import("slow/stackprof.dump"),
        import("slow/stackprof.json.gz"),
    );
    let plain = |imported: &InMemory| -> Vec<(Vec<String>, i64, i64)> {
        let rows = samples(imported);
        let rows = rows.iter().map(|(frames, _, dur, credits)| {
            let frames = frames.iter().map(|frame| (*frame).to_owned());
            (frames.collect(), *dur, *credits)
        });
        rows.collect()
    };
    assert_eq!(plain(&dump), plain(&json));
    let text = inflated(&fixture("slow/stackprof.json.gz"));
    let reported: Value = serde_json::from_str(&text).expect("JSON");
    let all: i64 = plain(&dump).iter().map(|(.., credits)| credits).sum();
    assert_eq!(Some(all), reported["samples"].as_i64());
    // Inclusive totals by function, as counted by the tool.
    let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
    for (frames, .., credits) in samples(&dump) {
        let mut frames = frames;
        frames.sort_unstable();
        frames.dedup();
        for frame in frames {
            *totals.entry(frame).or_default() += credits;
        }
    }
    let mut wanted: BTreeMap<&str, i64> = BTreeMap::new();
    for frame in reported["frames"].as_object().expect("frames").values() {
        let name = frame["name"].as_str().expect("a name");
        let total = frame["total_samples"].as_i64().unwrap_or(0);
        *wanted.entry(name).or_default() += total;
    }
    for (name, total) in &totals {
        // Different functions with the same name are one here.
        assert!(*total <= wanted[name], "{name}");
    }
    assert_eq!(
        totals["Addrinfo.getaddrinfo"],
        wanted["Addrinfo.getaddrinfo"]
    );
}

#[test]
fn the_forms_of_ruby_prof_agree_on_what_methods_took() {
    let own = |imported: &InMemory| -> BTreeMap<String, f64> {
        let mut own: BTreeMap<String, f64> = BTreeMap::new();
        for (frames, .., credits) in samples(imported) {
            *own.entry(frames[0].to_owned()).or_default() += credits as f64 / 1e6;
        }
        own
    };
    let flat = import("slow/ruby_prof.flat.txt");
    let graph = import("slow/ruby_prof.graph.txt.gz");
    for imported in [&flat, &graph] {
        for stat in ["SAMPLES_SUMS", "SAMPLES_NO_TIMES"] {
            assert!(has(imported, stat), "{stat}");
        }
        assert!(!has(imported, "SAMPLES_BAD"));
    }
    let (of_flat, of_graph) = (own(&flat), own(&graph));
    let lookup = "<Class::Addrinfo>#getaddrinfo";
    // Each slow request waited for five seconds; the shop could not log the last ones.
    let (slow, cut) = (slow("ruby-prof").len() as f64 * 5.0, 4.0 * 5.0);
    let took = of_flat[lookup];
    assert!(took >= slow && took <= slow + cut, "{took}");
    for (method, seconds) in &of_flat {
        // Callers are printed in milliseconds each.
        let other = of_graph.get(method).copied().unwrap_or(0.0);
        assert!(
            (seconds - other).abs() < 0.02 + 0.01 * seconds,
            "{method} {seconds} {other}"
        );
    }
    let tree = import("slow/ruby_prof.calltree");
    let of_tree = own(&tree);
    assert!(of_tree["Object::price"] > 0.0 && of_tree["Object::price"] <= of_flat["Object#price"]);
    assert!(!has(&tree, "SAMPLES_BAD"));
}
