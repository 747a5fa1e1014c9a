//! One device compared with another (`--vs`), against SQL.

use whyslow_analysis::{DeviceRef, Kind, Verb, evaluate};
use whyslow_model::answer::Value;

use crate::it::duckdb::{amount, query, sql, written};
use crate::it::shown;

#[test]
fn two_devices_side_by_side_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let mut query = query(Kind::Block, Verb::Hist);
    query.filter.devices = vec![DeviceRef::Name("sda".into())];
    query.versus = Some(DeviceRef::Number {
        major: 253,
        minor: 0,
    });
    let answer = evaluate(&written.recording, &query).unwrap();
    let table = shown::table(&answer, "hist_versus");
    for (column, device) in [("sda", "sda"), ("253:0", "dm-0")] {
        let view = format!("(SELECT * FROM block WHERE dev_name = '{device}')");
        let words = [("view", &*view), ("label", "''"), ("order", "series")];
        let expected = sql(&written, &query, "hist.sql", &words);
        let (from, count) = (shown::place(table, "from_ns"), shown::place(table, column));
        let rows = table.rows.iter().filter(|row| row[count] != Value::Int(0));
        let found: Vec<_> = rows
            .map(|row| (shown::cell(&row[from]), shown::cell(&row[count])))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|row| (row["from_ns"].to_string(), row["count"].to_string()))
            .collect();
        assert_eq!(found, expected, "{device}");
    }
}
