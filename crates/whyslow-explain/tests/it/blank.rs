//! A request with only its times filled in, as a base for tests.

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
