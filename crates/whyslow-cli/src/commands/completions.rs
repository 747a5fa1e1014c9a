use clap::builder::PossibleValuesParser;
use clap_complete::Shell as Generator;
use whyslow_base::failure::Failure;
use whyslow_render::to_stdout;

use crate::cli::{Cli, CompletionsArgs, Shell, completed_topics};

pub(super) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut completed(), "whyslow", &mut script);
    to_stdout(&String::from_utf8_lossy(&script))
}

/// The command line with the values that shells should offer.
fn completed() -> clap::Command {
    let topics = PossibleValuesParser::new(completed_topics());
    Cli::whole().mut_subcommand("record", |record| {
        record.mut_arg("what", |what| what.value_parser(topics))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_completed_with_and_without_a_sign() {
        for generator in [Generator::Bash, Generator::Zsh, Generator::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(generator, &mut completed(), "whyslow", &mut script);
            let script = String::from_utf8(script).expect("UTF-8");
            for word in ["syscalls", "+net", "-dns"] {
                assert!(script.contains(word), "{generator}: {word}");
            }
        }
    }
}
