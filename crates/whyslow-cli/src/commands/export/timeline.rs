use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_export::openmetrics::Metrics;
use whyslow_export::{write_otlp, write_perfetto};

use super::target::{Form, opened, window, write};
use crate::cli::ExportArgs;
use crate::commands::filter::filter_of;

pub(super) fn perfetto(args: &ExportArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let opened = opened(args, talk)?;
    let window = window(args, &opened)?;
    let filter = filter_of(&args.filter)?;
    let written = write(args, Form::Binary, |out| {
        Ok(write_perfetto(&*opened.tables, window, &filter, out)?)
    })?;
    if !talk.quiet {
        whyslow_base::talk::line(&format!(
            "{} time slices, {} wakeups, {} calls, {} requests, {} lock waits, {} samples, {} sampling gaps, {} counters",
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
        whyslow_base::talk::line(&format!(
            "! events were lost in {} ranges of the window, which are marked",
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
        whyslow_base::talk::line(&format!("{operations} operations with {waits} waits"));
    }
    if spans.is_cut {
        whyslow_base::talk::line(
            "! there are more operations (restrict them with --min, -w or a filter)",
        );
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
        whyslow_base::talk::line(
            "! events were lost in the window: whyslow_losses_total counts the losses",
        );
    }
    Ok(())
}
