//! `info`: what a recording contains, what was lost, and what that means for queries.

mod anomalies;
mod clocks;
mod coverage;
mod devices;
mod marks;
mod resolvers;
mod topics;

use std::collections::{BTreeMap, BTreeSet};

use whyslow_analysis::Weight;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_explain::Trigger;
use whyslow_model::Symbols;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Form, LossNote, Measure, Value};
use whyslow_model::recorder;
use whyslow_model::tables::{LostEventsRow, MetadataRow, TraceStatRow};
use whyslow_record::Topic;
use whyslow_sources::live::{self, Plan, RecorderChoice};
use whyslow_sources::recording::Opened;
use whyslow_store::{Cut, RecordingInfo, StoreError, Tables, rows};

use crate::cli::InfoArgs;

pub(super) fn run(args: &InfoArgs, talk: &TalkArgs) -> Result<(), Failure> {
    if let Some(choice) = args.recording.as_deref().and_then(RecorderChoice::of) {
        return live::run(&Plan::of(choice, Topic::DEFAULT), talk, &mut |segment| {
            of(&Opened::live(segment)?, args, talk)
        });
    }
    of(&Opened::find(args.recording.as_deref(), talk)?, args, talk)
}

fn of(opened: &Opened, args: &InfoArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let wanted = if args.output.utc {
        Some(Zone::utc())
    } else {
        args.output.tz.clone()
    };
    let zone = opened.calendar(wanted).zone;
    let answer = answer(&*opened.tables, args)?;
    let lost = !answer.losses.is_empty();
    whyslow_render::write(
        answer,
        &opened.subject(),
        zone,
        Weight::Count,
        &args.output,
        talk,
    )?;
    if lost && args.output.strict {
        return Err(Failure::incomplete("events were lost in the recording"));
    }
    Ok(())
}

fn answer(tables: &dyn Tables, args: &InfoArgs) -> Result<Answer, Failure> {
    let info = tables.info();
    let counts = counts(tables)?;
    let mut answer = Answer {
        query: "info".into(),
        window: Some((info.begin_ns, info.end_ns)),
        losses: losses(tables)?,
        ..Answer::default()
    };
    if args.devices {
        answer.tables = vec![devices::table(tables)?];
        let has_devices = info
            .tables
            .get("device_link")
            .is_some_and(|table| table.rows > 0)
            || info.tables.get("mount").is_some_and(|table| table.rows > 0);
        if !has_devices {
            answer
                .caveats
                .push("device stacking and mounts unavailable: not recorded by this source".into());
        }
        return Ok(answer);
    }
    answer.tables = vec![
        recording(tables)?,
        sources(info),
        topics::table(tables)?,
        coverage::table(tables, &counts, &stated_topics(tables)?)?,
        row_counts(info),
    ];
    answer.tables.extend(clocks::table(tables)?);
    if devices::has_volumes(tables)? {
        answer.tables.push(devices::table(tables)?);
    }
    let resolvers = resolvers::table(tables)?;
    if !resolvers.rows.is_empty() {
        answer.tables.push(resolvers);
    }
    let marks = marks::table(tables)?;
    if !marks.rows.is_empty() {
        answer.tables.push(marks);
    }
    let anomalies = anomalies::table(tables, &counts)?;
    if !anomalies.rows.is_empty() {
        answer.tables.push(anomalies);
    }
    if args.events {
        answer.tables.push(events(&counts));
    }
    answer.next = Some("whyslow io stats".into());
    Ok(answer)
}

