//! Numbers for people: one unit and one number of decimals per column.

use std::fmt::Write as _;

use whyslow_base::args::UnitChoice;

/// A unit: its name and its size in base units (ns, bytes).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) size: f64,
}

const DURATIONS: [Unit; 4] = [
    Unit {
        name: "ns",
        size: 1.0,
    },
    Unit {
        name: "us",
        size: 1e3,
    },
    Unit {
        name: "ms",
        size: 1e6,
    },
    Unit {
        name: "s",
        size: 1e9,
    },
];
const BINARY_SIZES: [Unit; 5] = [
    Unit {
        name: "B",
        size: 1.0,
    },
    Unit {
        name: "KiB",
        size: 1024.0,
    },
    Unit {
        name: "MiB",
        size: 1_048_576.0,
    },
    Unit {
        name: "GiB",
        size: 1_073_741_824.0,
    },
    Unit {
        name: "TiB",
        size: 1_099_511_627_776.0,
    },
];
const DECIMAL_SIZES: [Unit; 5] = [
    Unit {
        name: "B",
        size: 1.0,
    },
    Unit {
        name: "kB",
        size: 1e3,
    },
    Unit {
        name: "MB",
        size: 1e6,
    },
    Unit {
        name: "GB",
        size: 1e9,
    },
    Unit {
        name: "TB",
        size: 1e12,
    },
];

/// Maximum decimals of a column.
const DECIMALS_MAX: usize = 3;
/// Significant digits of the typical and the smallest number of a column, as far as `DECIMALS_MAX`
/// allows.
const DIGITS_TYPICAL: i32 = 4;
const DIGITS_LEAST: i32 = 2;
/// Significant digits of a single number with its unit.
const DIGITS_ALONE: i32 = 3;
/// Columns of sizes below this stay in bytes: exact numbers that still fit.
const BYTES_EXACT: f64 = 1_000_000.0;

/// Unit and decimals of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) unit: Unit,
    pub(super) decimals: usize,
}

impl Scale {
    /// A number without unit.
    pub(super) fn plain(values: &[f64], has_fractions: bool) -> Self {
        let unit = Unit {
            name: "",
            size: 1.0,
        };
        let decimals = if has_fractions {
            decimals(values, typical(values), unit)
        } else {
            0
        };
        Scale { unit, decimals }
    }

    pub(super) fn duration(values: &[f64], choice: UnitChoice) -> Self {
        let sizes = typical(values);
        let unit = match choice {
            UnitChoice::Auto => fitting(greatest(values), &DURATIONS),
            UnitChoice::Ns => DURATIONS[0],
            UnitChoice::Us => DURATIONS[1],
            UnitChoice::Ms => DURATIONS[2],
            UnitChoice::S => DURATIONS[3],
        };
        // With a fixed unit, decimals show ns as far as three decimals can.
        Scale {
            unit,
            decimals: decimals(values, sizes, unit),
        }
    }

    pub(super) fn bytes(values: &[f64], si: bool) -> Self {
        let units = if si { &DECIMAL_SIZES } else { &BINARY_SIZES };
        let sizes = typical(values);
        let greatest = greatest(values);
        let unit = if greatest < BYTES_EXACT {
            units[0]
        } else {
            fitting(greatest, units)
        };
        Scale {
            unit,
            decimals: decimals(values, sizes, unit),
        }
    }

    /// As in iostat: units of 1024 bytes for all values.
    pub(super) fn kibibytes(values: &[f64]) -> Self {
        let unit = BINARY_SIZES[1];
        Scale {
            unit,
            decimals: decimals(values, typical(values), unit),
        }
    }

    pub(super) fn ratio(values: &[f64]) -> Self {
        let unit = Unit {
            name: "%",
            size: 0.01,
        };
        Scale {
            unit,
            decimals: decimals(values, typical(values), unit).min(2),
        }
    }

    /// A value that would be rounded to zero is printed as `<0.001`.
    pub(super) fn print(&self, value: f64, group: bool) -> String {
        let least = 10_f64.powi(-(self.decimals as i32));
        if value != 0.0 && value.abs() / self.unit.size <= least / 2.0 {
            let sign = if value < 0.0 { "-" } else { "" };
            return format!("{sign}<{least:.*}", self.decimals);
        }
        let text = self
            .print_whole(value)
            .unwrap_or_else(|| format!("{:.*}", self.decimals, value / self.unit.size));
        if group { grouped(&text) } else { text }
    }

