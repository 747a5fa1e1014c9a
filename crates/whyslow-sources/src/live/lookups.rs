//! `dns stats @live --format openmetrics`: DNS lookups as counters and histograms, for monitoring.
//! The kernel counts, so that this can run for weeks.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use whyslow_analysis::Resolver;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::{interrupt, talk};
use whyslow_export::openmetrics::{LookupFigures, LookupMetrics};
use whyslow_model::Ns;
use whyslow_record::{
    LOOKUP_EDGES, LookupNews, LookupOptions, LookupPeriod, LookupReady, LookupSeries, Resolving,
};

const INTERVAL: Ns = 10_000_000_000;
/// All processes are checked every interval, to find their resolvers.
const INTERVAL_MIN: Ns = 100_000_000;

/// Writes all metrics every interval: to standard output, or replacing the file.
pub fn count_lookups(
    (interval, count): (Option<Ns>, Option<i64>),
    file: Option<&Path>,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let has_interval = interval.is_some();
    let interval = interval.unwrap_or(INTERVAL);
    if interval < INTERVAL_MIN {
        return Err(
            Failure::usage("cannot count lookups in intervals shorter than 100 ms")
                .hint("use a longer interval: whyslow dns stats @live 10 --format openmetrics"),
        );
    }
    let count = match count {
        // As with all queries: without an interval there is one answer.
        None if !has_interval => Some(1),
        count => count.map(|count| count.max(1) as u64),
    };
    let options = LookupOptions {
        interval: Duration::from_nanos(interval.max(0) as u64),
        count,
        resolving,
    };
    let stop = interrupt::flag()?;
    let mut failure = None;
    let ready = |ready: &LookupReady<'_>| {
        for off in ready.off {
            talk::line(&format!(
                "note: unavailable: {} ({})",
                off.provides, off.reason
            ));
        }
        if !talk.quiet {
            talk::line(&head(&options, ready.files, file));
        }
    };
    let each = |news: LookupNews<'_>| {
        let written = match news {
            LookupNews::Period(period) => write(period, file),
            LookupNews::Nothing => Ok(()),
        };
        if let Err(error) = written {
            failure.get_or_insert(error);
            return ControlFlow::Break(());
        }
        if stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    whyslow_record::watch_lookups(&options, ready, each)?;
    failure.map_or(Ok(()), Err)
}

fn head(options: &LookupOptions, files: usize, file: Option<&Path>) -> String {
    let end = match options.count {
        Some(count) => format!("{count} times; press Ctrl-C to stop early"),
        None => "press Ctrl-C to stop".to_owned(),
    };
    let place = file.map_or_else(String::new, |file| {
        format!(
            " to `{}`",
            whyslow_model::text::shown(&file.to_string_lossy(), false)
        )
    });
    format!(
        "counting DNS lookups in {files} libraries and programs; writing metrics every {}{place}; {end}",
        whyslow_render::duration(options.interval),
    )
}

/// Parses a `resolv.conf`.
fn resolving(text: &str) -> Resolving {
    let resolver = Resolver::of(0, text);
    let (seconds, _) = resolver.patience();
    Resolving {
        servers: resolver.servers().join(","),
        // The minimum timeout of the C library is a second.
        patience: Duration::from_secs(seconds.max(1) as u64),
    }
}

fn write(period: &LookupPeriod<'_>, file: Option<&Path>) -> Result<(), Failure> {
    let metrics = LookupMetrics {
        series: period.series.iter().map(|series| figures(series)).collect(),
        uncounted: period.uncounted,
        hosts: period.hosts as u64,
        hosts_max: period.hosts_max as u64,
        files: period.files as u64,
        files_over: period.files_over,
        files_narrow: period.narrow,
    };
    let mut text = Vec::new();
    metrics.write(&mut text)?;
    match file {
        Some(file) => whyslow_render::to_file(file, |out| {
            std::io::Write::write_all(out, &text).map_err(|error| Failure::writing(file, error))
        }),
        None => whyslow_render::to_stdout(&String::from_utf8_lossy(&text)),
    }
}

fn figures(series: &LookupSeries) -> LookupFigures {
    let ends = LOOKUP_EDGES.iter().map(|edge| Some(*edge)).chain([None]);
    LookupFigures {
        host: series.host.clone(),
        resolver: series.resolver.clone(),
        results: series.results().into_iter().collect(),
        timeouts: series.timeouts(),
        sum_ns: series.sum_ns(),
        buckets: ends.zip(series.buckets().iter().copied()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_is_what_its_file_says() {
        let check = |text: &str, servers: &str, seconds: u64| {
            let expected = Resolving {
                servers: servers.to_owned(),
                patience: Duration::from_secs(seconds),
            };
            assert_eq!(resolving(text), expected, "{text}");
        };
        check("", "127.0.0.1", 5);
        check("nameserver 10.0.0.1\nnameserver ::1\n", "10.0.0.1,::1", 5);
        check("options timeout:2\nnameserver 10.0.0.1\n", "10.0.0.1", 2);
        check("options timeout:0\n", "127.0.0.1", 1);
    }
}
