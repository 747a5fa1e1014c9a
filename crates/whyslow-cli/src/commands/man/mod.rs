//! `man`: manual pages, generated from the command line definitions, with additional sections.

use std::fs::{self, File};
use std::io::{self, Write};
use std::process::Stdio;

use clap::Command;
use clap_mangen::Man;
use whyslow_base::failure::Failure;
use whyslow_render::{is_on_terminal, to_stdout};

use crate::cli::{Cli, ManArgs};

/// Additional sections by command.
const MORE: &[(&str, &str)] = &[("record", include_str!("record.roff"))];

pub(super) fn run(args: &ManArgs) -> Result<(), Failure> {
    let mut command = Cli::whole();
    command.build();
    if let Some(folder) = &args.dir {
        let failed = |error| Failure::writing(folder, error);
        fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(command, folder).map_err(failed)?;
        for (name, more) in MORE {
            let page = folder.join(format!("whyslow-{name}.1"));
            let file = File::options().append(true).open(page);
            file.and_then(|mut file| file.write_all(more.as_bytes()))
                .map_err(failed)?;
        }
        return Ok(());
    }
    let mut page = &command;
    for name in &args.command {
        page = page.find_subcommand(name).ok_or_else(|| {
            let name = args.command.join(" ");
            Failure::usage(format!(
                "cannot print the page of `{name}`: unknown command `{name}`"
            ))
            .hint("list all commands: whyslow help")
        })?;
    }
    let text = text(page, &args.command)?;
    if is_on_terminal() {
        if is_shown(&text) {
            return Ok(());
        }
        // The source of the page is of no use to a reader; the help has the same content.
        return super::help::print(&args.command);
    }
    to_stdout(&String::from_utf8_lossy(&text))
}

/// Shows a page with `man`, which formats it and starts the pager. Returns whether there is a `man`.
fn is_shown(page: &[u8]) -> bool {
    let man = std::process::Command::new("man")
        .args(["-l", "-"])
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut man) = man else {
        return false;
    };
    if let Some(mut stdin) = man.stdin.take() {
        // The reader may leave the pager before the end.
        let _ = stdin.write_all(page);
    }
    man.wait().is_ok()
}

fn text(page: &Command, names: &[String]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(page.clone()).render(&mut text)?;
    let more = MORE.iter().find(|(name, _)| names == [*name]);
    text.extend(more.map_or("", |(_, more)| more).as_bytes());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_record_tells_what_recording_costs() {
        let mut command = Cli::whole();
        command.build();
        let page = command.find_subcommand("record").expect("it exists");
        let text = text(page, &["record".to_owned()]).expect("no I/O error");
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(text.contains(".SH OVERHEAD"), "{text}");
        // Names of recordings apart.
        let others = text.replace("@flight", "").replace("@last", "");
        assert!(!others.contains('@'), "a figure was not filled in: {text}");
        let other = command.find_subcommand("import").expect("it exists");
        let other = super::text(other, &["import".to_owned()]).expect("no I/O error");
        assert!(!String::from_utf8_lossy(&other).contains("OVERHEAD"));
    }
}
