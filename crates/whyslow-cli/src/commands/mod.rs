//! The commands, one file each.

mod completions;
mod doctor;
mod dumps;
mod explain;
mod export;
mod filter;
mod flame;
#[cfg(feature = "fleet")]
mod fleet;
mod flight;
mod help;
mod import;
mod info;
mod jvm;
mod lake_request;
#[cfg(not(all(feature = "fleet", feature = "load")))]
mod left_out;
mod load;
mod man;
mod mark;
mod now;
mod processes;
mod query;
mod record;
mod schema;
mod server;
mod sql;

use std::process::ExitCode;

use whyslow_base::failure::Failure;

use crate::cli::{Cli, Command};
use query::RecordingQuery;

pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let talk = &cli.talk;
    let done = match cli.command {
        #[cfg(not(feature = "fleet"))]
        Command::Record(args) if args.push.push.is_some() => Err(left_out::fleet("record --push")),
        // The exit code is that of the recorded command.
        Command::Record(args) => {
            return match args.flight.ring {
                Some(ring) => flight::run(&args, ring, talk),
                None => record::run(&args, talk),
            };
        }
        Command::Now(args) => now::run(&args, talk),
        Command::Doctor(args) => doctor::run(&args, talk),
        Command::Mark(args) => mark::run(&args, talk),
        Command::Held(args) => return record::hold(&args),
        Command::Import(args) => import::run(&args, talk),
        Command::Info(args) => info::run(&args, talk),
        Command::Explain(args) => explain::run(&args, talk),
        Command::Export(command) => export::run(&command, talk),
        Command::Query(command) => RecordingQuery::new(*command).run(talk),
        Command::As(command) => command.run(talk),
        Command::Sql(args) => sql::run(&args, talk),
        #[cfg(feature = "fleet")]
        Command::Fleet(command) => fleet::run(&command, talk),
        #[cfg(not(feature = "fleet"))]
        Command::Fleet(_) => Err(left_out::fleet("fleet")),
        #[cfg(not(feature = "fleet"))]
        Command::Serve(args) if args.lake.is_some() => Err(left_out::fleet("serve --lake")),
        Command::Serve(args) => server::run(&args, talk),
        Command::Load(args) => load::run(&args, talk),
        Command::Completions(args) => completions::run(&args),
        Command::Help(args) => help::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Version => help::version(),
    };
    done.map(|()| ExitCode::SUCCESS)
}
