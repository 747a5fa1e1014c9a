//! Flags that many commands share: output format, messages on standard error, redaction.

mod named_commands;
mod output;
mod redact;

pub use named_commands::NamedCommands;
pub use output::{ColorChoice, Format, OutputArgs, ProgressChoice, TalkArgs, UnitChoice};
pub use redact::{RedactArgs, RedactScope};