/// Facts about the machine and the recording as a whole.
fn recording(tables: &dyn Tables) -> Result<AnswerTable, Failure> {
    let info = tables.info();
    let mut facts = Facts(AnswerTable::new("recording", "recording", Vec::new()));
    facts.0.form = Form::Facts;
    let metadata = metadata(tables)?;
    let known = |key: &str| metadata.get(key).cloned().map_or(Value::Null, Value::from);
    facts.add("host", "host", Measure::Text, info.host.clone().into());
    facts.add("zone", "zone", Measure::Text, info.zone.clone().into());
    facts.add("kernel", "kernel", Measure::Text, known("kernel_release"));
    facts.add(
        "architecture",
        "architecture",
        Measure::Text,
        known("architecture"),
    );
    facts.add("tracer", "tracer", Measure::Text, tracer(&metadata));
    facts.add_recorder(&metadata);
    let length = info.end_ns.saturating_sub(info.begin_ns);
    facts.add("length_ns", "length", Measure::Duration, length.into());
    for (name, title, entity) in [
        ("cpus", "CPUs", "cpu"),
        ("processes", "processes", "process"),
        ("threads", "threads", "thread"),
    ] {
        let count = info.tables.get(entity).map_or(0, |table| table.rows as i64);
        facts.add(name, title, Measure::Count, count.into());
    }
    facts.add(
        "written_by",
        "written by",
        Measure::Text,
        info.written_by.clone().into(),
    );
    facts.add(
        "format_version",
        "format",
        Measure::Count,
        i64::from(info.format_version).into(),
    );
    let redacted = info.redacted.clone();
    facts.add("redacted", "redacted", Measure::Text, redacted.into());
    if let Some(trigger) = Trigger::read(tables)? {
        facts.add_trigger(trigger);
    }
    if let Some(cut) = &info.cut {
        facts.add_cut(cut);
    }
    Ok(facts.0)
}

/// A table of facts, without those that are not known.
struct Facts(AnswerTable);

impl Facts {
    fn add(&mut self, name: &str, title: &str, measure: Measure, value: Value) {
        if value != Value::Null {
            let column = AnswerColumn::new(name, title, measure);
            self.0.facts.push((name.to_owned(), column, value));
        }
    }

    fn add_recorder(&mut self, metadata: &BTreeMap<String, String>) {
        let known_text = |key: &str| metadata.get(key).map(String::as_str);
        let cpu_share = recorder::cpu_share(
            known_text(recorder::RECORDER_CPU),
            known_text(recorder::RECORDER_ELAPSED),
        );
        let pid = known_text(recorder::RECORDER_PID).and_then(|pid| pid.parse::<i64>().ok());
        self.add("recorder_pid", "recorder pid", Measure::Count, pid.into());
        self.add(
            "recorder_cpu",
            "recorder, of a CPU",
            Measure::Ratio,
            cpu_share.into(),
        );
    }

    fn add_trigger(&mut self, trigger: Trigger) {
        let what = match &trigger.condition {
            Some(condition) => format!("{condition}: {}", trigger.what),
            None => "saved on demand".to_owned(),
        };
        self.add("trigger", "trigger", Measure::Text, what.into());
        let ts = trigger.ts_ns.map_or(Value::Null, Value::from);
        self.add("trigger_ns", "triggered", Measure::Time, ts);
        let id = trigger.id.map_or(Value::Null, Value::from);
        self.add("trigger_id", "trigger id", Measure::Text, id);
    }

    fn add_cut(&mut self, cut: &Cut) {
        let digest = cut.digest.clone().into();
        self.add("cut_from", "cut from", Measure::Text, digest);
        for (name, title, ts) in [
            ("whole_begin_ns", "original start", cut.begin_ns),
            ("whole_end_ns", "original end", cut.end_ns),
            ("focus_begin_ns", "window start", cut.focus_begin_ns),
            ("focus_end_ns", "window end", cut.focus_end_ns),
        ] {
            self.add(name, title, Measure::Time, ts.into());
        }
    }
}

fn tracer(metadata: &BTreeMap<String, String>) -> Value {
    let Some(name) = metadata.get("tracer_name") else {
        return Value::Null;
    };
    let version: Vec<&str> = ["tracer_major", "tracer_minor", "tracer_patchlevel"]
        .iter()
        .filter_map(|key| metadata.get(*key).map(String::as_str))
        .collect();
    format!("{name} {}", version.join(".")).trim_end().into()
}

