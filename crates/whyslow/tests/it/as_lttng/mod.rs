//! `as lttng-…` against stored outputs of lttng-analyses 0.6.1: the same command lines, every
//! table, cell by cell. Each difference must be one of those that
//! `docs/lttng-analyses-differences.md` lists, and is proved from the trace.

mod counts;
mod facts;
mod parse;
mod rules;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use whyslow_ingest::archive;

use facts::Facts;
use parse::{Cells, Row, Table, tables};
use rules::Difference;
use whyslow_testkit::data_folder;

use crate::common::Place;

/// Commands that are not compared here.
const NOT_IMITATED: [&str; 2] = ["lttng-periodstats", "lttng-periodtop"];

const RANGES: [&str; 4] = ["--begin", "--end", "--timerange", "--refresh"];

/// A command line of lttng-analyses and its output.
struct Said {
    file: String,
    words: Vec<String>,
    text: String,
}

impl Said {
    fn is_ranged(&self) -> bool {
        let mut words = self.words.iter();
        words.any(|word| RANGES.contains(&word.as_str()))
    }

    fn is_cut(&self) -> bool {
        self.file.contains(".head") || self.text.lines().count() == 3000
    }

    /// `[begin, end]` of every part of the output.
    fn ranges(&self) -> Vec<&str> {
        let lines = self.text.lines();
        lines
            .filter_map(|line| line.strip_prefix("Timerange: "))
            .collect()
    }

    /// The output of the same command line here.
    ///
    /// lttng-analyses rounds ranges to events: from the first one inside to the last one, and its
    /// parts start with the first event after the end of the previous one. Its ranges are requested
    /// here, so that the same ranges are compared.
    fn ours(&self, place: &Place) -> String {
        let mut args = vec!["as"];
        let mut words = self.words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if RANGES.contains(&word) {
                words.next();
            } else {
                args.push(word);
            }
        }
        args.push("t.wsl");
        if !args.contains(&"--gmt") {
            args.push("--gmt");
        }
        if !self.is_ranged() {
            return place.stdout(&args);
        }
        let part = |range: &&str| {
            let range = range.replace(", ", ",");
            let mut args = args.clone();
            args.extend(["--timerange", &range]);
            place.stdout(&args)
        };
        self.ranges().iter().map(part).collect()
    }
}

/// ns since the epoch of `[2018-03-19 18:39:19.831423009, …]`.
fn instants(range: &str) -> (i64, i64) {
    let instant = |text: &str| {
        let time: jiff::Timestamp = format!("{}Z", text.replace(' ', "T"))
            .parse()
            .expect("a time");
        i64::try_from(time.as_nanosecond()).expect("a time of this era")
    };
    let times = range.trim_matches(['[', ']']).split_once(", ");
    let (begin, end) = times.expect("two times");
    (instant(begin), instant(end))
}

/// `file | lttng-… options <trace> | …`
fn stored(folder: &Path) -> Vec<Said> {
    let commands = std::fs::read_to_string(folder.join("COMMANDS.txt")).expect("the list is there");
    let said = commands.lines().filter_map(|line| {
        let mut parts = line.split(" | ");
        let (file, command) = (parts.next()?, parts.next()?);
        let mut words: Vec<String> = command.split_whitespace().map(String::from).collect();
        words.retain(|word| word != "<trace>");
        if !file.ends_with(".txt") || NOT_IMITATED.contains(&words.first()?.as_str()) {
            return None;
        }
        Some(Said {
            file: file.to_owned(),
            words,
            text: std::fs::read_to_string(folder.join(file)).expect("the output is there"),
        })
    });
    said.collect()
}

/// Differences in one output.
struct Comparison<'c> {
    said: &'c Said,
    is_cut: bool,
    range: (i64, i64),
    least: Option<f64>,
    our_least: Option<f64>,
    extra: Rc<Vec<(String, f64)>>,
    missing: Rc<Vec<(String, f64)>>,
    differences: &'c mut Vec<Difference>,
    cells: &'c mut usize,
}

