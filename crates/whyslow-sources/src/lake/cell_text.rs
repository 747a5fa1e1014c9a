//! Values of custom SQL as text: times, lists, structs and other types that the queries in
//! `sql/fleet/` do not return. The package converts integers to `Int64` and resolves dictionaries.

use std::fmt::Write as _;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, ArrowTemporalType, Date32Type, Date64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

/// Null is an empty string.
pub(super) fn text(column: &dyn Array, row: usize) -> Result<String, String> {
    if column.is_null(row) {
        return Ok(String::new());
    }
    match column.data_type() {
        DataType::Boolean => Ok(column.as_boolean().value(row).to_string()),
        DataType::Utf8 => Ok(column.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Ok(column.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Ok(column.as_string_view().value(row).to_owned()),
        DataType::Binary => Ok(hex(column.as_binary::<i32>().value(row))),
        DataType::LargeBinary => Ok(hex(column.as_binary::<i64>().value(row))),
        DataType::BinaryView => Ok(hex(column.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => Ok(hex(column.as_fixed_size_binary().value(row))),
        DataType::List(_) => list(&column.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(&column.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(&column.as_fixed_size_list().value(row)),
        DataType::Map(..) => map(&column.as_map().value(row)),
        DataType::Struct(_) => structure(column.as_struct(), row),
        kind => number(column, row)
            .or_else(|| time(column, row))
            .ok_or_else(|| format!("cannot show values of type {kind}; cast them to VARCHAR")),
    }
}

fn number(column: &dyn Array, row: usize) -> Option<String> {
    Some(match column.data_type() {
        DataType::Int8 => plain::<Int8Type>(column, row),
        DataType::Int16 => plain::<Int16Type>(column, row),
        DataType::Int32 => plain::<Int32Type>(column, row),
        DataType::Int64 => plain::<Int64Type>(column, row),
        DataType::UInt8 => plain::<UInt8Type>(column, row),
        DataType::UInt16 => plain::<UInt16Type>(column, row),
        DataType::UInt32 => plain::<UInt32Type>(column, row),
        DataType::UInt64 => plain::<UInt64Type>(column, row),
        DataType::Float32 => plain::<Float32Type>(column, row),
        DataType::Float64 => plain::<Float64Type>(column, row),
        DataType::Decimal128(..) => column.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Decimal256(..) => column.as_primitive::<Decimal256Type>().value_as_string(row),
        _ => return None,
    })
}

fn plain<T: ArrowPrimitiveType>(column: &dyn Array, row: usize) -> String {
    format!("{:?}", column.as_primitive::<T>().value(row))
}

fn time(column: &dyn Array, row: usize) -> Option<String> {
    match column.data_type() {
        DataType::Date32 => date::<Date32Type>(column, row),
        DataType::Date64 => moment::<Date64Type>(column, row),
        DataType::Timestamp(unit, zone) => {
            let moment = match unit {
                TimeUnit::Second => moment::<TimestampSecondType>(column, row),
                TimeUnit::Millisecond => moment::<TimestampMillisecondType>(column, row),
                TimeUnit::Microsecond => moment::<TimestampMicrosecondType>(column, row),
                TimeUnit::Nanosecond => moment::<TimestampNanosecondType>(column, row),
            };
            // Timestamps with a zone are stored in UTC, whatever zone a session shows.
            moment.map(|moment| moment + if zone.is_some() { "Z" } else { "" })
        }
        DataType::Time32(TimeUnit::Second) => of_day::<Time32SecondType>(column, row),
        DataType::Time32(_) => of_day::<Time32MillisecondType>(column, row),
        DataType::Time64(TimeUnit::Microsecond) => of_day::<Time64MicrosecondType>(column, row),
        DataType::Time64(_) => of_day::<Time64NanosecondType>(column, row),
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => length::<DurationSecondType>(column, row),
            TimeUnit::Millisecond => length::<DurationMillisecondType>(column, row),
            TimeUnit::Microsecond => length::<DurationMicrosecondType>(column, row),
            TimeUnit::Nanosecond => length::<DurationNanosecondType>(column, row),
        },
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = column.as_primitive::<IntervalMonthDayNanoType>();
            Some(calendar_interval(interval.value(row)))
        }
        _ => None,
    }
}

fn date<T: ArrowTemporalType>(column: &dyn Array, row: usize) -> Option<String>
where
    i64: From<T::Native>,
{
    let date = column.as_primitive::<T>().value_as_date(row);
    date.map(|date| format!("{date:?}"))
}

fn moment<T: ArrowTemporalType>(column: &dyn Array, row: usize) -> Option<String>
where
    i64: From<T::Native>,
{
    let moment = column.as_primitive::<T>().value_as_datetime(row);
    moment.map(|moment| format!("{moment:?}"))
}

fn of_day<T: ArrowTemporalType>(column: &dyn Array, row: usize) -> Option<String>
where
    i64: From<T::Native>,
{
    let time = column.as_primitive::<T>().value_as_time(row);
    time.map(|time| format!("{time:?}"))
}

fn length<T: ArrowTemporalType>(column: &dyn Array, row: usize) -> Option<String>
where
    i64: From<T::Native>,
{
    let length = column.as_primitive::<T>().value_as_duration(row);
    length.map(|length| length.to_string())
}

/// `1 mons 2 days 3 hours 4 mins 5.000000000 secs`
fn calendar_interval(interval: IntervalMonthDayNano) -> String {
    const SECOND: i64 = 1_000_000_000;
    let seconds = interval.nanoseconds / SECOND;
    let whole = [
        (i64::from(interval.months), "mons"),
        (i64::from(interval.days), "days"),
        (seconds / 3600, "hours"),
        (seconds / 60 % 60, "mins"),
    ];
    let mut parts: Vec<String> = whole
        .iter()
        .filter(|(count, _)| *count != 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    let rest = interval.nanoseconds % (60 * SECOND);
    if rest != 0 {
        let sign = if rest < 0 { "-" } else { "" };
        let (seconds, nanoseconds) = (rest.abs() / SECOND, rest.abs() % SECOND);
        parts.push(format!("{sign}{seconds}.{nanoseconds:09} secs"));
    }
    if parts.is_empty() {
        return "0 secs".to_owned();
    }
    parts.join(" ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `[1, 2]`
fn list(values: &ArrayRef) -> Result<String, String> {
    let texts = (0..values.len()).map(|row| text(values, row));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[{}]", texts.join(", ")))
}

/// `{key: value}`
fn map(entries: &StructArray) -> Result<String, String> {
    let pair = |row| {
        let (key, value) = (entries.column(0), entries.column(1));
        Ok(format!("{}: {}", text(key, row)?, text(value, row)?))
    };
    let pairs: Result<Vec<String>, String> = (0..entries.len()).map(pair).collect();
    Ok(format!("{{{}}}", pairs?.join(", ")))
}

/// `{field: value}`
fn structure(column: &StructArray, row: usize) -> Result<String, String> {
    let fields = column.column_names().into_iter().zip(column.columns());
    let field = |(name, values): (&str, &ArrayRef)| Ok(format!("{name}: {}", text(values, row)?));
    let fields: Result<Vec<String>, String> = fields.map(field).collect();
    Ok(format!("{{{}}}", fields?.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        BinaryArray, Date32Array, Decimal128Array, DurationMicrosecondArray, Float32Array,
        Int64Array, IntervalMonthDayNanoArray, IntervalYearMonthArray, ListArray, StringArray,
        Time64MicrosecondArray, TimestampMicrosecondArray,
    };
    use arrow_schema::Field;

    use super::*;

    /// 2026-11-27 10:25:37.
    const MORNING_US: i64 = 1_795_775_137_000_000;

    fn first(column: impl Array) -> String {
        text(&column, 0).unwrap()
    }

    #[test]
    fn times_are_as_iso_8601_has_them() {
        assert_eq!(first(Date32Array::from(vec![20_784])), "2026-11-27");
        let at = |us| TimestampMicrosecondArray::from(vec![us]);
        assert_eq!(first(at(MORNING_US)), "2026-11-27T10:25:37");
        assert_eq!(first(at(MORNING_US + 1)), "2026-11-27T10:25:37.000001");
        let zoned = at(MORNING_US).with_timezone("Europe/Berlin");
        assert_eq!(first(zoned), "2026-11-27T10:25:37Z");
        let time = Time64MicrosecondArray::from(vec![37_537_250_000]);
        assert_eq!(first(time), "10:25:37.250");
        let length = DurationMicrosecondArray::from(vec![1_500_000]);
        assert_eq!(first(length), "PT1.5S");
        let interval = |months, days, nanoseconds| {
            let one = IntervalMonthDayNano::new(months, days, nanoseconds);
            first(IntervalMonthDayNanoArray::from(vec![one]))
        };
        assert_eq!(interval(0, 0, 0), "0 secs");
        assert_eq!(
            interval(1, -2, 3 * 3_600_000_000_000 + 65_000_000_001),
            "1 mons -2 days 3 hours 1 mins 5.000000001 secs"
        );
        assert_eq!(interval(0, 0, -1_500_000_000), "-1.500000000 secs");
    }

    #[test]
    fn numbers_and_bytes_are_written_out() {
        assert_eq!(first(Float32Array::from(vec![0.1])), "0.1");
        assert_eq!(first(Float32Array::from(vec![2.0])), "2.0");
        let decimal = Decimal128Array::from(vec![-1234]);
        assert_eq!(
            first(decimal.with_precision_and_scale(9, 2).unwrap()),
            "-12.34"
        );
        assert_eq!(first(BinaryArray::from(vec![&b"\x00\xff"[..]])), "00ff");
    }

    #[test]
    fn what_has_parts_shows_them() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None])]);
        assert_eq!(first(list), "[1, ]");
        let fields: Vec<(Arc<Field>, ArrayRef)> = vec![
            (
                Arc::new(Field::new("host", DataType::Utf8, true)),
                Arc::new(StringArray::from(vec!["web-1"])),
            ),
            (
                Arc::new(Field::new("n", DataType::Int64, true)),
                Arc::new(Int64Array::from(vec![7])),
            ),
        ];
        assert_eq!(first(StructArray::from(fields)), "{host: web-1, n: 7}");
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        map.keys().append_value("a");
        map.values().append_value(1);
        map.keys().append_value("b");
        map.values().append_value(2);
        map.append(true).unwrap();
        assert_eq!(first(map.finish()), "{a: 1, b: 2}");
    }

    #[test]
    fn what_has_no_text_is_an_error_that_says_so() {
        let message = text(&IntervalYearMonthArray::from(vec![1]), 0).unwrap_err();
        assert!(message.contains("cast them to VARCHAR"), "{message}");
    }
}
