//! py-spy profiles have the shares measured by the program itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use whyslow_ingest::{InMemory, import_in_memory};

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("samplers").join(name)
}

/// Samples and time of the worker by function of the program.
fn spent(imported: &InMemory) -> BTreeMap<&str, (i64, i64)> {
    let word = |sym| imported.symbols.get(sym);
    let mut spent: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for row in &imported.rows.stack_sample {
        let function = row.function.map_or("", word);
        let of = spent.entry(function).or_default();
        of.0 += i64::from(row.credits.unwrap_or(0));
        of.1 += row.dur.unwrap_or(0);
    }
    spent
}

fn share(of: impl Fn(&str) -> i64) -> f64 {
    let (compute, wait) = (of("compute"), of("wait"));
    assert!(compute > 0 && wait > 0);
    compute as f64 / (compute + wait) as f64
}

#[test]
fn shares_are_those_that_the_program_measured() {
    let truth = fs::read_to_string(fixture("truth.json")).expect("its account");
    let truth: BTreeMap<String, f64> = serde_json::from_str(&truth).expect("numbers");
    let wanted = truth["compute"] / (truth["compute"] + truth["wait"]);
    for (name, has_times) in [
        ("pyspy.speedscope.json", true),
        ("pyspy.chrome.json", true),
        ("pyspy.collapsed.txt", false),
    ] {
        let imported = import_in_memory(&[fixture(name)]).expect("it can be imported");
        let spent = spent(&imported);
        let get = |of: &str| spent.get(of).copied().unwrap_or_default();
        let share = if has_times {
            share(|of| get(of).1)
        } else {
            share(|of| get(of).0)
        };
        assert!((share - wanted).abs() < 0.05, "{name}: {share} {wanted}");
        let names: Vec<&str> = imported
            .rows
            .stack_sample
            .iter()
            .filter_map(|row| row.comm)
            .map(|sym| imported.symbols.get(sym))
            .collect();
        assert!(names.contains(&"worker"), "{name}");
        let has = |stat: &str| imported.anomalies.iter().any(|one| one.name == stat);
        assert_eq!(has("SAMPLES_NO_TIMES"), !has_times, "{name}");
        assert_eq!(has("SAMPLES_NO_DATES"), has_times, "{name}");
        assert!(!has("SAMPLES_BAD"), "{name}");
    }
}

#[test]
fn what_nothing_ends_has_no_length() {
    let folder = std::env::temp_dir().join(format!("whyslow-open-{}", std::process::id()));
    let text = r#"[{"name":"a","ph":"B","ts":0,"pid":1,"tid":8},{"name":"b","ph":"X","ts":5,"dur":5,"pid":1,"tid":8}]"#;
    fs::write(&folder, text).expect("a file");
    let imported = import_in_memory(std::slice::from_ref(&folder)).expect("it can be imported");
    fs::remove_file(&folder).expect("its end");
    let lengths: Vec<Option<i64>> = imported
        .rows
        .stack_sample
        .iter()
        .map(|row| row.dur)
        .collect();
    assert_eq!(lengths, [Some(5_000), Some(5_000), None]);
}
