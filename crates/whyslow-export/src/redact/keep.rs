//! Names that stay readable.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Globs for names, or for whole paths if they contain a slash. `*` does not match slashes, `**`
/// does.
#[derive(Debug, Clone, Default)]
pub struct Keep {
    names: GlobSet,
    paths: GlobSet,
}

impl Keep {
    /// Returns an error message for an invalid glob.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Result<Self, String> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for text in globs {
            let glob = of(text).map_err(|error| format!("invalid glob `{text}`: {error}"))?;
            let is_of_paths = text.contains('/');
            let builder = if is_of_paths { &mut paths } else { &mut names };
            builder.add(glob);
        }
        let built = |builder: &GlobSetBuilder| {
            let set = builder.build();
            set.map_err(|error| format!("too many globs: {error}"))
        };
        Ok(Self {
            names: built(&names)?,
            paths: built(&paths)?,
        })
    }

    /// Name of a file or directory, a thread, a host, a function.
    pub(super) fn name(&self, name: &str) -> bool {
        !self.names.is_empty() && self.names.is_match(name)
    }

    pub(super) fn path(&self, path: &str) -> bool {
        !self.paths.is_empty() && self.paths.is_match(path)
    }
}

fn of(text: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(text).literal_separator(true).build()
}
