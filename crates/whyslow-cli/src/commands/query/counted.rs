//! Live queries that the kernel aggregates, so that nothing is recorded.

use whyslow_analysis::{Filter, Kind, Verb};
use whyslow_base::args::{Format, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_sources::live::{self, RecorderChoice, Watched};

use super::{RecordingQuery, Target, filter};

impl RecordingQuery {
    /// Whether the kernel aggregates the live query, so that nothing is recorded.
    pub(super) fn is_counted_live(&self) -> bool {
        self.kind == Kind::Block && self.verb == Verb::Outliers
    }

    pub(super) fn watch(
        &self,
        choice: RecorderChoice,
        target: &Target,
        talk: &TalkArgs,
    ) -> Result<(), Failure> {
        if !matches!(choice, RecorderChoice::Any | RecorderChoice::New) {
            return Err(Failure::usage(
                "cannot follow a recorder with `block outliers`: it uses its own counters in the kernel",
            )
            .hint("count without a recorder: whyslow block outliers @live"));
        }
        let shape = &self.args.shape;
        if shape.limit.is_some() || shape.sort.is_some() || !shape.by.is_empty() {
            return Err(Failure::usage(
                "cannot limit, sort or group the rows of `block outliers @live`",
            )
            .hint("remove -n, --sort and --by"));
        }
        let watched = Watched {
            filter: &filter(&self.args)?,
            interval: target.interval,
            count: target.count,
            output: &self.args.output,
        };
        live::watch(&watched, talk)
    }

    /// A recording has OpenMetrics counters only through `export`.
    pub(super) fn refuse_counting(&self) -> Result<(), Failure> {
        if self.args.output.chosen_format() != Format::Openmetrics {
            return Ok(());
        }
        Err(Failure::usage(
            "cannot write openmetrics of a recording: this query counts on @live only",
        )
        .hint("export the recording: whyslow export openmetrics NAME.wsl"))
    }

    /// DNS lookups, as counters that the kernel keeps.
    pub(super) fn count_lookups(
        &self,
        choice: RecorderChoice,
        target: &Target,
        talk: &TalkArgs,
    ) -> Result<(), Failure> {
        let command = "whyslow dns stats @live 10 --format openmetrics";
        if !matches!(choice, RecorderChoice::Any | RecorderChoice::New) {
            return Err(Failure::usage(
                "cannot follow a recorder with `dns stats`: it uses its own counters in the kernel",
            )
            .hint(command));
        }
        let shape = &self.args.shape;
        let is_shaped = shape.limit.is_some() || shape.sort.is_some() || !shape.by.is_empty();
        if is_shaped || filter(&self.args)? != Filter::default() {
            return Err(Failure::usage(
                "cannot filter or sort `dns stats @live`: it counts all lookups by host, resolver and result",
            )
            .hint(command));
        }
        live::count_lookups(
            (target.interval, target.count),
            self.args.output.output.as_deref(),
            talk,
        )
    }
}
