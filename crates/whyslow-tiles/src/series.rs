//! Reads time series from stored columns.

use whyslow_model::Window;

use crate::build::LINES;
use crate::limits;
use crate::store::columns::Cursor;
use crate::{Series, Tiles, TilesError};

/// Name and unit of each series, and the divisor of its sums.
const SERIES: [(&str, &str, Per); LINES] = [
    ("cpu", "ratio", Per::TimeOfCpus),
    ("blocked", "threads", Per::Time),
    ("block_bytes", "bytes_per_s", Per::Second),
    ("block_depth", "requests", Per::Time),
    ("calls", "calls_per_s", Per::Second),
];

#[derive(Debug, Clone, Copy)]
enum Per {
    Time,
    TimeOfCpus,
    Second,
}

/// Uncompressed size of a series: a varint has at most 10 bytes.
const LINE_BYTES_MAX: usize = limits::COLUMNS as usize * 10;

pub(crate) fn series(
    tiles: &Tiles,
    window: Window,
    points: usize,
) -> Result<Vec<Series>, TilesError> {
    let directory = &tiles.directory;
    let Some((begin, end)) = directory.clip(window) else {
        return Ok(Vec::new());
    };
    let bits = directory.column_bits;
    let (first, last) = (begin >> bits, end.max(begin + 1).saturating_sub(1) >> bits);
    let factor = (last - first + 1).div_ceil(points.max(1) as u64);
    let first = first / factor * factor;
    let damaged = || {
        let offset = directory.series.offset;
        tiles.file.damaged("the series", offset, "invalid encoding")
    };
    let content = tiles.file.checksummed("the series", directory.series)?;
    let mut rest = Cursor(&content);
    let mut all = Vec::new();
    for (name, unit, per) in SERIES {
        let line = line(&mut rest).ok_or_else(damaged)?;
        if line.is_empty() {
            continue;
        }
        let step = u64::try_from(u128::from(factor) << bits).unwrap_or(u64::MAX);
        let values = (first..=last).step_by(factor as usize).map(|column| {
            let sums = line.iter().skip(column as usize).take(factor as usize);
            let sum = sums.fold(0u64, |sum, value| sum.saturating_add(*value));
            // The recording may end within the last column.
            let begin = column << bits;
            let length = directory.length.saturating_sub(begin).clamp(1, step) as f64;
            sum as f64
                / match per {
                    Per::Time => length,
                    Per::TimeOfCpus => length * directory.cpus.max(1) as f64,
                    Per::Second => length / 1e9,
                }
        });
        all.push(Series {
            name,
            unit,
            begin_ns: directory.timestamp(first << bits),
            step_ns: i64::try_from(step).unwrap_or(i64::MAX),
            values: values.collect(),
        });
    }
    Ok(all)
}

/// The columns of the next series; empty if it was not recorded.
fn line(rest: &mut Cursor<'_>) -> Option<Vec<u64>> {
    let length = usize::try_from(rest.number()?).ok()?;
    let packed = usize::try_from(rest.number()?).ok()?;
    let packed = rest.take(packed)?;
    if length > LINE_BYTES_MAX {
        return None;
    }
    let plain = zstd::bulk::decompress(packed, length).ok()?;
    let mut cursor = Cursor(&plain);
    let mut values = Vec::new();
    while !cursor.0.is_empty() {
        values.push(cursor.number()?);
    }
    (values.len() as u64 <= limits::COLUMNS).then_some(values)
}