impl Comparison<'_> {
    fn tables(&mut self, ours: &[Table]) {
        let theirs = tables(&self.said.text);
        assert!(!theirs.is_empty(), "{}: nothing was read", self.said.file);
        // One table per thread in some outputs, so thousands. Of two with one name the first counts.
        let by_name = |tables: &[Table]| {
            let mut found: HashMap<String, Vec<Row>> = HashMap::new();
            for table in tables {
                let rows = found.entry(table.name.clone());
                rows.or_insert_with(|| table.rows.clone());
            }
            found
        };
        let (mut theirs, mut ours) = (by_name(&theirs), by_name(ours));
        let names: BTreeSet<String> = theirs.keys().chain(ours.keys()).cloned().collect();
        for name in &names {
            let of = |tables: &mut HashMap<String, Vec<Row>>| tables.remove(name);
            let mut theirs = of(&mut theirs).unwrap_or_default();
            let ours = of(&mut ours).unwrap_or_default();
            // With a limit of N, lttng-analyses prints one more row.
            if name.starts_with("Top system call") && theirs.len() == ours.len() + 1 {
                theirs.pop();
            }
            self.rows(name, theirs, ours);
        }
    }

    fn rows(&mut self, table: &str, theirs: Vec<Row>, ours: Vec<Row>) {
        let least = |rows: &[Row]| {
            let amounts = rows.iter().filter_map(|row| {
                let mut cells = row.cells.iter();
                let amount = cells.find(|(name, _)| ["total", "size", "usage"].contains(name))?;
                Some(rules::bytes(&amount.1))
            });
            amounts.reduce(f64::min)
        };
        (self.least, self.our_least) = (least(&theirs), least(&ours));
        let only = |these: &[Row], others: &[Row]| {
            let known: BTreeSet<&String> = others.iter().map(|row| &row.key).collect();
            let rows = these.iter().filter(|row| !known.contains(&row.key));
            let rows = rows.map(|row| {
                let count = row.cells.iter().find(|(name, _)| *name == "count");
                let count = count.and_then(|(_, count)| count.parse().ok());
                (row.key.clone(), count.unwrap_or(0.0))
            });
            Rc::new(rows.collect())
        };
        self.extra = only(&ours, &theirs);
        self.missing = only(&theirs, &ours);
        let mut by_key: HashMap<String, Vec<Row>> = HashMap::new();
        for row in ours.into_iter().rev() {
            by_key.entry(row.key.clone()).or_default().push(row);
        }
        for row in theirs {
            let ours = by_key.get_mut(&row.key).and_then(Vec::pop);
            let Some(ours) = ours else {
                self.add((table, &row.key, "row"), &row.cells, &Vec::new());
                continue;
            };
            for (name, value) in &row.cells {
                *self.cells += 1;
                let same = ours.cells.iter().find(|(column, _)| column == name);
                if same.is_none_or(|(_, ours)| ours != value) {
                    self.add((table, &row.key, name), &row.cells, &ours.cells);
                }
            }
        }
        // Of some outputs only the first lines were kept.
        if self.is_cut {
            return;
        }
        for row in by_key.into_values().flatten() {
            self.add((table, &row.key, "row"), &Vec::new(), &row.cells);
        }
    }

    fn add(&mut self, (table, key, column): (&str, &str, &str), theirs: &Cells, ours: &Cells) {
        self.differences.push(Difference {
            file: self.said.file.clone(),
            table: table.to_owned(),
            key: key.to_owned(),
            column: column.to_owned(),
            theirs: theirs.clone(),
            ours: ours.clone(),
            least: self.least,
            our_least: self.our_least,
            extra: Rc::clone(&self.extra),
            missing: Rc::clone(&self.missing),
            range: self.range,
            is_ranged: self.said.is_ranged(),
        });
    }
}