    /// The same in integer arithmetic for whole numbers in whole units, since a large answer has a
    /// million of them. Halves are rounded to even.
    fn print_whole(&self, value: f64) -> Option<String> {
        let fits = value.fract() == 0.0 && value.abs() <= WHOLE_MAX && self.unit.size >= 1.0;
        if !fits || self.decimals > DECIMALS_MAX {
            return None;
        }
        let (size, power) = (self.unit.size as u64, 10_u64.pow(self.decimals as u32));
        let scaled = value.abs() as u64 * power;
        let (mut shown, twice_rest) = (scaled / size, scaled % size * 2);
        if twice_rest > size || (twice_rest == size && shown % 2 == 1) {
            shown += 1;
        }
        let mut text = String::with_capacity(12);
        if value < 0.0 {
            text.push('-');
        }
        let _ = write!(text, "{}", shown / power);
        if self.decimals > 0 {
            let _ = write!(text, ".{:0width$}", shown % power, width = self.decimals);
        }
        Some(text)
    }
}

/// Largest whole number that is exact and does not overflow with `DECIMALS_MAX` more digits.
const WHOLE_MAX: f64 = 9e15;

/// The smallest and the median of the non-zero amounts.
#[derive(Debug, Clone, Copy)]
struct Typical {
    least: f64,
    median: f64,
}

fn typical(values: &[f64]) -> Option<Typical> {
    let sizes = values.iter().map(|value| value.abs());
    let mut sizes: Vec<f64> = sizes.filter(|value| *value > 0.0).collect();
    let middle = sizes.len() / 2;
    let least = sizes.iter().copied().min_by(f64::total_cmp)?;
    let (_, median, _) = sizes.select_nth_unstable_by(middle, f64::total_cmp);
    Some(Typical {
        least,
        median: *median,
    })
}

fn greatest(values: &[f64]) -> f64 {
    values
        .iter()
        .fold(0.0_f64, |max, value| max.max(value.abs()))
}

/// The largest unit in which the greatest value is at least one: it is the value that a reader looks
/// for, and four digits in front of the decimal point hide its size.
fn fitting(greatest: f64, units: &[Unit]) -> Unit {
    let mut units_down = units.iter().rev();
    let unit = units_down.find(|unit| greatest >= unit.size);
    unit.copied().unwrap_or(units[0])
}

/// Enough decimals for the typical value to be exact enough and the smallest to be visible.
fn decimals(values: &[f64], sizes: Option<Typical>, unit: Unit) -> usize {
    if unit.size == 1.0 && values.iter().all(|value| value.fract() == 0.0) {
        return 0;
    }
    let Some(Typical { least, median }) = sizes else {
        return 0;
    };
    let typical = decimals_for(median / unit.size, DIGITS_TYPICAL);
    typical.max(decimals_for(least / unit.size, DIGITS_LEAST))
}

fn decimals_for(value: f64, digits: i32) -> usize {
    let whole_digits = value.log10().floor() as i32 + 1;
    (digits - whole_digits).clamp(0, DECIMALS_MAX as i32) as usize
}

/// A single duration, such as the edge of a bucket: `2.10 ms`.
pub(super) fn duration_alone(ns: f64, choice: UnitChoice) -> String {
    let unit = Scale::duration(&[ns], choice).unit;
    let decimals = if unit.size == 1.0 {
        0
    } else {
        decimals_for(ns / unit.size, DIGITS_ALONE)
    };
    format!("{:.decimals$} {}", ns / unit.size, unit.name)
}

