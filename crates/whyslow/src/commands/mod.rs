//! One file a command: what it does with what was typed.

mod ask;
mod completions;
mod import;
mod info;
mod man;
mod schema;
mod sql;

use std::process::ExitCode;

use whyslow_analysis::{Kind, Verb};

use crate::cli::{BlockCommand, Cli, Command, FilesCommand, IoCommand, ThreadsCommand};
use crate::failure::Failure;
use ask::Asked;

pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let talk = &cli.talk;
    let done = match cli.command {
        Command::Import(args) => import::run(&args, talk),
        Command::Info(args) => info::run(&args, talk),
        Command::Io(command) => io(command).run(talk),
        Command::Block(command) => block(command).run(talk),
        Command::Files(command) => files(command).run(talk),
        Command::Threads(command) => threads(command).run(talk),
        Command::Sql(args) => sql::run(&args, talk),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Schema(args) => schema::run(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn io(command: IoCommand) -> Asked {
    match command {
        IoCommand::Usage(args) => Asked::new(Kind::Io, Verb::Usage, args),
        IoCommand::Stats(args) => Asked::new(Kind::Io, Verb::Stats, args),
        IoCommand::Hist(args) => Asked::hist(Kind::Io, args),
        IoCommand::Top(args) => Asked::new(Kind::Io, Verb::Top, args),
        IoCommand::Log(args) => Asked::new(Kind::Io, Verb::Log, args),
        IoCommand::Heat(args) => Asked::heat(Kind::Io, args),
        IoCommand::Syscalls(args) => Asked::new(Kind::Io, Verb::Syscalls, args),
    }
}

fn block(command: BlockCommand) -> Asked {
    let plain =
        |verb, args: crate::cli::BlockArgs| Asked::new(Kind::Block, verb, args.ask).versus(args.vs);
    match command {
        BlockCommand::Usage(args) => plain(Verb::Usage, args),
        BlockCommand::Stats(args) => plain(Verb::Stats, args),
        BlockCommand::Hist(args) => Asked::hist(Kind::Block, args.hist).versus(args.vs),
        BlockCommand::Top(args) => plain(Verb::Top, args),
        BlockCommand::Log(args) => plain(Verb::Log, args),
        BlockCommand::Heat(args) => Asked::heat(Kind::Block, args.heat).versus(args.vs),
    }
}

fn files(command: FilesCommand) -> Asked {
    match command {
        FilesCommand::Top(args) => Asked::new(Kind::Files, Verb::Top, args),
        FilesCommand::Log(args) => Asked::new(Kind::Files, Verb::Log, args),
        FilesCommand::Tree(args) => Asked::new(Kind::Files, Verb::Tree, args),
        FilesCommand::Open(args) => Asked::new(Kind::Files, Verb::Open, args.ask).at(args.at),
    }
}

fn threads(command: ThreadsCommand) -> Asked {
    match command {
        ThreadsCommand::List(args) => Asked::new(Kind::Threads, Verb::List, args),
        ThreadsCommand::States(args) => Asked::new(Kind::States, Verb::Usage, args),
    }
}
