use std::ffi::OsString;

/// The commands whose options are needed: to define those of all takes longer than many an answer.
#[derive(Debug, Clone, Copy)]
pub enum NamedCommands<'w> {
    /// Every command: for help, completions and manual pages.
    All,
    /// Those that are named among the words of the command line.
    Among(&'w [OsString]),
}

impl NamedCommands<'_> {
    /// Whether the options of this command are needed.
    pub fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Among(words) => words.iter().any(|word| word == name),
        }
    }
}
