//! Arguments of `now`.

use std::path::PathBuf;

use clap::Args;
use whyslow_base::path_parser;
use whyslow_base::time::parse_length;
use whyslow_model::Ns;

use super::explain::SlowCalls;

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo whyslow                           the same as `sudo whyslow now` in a terminal
  sudo whyslow now                       record 10 s, explain what was slow
  sudo whyslow now --for 30s             a longer time
  sudo whyslow now -p 1234               explain only the threads of one process
  sudo whyslow now -p 1234 --slow 'futex>20ms'
                                         which thread held the locks that the process waited for";

#[derive(Debug, Args)]
pub(crate) struct NowArgs {
    /// Record for DURATION
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = parse_length)]
    pub(crate) length: Ns,
    /// Write the recording to NAME.wsl [default: in ~/.local/state/whyslow/now, which keeps the
    /// last five]
    #[arg(short, long, value_name = "NAME.wsl", value_parser = path_parser())]
    pub(crate) output: Option<PathBuf>,
    /// Explain only threads of process PID; all processes are recorded
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,
    /// Explain only threads with a name matching GLOB
    #[arg(short, long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) comm: Vec<String>,
    /// Explain system calls CALL (name or class) that last longer than TIME: 'open>100ms'
    ///
    /// Separate several with |: 'open>100ms|fsync>100ms'. The smallest TIME applies to all of them.
    #[arg(long, value_name = "CALL>TIME", value_parser = checked)]
    pub(crate) slow: Option<String>,
}

/// The text is passed on to `explain`.
fn checked(text: &str) -> Result<String, String> {
    SlowCalls::parse(text).map(|_| text.to_owned())
}
