use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What is hidden in data that is passed on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Hiding")]
pub struct RedactArgs {
    /// Hide paths, arguments, addresses, hosts and users; with `=names` also programs and functions
    ///
    /// Each text is always replaced by the same pseudonym, so the findings stay the same.
    /// docs/redaction.md lists what remains visible.
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "texts"
    )]
    pub redact: Option<RedactScope>,
    /// Do not hide names matching GLOB; a glob with a slash matches whole paths
    #[arg(long, value_name = "GLOB", value_delimiter = ',', requires = "redact")]
    pub keep: Vec<String>,
    /// Derive replacements from the key in FILE, so that several exports match
    ///
    /// FILE must have at least 16 random bytes: head -c 32 /dev/urandom > key. By default, each
    /// export uses a new random key and discards it.
    #[arg(long, value_name = "FILE", requires = "redact")]
    pub redact_key: Option<PathBuf>,
}

/// Which texts are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedactScope {
    /// Paths, arguments, addresses, hosts, users, containers, markers
    Texts,
    /// Also names of threads, functions and program events
    Names,
}
