//! Arguments of `help`.

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  whyslow help                           all commands
  whyslow help io top                    a command, with its options
  whyslow help formats                   what `import` reads, and which tools write it
  whyslow help iostat                    a tool that whyslow emulates";

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Print help for COMMAND (`io top`), or the table of `formats`
    #[arg(value_name = "COMMAND")]
    pub(crate) topic: Vec<String>,
}
