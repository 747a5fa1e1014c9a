//! Questions about what happens now that the kernel counts for, so that nothing is recorded.

use whyslow_analysis::{Filter, Kind, Verb};
use whyslow_base::args::{Format, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_sources::live::{self, RecorderChoice, Watched};

use super::{RecordingQuery, Target, filter};

impl RecordingQuery {
    /// Whether the kernel counts for it, and nothing is recorded.
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
                "slow requests are counted in the kernel for this alone: no recorder is followed",
            )
            .hint("whyslow block outliers @live"));
        }
        let shape = &self.args.shape;
        if shape.limit.is_some() || shape.sort.is_some() || !shape.by.is_empty() {
            return Err(Failure::usage("devices are shown in order of number here"));
        }
        let watched = Watched {
            filter: &filter(&self.args)?,
            interval: target.interval,
            count: target.count,
            output: &self.args.output,
        };
        live::watch(&watched, talk)
    }

    /// What a recording has is told by another command.
    pub(super) fn refuse_counting(&self) -> Result<(), Failure> {
        if self.args.output.chosen_format() != Format::Openmetrics {
            return Ok(());
        }
        Err(
            Failure::usage("openmetrics is the form of what is counted live: dns stats @live")
                .hint("figures of a recording: whyslow export openmetrics NAME.wsl"),
        )
    }

    /// Lookups of names, in numbers that the kernel keeps.
    pub(super) fn count_lookups(
        &self,
        choice: RecorderChoice,
        target: &Target,
        talk: &TalkArgs,
    ) -> Result<(), Failure> {
        let command = "whyslow dns stats @live 10 --format openmetrics";
        if !matches!(choice, RecorderChoice::Any | RecorderChoice::New) {
            return Err(Failure::usage(
                "lookups are counted in the kernel for this alone: no recorder is followed",
            )
            .hint(command));
        }
        let shape = &self.args.shape;
        let is_shaped = shape.limit.is_some() || shape.sort.is_some() || !shape.by.is_empty();
        if is_shaped || filter(&self.args)? != Filter::default() {
            return Err(Failure::usage(
                "all lookups are counted, by host, resolver and result: nothing is chosen or sorted",
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
