//! `serve`: HTTP requests are parsed with the definitions of the command line.

use std::ffi::OsString;

use whyslow_analysis::Weight;
use whyslow_base::args::{OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, Zone};
use whyslow_explain::Report;
use whyslow_export::flame::FlameGraph;
use whyslow_export::stacks::Weight as StackWeight;
use whyslow_model::Ns;
use whyslow_model::answer::Answer;
use whyslow_serve::{
    CommandLine, Explained, Explanation, FlameGraphQuery, Opener, ParsedLakeQuery, ParsedQuery,
    ServeArgs,
};
use whyslow_sources::lake::Request;
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use super::explain::{Baseline, Hosts, report};
use super::export::stacks::{graph, weight};
use super::lake_request::request_of;
use super::query::RecordingQuery;
use crate::cli::{Cli, Command, ExplainArgs, ExportCommand, FleetCommand, FleetQuery, SvgArgs};

pub(super) fn run(args: &ServeArgs, talk: &TalkArgs) -> Result<(), Failure> {
    whyslow_serve::run(args, talk, Definitions::boxed())
}

/// The command line of this program.
pub(super) struct Definitions;

impl Definitions {
    pub(super) fn boxed() -> Box<dyn CommandLine> {
        Box::new(Self)
    }
}

impl CommandLine for Definitions {
    fn definition(&self, path: &[&str]) -> Option<clap::Command> {
        Cli::definition(path)
    }

    fn query(&self, words: &[OsString]) -> Result<Option<Box<dyn ParsedQuery>>, clap::Error> {
        Ok(match Cli::read(words)?.command {
            Command::Query(query) => Some(Box::new(RecordingQuery::new(*query))),
            _ => None,
        })
    }

    fn explanation(&self, words: &[OsString]) -> Result<Option<Box<dyn Explanation>>, clap::Error> {
        Ok(match Cli::read(words)?.command {
            Command::Explain(args) => Some(args),
            _ => None,
        })
    }

    fn flame_graph(
        &self,
        words: &[OsString],
    ) -> Result<Option<Box<dyn FlameGraphQuery>>, clap::Error> {
        Ok(match Cli::read(words)?.command {
            Command::Export(command) => match *command {
                ExportCommand::Svg(args) => Some(Box::new(args)),
                _ => None,
            },
            _ => None,
        })
    }

    fn lake_query(
        &self,
        words: &[OsString],
    ) -> Result<Option<Box<dyn ParsedLakeQuery>>, clap::Error> {
        Ok(match Cli::read(words)?.command {
            Command::Fleet(command) => match *command {
                FleetCommand::Query(query) => Some(query),
                _ => None,
            },
            _ => None,
        })
    }
}

impl ParsedQuery for RecordingQuery {
    fn answer(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
        rows_max: usize,
    ) -> Result<(Answer, Zone), Failure> {
        self.answer_from(opened, tables, rows_max)
    }

    fn output(&self) -> &OutputArgs {
        self.output_args()
    }

    fn weight(&self) -> Weight {
        self.heat_weight()
    }
}

impl Explanation for ExplainArgs {
    fn open(
        self: Box<Self>,
        versus: &Opener<'_>,
        across: &Opener<'_>,
    ) -> Result<Box<dyn Explained>, Failure> {
        Ok(Box::new(OpenedExplanation {
            baseline: Baseline::opened_by(&self, versus)?,
            hosts: Hosts::opened_by(&self, across)?,
            args: self,
        }))
    }
}

struct OpenedExplanation {
    args: Box<ExplainArgs>,
    baseline: Option<Baseline>,
    hosts: Hosts,
}

impl Explained for OpenedExplanation {
    fn versus(&self) -> Option<&Opened> {
        self.baseline.as_ref().and_then(Baseline::opened)
    }

    fn across(&self) -> Vec<&Opened> {
        self.hosts.opened().collect()
    }

    fn report(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
        versus: Option<&dyn Tables>,
        across: &[&dyn Tables],
    ) -> Result<(Report, Calendar), Failure> {
        let baseline = self.baseline.as_ref();
        let other = baseline.map(|baseline| baseline.other((opened, tables), versus, &self.args));
        let hosts = self.hosts.with(across.iter().copied());
        report(&self.args, opened, tables, other.transpose()?, &hosts)
    }

    fn output(&self) -> &OutputArgs {
        &self.args.output
    }
}

impl FlameGraphQuery for SvgArgs {
    fn graph(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
    ) -> Result<(FlameGraph, StackWeight), Failure> {
        Ok((graph(self, opened, tables)?, weight(&self.stacks, opened)))
    }
}

impl ParsedLakeQuery for FleetQuery {
    fn window(&self, zone: &Zone) -> Result<Option<(Ns, Ns)>, Failure> {
        self.named_window(zone)
    }

    fn request(&self, lake: String, window: Option<(Ns, Ns)>) -> Request {
        request_of(self, lake, window)
    }

