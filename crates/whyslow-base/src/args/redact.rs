use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What is hidden in what is handed on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Hiding")]
pub struct RedactArgs {
    /// Hide paths, arguments, addresses, hosts and users, each always behind the same words; with
    /// `names`, names of programs and functions, too. docs/redaction.md tells what stays
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "texts"
    )]
    pub redact: Option<RedactScope>,
    /// Leave names readable that match; globs with a slash are for whole paths
    #[arg(long, value_name = "GLOB", value_delimiter = ',', requires = "redact")]
    pub keep: Vec<String>,
    /// Which words stand for which depends on this file, so that several exports go together: 16
    /// bytes at least that nobody guesses [default: random, and forgotten]
    #[arg(long, value_name = "FILE", requires = "redact")]
    pub redact_key: Option<PathBuf>,
}

/// Which texts are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedactScope {
    /// Paths, arguments, addresses, hosts, users, containers, marks
    Texts,
    /// Also names of threads, functions and events of programs
    Names,
}
