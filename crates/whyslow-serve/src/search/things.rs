//! Names in small tables: threads, processes, devices, functions, observations.

use std::collections::HashMap;

use serde_json::{Value, json};
use whyslow_model::tables::{
    CallsiteRow, DeviceRow, FrameRow, ProcessRow, ThreadCommRow, ThreadRow,
};
use whyslow_model::{Ns, Row, Sym, Symbols};
use whyslow_store::{StoreError, Tables, rows};

use super::{Hit, Needle};

/// All rows of a table that may be missing.
fn all<R: Row>(tables: &dyn Tables, symbols: &mut Symbols) -> Result<Vec<R>, StoreError> {
    let known = tables.info().tables.get(R::TABLE.name);
    match known {
        Some(table) if table.rows > 0 => rows(tables, symbols),
        _ => Ok(Vec::new()),
    }
}

/// Processes and threads: by name, command line, or id.
pub(super) fn tasks(
    tables: &dyn Tables,
    needle: &Needle,
) -> Result<(Vec<Hit>, Vec<Hit>), StoreError> {
    let mut symbols = Symbols::new();
    let threads: Vec<ThreadRow> = all(tables, &mut symbols)?;
    let processes: Vec<ProcessRow> = all(tables, &mut symbols)?;
    let names: Vec<ThreadCommRow> = all(tables, &mut symbols)?;
    let mut earlier: HashMap<i32, Sym> = HashMap::new();
    for name in &names {
        if needle.is_in(symbols.get(name.comm)) {
            earlier.entry(name.utid).or_insert(name.comm);
        }
    }
    let found = found_processes(&processes, &lives(&threads), (&symbols, needle));
    let found_threads = found_threads(&threads, &earlier, (&symbols, needle));
    Ok((found, found_threads))
}

/// Thread count, and first and last time seen, by process.
fn lives(threads: &[ThreadRow]) -> HashMap<i32, (u64, Ns, Ns)> {
    let mut lives: HashMap<i32, (u64, Ns, Ns)> = HashMap::new();
    for thread in threads {
        let Some(upid) = thread.upid else {
            continue;
        };
        let first = (0, thread.ts_first, thread.ts_last);
        let known = lives.entry(upid).or_insert(first);
        known.0 += 1;
        known.1 = known.1.min(thread.ts_first);
        known.2 = known.2.max(thread.ts_last);
    }
    lives
}

fn found_processes(
    processes: &[ProcessRow],
    lives: &HashMap<i32, (u64, Ns, Ns)>,
    (symbols, needle): (&Symbols, &Needle),
) -> Vec<Hit> {
    let text = |sym: Option<Sym>| sym.map(|sym| symbols.get(sym));
    let is_hit = |process: &&ProcessRow| {
        let texts = [
            process.comm,
            process.exe,
            process.command_line,
            process.cgroup,
        ];
        needle.number == Some(i64::from(process.pid))
            || texts
                .into_iter()
                .filter_map(text)
                .any(|text| needle.is_in(text))
    };
    let found = processes.iter().filter(is_hit).map(|process| {
        let life = lives.get(&process.upid).copied();
        Hit {
            kind: "process",
            text: text(process.comm).unwrap_or("?").to_owned(),
            detail: Some(match text(process.command_line.or(process.exe)) {
                Some(line) => format!("{}: {line}", process.pid),
                None => process.pid.to_string(),
            }),
            count: Some(life.map_or(0, |(count, ..)| count)),
            begin_ns: life.map(|(_, first, _)| first),
            end_ns: life.map(|(.., last)| last),
            filter: json!({"pid": process.pid}),
        }
    });
    found.collect()
}

fn found_threads(
    threads: &[ThreadRow],
    earlier: &HashMap<i32, Sym>,
    (symbols, needle): (&Symbols, &Needle),
) -> Vec<Hit> {
    let text = |sym: Option<Sym>| sym.map(|sym| symbols.get(sym));
    let has_it = |comm: &Sym| needle.is_in(symbols.get(*comm));
    let is_hit = |thread: &&ThreadRow| {
        needle.number == Some(i64::from(thread.tid))
            || thread.comm.as_ref().is_some_and(has_it)
            || earlier.contains_key(&thread.utid)
    };
    let found = threads.iter().filter(is_hit).map(|thread| {
        let name = thread.comm.filter(has_it);
        let name = name.or_else(|| earlier.get(&thread.utid).copied());
        Hit {
            kind: "thread",
            text: text(name.or(thread.comm)).unwrap_or("?").to_owned(),
            detail: Some(match thread.pid {
                Some(pid) => format!("{} of process {pid}", thread.tid),
                None => thread.tid.to_string(),
            }),
            count: None,
            begin_ns: Some(thread.ts_first),
            end_ns: Some(thread.ts_last),
            filter: json!({"tid": thread.tid}),
        }
    });
    found.collect()
}