    #[cfg(feature = "fleet")]
    fn answer(&self, stream: &[u8]) -> Result<Answer, Failure> {
        whyslow_sources::lake::answer(stream)
    }

    #[cfg(not(feature = "fleet"))]
    fn answer(&self, _: &[u8]) -> Result<Answer, Failure> {
        Err(super::left_out::fleet("serve --lake"))
    }

    fn output(&self) -> &OutputArgs {
        &self.args.output
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use axum::http::Uri;
    use whyslow_serve::{Query, REFUSED, command_words};

    use super::*;

    fn query(text: &str) -> Query {
        let uri: Uri = format!("/api/v1/table?{text}").parse().expect("an address");
        Query::of(&uri).expect("keys")
    }

    fn command(path: &[&str], text: &str) -> Result<String, String> {
        let recording = (Path::new("/r/web.wsl"), "web.wsl");
        command_words(&Definitions, path, recording, &query(text))
            .map(|command_words| command_words.command)
            .map_err(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn keys_become_flags_of_the_command() {
        let check = |path: &[&str], text: &str, want: &str| {
            assert_eq!(command(path, text).as_deref(), Ok(want), "{text}");
        };
        check(&["io", "top"], "what=io&view=top", "whyslow io top web.wsl");
        check(
            &["io", "top"],
            "min=5ms&errors=1&wide=0&w=%2B1s..%2B2s",
            "whyslow io top web.wsl --min=5ms --errors --window=+1s..+2s",
        );
        check(
            &["io", "stats"],
            "w=1421342317216484041..1421342333821580313&interval=1&count=5",
            "whyslow io stats web.wsl 1 5 --window=1421342317216484041..1421342333821580313",
        );
        check(
            &["io", "log"],
            "w=5..7000",
            "whyslow io log web.wsl --window=5ns..7000ns",
        );
        check(
            &["files", "top"],
            "file=/tmp/it's+*.txt",
            r"whyslow files top web.wsl '--file=/tmp/it'\''s *.txt'",
        );
        check(
            &["io", "top"],
            "comm=%C3%A4%1b",
            r"whyslow io top web.wsl $'--comm=\303\244\033'",
        );
        check(
            &["io", "hist"],
            "freq-resolution=5",
            "whyslow io hist web.wsl --linear=5",
        );
        check(
            &["explain"],
            "slow=open%3E100ms",
            "whyslow explain web.wsl '--slow=open>100ms'",
        );
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let check = |path: &[&str], text: &str, part: &str| {
            let message = command(path, text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        };
        check(&["io", "top"], "pids=5", "unknown parameter `pids`");
        check(&["io", "top"], "output=/etc/passwd", "cannot use `output`");
        check(&["io", "top"], "color=always", "cannot use `color`");
        check(&["io", "top"], "errors=maybe", "use 1 or 0");
        check(&["io", "no-such"], "", "unknown query");
        check(
            &["sql"],
            "query-file=/etc/passwd&tables2",
            "unknown parameter",
        );
    }

    /// Names of the parameters of a path in the description of the API.
    fn described(path: &str) -> BTreeSet<String> {
        let text = whyslow_serve::DESCRIPTION;
        let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let parameters = document["paths"][path]["get"]["parameters"].as_array();
        let parameters = parameters.expect("a list").iter().map(|parameter| {
            let at = parameter["$ref"].as_str().map(|at| at.replace('#', ""));
            let found = at.map_or(Some(parameter), |at| document.pointer(&at));
            found.expect("it exists")["name"]
                .as_str()
                .expect("a name")
                .to_owned()
        });
        parameters.collect()
    }

    /// Keys that the definitions of the command line accept.
    fn taken(paths: &[Vec<&str>]) -> BTreeSet<String> {
        let mut keys = BTreeSet::from(["rec", "w", "format", "digest"].map(str::to_owned));
        for path in paths {
            let command = Definitions.definition(path).expect("it exists");
            for arg in command.get_arguments() {
                let names = arg.get_long().into_iter();
                let names = names.chain(arg.get_all_aliases().unwrap_or_default());
                let names = names.filter(|name| !REFUSED.contains(name));
                keys.extend(names.map(str::to_owned));
            }
        }
        keys
    }

    #[test]
    fn the_description_of_the_api_has_every_flag_and_no_other() {
        let all: Vec<Vec<&str>> = whyslow_analysis::TOPICS
            .iter()
            .flat_map(|topic| topic.views.iter().map(|view| (topic.kind, view.verb)))
            .map(|(kind, verb)| vec![kind.name(), verb.name()])
            .collect();
        let mut keys = taken(&all);
        keys.extend(["what", "view", "interval", "count"].map(str::to_owned));
        assert_eq!(described("/table"), keys);
        assert_eq!(described("/explain"), taken(&[vec!["explain"]]));
        let mut keys = taken(&[vec!["export", "svg"]]);
        keys.remove("format");
        assert_eq!(described("/flame"), keys);
    }
}
