//! Answers that the tests of the formats write.

use whyslow_base::time::Zone;
use whyslow_model::answer::{
    Answer, AnswerColumn, AnswerTable, Form, LeftOut, LossNote, Measure, Value,
};
use whyslow_model::topic_state::TopicState;

use crate::{Subject, TextStyle};

/// 2015-01-15 12:18:50.432950815 -05:00
pub(super) const T: i64 = 1_421_342_330_432_950_815;

pub(super) fn subject() -> Subject {
    Subject {
        name: "web.wsl".into(),
        host: Some("julien-ubuntu".into()),
        zone: Some("-05:00".into()),
        ..Subject::default()
    }
}

pub(super) fn style() -> TextStyle {
    TextStyle {
        zone: Zone::parse("-05:00").expect("an offset"),
        ..TextStyle::plain()
    }
}

/// Columns of the slowest operations.
fn top_columns() -> Vec<AnswerColumn> {
    vec![
        AnswerColumn::new("ts_ns", "begin", Measure::Time),
        AnswerColumn::new("ts_end_ns", "end", Measure::Time).priority(6),
        AnswerColumn::new("dur_ns", "duration", Measure::Duration),
        AnswerColumn::new("name", "call", Measure::Text),
        AnswerColumn::new("bytes", "size", Measure::Bytes),
        AnswerColumn::new("comm", "comm", Measure::Text),
        AnswerColumn::new("pid", "pid", Measure::Count).priority(3),
        AnswerColumn::new("path", "path", Measure::Path),
        AnswerColumn::new("id", "id", Measure::Id).priority(1),
    ]
}

pub(super) fn top() -> Answer {
    let mut table = AnswerTable::new("top", "slowest operations", top_columns());
    table.rows = vec![
        vec![
            (T - 270_174_076).into(),
            (T + 724_571_546).into(),
            994_745_622.into(),
            "sync".into(),
            Value::Null,
            "sync".into(),
            22_791.into(),
            Value::Null,
            "op:4410".into(),
        ],
        vec![
            T.into(),
            (T + 437_697_753).into(),
            437_697_753.into(),
            "open".into(),
            Value::Null,
            "apache2".into(),
            31_517.into(),
            "/var/lib/php5/sess_0ifir2hangm8ggaljdphl9o5b5 (fd=13)".into(),
            "op:4711".into(),
        ],
        vec![
            (T + 5).into(),
            (T + 36_210).into(),
            36_205.into(),
            "writev".into(),
            22_497.into(),
            "apache2".into(),
            31_544.into(),
            "=cmd|' /C calc'!A0,\u{1b}[2J\u{202e}<script>".into(),
            "op:4712".into(),
        ],
    ];
    table.cut = vec![(0, "both")];
    table.outliers = vec![1];
    Answer {
        query: "io top".into(),
        window: Some((T, T + 437_697_753)),
        tables: vec![table],
        losses: vec![LossNote {
            begin: T + 1_000_000,
            end: Some(T + 101_000_000),
            cpu: Some(1),
            kind: "events".into(),
            count: Some(7002),
        }],
        caveats: vec![
            "apache2 reads through mappings: these bytes are not visible to system calls".into(),
        ],
        left_out: Some(LeftOut {
            what: "waits for work",
            count: 1234,
            total_ns: 47_500_000_000,
            by_name: vec![("accept4".into(), 1234, 47_500_000_000)],
            option: "--waits",
        }),
        next: Some("whyslow io log --overlaps op:4711".into()),
        state: Some(TopicState::Recorded(2)),
    }
}

pub(super) fn histogram() -> Answer {
    let columns = vec![
        AnswerColumn::new("from_ns", "from", Measure::Duration),
        AnswerColumn::new("to_ns", "to", Measure::Duration),
        AnswerColumn::new("sdy", "sdy", Measure::Count),
        AnswerColumn::new("sdt", "sdt", Measure::Count),
    ];
    let mut table = AnswerTable::new("hist", "read", columns);
    table.form = Form::Histogram;
    let counts = [
        (37, 56),
        (59, 49),
        (14, 18),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (10, 0),
        (1, 0),
    ];
    for (i, (sdy, sdt)) in counts.into_iter().enumerate() {
        let from = 4_096_000_i64 << i;
        table
            .rows
            .push(vec![from.into(), (from * 2).into(), sdy.into(), sdt.into()]);
    }
    table.outliers = vec![7, 8];
    for (series, p50, p99) in [
        ("sdy", 9_800_000, 1_100_000_000),
        ("sdt", 5_600_000, 25_000_000),
    ] {
        for (name, title, value) in [("p50_ns", "p50", p50), ("p99_ns", "p99", p99)] {
            let column = AnswerColumn::new(name, title, Measure::Duration);
            table.facts.push((series.into(), column, value.into()));
        }
    }
    Answer {
        query: "block hist".into(),
        window: Some((T, T + 10_000_000_000)),
        tables: vec![table],
        ..Answer::default()
    }
}

pub(super) fn heat() -> Answer {
    let columns = vec![
        AnswerColumn::new("ts_ns", "time", Measure::Time),
        AnswerColumn::new("from_ns", "from", Measure::Duration),
        AnswerColumn::new("to_ns", "to", Measure::Duration),
        AnswerColumn::new("count", "operations", Measure::Count),
        AnswerColumn::new("intensity_ns", "time", Measure::Duration),
    ];
    let mut table = AnswerTable::new("heat", "", columns);
    table.form = Form::HeatMap;
    for second in 0..20_i64 {
        for (bucket, count) in [(1_024_000, 10_000), (2_048_000, 1 + second * second)] {
            let ts = T + second * 1_000_000_000;
            table.rows.push(vec![
                ts.into(),
                bucket.into(),
                (bucket * 2).into(),
                count.into(),
                (count * bucket).into(),
            ]);
        }
    }
    table.rows.push(vec![
        (T + 7_000_000_000).into(),
        524_288_000.into(),
        1_048_576_000.into(),
        1.into(),
        600_000_000.into(),
    ]);
    Answer {
        query: "io heat".into(),
        window: Some((T, T + 20_000_000_000)),
        tables: vec![table],
        ..Answer::default()
    }
}

pub(super) fn tree() -> Answer {
    let columns = vec![
        AnswerColumn::new("path", "path", Measure::Path),
        AnswerColumn::new("depth", "depth", Measure::Count),
        AnswerColumn::new("bytes_read", "read", Measure::Bytes),
    ];
    let mut table = AnswerTable::new("tree", "", columns);
    table.form = Form::Tree;
    for (path, depth, bytes) in [
        ("/", 0, 5_000_000),
        ("/var", 1, 4_000_000),
        ("/var/www/html", 2, 3_999_000),
        ("/tmp", 1, 1_000_000),
        ("socket", 0, 7),
    ] {
        table
            .rows
            .push(vec![path.into(), depth.into(), bytes.into()]);
    }
    Answer {
        query: "files tree".into(),
        tables: vec![table],
        ..Answer::default()
    }
}
