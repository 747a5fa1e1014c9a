//! Function names: mangled, demangled, and similar ones.

use std::fmt;

/// Longer names are not demangled.
const DEMANGLED_MAX: usize = 4096;
/// Suggestions for a name that does not exist.
const NEAR_MAX: usize = 3;
/// Minimum similarity of a suggestion (1 is identical).
const NEAR: f64 = 0.75;

/// Names of a symbol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Names<'s> {
    symbol: &'s str,
    /// Demangled, with and without parameters, if that differs from the symbol.
    demangled: Option<(String, String)>,
}

impl<'s> Names<'s> {
    pub(crate) fn of(symbol: &'s str) -> Self {
        let demangled = if symbol.starts_with("_Z") || symbol.starts_with("_R") {
            rust(symbol).or_else(|| cxx(symbol))
        } else {
            None
        };
        Self { symbol, demangled }
    }

    /// The name to show.
    pub(crate) fn shown(&self) -> &str {
        self.demangled
            .as_ref()
            .map_or(self.symbol, |(full, _)| full)
    }

    /// Without parameters.
    pub(crate) fn short(&self) -> &str {
        self.demangled
            .as_ref()
            .map_or(self.symbol, |(_, bare)| bare)
    }

    /// Whether one of the names matches the pattern: `*` matches any text, `?` one character.
    pub(crate) fn fit(&self, pattern: &str) -> bool {
        let is_it = |name: &str| fits(pattern, name);
        let demangled = self.demangled.as_ref();
        is_it(self.symbol) || demangled.is_some_and(|(full, bare)| is_it(full) || is_it(bare))
    }
}

fn rust(symbol: &str) -> Option<(String, String)> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    // Without the hash that distinguishes versions of a crate.
    let name = bounded(|out| fmt::write(out, format_args!("{name:#}")))?;
    Some((name.clone(), name))
}

fn cxx(symbol: &str) -> Option<(String, String)> {
    let name = cpp_demangle::Symbol::new(symbol).ok()?;
    let shown = cpp_demangle::DemangleOptions::new().no_return_type();
    let full = bounded(|out| name.structured_demangle(out, &shown))?;
    let bare = bounded(|out| name.structured_demangle(out, &shown.no_params()))?;
    Some((full, bare))
}

/// A string of bounded length, for mangled names that refer to themselves.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > DEMANGLED_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut text = Bounded(String::new());
    write(&mut text).ok()?;
    Some(text.0)
}

/// `*` matches any text, `?` one character.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut place) = (0, 0);
    // Position of the last star, and how much it matched.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == text[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((before, taken)) = star else {
                    return false;
                };
                star = Some((before, taken + 1));
                (at, place) = (before + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

/// Keeps the names most similar to a requested one.
#[derive(Debug)]
pub(crate) struct Near {
    wanted: String,
    best: Vec<(f64, String)>,
}

/// Starts a search for names similar to this one.
pub(crate) fn near(wanted: &str) -> Near {
    Near {
        wanted: wanted.replace(['*', '?'], "").to_lowercase(),
        best: Vec::new(),
    }
}

impl Near {
    pub(crate) fn see(&mut self, name: &str) {
        let lower = name.to_lowercase();
        let is_part = self.wanted.len() > 3 && lower.contains(&self.wanted);
        let likeness = if is_part {
            1.0
        } else {
            strsim::jaro_winkler(&self.wanted, &lower)
        };
        if likeness < NEAR || self.best.iter().any(|(_, known)| known == name) {
            return;
        }
        let place = self.best.partition_point(|(other, _)| *other >= likeness);
        if place < NEAR_MAX {
            self.best.insert(place, (likeness, name.to_owned()));
            self.best.truncate(NEAR_MAX);
        }
    }

    /// Most similar first.
    pub(crate) fn names(self) -> Vec<String> {
        self.best.into_iter().map(|(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_letters() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        };
        check("SSL_read", "SSL_read", true);
        check("SSL_read", "SSL_read_ex", false);
        check("SSL_*", "SSL_read", true);
        check("*dispatch*", "_Z16dispatch_commandv", true);
        check("*a*b*c", "xaxbxbxc", true);
        check("*a*b*c", "xaxcxb", false);
        check("a?c", "abc", true);
        check("a?c", "ac", false);
        check("*", "", true);
        check("", "", true);
        check("", "a", false);
        // Never takes more than length times length.
        check(&"*a".repeat(50), &"b".repeat(4000), false);
    }

    #[test]
    fn mangled_names_are_found_by_what_people_write() {
        let check = |symbol: &str, shown: &str, patterns: &[&str]| {
            let names = Names::of(symbol);
            assert_eq!(names.shown(), shown);
            for pattern in patterns {
                assert!(names.fit(pattern), "{symbol}: {pattern}");
            }
            assert!(!names.fit("other"));
        };
        check(
            "_ZN2ns5thing3runEiPKc",
            "ns::thing::run(int, char const*)",
            &[
                "_ZN2ns5thing3runEiPKc",
                "ns::thing::run",
                "*thing::run*",
                "ns::thing::run(int, *",
            ],
        );
        check(
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            "core::fmt::Write::write_fmt",
            &["core::fmt::Write::write_fmt", "*write_fmt"],
        );
        check("SSL_read", "SSL_read", &["SSL_read", "SSL_*"]);
        check("_Znonsense", "_Znonsense", &["_Znonsense"]);
    }

    #[test]
    fn a_name_that_grows_without_end_stays_as_it_is() {
        // Each part refers to the two before it.
        let mut symbol = "_Z1fI".to_owned();
        for _ in 0..60 {
            symbol.push_str("St4pairI");
        }
        assert_eq!(Names::of(&symbol).shown(), symbol);
    }

    #[test]
    fn near_names_are_told_the_nearest_first() {
        let mut near = near("SSL_raed");
        for name in [
            "BIO_new",
            "SSL_read_ex",
            "SSL_read",
            "SSL_write",
            "SSL_read",
        ] {
            near.see(name);
        }
        let names = near.names();
        assert_eq!(names.first().map(String::as_str), Some("SSL_read"));
        assert!(names.len() <= NEAR_MAX && !names.contains(&"BIO_new".to_owned()));
    }
}
