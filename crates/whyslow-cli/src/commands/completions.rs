use clap_complete::Shell as Generator;
use whyslow_base::failure::Failure;
use whyslow_render::to_stdout;

use crate::cli::{Cli, CompletionsArgs, Shell};

pub(super) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut Cli::whole(), "whyslow", &mut script);
    to_stdout(&String::from_utf8_lossy(&script))
}
