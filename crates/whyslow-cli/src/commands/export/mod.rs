//! `export`: a recording, or a window of it, for other tools.

mod report;
pub(super) mod snapshot;
pub(super) mod stacks;
pub(super) mod target;
mod timeline;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;

use crate::cli::ExportCommand;

pub(super) fn run(command: &ExportCommand, talk: &TalkArgs) -> Result<(), Failure> {
    match command {
        ExportCommand::Snapshot(args) => snapshot::run(args, talk),
        ExportCommand::Html(args) => report::html(args, talk),
        ExportCommand::Md(args) => report::markdown(args, talk),
        ExportCommand::Svg(args) => stacks::svg(args, talk),
        ExportCommand::Otlp(args) => timeline::otlp(args, talk),
        ExportCommand::Perfetto(args) => timeline::perfetto(args, talk),
        ExportCommand::Openmetrics(args) => timeline::openmetrics(args, talk),
        ExportCommand::Collapsed(args) => stacks::collapsed(args, talk),
        ExportCommand::Speedscope(args) => stacks::speedscope(args, talk),
        ExportCommand::Firefox(args) => stacks::firefox(args, talk),
        ExportCommand::Pprof(args) => stacks::pprof(args, talk),
    }
}
