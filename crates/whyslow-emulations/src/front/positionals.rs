//! `[RECORDING] [INTERVAL [COUNT]]` and other positional arguments of a tool.

use whyslow_base::failure::Failure;
use whyslow_base::time::parse_seconds_or_duration;
use whyslow_model::Ns;

/// Positional arguments by kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Positionals {
    pub(crate) recording: Option<String>,
    /// Starts with a digit and is no existing path, in order.
    pub(crate) numbers: Vec<String>,
    /// Everything else.
    pub(crate) names: Vec<String>,
}

impl Positionals {
    /// The first argument that is an existing path, or `@last`, is the recording. An argument that
    /// starts with a digit is a number. The rest are names; if there is no recording yet, the first
    /// name that looks like a path is the recording.
    pub(crate) fn sort(words: &[String]) -> Self {
        let mut sorted = Self::default();
        for word in words {
            let exists = std::path::Path::new(word).exists();
            let begins_with_digit = word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                && word.contains(|c: char| c.is_ascii_digit())
                && !word.contains('/');
            let is_device = word.starts_with("/dev/");
            let looks_like_path = !is_device && word.contains(['/', '.']);
            if sorted.recording.is_none() && !is_device && (exists || word.starts_with('@')) {
                sorted.recording = Some(word.clone());
            } else if begins_with_digit {
                sorted.numbers.push(word.clone());
            } else if sorted.recording.is_none() && looks_like_path {
                sorted.recording = Some(word.clone());
            } else {
                sorted.names.push(word.clone());
            }
        }
        sorted
    }

    /// The same for a tool without names: a name is the recording.
    pub(crate) fn without_names(words: &[String]) -> Result<Self, Failure> {
        let mut sorted = Self::sort(words);
        let mut names = std::mem::take(&mut sorted.names).into_iter();
        if sorted.recording.is_none() {
            sorted.recording = names.next();
        }
        match names.next() {
            Some(extra) => Err(Failure::usage(format!("unexpected argument `{extra}`"))
                .hint("specify only one recording")),
            None => Ok(sorted),
        }
    }

    /// The numbers as `[INTERVAL [COUNT]]`.
    pub(crate) fn interval(&self) -> Result<(Option<Ns>, Option<i64>), Failure> {
        if let Some(extra) = self.numbers.get(2) {
            return Err(Failure::usage(format!("unexpected argument `{extra}`"))
                .hint("specify an interval and a count, such as 1 10"));
        }
        let interval = self.numbers.first().map(|text| seconds(text)).transpose()?;
        let count = self.numbers.get(1).map(|text| count(text)).transpose()?;
        Ok((interval, count))
    }

    /// At most one number, for tools that do not take an interval.
    pub(crate) fn number(&self) -> Result<Option<&str>, Failure> {
        match self.numbers.as_slice() {
            [] => Ok(None),
            [number] => Ok(Some(number)),
            [_, extra, ..] => Err(Failure::usage(format!("unexpected argument `{extra}`"))
                .hint("specify at most one number")),
        }
    }
}

/// A duration; seconds unless it has a unit.
pub(crate) fn seconds(text: &str) -> Result<Ns, Failure> {
    parse_seconds_or_duration(text).map_err(|message| {
        Failure::usage(message).hint("use seconds or a unit, such as 1, 0.5 or 100ms")
    })
}

fn count(text: &str) -> Result<i64, Failure> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| Failure::usage(format!("invalid number of intervals `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_by_how_they_look() {
        let check = |words: &[&str], recording: Option<&str>, numbers: &[&str], names: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let sorted = Positionals::sort(&words);
            assert_eq!(sorted.recording.as_deref(), recording, "{words:?}");
            assert_eq!(sorted.numbers, numbers, "{words:?}");
            assert_eq!(sorted.names, names, "{words:?}");
        };
        check(&[], None, &[], &[]);
        check(&["1"], None, &["1"], &[]);
        check(&["100ms", "3"], None, &["100ms", "3"], &[]);
        check(&["web.wsl", "0.5"], Some("web.wsl"), &["0.5"], &[]);
        check(&["@last", "sda", "1"], Some("@last"), &["1"], &["sda"]);
        check(&["sda", "a/b", "1"], Some("a/b"), &["1"], &["sda"]);
        check(&["/dev/sda", "1"], None, &["1"], &["/dev/sda"]);
        check(&["8:0"], None, &["8:0"], &[]);
        check(&["a.wsl", "b.wsl"], Some("a.wsl"), &[], &["b.wsl"]);
        check(&["2026/trace"], Some("2026/trace"), &[], &[]);
        // It exists: tests run in the directory of the crate.
        check(&["1", "src"], Some("src"), &["1"], &[]);
    }

    #[test]
    fn intervals_are_longer_than_nothing() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Positionals::without_names(&words).and_then(|words| words.interval())
        };
        assert_eq!(
            of(&["1", "3"]).expect("fine"),
            (Some(1_000_000_000), Some(3))
        );
        assert_eq!(of(&["x.wsl"]).expect("fine"), (None, None));
        for bad in [
            &["0"][..],
            &["1", "0"],
            &["1", "2", "3"],
            &["1", "2.5"],
            &["1parsec"],
            &["a", "b"],
        ] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
