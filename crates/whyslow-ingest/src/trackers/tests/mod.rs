//! Event sequences and the expected rows.

mod causes;
mod futexes;
mod identity;
mod irq;
mod packets;
mod queries;
mod random;
mod request_addresses;
mod requests;
mod sched;
mod script;
mod shares;
mod states;
mod text;
mod topics;
mod wakeups;

use whyslow_model::stat::Stat;
use whyslow_model::tables::Collected;
use whyslow_model::{Symbols, for_each_table};

use script::{render, run};

macro_rules! rows_of {
    ($($row:ident $field:ident),+) => {
        fn rows_of(rows: &Collected, table: &str, columns: &str, symbols: &Symbols) -> String {
            match table {
                $(stringify!($field) => render(&rows.$field, columns, symbols),)+
                _ => panic!("no table {table}"),
            }
        }
    };
}
for_each_table!(rows_of);

/// Compares the selected columns of the resulting rows.
fn check(script: &str, table: &str, columns: &str, expected: &str) {
    let (rows, symbols, _) = run(script);
    let found = rows_of(&rows, table, columns, &symbols);
    let found: Vec<&str> = found.lines().collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    let expected: Vec<&str> = expected.into_iter().filter(|l| !l.is_empty()).collect();
    assert_eq!(found, expected, "{table}: {columns}");
}

fn check_count(script: &str, stat: &'static Stat, expected: u64) {
    let (_, _, trackers) = run(script);
    assert_eq!(trackers.anomalies().get(stat), expected, "{}", stat.name);
}
