//! Dates in any order. `03/04/26` is the third of April or the fourth of March, and no file states
//! which: all dates of a file are read in the same order, which is chosen from all of them.

use whyslow_model::Ns;

use super::DAY_NS;

/// Order of dates with slashes or dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateOrder {
    MonthFirst,
    DayFirst,
}

impl DateOrder {
    /// The date order of a text, and whether it was guessed: no date has a day above 12, and the
    /// two orders give different days.
    ///
    /// A date later than the day on which the file was written is impossible. Otherwise the days of
    /// a file are close to each other, and the last one is close to the modification time.
    pub(crate) fn of(text: &str, written: Option<Ns>) -> (Self, bool) {
        let (mut month_first, mut day_first) = (Days::default(), Days::default());
        for (first, second, year) in dates(text) {
            let american = day_start(year, first, second);
            let european = day_start(year, second, first);
            match (american, european) {
                (Some(american), Some(european)) => {
                    month_first.add(american);
                    day_first.add(european);
                }
                (Some(_), None) => return (Self::MonthFirst, false),
                (None, Some(_)) => return (Self::DayFirst, false),
                (None, None) => {}
            }
        }
        if day_first.fit(written) < month_first.fit(written) {
            return (Self::DayFirst, true);
        }
        (Self::MonthFirst, month_first != day_first)
    }
}

/// The first and the last day of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Days(Option<(Ns, Ns)>);

impl Days {
    fn add(&mut self, day: Ns) {
        let (first, last) = self.0.unwrap_or((day, day));
        self.0 = Some((first.min(day), last.max(day)));
    }

    /// The lowest value is the most likely order.
    fn fit(self, written: Option<Ns>) -> (bool, Ns, u64) {
        let (first, last) = self.0.unwrap_or_default();
        let is_later = written.is_some_and(|written| last > written.saturating_add(DAY_NS));
        let distance = written.map_or(0, |written| written.abs_diff(last));
        (is_later, last - first, distance)
    }
}

/// Parts of the dates of a text that do not start with the year.
fn dates(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let is_part = |c: char| c.is_ascii_digit() || c == '/' || c == '-';
    let words = text.split(move |c| !is_part(c));
    words.filter_map(|word| {
        let sign = ['/', '-'].into_iter().find(|sign| word.contains(*sign))?;
        let mut parts = word.split(sign);
        let date = (parts.next()?, parts.next()?, parts.next()?);
        let is_date = [date.0, date.1].iter().all(|part| part.len() == 2)
            && matches!(date.2.len(), 2 | 4)
            && parts.next().is_none();
        is_date.then_some(date)
    })
}

/// A date, as the time at which it starts. A date that is impossible in the given order is read in
/// the other one.
pub(crate) fn date(text: &str, order: Option<DateOrder>) -> Option<Ns> {
    let sign = ['-', '/', '.']
        .into_iter()
        .find(|sign| text.contains(*sign))?;
    let mut parts = text.split(sign);
    let (first, second, third) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || ![first, second, third].into_iter().all(is_number) {
        return None;
    }
    if first.len() == 4 {
        return day_start(first, second, third);
    }
    let american = day_start(third, first, second);
    let european = day_start(third, second, first);
    if sign == '.' {
        return european;
    }
    match order {
        Some(DateOrder::DayFirst) => european.or(american),
        _ => american.or(european),
    }
}

fn day_start(year: &str, month: &str, day: &str) -> Option<Ns> {
    let mut number: i16 = year.parse().ok()?;
    if year.len() == 2 {
        number += 2000;
    }
    let date = jiff::civil::Date::new(number, month.parse().ok()?, day.parse().ok()?).ok()?;
    let epoch = jiff::civil::date(1970, 1, 1);
    let days = i64::from(epoch.until(date).ok()?.get_days());
    days.checked_mul(DAY_NS)
}

#[cfg(test)]
mod tests {
    use super::DateOrder::{DayFirst, MonthFirst};
    use super::*;

    #[test]
    fn dates_of_a_file_are_read_one_way() {
        let written = |text: &str| date(text, None).map(|day| day + DAY_NS / 2);
        let of = |text: &str, at: &str| DateOrder::of(text, written(at));
        // A date that is valid in one order only decides, at any position.
        assert_eq!(
            of("03/04/26 1\n13/04/26 2\n", "2026-04-13"),
            (DayFirst, false)
        );
        assert_eq!(of("(2 CPU) 04/13/26\n", "2026-04-13"), (MonthFirst, false));
        // The third of April, since the fourth of March is a month ago; and vice versa.
        assert_eq!(of("03/04/26 12:00:01", "2026-04-03"), (DayFirst, true));
        assert_eq!(of("03/04/26 12:00:01", "2026-03-04"), (MonthFirst, true));
        assert_eq!(
            of("\"date\": \"03-04-2026\"", "2026-04-03"),
            (DayFirst, true)
        );
        // For a file copied much later, the spread decides: four days in a row, or three months.
        let days = "04/06/26 a\n05/06/26 b\n07/06/26 c\n";
        assert_eq!(of(days, "2026-06-07"), (DayFirst, true));
        assert_eq!(of(days, "2026-09-30"), (DayFirst, true));
        let days = "06/04/26 a\n06/05/26 b\n06/07/26 c\n";
        assert_eq!(of(days, "2026-09-30"), (MonthFirst, true));
        // In December, a file of June is not from the future.
        assert_eq!(of("07/06/26", "2026-06-20"), (DayFirst, true));
        // Both orders give the same day.
        assert_eq!(of("05/05/26", "2026-05-05"), (MonthFirst, false));
        assert_eq!(
            of("12.04.26 1-2-3 2026-04-05 -7/8", "2026-04-13"),
            (MonthFirst, false)
        );
        assert_eq!(DateOrder::of("03/04/26", None), (MonthFirst, true));
    }

    #[test]
    fn a_date_follows_the_order_where_it_can() {
        let at = |text: &str, order| date(text, Some(order));
        let april = date("2026-04-03", None);
        assert_eq!(at("03/04/26", DayFirst), april);
        assert_eq!(at("04/03/2026", MonthFirst), april);
        assert_eq!(at("03-04-26", DayFirst), april);
        assert_eq!(at("03.04.26", MonthFirst), april);
        assert_eq!(at("04/25/26", DayFirst), date("2026-04-25", None));
        assert_eq!(at("25/25/26", DayFirst), None);
    }
}
