//! Events in the text format, for features that the short scripts do not support.

use whyslow_model::Symbols;
use whyslow_model::tables::Collected;

use super::rows_of;
use crate::importers::text::{EventBuffers, Item, Line, parse};
use crate::trackers::Trackers;

/// Compares the selected columns of the rows that result from these lines.
pub(super) fn check(text: &str, table: &str, columns: &str, expected: &str) {
    let (rows, symbols) = run(text);
    let found = rows_of(&rows, table, columns, &symbols);
    let found: Vec<&str> = found.lines().collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    let expected: Vec<&str> = expected.into_iter().filter(|l| !l.is_empty()).collect();
    assert_eq!(found, expected, "{table}: {columns}");
}

fn run(text: &str) -> (Collected, Symbols) {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    let mut trackers = Trackers::new(&mut symbols);
    let mut last = 0;
    for text in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut line = Line::default();
        match parse(text, &mut line, &mut EventBuffers::default()) {
            Ok(Item::Event { event, .. }) => {
                last = event.ts;
                trackers.event(&event, &mut symbols, &mut rows);
            }
            Ok(_) => panic!("{text}: no event"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
    trackers.finish(last, &mut symbols, &mut rows);
    (rows, symbols)
}
