//! pprof profiles have the stacks, values and labels that `go tool pprof -raw` prints.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use whyslow_ingest::{InMemory, import_in_memory};

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("pprof").join(name)
}

/// Thread and functions with the innermost first, as one word; value.
type Totals = BTreeMap<String, i64>;

/// Output of the tool: the values in that column, divided.
fn printed(name: &str, column: usize, unit: f64) -> Totals {
    let text = fs::read_to_string(fixture(&format!("{name}.raw.txt"))).expect("what was printed");
    let (samples, rest) = text.split_once("Locations\n").expect("two parts");
    let locations = rest.split("Mappings").next().expect("a part");
    let mut functions: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut last = String::new();
    for line in locations.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Inlined functions are on lines of their own, without number and address.
        let function = if line.contains(" M=") {
            words[0].trim_end_matches(':').clone_into(&mut last);
            words[3]
        } else {
            words[0]
        };
        functions.entry(last.clone()).or_default().push(function);
    }
    let mut read: Vec<(String, String, i64)> = Vec::new();
    for line in samples.lines() {
        let Some((values, places)) = line.split_once(": ") else {
            // The label of the sample above.
            if let Some((key, value)) = line.trim().split_once(":[") {
                let label = format!("{key}={}", value.trim_end_matches(']'));
                read.last_mut().expect("a sample").0 = label;
            }
            continue;
        };
        let values: Vec<i64> = values.split_whitespace().flat_map(str::parse).collect();
        let Some(value) = values.get(column) else {
            continue;
        };
        let stack: Vec<&str> = places
            .split_whitespace()
            .flat_map(|place| functions[place].iter().copied())
            .collect();
        let value = (*value as f64 / unit).round() as i64;
        read.push(("all".to_owned(), stack.join("<"), value));
    }
    let mut sums = Totals::new();
    for (label, stack, value) in read.into_iter().filter(|(.., value)| *value > 0) {
        *sums.entry(format!("{label}: {stack}")).or_default() += value;
    }
    sums
}

fn read(imported: &InMemory) -> Totals {
    let rows = &imported.rows;
    let word = |sym| imported.symbols.get(sym);
    let frame: BTreeMap<i64, &str> = rows
        .frame
        .iter()
        .map(|row| (row.id, row.function.map_or("", word)))
        .collect();
    let sites: BTreeMap<i64, (Option<i64>, i64)> = rows
        .callsite
        .iter()
        .map(|row| (row.id, (row.parent_id, row.frame_id)))
        .collect();
    let mut sums = Totals::new();
    for row in &rows.stack_sample {
        let (mut at, mut stack) = (row.callsite_id, Vec::new());
        while let Some((parent, site)) = at.and_then(|at| sites.get(&at)) {
            stack.push(frame[site]);
            at = *parent;
        }
        let key = format!("{}: {}", row.comm.map_or("", word), stack.join("<"));
        *sums.entry(key).or_default() += i64::from(row.credits.unwrap_or(0));
    }
    sums
}

#[test]
fn stacks_and_values_are_those_that_go_prints() {
    for (name, column, unit, is_time) in [
        ("cpu", 0, 1.0, true),
        ("block", 1, 1e3, true),
        ("mutex", 1, 1e3, true),
        ("goroutine", 0, 1.0, false),
    ] {
        let imported = import_in_memory(&[fixture(&format!("{name}.pprof"))]).expect("a profile");
        let wanted = printed(name, column, unit);
        assert!(!wanted.is_empty(), "{name}");
        assert_eq!(read(&imported), wanted, "{name}");
        let has = |stat: &str| imported.anomalies.iter().any(|one| one.name == stat);
        assert!(has("SAMPLES_NO_TIMES") && !has("SAMPLES_BAD"), "{name}");
        assert_eq!(has("SAMPLES_NOT_TIME"), !is_time, "{name}");
    }
}

#[test]
fn labels_tell_the_workers_apart() {
    let imported = import_in_memory(&[fixture("cpu.pprof")]).expect("a profile");
    let totals = read(&imported);
    let of = |label: &str| -> i64 {
        let own = totals.iter().filter(|(key, _)| key.starts_with(label));
        own.map(|(_, credits)| credits).sum()
    };
    let (much, little) = (of("worker=much"), of("worker=little"));
    // One computes three times as long in each round.
    assert!(much > little && little > 0, "{much} {little}");
}
