use std::ffi::OsString;

/// The commands whose options must be defined: defining all of them takes longer than many queries.
#[derive(Debug, Clone, Copy)]
pub enum NamedCommands<'w> {
    /// Every command: for help, completions and manual pages.
    All,
    /// Those named on the command line.
    Among(&'w [OsString]),
}

impl NamedCommands<'_> {
    /// Whether the options of this command must be defined.
    pub fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Among(words) => words.iter().any(|word| word == name),
        }
    }
}
