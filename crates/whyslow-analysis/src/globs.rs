//! Patterns for thread names and paths.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use regex::{RegexSet, RegexSetBuilder};

use crate::AnalysisError;

/// Globs for thread names, where `*` matches anything.
pub(crate) fn comm_globs(globs: &[String]) -> Result<GlobSet, AnalysisError> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(Glob::new(glob).map_err(|error| bad_glob(glob, &error))?);
    }
    set.build()
        .map_err(|error| bad_glob(&globs.join(" "), &error))
}

/// Whether a thread name matches one of these globs, as with `--comm`.
pub fn thread_names(globs: &[String]) -> Result<impl Fn(&str) -> bool + use<>, AnalysisError> {
    let set = comm_globs(globs)?;
    Ok(move |name: &str| set.is_match(name))
}

/// Path globs: `*` does not match `/`, `**` does; a glob without `/` is also tried on the last
/// component.
#[derive(Debug, Clone)]
pub(crate) struct PathGlobs {
    whole: GlobSet,
    last: GlobSet,
}

impl PathGlobs {
    pub(crate) fn new(globs: &[String]) -> Result<Self, AnalysisError> {
        let mut whole = GlobSetBuilder::new();
        let mut last = GlobSetBuilder::new();
        for text in globs {
            let glob = GlobBuilder::new(text)
                .literal_separator(true)
                .build()
                .map_err(|error| bad_glob(text, &error))?;
            if !text.contains('/') {
                last.add(glob.clone());
            }
            whole.add(glob);
        }
        let all = || globs.join(" ");
        Ok(Self {
            whole: whole.build().map_err(|error| bad_glob(&all(), &error))?,
            last: last.build().map_err(|error| bad_glob(&all(), &error))?,
        })
    }

    pub(crate) fn is_match(&self, path: &str) -> bool {
        let last = path.rsplit('/').next().unwrap_or(path);
        self.whole.is_match(path) || self.last.is_match(last)
    }
}

/// Size limit of a compiled pattern.
const REGEX_BYTES_MAX: usize = 4 << 20;

/// Regular expressions, which may match anywhere.
pub(crate) fn regexes(patterns: &[String]) -> Result<RegexSet, AnalysisError> {
    let set = RegexSetBuilder::new(patterns)
        .size_limit(REGEX_BYTES_MAX)
        .build();
    set.map_err(|error| {
        // The error text has lines that point at the location.
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        AnalysisError::query(
            format!("`{}` is not a valid regular expression: {reason}", patterns.join(" ")),
            "use `.` for any character, `.*` for any text, `^` and `$` for start and end, `\\(` for a parenthesis",
        )
    })
}

fn bad_glob(glob: &str, error: &globset::Error) -> AnalysisError {
    AnalysisError::query(
        format!("`{glob}` is not a valid pattern: {}", error.kind()),
        "use `*` for any text, `?` for one character, `[abc]` for one of these, `{a,b}` for either",
    )
}
