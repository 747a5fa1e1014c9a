//! Patterns on names of threads and on paths.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use regex::{RegexSet, RegexSetBuilder};

use crate::AnalysisError;

/// Globs on thread names, where `*` matches anything.
pub(crate) fn comm_globs(globs: &[String]) -> Result<GlobSet, AnalysisError> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(Glob::new(glob).map_err(|error| bad_glob(glob, &error))?);
    }
    set.build()
        .map_err(|error| bad_glob(&globs.join(" "), &error))
}

/// Globs on paths: `*` crosses no `/`, `**` does; one without `/` is tried on the last component
/// as well.
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

/// A compiled pattern takes no more than this.
const REGEX_BYTES_MAX: usize = 4 << 20;

/// Regular expressions, any of which may be found anywhere.
pub(crate) fn regexes(patterns: &[String]) -> Result<RegexSet, AnalysisError> {
    let set = RegexSetBuilder::new(patterns)
        .size_limit(REGEX_BYTES_MAX)
        .build();
    set.map_err(|error| {
        // What it says has lines that point at the place.
        let told = error.to_string();
        let told = told.lines().last().unwrap_or_default().trim();
        let told = told.strip_prefix("error: ").unwrap_or(told);
        AnalysisError::query(
            format!("`{}` is no regular expression: {told}", patterns.join(" ")),
            "`.` is any character, `.*` any text, `^` and `$` begin and end; `\\(` is a bracket",
        )
    })
}

fn bad_glob(glob: &str, error: &globset::Error) -> AnalysisError {
    AnalysisError::query(
        format!("`{glob}` is not a pattern: {}", error.kind()),
        "`*` matches any text, `?` one character, `[abc]` one of these, `{a,b}` either",
    )
}
