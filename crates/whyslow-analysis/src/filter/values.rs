//! Valid values of keys.

use std::ops::RangeInclusive;

use super::builder::Builder;
use super::condition::Test;
use crate::AnalysisError;
use crate::globs::comm_globs;
use crate::keys::{Key, Shape};
use crate::query::KeyFilter;
use crate::spec::Spec;

impl Builder<'_> {
    pub(super) fn values(
        &mut self,
        spec: &Spec,
        filters: &[KeyFilter],
    ) -> Result<(), AnalysisError> {
        for KeyFilter { key, values } in filters {
            let clause = match Key::parse(spec, key)?.columns(spec) {
                Some(Shape::Text(column, derive)) => {
                    let set = comm_globs(values)?;
                    let holds = move |text: &str| set.is_match(derive.apply(text).as_ref());
                    self.text(column, Box::new(holds))
                }
                Some(Shape::Int(column)) => {
                    let mut numbers = Vec::new();
                    for value in values {
                        numbers.extend(numbers_of(key, value)?);
                    }
                    self.number(column, numbers.into_iter())
                }
                Some(Shape::Object(_) | Shape::Owner(_)) | None => {
                    return Err(AnalysisError::query(
                        format!("cannot filter {} by {key}", spec.name),
                        "remove the filter",
                    ));
                }
            };
            self.tests.push(Test::AnyOf(vec![clause]));
        }
        Ok(())
    }
}

/// A number, or a range of a hundred: `5xx`.
fn numbers_of(key: &str, text: &str) -> Result<RangeInclusive<i64>, AnalysisError> {
    let hundred = text.strip_suffix("xx").map(str::parse::<i64>);
    match (text.parse::<i64>(), hundred) {
        (Ok(number), _) => Ok(number..=number),
        (_, Some(Ok(hundred @ 0..=999))) => Ok(hundred * 100..=hundred * 100 + 99),
        _ => Err(AnalysisError::query(
            format!("`{text}` is not a valid {key}"),
            "use a number, or 5xx for 500 to 599",
        )),
    }
}
