mod answers;

use insta::assert_snapshot;
use whyslow_analysis::Weight;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::topic_state::TopicState;

use self::answers::{T, heat, histogram, style, subject, top, tree};
use crate::csv::Separator;
use crate::{TextStyle, columnar, csv, json, markup, text};

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