pub(super) fn devices(tables: &dyn Tables, needle: &Needle) -> Result<Vec<Hit>, StoreError> {
    let mut symbols = Symbols::new();
    let devices: Vec<DeviceRow> = all(tables, &mut symbols)?;
    let text = |sym: Option<Sym>| sym.map(|sym| symbols.get(sym));
    let found = devices.iter().filter_map(|device| {
        let number = format!("{}:{}", device.major, device.minor);
        let name = symbols.get(device.name);
        let more = [text(device.label), text(device.backing)];
        let is_hit = needle.is_in(name)
            || needle.is_in(&number)
            || more.iter().flatten().any(|text| needle.is_in(text));
        let more: Vec<&str> = [text(device.kind)]
            .into_iter()
            .chain(more)
            .flatten()
            .collect();
        is_hit.then(|| Hit {
            kind: "device",
            text: name.to_owned(),
            detail: Some(format!("{number} {}", more.join(" ")).trim_end().to_owned()),
            count: None,
            begin_ns: None,
            end_ns: None,
            filter: json!({"dev": number}),
        })
    });
    Ok(found.collect())
}

/// Functions in stacks, counted by the stacks in which they are the innermost frame of a part.
pub(super) fn functions(tables: &dyn Tables, needle: &Needle) -> Result<Vec<Hit>, StoreError> {
    let mut symbols = Symbols::new();
    let frames: Vec<FrameRow> = all(tables, &mut symbols)?;
    let mut found: HashMap<(Sym, Option<Sym>), (Vec<i64>, Sym)> = HashMap::new();
    for frame in &frames {
        let Some(function) = frame.function else {
            continue;
        };
        if needle.is_in(symbols.get(function)) {
            let key = (function, frame.module);
            let known = found.entry(key).or_insert((Vec::new(), frame.kind));
            known.0.push(frame.id);
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut of_frame: HashMap<i64, u64> = HashMap::new();
    for callsite in all::<CallsiteRow>(tables, &mut symbols)? {
        *of_frame.entry(callsite.frame_id).or_default() += 1;
    }
    let hits = found.into_iter().map(|((function, module), (ids, kind))| {
        let stacks = ids.iter().filter_map(|id| of_frame.get(id)).sum();
        Hit {
            kind: "function",
            text: symbols.get(function).to_owned(),
            detail: Some(symbols.get(module.unwrap_or(kind)).to_owned()),
            count: Some(stacks),
            begin_ns: None,
            end_ns: None,
            filter: json!({}),
        }
    });
    Ok(hits.collect())
}

/// Findings of a cached explanation.
pub(super) fn findings(report: &[u8], needle: &Needle) -> Vec<Hit> {
    let report: Value = serde_json::from_slice(report).unwrap_or_default();
    let findings = report["findings"].as_array().into_iter().flatten();
    let found = findings.filter_map(|finding| {
        let verdict = finding["verdict"].as_str()?;
        let target = &finding["target"];
        let tid = &target["actor"]["tid"];
        needle.is_in(verdict).then(|| Hit {
            kind: "finding",
            text: verdict.to_owned(),
            detail: target["id"].as_str().map(str::to_owned),
            count: None,
            begin_ns: target["begin_ns"].as_i64(),
            end_ns: target["end_ns"].as_i64(),
            filter: if tid.is_null() {
                json!({})
            } else {
                json!({"tid": tid})
            },
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_found_by_what_they_say() {
        let report = json!({"findings": [
            {"verdict": "open by Apache2 was slow", "target": {
                "id": "op:17", "begin_ns": 5, "end_ns": 9, "actor": {"tid": 20}}},
            {"verdict": "something else", "target": {}},
        ]});
        let hits = findings(report.to_string().as_bytes(), &Needle::new("apache", 9));
        let hits = serde_json::to_value(&hits).expect("JSON");
        assert_eq!(
            hits,
            json!([{"kind": "finding", "text": "open by Apache2 was slow", "detail": "op:17",
                "count": null, "begin_ns": 5, "end_ns": 9, "filter": {"tid": 20}}])
        );
        assert!(findings(b"", &Needle::new("a", 9)).is_empty());
    }
}
