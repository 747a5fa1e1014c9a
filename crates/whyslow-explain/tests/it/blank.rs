//! A request of which nothing is known but its time, for tests that fill in what they are about.

use whyslow_model::Symbols;
use whyslow_model::tables::RequestRow;

pub(crate) fn request(
    (id, ts, dur): (i64, i64, i64),
    (role, source): (&'static str, &'static str),
    symbols: &mut Symbols,
) -> RequestRow {
    RequestRow {
        id,
        ts,
        dur: Some(dur),
        ts_end: Some(ts + dur),
        role: symbols.intern(role),
        source: symbols.intern(source),
        outcome: symbols.intern("unknown"),
        ..RequestRow::default()
    }
}
