use whyslow_export::openmetrics::Metrics;
use whyslow_export::{write_otlp, write_perfetto};

use super::{Form, opened, window, write};
use crate::cli::{ExportArgs, TalkArgs};
use crate::commands::ask::filter_of;
use crate::failure::Failure;

pub(super) fn perfetto(args: &ExportArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let opened = opened(args, talk)?;
    let window = window(args, &opened)?;
    let filter = filter_of(&args.filter)?;
    let written = write(args, Form::Binary, |out| {
        Ok(write_perfetto(&*opened.tables, window, &filter, out)?)
    })?;
    if !talk.quiet {
        crate::talk::line(&format!(
            "{} time slices, {} wakeups, {} calls, {} requests, {} waits for locks, {} samples, {} times without, {} counts",
            written.slices_of_cpus,
            written.wakeups,
            written.calls,
            written.requests,
            written.lock_waits,
            written.samples,
            written.gaps,
            written.counters,
        ));
    }
    if written.losses > 0 {
        crate::talk::line(&format!(
            "! events were lost in the window ({} ranges): they are marked",
            written.losses
        ));
    }
    Ok(())
}

pub(super) fn otlp(args: &ExportArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let opened = opened(args, talk)?;
    let window = window(args, &opened)?;
    let filter = filter_of(&args.filter)?;
    let spans = write(args, Form::Text, |out| {
        Ok(write_otlp(&*opened.tables, window, &filter, out)?)
    })?;
    if !talk.quiet {
        let (operations, waits) = (spans.operations, spans.waits);
        crate::talk::line(&format!(
            "{operations} operations with {waits} waits in them"
        ));
    }
    if spans.is_cut {
        crate::talk::line("! there were more operations: --min, -w or a filter chooses others");
    }
    Ok(())
}

pub(super) fn openmetrics(args: &ExportArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let opened = opened(args, talk)?;
    let window = window(args, &opened)?;
    let filter = filter_of(&args.filter)?;
    let mut metrics = Metrics::default();
    metrics.add(&*opened.tables, window, &filter)?;
    write(args, Form::Text, |out| Ok(metrics.write(out)?))?;
    if metrics.has_losses() {
        crate::talk::line("! events were lost in the window: whyslow_losses_total has how often");
    }
    Ok(())
}
