use insta::assert_snapshot;
use whyslow_analysis::Weight;
use whyslow_base::time::Zone;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Form, LossNote, Measure, Value};
use whyslow_model::topic_state::TopicState;

use crate::csv::Separator;
use crate::{Subject, TextStyle, columnar, csv, json, markup, text};

/// 2015-01-15 12:18:50.432950815 -05:00
const T: i64 = 1_421_342_330_432_950_815;

fn subject() -> Subject {
    Subject {
        name: "web.wsl".into(),
        host: Some("julien-ubuntu".into()),
        zone: Some("-05:00".into()),
        ..Subject::default()
    }
}

fn style() -> TextStyle {
    TextStyle {
        zone: Zone::parse("-05:00").expect("an offset"),
        ..TextStyle::plain()
    }
}

fn top() -> Answer {
    let columns = vec![
        AnswerColumn::new("ts_ns", "begin", Measure::Time),
        AnswerColumn::new("ts_end_ns", "end", Measure::Time).priority(6),
        AnswerColumn::new("dur_ns", "duration", Measure::Duration),
        AnswerColumn::new("name", "call", Measure::Text),
        AnswerColumn::new("bytes", "size", Measure::Bytes),
        AnswerColumn::new("comm", "comm", Measure::Text),
        AnswerColumn::new("pid", "pid", Measure::Count).priority(3),
        AnswerColumn::new("path", "path", Measure::Path),
        AnswerColumn::new("id", "id", Measure::Id).priority(1),
    ];
    let mut table = AnswerTable::new("top", "slowest operations", columns);
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
        next: Some("whyslow io log --overlaps op:4711".into()),
        state: Some(TopicState::Recorded(2)),
    }
}

