//! Pressure of the machine (PSI), as in `/proc/pressure`.

use std::fs;
use std::path::Path;

pub(crate) const FOLDER: &str = "/proc/pressure";

/// Percentage of the last ten seconds in which some thread stalled on the resource.
pub(super) fn read(folder: &Path, resource: &str) -> Option<f64> {
    parse(&fs::read_to_string(folder.join(resource)).ok()?)
}

fn parse(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let mut fields = some.split_whitespace();
    let average = fields.find_map(|field| field.strip_prefix("avg10="))?;
    average.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_ten_seconds_is_found() {
        let text = "some avg10=41.25 avg60=1.00 avg300=0.00 total=5\nfull avg10=7.00 avg60=0.00 avg300=0.00 total=2\n";
        assert_eq!(parse(text), Some(41.25));
        assert_eq!(parse("full avg10=7.00"), None);
        assert_eq!(parse(""), None);
    }
}
