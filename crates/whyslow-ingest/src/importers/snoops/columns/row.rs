//! Values of the fields of a line.

use whyslow_model::Ns;

use super::super::super::stamp::{self, Stamp};
use super::Field;

/// A line split into columns.
#[derive(Debug)]
pub(in super::super) struct Row<'l> {
    pub(super) fields: Vec<(Field, &'l str)>,
}

impl<'l> Row<'l> {
    pub(in super::super) fn text(&self, field: Field) -> Option<&'l str> {
        let mut fields = self.fields.iter();
        fields.find(|(of, _)| *of == field).map(|(_, text)| *text)
    }

    pub(in super::super) fn int(&self, field: Field) -> Option<i64> {
        self.text(field)?.parse().ok()
    }

    /// A process or thread id; 0 means none.
    pub(in super::super) fn id(&self, field: Field) -> Option<i32> {
        self.text(field)?.parse().ok().filter(|id| *id > 0)
    }

    /// A number scaled by `factor` and rounded.
    pub(in super::super) fn scaled(&self, field: Field, factor: f64) -> Option<i64> {
        let number: f64 = self.text(field)?.parse().ok()?;
        let value = (number * factor).round();
        (value.abs() < 9e15).then_some(value as i64)
    }

    pub(in super::super) fn latency(&self) -> Option<Ns> {
        let ms = self.scaled(Field::LatencyMs, 1e6);
        ms.or_else(|| self.scaled(Field::LatencyUs, 1e3))
            .filter(|latency| *latency >= 0)
    }

    /// None without a time column.
    pub(in super::super) fn stamp(&self) -> Result<Option<Stamp>, String> {
        let time = self.text(Field::Time).or_else(|| self.text(Field::Seconds));
        if let Some(time) = time.and_then(stamp::time_of_day) {
            return Ok(Some(Stamp::OfDay(time)));
        }
        let units = [
            (Field::Time, 1_000_000_000),
            (Field::Seconds, 1_000_000_000),
            (Field::Milliseconds, 1_000_000),
            (Field::Microseconds, 1_000),
        ];
        for (field, unit) in units {
            if let Some(text) = self.text(field) {
                let since = exact(text, unit).ok_or("time out of range")?;
                return Ok(Some(Stamp::Since(since)));
            }
        }
        Ok(None)
    }
}

/// A number scaled by `unit` without floating-point loss: nanoseconds since boot exceed the
/// precision of a float.
fn exact(text: &str, unit: Ns) -> Option<Ns> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.get(..fraction.len().min(9))?;
    let part = match digits {
        "" => 0,
        digits => digits.parse::<u32>().ok().map(Ns::from)?,
    };
    let part = part * unit / 10_i64.pow(digits.len() as u32);
    whole
        .parse::<Ns>()
        .ok()?
        .checked_mul(unit)?
        .checked_add(part)
}