/// All differences of one trace, and the number of compared cells.
fn compare(source: &Path, said: &[Said]) -> (Vec<Difference>, usize) {
    let place = Place::new();
    let source = source.to_str().expect("UTF-8");
    place.stdout(&["import", source, "-o", "t.wsl"]);
    let mut differences = Vec::new();
    let mut cells = 0;
    for said in said {
        let ours = tables(&said.ours(&place));
        let mut comparison = Comparison {
            said,
            is_cut: said.is_cut(),
            range: said
                .ranges()
                .first()
                .map_or((0, 0), |range| instants(range)),
            least: None,
            our_least: None,
            extra: Rc::default(),
            missing: Rc::default(),
            differences: &mut differences,
            cells: &mut cells,
        };
        comparison.tables(&ours);
    }
    (differences, cells)
}

/// Differences that no rule explains, a few of each kind.
fn report(unexplained: Vec<&Difference>) -> String {
    let mut kinds: BTreeMap<(&str, &str, &str), Vec<&Difference>> = BTreeMap::new();
    for difference in unexplained {
        let table = difference.table.split(" TID").next().unwrap_or("");
        let kind = (&*difference.file, table, &*difference.column);
        kinds.entry(kind).or_default().push(difference);
    }
    let mut report = String::new();
    for ((file, table, column), found) in &kinds {
        let _ = writeln!(report, "{file} | {table} | {column}: {}", found.len());
        for difference in found.iter().take(3) {
            let _ = writeln!(
                report,
                "    {} {}\n      theirs {:?}\n      ours   {:?}",
                difference.table, difference.key, difference.theirs, difference.ours
            );
        }
    }
    report
}

fn check(trace: &str, source: &Path, said: &[Said]) {
    let (differences, cells) = compare(source, said);
    let logs = said.iter().filter(|said| said.file.contains("iolog.txt"));
    let rows = logs
        .flat_map(|said| tables(&said.text))
        .flat_map(|table| table.rows);
    let facts = Facts::of(source, rows.map(|row| row.key).collect());
    let mut explained: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for difference in &differences {
        match rules::explain(difference, &facts) {
            Some(rule) => *explained.entry(rule).or_default() += 1,
            None => unexplained.push(difference),
        }
    }
    let unexplained = report(unexplained);
    assert!(
        unexplained.is_empty(),
        "{trace}: {cells} cells compared, {explained:?}\n{unexplained}"
    );
    counts::check(trace, cells, &explained);
}

fn check_stored(trace: &str) {
    let Some(data) = data_folder("ctf") else {
        return;
    };
    let outputs = data.join("lttng-analyses/reference-outputs.tar.xz");
    let outputs = archive::unpack(&outputs).expect("the archive unpacks");
    let said = stored(&outputs.path().join(trace));
    check(trace, &data.join(format!("{trace}.tar.xz")), &said);
}

#[test]
fn basic_kernel() {
    check_stored("basic-kernel-4.4");
}

#[test]
fn perfctx() {
    check_stored("perfctx-6.2");
}

#[test]
fn arm_old_syscalls() {
    check_stored("arm-old-syscalls-3.10");
}

#[test]
fn many_threads() {
    check_stored("many-threads-4.4");
}

#[test]
fn web_incident() {
    let Some(data) = data_folder("ctf") else {
        return;
    };
    let folder = data.join("ours-web-incident");
    let outputs = std::fs::read_dir(folder.join("reference")).expect("the outputs are there");
    let said = outputs.filter_map(|entry| {
        let path = entry.ok()?.path();
        let file = path.file_name()?.to_str()?.to_owned();
        let command = file.strip_suffix(".txt")?.trim_end_matches(".head");
        if !command.starts_with("lttng-") {
            return None;
        }
        let words = vec![command.to_owned()];
        let text = std::fs::read_to_string(&path).ok()?;
        Some(Said { file, words, text })
    });
    let said: Vec<Said> = said.collect();
    check("web-incident", &folder.join("trace.tar.zst"), &said);
}
