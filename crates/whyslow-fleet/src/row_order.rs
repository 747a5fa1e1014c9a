//! Sorts rows by several columns, without the sort kernels of Arrow, which take a minute to
//! compile.

use std::cmp::Ordering;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray, UInt32Array,
};
use arrow_schema::{ArrowError, DataType};

/// A column of one of the types that lake tables use.
enum Key<'c> {
    I64(&'c Int64Array),
    I32(&'c Int32Array),
    F64(&'c Float64Array),
    Bool(&'c BooleanArray),
    Text(&'c StringArray),
}

impl<'c> Key<'c> {
    fn of(column: &'c dyn Array) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Int64 => Self::I64(column.as_primitive::<Int64Type>()),
            DataType::Int32 => Self::I32(column.as_primitive::<Int32Type>()),
            DataType::Float64 => Self::F64(column.as_primitive::<Float64Type>()),
            DataType::Boolean => Self::Bool(column.as_boolean()),
            DataType::Utf8 => Self::Text(column.as_string::<i32>()),
            other => {
                return Err(ArrowError::NotYetImplemented(format!(
                    "sorting by a column of type {other}"
                )));
            }
        })
    }

    fn compare(&self, left: usize, right: usize) -> Ordering {
        match self {
            Self::I64(column) => nulls_first(*column, left, right, |row| column.value(row)),
            Self::I32(column) => nulls_first(*column, left, right, |row| column.value(row)),
            Self::F64(column) => nulls_first(*column, left, right, |row| Total(column.value(row))),
            Self::Bool(column) => nulls_first(*column, left, right, |row| column.value(row)),
            Self::Text(column) => nulls_first(*column, left, right, |row| column.value(row)),
        }
    }
}

/// Floats in the IEEE 754 total order.
struct Total(f64);

impl PartialEq for Total {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Total {}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Total {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

fn nulls_first<V: Ord>(
    column: &dyn Array,
    left: usize,
    right: usize,
    value: impl Fn(usize) -> V,
) -> Ordering {
    match (column.is_null(left), column.is_null(right)) {
        (false, false) => value(left).cmp(&value(right)),
        (left, right) => right.cmp(&left),
    }
}

/// Row numbers in ascending order of the first column, ties broken by the next, and so on. Nulls
/// come first, and rows that are equal in all columns keep their order.
pub(crate) fn row_order(columns: &[ArrayRef]) -> Result<UInt32Array, ArrowError> {
    let keys = columns
        .iter()
        .map(|column| Key::of(column.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    let rows = columns.first().map_or(0, Array::len);
    let rows = u32::try_from(rows)
        .map_err(|_| ArrowError::InvalidArgumentError("too many rows to sort together".into()))?;
    let mut order: Vec<u32> = (0..rows).collect();
    order.sort_by(|left, right| {
        keys.iter()
            .map(|key| key.compare(*left as usize, *right as usize))
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    });
    Ok(order.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn order(columns: &[ArrayRef]) -> Vec<u32> {
        row_order(columns).unwrap().values().to_vec()
    }

    #[test]
    fn nulls_come_first_and_ties_are_broken_by_the_next_column() {
        let first: ArrayRef = Arc::new(StringArray::from(vec![
            Some("b"),
            None,
            Some("a"),
            Some("b"),
            Some("a"),
        ]));
        let second: ArrayRef = Arc::new(Int64Array::from(vec![
            Some(1),
            Some(9),
            Some(7),
            None,
            Some(-7),
        ]));
        assert_eq!(
            order(&[Arc::clone(&first), Arc::clone(&second)]),
            [1, 4, 2, 3, 0]
        );
        // Equal rows keep their order.
        assert_eq!(order(&[first]), [1, 2, 4, 0, 3]);
    }

    #[test]
    fn every_type_of_the_lake_is_ordered() {
        let whole: ArrayRef = Arc::new(Int32Array::from(vec![3, i32::MIN, 0]));
        assert_eq!(order(&[whole]), [1, 2, 0]);
        let flag: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
        assert_eq!(order(&[flag]), [1, 0, 2]);
        let float: ArrayRef = Arc::new(Float64Array::from(vec![
            f64::NAN,
            0.0,
            f64::INFINITY,
            -0.0,
            f64::NEG_INFINITY,
        ]));
        assert_eq!(order(&[float]), [4, 3, 1, 2, 0]);
    }

    #[test]
    fn other_types_are_refused() {
        let other: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
        assert!(row_order(&[other]).is_err());
    }
}
