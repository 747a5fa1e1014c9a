use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::{Cli, ManArgs};
use crate::failure::Failure;
use crate::output::to_stdout;

pub(super) fn run(args: &ManArgs) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    if let Some(folder) = &args.dir {
        let failed = |error| Failure::writing(folder, error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        return clap_mangen::generate_to(command, folder).map_err(failed);
    }
    let mut page = &command;
    for name in &args.command {
        page = page.find_subcommand(name).ok_or_else(|| {
            Failure::usage(format!("no command `{}`", args.command.join(" ")))
                .hint("whyslow --help")
        })?;
    }
    let mut text = Vec::new();
    Man::new(page.clone()).render(&mut text)?;
    to_stdout(&String::from_utf8_lossy(&text))
}