fn histogram() -> Answer {
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

fn heat() -> Answer {
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

fn tree() -> Answer {
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

fn rendered(answer: &Answer, style: &TextStyle) -> String {
    text::render(answer, &subject(), style)
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("memory takes it");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_table_for_files_and_pipes_is_complete() {
    assert_snapshot!(rendered(&top(), &style()));
}

#[test]
fn a_table_fits_the_terminal() {
    for width in [80, 100, 140] {
        let style = TextStyle {
            width: Some(width),
            group: true,
            ..style()
        };
        let text = rendered(&top(), &style);
        assert_snapshot!(format!("table_{width}_columns"), text);
        for line in text.lines().skip(1).take(4) {
            assert!(
                unicode_width::UnicodeWidthStr::width(line) <= width,
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn a_column_asked_for_stays_on_a_narrow_terminal() {
    let style = TextStyle {
        width: Some(60),
        keep: vec!["pid".into()],
        ..style()
    };
    let text = rendered(&top(), &style);
    assert!(text.contains("pid") && text.contains("31517"), "{text}");
}

#[test]
fn color_marks_what_signs_say_too() {
    let style = TextStyle {
        color: true,
        ..style()
    };
    let text = rendered(&top(), &style);
    assert!(text.contains("\u{1b}["));
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').expect("a whole sequence").1;
    }
    plain.push_str(rest);
    assert_eq!(
        plain,
        rendered(
            &top(),
            &TextStyle {
                color: false,
                ..style
            }
        )
    );
}

#[test]
fn no_name_reaches_the_terminal_as_a_command() {
    for text in [
        rendered(&top(), &style()),
        written(|out| json::write_document(&top(), &subject(), out)),
        written(|out| json::write_lines(&top(), &subject(), out)),
        written(|out| markup::write_markdown(&top(), &subject(), &style(), out)),
        written(|out| markup::write_html(&top(), &subject(), &style(), out)),
        written(|out| csv::write(&top().tables, Separator::Comma, true, out)),
    ] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
    let html = written(|out| markup::write_html(&top(), &subject(), &style(), out));
    assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"));
}

#[test]
fn ascii_output_is_ascii() {
    let style = TextStyle {
        ascii: true,
        width: Some(80),
        ..style()
    };
    for answer in [top(), histogram(), heat(), tree()] {
        let text = rendered(&answer, &style);
        assert!(text.is_ascii(), "{text}");
    }
    assert_snapshot!(rendered(&histogram(), &style));
}

#[test]
fn two_histograms_stand_side_by_side() {
    assert_snapshot!(rendered(&histogram(), &style()));
}

#[test]
fn a_heat_map_shows_the_single_slow_operation() {
    assert_snapshot!("heat_count", rendered(&heat(), &style()));
    let style = TextStyle {
        weight: Weight::Intensity,
        ..style()
    };
    assert_snapshot!("heat_intensity", rendered(&heat(), &style));
}

#[test]
fn a_column_wider_than_time_goes_on_is_one_column() {
    for width in [9_223_372_036_000_000_000, i64::MAX] {
        let mut answer = heat();
        let table = &mut answer.tables[0];
        for row in &mut table.rows {
            row[0] = T.into();
        }
        for (name, measure, value) in [
            ("begin_ns", Measure::Time, T),
            ("width_ns", Measure::Duration, width),
        ] {
            let column = AnswerColumn::new(name, name, measure);
            table.facts.push((String::new(), column, value.into()));
        }
        let text = rendered(&answer, &style());
        let slowest = text.lines().find(|line| line.contains(">= 524"));
        let shades = slowest.and_then(|line| line.split_once("  "));
        assert_eq!(shades.map(|(_, shades)| shades), Some("░"), "{text}");
    }
}

/// The same map for two groups: one with a tenth of the weight, in the first half of the time.
fn heat_of_groups() -> Answer {
    let mut answer = heat();
    let table = &mut answer.tables[0];
    let keys = ["comm", "tid"].map(|name| AnswerColumn::new(name, name, Measure::Text));
    table.columns.splice(0..0, keys);
    let name = |row: &[Value], comm: &str, tid: i64| {
        let mut row = row.to_vec();
        row.splice(0..0, [comm.into(), tid.into()]);
        row
    };
    let second: Vec<Vec<Value>> = table.rows[..20].to_vec();
    let mut rows: Vec<Vec<Value>> = table.rows.iter().map(|row| name(row, "sync", 9)).collect();
    rows.extend(second.iter().map(|row| name(row, "apache2", 7)));
    table.rows = rows;
    answer
}

#[test]
fn maps_of_groups_share_their_axes_and_shades() {
    let text = rendered(&heat_of_groups(), &style());
    assert_snapshot!(text);
    let lines: Vec<&str> = text.lines().collect();
    let at = |title: &str| lines.iter().position(|line| *line == title).expect(title);
    let (first, second) = (at("sync 9"), at("apache2 7"));
    assert!(first < second, "in the order of the rows");
    let height = second - first;
    for (above, below) in lines[first + 1..second].iter().zip(&lines[second + 1..]) {
        let label = |line: &str| line.chars().take(11).collect::<String>();
        assert_eq!(label(above).trim(), label(below).trim(), "{text}");
    }
    // The time axis is the last line of each map.
    assert_eq!(lines[second - 1], lines[second + height - 1]);
}

#[test]
fn a_tree_is_indented() {
    assert_snapshot!(rendered(&tree(), &style()));
}

#[test]
fn times_count_from_the_window_if_asked() {
    let style = TextStyle {
        rel: Some(T),
        ..style()
    };
    let text = rendered(&top(), &style);
    assert!(
        text.contains("-0.270174076s") && text.contains("+0.000000000s"),
        "{text}"
    );
}

#[test]
fn nothing_found_says_so() {
    let mut answer = top();
    answer.tables[0].rows.clear();
    answer.tables[0].cut.clear();
    answer.tables[0].outliers.clear();
    assert!(rendered(&answer, &style()).contains("(nothing matches)"));
    let why = "no I/O operations: recorded, none happened";
    answer.state = Some(TopicState::NoneHappened { why: why.into() });
    answer.caveats.push(why.into());
    let text = rendered(&answer, &style());
    assert!(text.contains(&format!("({why})\n")), "{text}");
    assert_eq!(text.matches(why).count(), 1, "{text}");
    let document = written(|out| json::write_document(&answer, &subject(), out));
    assert!(
        document.contains(
            "\"state\": \"none_happened\",\n  \"reason\": \"no I/O operations: recorded, none happened\","
        ),
        "{document}"
    );
}

#[test]
fn json_is_one_document_with_stable_keys() {
    assert_snapshot!(written(|out| json::write_document(&top(), &subject(), out)));
}

#[test]
fn every_line_of_ndjson_is_an_object_with_a_type() {
    let text = written(|out| json::write_lines(&histogram(), &subject(), out));
    let mut types = Vec::new();
    for line in text.lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
        types.push(object["type"].as_str().expect("a type").to_owned());
    }
    types.dedup();
    assert_eq!(types, ["answer", "row", "facts"]);
}

fn keys_of_json(answer: &Answer) -> Vec<String> {
    let text = written(|out| json::write_document(answer, &subject(), out));
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let row = document["tables"][0]["rows"][0].as_object();
    row.expect("a row").keys().cloned().collect()
}

#[test]
fn csv_has_the_keys_of_json_and_no_formulas() {
    let answer = top();
    let text = written(|out| csv::write(&answer.tables, Separator::Comma, false, out));
    let header = text.lines().next().expect("a header");
    let keys: Vec<String> = keys_of_json(&answer);
    assert_eq!(header.split(',').collect::<Vec<_>>(), keys);
    assert!(text.contains("\"'=cmd|' /C calc'!A0,"), "{text}");
    assert_snapshot!(text.replace('\u{1b}', "<ESC>").replace('\u{202e}', "<RLO>"));
}

#[test]
fn tsv_spells_separators() {
    let mut table = AnswerTable::new("t", "", vec![AnswerColumn::new("a", "a", Measure::Text)]);
    table.rows = vec![vec!["x\ty\nz\\".into()], vec!["\rx".into()]];
    let text = written(|out| csv::write(&[table], Separator::Tab, false, out));
    assert_eq!(
        text,
        "a\toutlier\toverlap\nx\\ty\\nz\\\\\tfalse\t\n'\\rx\tfalse\t\n"
    );
}

#[test]
fn markdown_and_html_show_the_same_cells() {
    assert_snapshot!(
        "markdown",
        written(|out| markup::write_markdown(&top(), &subject(), &style(), out))
    );
    assert_snapshot!(
        "html",
        written(|out| markup::write_html(&top(), &subject(), &style(), out))
    );
}

#[test]
fn arrow_and_parquet_hold_every_cell() {
    let answer = top();
    let mut bytes = Vec::new();
    columnar::write_arrow(&answer, &answer.tables[0], &mut bytes).expect("memory takes it");
    let reader =
        arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
    let batches: Vec<_> = reader.map(|batch| batch.expect("a batch")).collect();
    assert_eq!(
        (
            batches.len(),
            batches[0].num_rows(),
            batches[0].num_columns()
        ),
        (1, 3, 11)
    );
    let schema = batches[0].schema();
    assert_eq!(schema.metadata()["whyslow.query"], "io top");
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let keys: Vec<String> = keys_of_json(&answer);
    assert_eq!(names, keys);

    let mut bytes = Vec::new();
    columnar::write_parquet(&answer, &answer.tables[0], &mut bytes).expect("memory takes it");
    let read = columnar::tests::parquet_rows(&bytes);
    assert_eq!(read.schema().metadata()["whyslow.query"], "io top");
    assert_eq!(read.columns(), batches[0].columns());
}

#[test]
fn losses_beyond_a_few_are_summed_up() {
    let mut answer = top();
    let loss = answer.losses[0].clone();
    answer.losses = vec![loss; 9];
    answer.losses[8].count = None;
    let text = rendered(&answer, &style());
    assert!(text.contains("lost 56016+?"), "{text}");
    assert!(
        text.contains("! 21006+? lost in 4 further ranges"),
        "{text}"
    );
}

/// More rows than a thread prints or encodes at once, and more than there are threads.
fn many_rows() -> Answer {
    let columns = vec![
        AnswerColumn::new("id", "id", Measure::Id),
        AnswerColumn::new("bytes", "size", Measure::Bytes),
    ];
    let mut table = AnswerTable::new("log", "", columns);
    let row = |number: i64| vec![format!("op:{number}").into(), (number * 7919).into()];
    table.rows = (0..20_003).map(row).collect();
    table.cut = vec![(1200, "end")];
    Answer {
        query: "io log".into(),
        tables: vec![table],
        ..Answer::default()
    }
}

#[test]
fn many_rows_are_written_in_their_order() {
    let answer = many_rows();
    let text = written(|out| json::write_document(&answer, &subject(), out));
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = document["tables"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 20_003);

    let text = written(|out| json::write_lines(&answer, &subject(), out));
    let lines = text.lines().filter(|line| line.contains(r#""type":"row""#));
    let lines: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 20_003);

    let text = rendered(&answer, &style());
    let printed = text.lines().filter(|line| line.contains("op:"));
    let printed: Vec<&str> = printed.collect();
    assert_eq!(printed.len(), 20_003);

    for (number, (row, line)) in rows.iter().zip(&lines).enumerate() {
        let id = format!("op:{number}");
        for object in [row, line] {
            assert_eq!(object["id"], id);
            assert_eq!(object["bytes"], number * 7919);
            let cut = (number == 1200).then_some("end");
            assert_eq!(object["overlap"].as_str(), cut, "{id}");
        }
        assert!(
            printed[number]
                .split_whitespace()
                .any(|word| word.trim_end_matches('*') == id),
            "{id}: {}",
            printed[number]
        );
    }
}

#[test]
fn a_long_list_is_cut_short_and_whole_on_request() {
    let sharers = (0..11).map(|fd| Value::from(format!("fd {fd} in sh (7)")));
    let mut table = AnswerTable::new("t", "", vec![AnswerColumn::new("by", "by", Measure::Text)]);
    table.rows = vec![vec![Value::List(sharers.collect())]];
    let answer = Answer {
        query: "files top".into(),
        tables: vec![table],
        ..Answer::default()
    };
    let text = rendered(&answer, &style());
    assert!(text.contains("fd 7 in sh (7), and 3 more"), "{text}");
    assert!(!text.contains("fd 8 in sh"), "{text}");
    let style = TextStyle {
        details: true,
        ..style()
    };
    let text = rendered(&answer, &style);
    assert!(text.contains("fd 9 in sh (7), fd 10 in sh (7)"), "{text}");
    assert!(!text.contains("more"), "{text}");
}

#[test]
fn a_markdown_table_has_at_most_six_columns() {
    let text = |style: &TextStyle| {
        let written = written(|out| markup::write_markdown(&top(), &subject(), style, out));
        let header = written.lines().find(|line| line.starts_with("| "));
        let columns = header.map_or(0, |line| line.matches(" | ").count() + 1);
        (columns, written)
    };
    let (columns, short) = text(&style());
    assert_eq!(columns, 6, "{short}");
    assert!(short.contains("not shown (--wide): "), "{short}");
    assert!(short.contains("op:4711"), "{short}");
    let wide = TextStyle {
        details: true,
        ..style()
    };
    let (columns, wide) = text(&wide);
    assert_eq!(columns, 9, "{wide}");
    assert!(!wide.contains("not shown"), "{wide}");
}

#[test]
fn times_of_another_day_have_their_date() {
    const DAY: i64 = 86_400_000_000_000;
    let mut answer = top();
    answer.window = Some((T, T + 3 * DAY));
    answer.losses[0].begin = T + 2 * DAY;
    answer.losses[0].end = Some(T + 2 * DAY + 1_000_000);
    let text = rendered(&answer, &style());
    let head = "2015-01-15 12:18:50.432 .. 2015-01-18 12:18:50.432 -05:00 (3 d, host";
    assert!(text.contains(head), "{text}");
    let lost = "lost 2015-01-17 12:18:50.432-2015-01-17 12:18:50.433 on CPU 1";
    assert!(text.contains(lost), "{text}");
    assert!(text.contains("2015-01-15 12:18:50.162776739"), "{text}");
    // Losses of the day on which the window starts have none.
    let text = rendered(&top(), &style());
    assert!(
        text.contains("lost 12:18:50.433-12:18:50.533 on CPU 1"),
        "{text}"
    );
}
