//! Flags that many commands share: how an answer is written, what is said beside it, what is hidden.

mod named_commands;
mod output;
mod redact;

pub use named_commands::NamedCommands;
pub use output::{ColorChoice, Format, OutputArgs, ProgressChoice, TalkArgs, UnitChoice};
pub use redact::{RedactArgs, RedactScope};