/// Metadata by key; of several sources the first one counts.
fn metadata(tables: &dyn Tables) -> Result<BTreeMap<String, String>, StoreError> {
    let mut symbols = Symbols::new();
    let mut found = BTreeMap::new();
    for row in rows::<MetadataRow>(tables, &mut symbols)? {
        let key = symbols.get(row.key).to_owned();
        found
            .entry(key)
            .or_insert_with(|| symbols.get(row.value).to_owned());
    }
    Ok(found)
}

/// Topics that any source states to have recorded.
fn stated_topics(tables: &dyn Tables) -> Result<BTreeSet<String>, StoreError> {
    let mut symbols = Symbols::new();
    let found = rows::<MetadataRow>(tables, &mut symbols)?;
    let topics = found.iter().filter(|row| symbols.get(row.key) == "topics");
    let words = topics.flat_map(|row| symbols.get(row.value).split(','));
    Ok(words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect())
}

fn sources(info: &RecordingInfo) -> AnswerTable {
    let columns = vec![
        AnswerColumn::new("kind", "kind", Measure::Text),
        AnswerColumn::new("bytes", "size", Measure::Bytes),
        AnswerColumn::new("path", "path", Measure::Path),
        AnswerColumn::new("digest", "digest (BLAKE3)", Measure::Text).priority(9),
    ];
    let mut table = AnswerTable::new("sources", "sources", columns);
    table.rows = info
        .sources
        .iter()
        .map(|source| {
            vec![
                source.kind.as_str().into(),
                (source.bytes as i64).into(),
                source.path.as_str().into(),
                source.digest.as_str().into(),
            ]
        })
        .collect();
    table
}

fn row_counts(info: &RecordingInfo) -> AnswerTable {
    let columns = vec![
        AnswerColumn::new("table", "table", Measure::Text),
        AnswerColumn::new("rows", "rows", Measure::Count),
        AnswerColumn::new("unfinished", "unfinished", Measure::Count).priority(2),
    ];
    let mut table = AnswerTable::new("tables", "tables", columns);
    table.rows = info
        .tables
        .iter()
        .filter(|(_, found)| found.rows > 0)
        .map(|(name, found)| {
            vec![
                name.as_str().into(),
                (found.rows as i64).into(),
                (found.unfinished as i64).into(),
            ]
        })
        .collect();
    table
}

/// Number of events by name, most frequent first.
fn events(counts: &[ImportStat]) -> AnswerTable {
    let columns = vec![
        AnswerColumn::new("event", "event", Measure::Text),
        AnswerColumn::new("count", "count", Measure::Count),
    ];
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for event in of_kind(counts, "event") {
        *sums.entry(&event.name).or_default() += event.count;
    }
    let mut sums: Vec<(&str, i64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut table = AnswerTable::new("events", "events by name", columns);
    table.rows = sums
        .into_iter()
        .map(|(name, count)| vec![name.into(), count.into()])
        .collect();
    table
}

/// A counter of the import: a row of `trace_stat`.
struct ImportStat {
    kind: String,
    name: String,
    severity: String,
    count: i64,
}

fn counts(tables: &dyn Tables) -> Result<Vec<ImportStat>, StoreError> {
    let mut symbols = Symbols::new();
    let rows = rows::<TraceStatRow>(tables, &mut symbols)?;
    let text = |sym| symbols.get(sym).to_owned();
    Ok(rows
        .iter()
        .map(|row| ImportStat {
            kind: text(row.kind),
            name: text(row.name),
            severity: text(row.severity),
            count: row.count,
        })
        .collect())
}

fn of_kind<'c>(counts: &'c [ImportStat], kind: &'c str) -> impl Iterator<Item = &'c ImportStat> {
    counts.iter().filter(move |count| count.kind == kind)
}

fn losses(tables: &dyn Tables) -> Result<Vec<LossNote>, StoreError> {
    let mut symbols = Symbols::new();
    let rows = rows::<LostEventsRow>(tables, &mut symbols)?;
    Ok(rows
        .iter()
        .map(|row| LossNote {
            begin: row.ts,
            end: row.ts_end,
            cpu: row.cpu,
            kind: symbols.get(row.kind).to_owned(),
            count: row.count,
        })
        .collect())
}