/// Digits before the decimal point in groups of three, separated by spaces.
pub(super) fn grouped(number: &str) -> String {
    let whole_len = number.find('.').unwrap_or(number.len());
    let (whole, fraction) = number.split_at(whole_len);
    let digits_at = usize::from(whole.starts_with('-'));
    let digits = whole.len() - digits_at;
    let mut out = String::with_capacity(number.len() + digits / 3);
    for (i, c) in whole.chars().enumerate() {
        if i > digits_at && (digits - (i - digits_at)).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_durations_has_the_unit_of_its_largest_value() {
        let check = |values: &[f64], choice: UnitChoice, unit: &str, shown: &[&str]| {
            let scale = Scale::duration(values, choice);
            let got: Vec<String> = values.iter().map(|v| scale.print(*v, true)).collect();
            assert_eq!(scale.unit.name, unit, "{values:?}");
            assert_eq!(got, shown, "{values:?}");
        };
        let auto = UnitChoice::Auto;
        check(
            &[250.0, 28_000.0, 437_697_753.0],
            auto,
            "ms",
            &["<0.001", "0.028", "437.698"],
        );
        check(
            &[28_000.0, 221_000.0, 36_000.0],
            auto,
            "us",
            &["28.00", "221.00", "36.00"],
        );
        check(&[437_697_753.0], auto, "ms", &["437.7"]);
        check(&[1e9, 1.0, 1e9], auto, "s", &["1.000", "<0.001", "1.000"]);
        check(&[-250.0, 3e9], auto, "s", &["-<0.001", "3.000"]);
        check(&[0.0], auto, "ns", &["0"]);
        check(&[], auto, "ns", &[]);
        check(&[1.5e9, 0.0], auto, "s", &["1.500", "0.000"]);
        check(&[437_697_753.0], UnitChoice::Us, "us", &["437 698"]);
        check(&[437_697_753.0], UnitChoice::Ns, "ns", &["437 697 753"]);
        check(&[437_697_753.0], UnitChoice::S, "s", &["0.438"]);
    }

    #[test]
    fn small_sizes_stay_exact_and_large_ones_get_a_unit() {
        let check = |values: &[f64], si: bool, unit: &str, shown: &[&str]| {
            let scale = Scale::bytes(values, si);
            let got: Vec<String> = values.iter().map(|v| scale.print(*v, true)).collect();
            assert_eq!(
                (scale.unit.name, got.as_slice()),
                (
                    unit,
                    &shown.iter().map(ToString::to_string).collect::<Vec<_>>()[..]
                )
            );
        };
        check(
            &[7.0, 1024.0, 22_500.0],
            false,
            "B",
            &["7", "1 024", "22 500"],
        );
        check(&[2_348_810.0, 540_672.0], false, "MiB", &["2.240", "0.516"]);
        check(&[32.0, 40_339_865.0], false, "MiB", &["<0.001", "38.471"]);
        check(&[2_000_000.0], true, "MB", &["2.000"]);
    }

    #[test]
    fn whole_numbers_print_as_their_quotients_do() {
        for unit in DURATIONS.iter().chain(&BINARY_SIZES).chain(&DECIMAL_SIZES) {
            for decimals in 0..=DECIMALS_MAX {
                let scale = Scale {
                    unit: *unit,
                    decimals,
                };
                // No quotient of these is a half of the last digit, but 0.
                for value in [
                    0.0,
                    1.0,
                    -7.0,
                    999.0,
                    1001.0,
                    437_697_753.0,
                    8_999_999_999_999.0,
                ] {
                    let expected = format!("{:.decimals$}", value / unit.size);
                    let got = scale.print(value, false);
                    if value != 0.0 && !expected.contains(|c| matches!(c, '1'..='9')) {
                        // No value but zero looks like zero.
                        assert!(got.contains('<'), "{value} in {}, {decimals}", unit.name);
                        continue;
                    }
                    assert_eq!(got, expected, "{value} in {}, {decimals}", unit.name);
                }
            }
        }
        let thousands = Scale {
            unit: DURATIONS[1],
            decimals: 0,
        };
        let shown = [500.0, 1500.0, 2500.0, -1500.0].map(|ns| thousands.print(ns, false));
        assert_eq!(shown, ["<1", "2", "2", "-2"]);
    }

    #[test]
    fn digits_group_by_three() {
        let check = |number: &str, want: &str| assert_eq!(grouped(number), want);
        check("1", "1");
        check("999", "999");
        check("1000", "1 000");
        check("-1000", "-1 000");
        check("-100", "-100");
        check("1234567.891", "1 234 567.891");
    }
}
