//! Lines of logs that cannot be read.

/// A line that says nothing that is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// The first is 1.
    pub line: usize,
    /// Where it begins in the file, in bytes.
    pub offset: usize,
    /// What is wrong with it.
    pub what: String,
}
