//! Log lines that cannot be parsed.

/// A line that is not recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Starting at 1.
    pub line: usize,
    /// Byte offset of the line in the file.
    pub offset: usize,
    /// What is wrong with the line.
    pub what: String,
}
