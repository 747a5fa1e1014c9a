//! Counters as text, written by the client library of the format.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use whyslow_model::sort::IndexSort;
use whyslow_model::text::shown;

use super::families::{BUCKETS, MEASURED, Measured};
use super::{BETWEEN, Metrics, Operations, Series};
use crate::ExportError;

/// Media type of the server's response.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) type Labels = Vec<(&'static str, String)>;
/// No exemplars are written.
pub(super) const NONE: Option<&prometheus_client::metrics::exemplar::Exemplar<NoLabelSet, u64>> =
    None;

impl Metrics {
    /// Writes everything added so far.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        let mut registry = Registry::with_prefix("whyslow");
        registry.register_collector(Box::new(Arc::new(self.clone())));
        let mut written = String::new();
        text::encode(&mut written, &registry).expect("writing to a string");
        out.write_all(written.as_bytes())
            .map_err(ExportError::Write)
    }

    fn write_about(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let about = self.about.iter();
        let about: Labels = about.map(|(key, value)| (*key, clean(value))).collect();
        let help = "Source of the metrics";
        let mut info = encoder.encode_descriptor("recording", help, None, MetricType::Info)?;
        info.encode_info(&about)?;
        let begin = self.begin.unwrap_or(self.end);
        let gauges = [
            (
                "recording_begin_timestamp",
                "Start of the counted time",
                begin,
            ),
            (
                "recording_end_timestamp",
                "End of the counted time",
                self.end,
            ),
        ];
        for (name, help, ns) in gauges {
            let kind = MetricType::Gauge;
            let mut gauge = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
            gauge.encode_gauge(&seconds(ns.max(0) as u64))?;
        }
        let (name, help) = ("recording_unseen", "Time in between that was not recorded");
        let kind = MetricType::Counter;
        let mut unseen = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
        unseen.encode_counter(&seconds(self.unseen_ns), NONE)?;
        for (name, help, lost) in [
            (
                "losses",
                "Time ranges with lost events that affect metrics",
                &self.losses,
            ),
            (
                "lost_events",
                "Lost events that affect metrics, if their number is known",
                &self.lost_events,
            ),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (of, count) in lost {
                let labels: Labels = vec![("of", of.clone())];
                family.encode_family(&labels)?.encode_counter(count, NONE)?;
            }
        }
        Ok(())
    }

    fn write_states(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.states.0.is_empty() {
            return Ok(());
        }
        let help = "Thread time by state and command";
        let unit = Some(&Unit::Seconds);
        let mut family =
            encoder.encode_descriptor("thread_state", help, unit, MetricType::Counter)?;
        for (labels, ns) in sorted(&self.states, &["command", "state"]) {
            let mut one = family.encode_family(&labels)?;
            one.encode_counter(&seconds(*ns), NONE)?;
        }
        Ok(())
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.write_about(&mut encoder)?;
        self.write_states(&mut encoder)?;
        for (measured, series) in MEASURED.iter().zip(&self.measured) {
            if !series.0.is_empty() {
                operations(&mut encoder, measured, series)?;
            }
        }
        Ok(())
    }
}

fn operations(
    encoder: &mut DescriptorEncoder<'_>,
    measured: &Measured,
    series: &Series<Operations>,
) -> fmt::Result {
    let names: Vec<&'static str> = measured.labels.iter().map(|(name, _)| *name).collect();
    let series: Vec<(Labels, &Operations)> = sorted(series, &names);
    let (name, help) = (measured.name, measured.help);
    if measured.is_timed {
        let name = format!("{name}_duration");
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor(&name, help, Some(&Unit::Seconds), kind)?;
        for (labels, operations) in &series {
            histogram(&mut family.encode_family(labels)?, operations)?;
        }
    } else {
        let name = format!("{name}_operations");
        counter(encoder, (&name, help, None), &series, &|one| one.count)?;
    }
    if measured.bytes.is_some() {
        let text = format!("{help}: bytes transferred");
        let about = (name, text.as_str(), Some(&Unit::Bytes));
        counter(encoder, about, &series, &|one| one.bytes)?;
    }
    if measured.error.is_some() {
        let (name, text) = (format!("{name}_errors"), format!("{help}: failures"));
        counter(encoder, (&name, &text, None), &series, &|one| one.errors)?;
    }
    Ok(())
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit): (&str, &str, Option<&Unit>),
    series: &[(Labels, &Operations)],
    figure: &dyn Fn(&Operations) -> u64,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for (labels, operations) in series {
        let mut one = family.encode_family(labels)?;
        one.encode_counter(&figure(operations), NONE)?;
    }
    Ok(())
}

fn histogram(encoder: &mut MetricEncoder<'_>, operations: &Operations) -> fmt::Result {
    let ends = BUCKETS.into_iter().chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = ends.zip(operations.buckets).collect();
    let sum = seconds(operations.sum_ns);
    encoder.encode_histogram::<NoLabelSet>(sum, operations.count, &buckets, None)
}

/// Sorted by labels, so that the same values give the same text.
fn sorted<'s, T>(series: &'s Series<T>, names: &[&'static str]) -> Vec<(Labels, &'s T)> {
    let mut all: Vec<(&String, &T)> = series.0.iter().collect();
    all.index_sort_by_key(|(key, _)| *key);
    let labelled = all.into_iter().map(|(key, sums)| {
        let values = key.split(BETWEEN).map(clean);
        (names.iter().copied().zip(values).collect(), sums)
    });
    labelled.collect()
}

pub(super) fn clean(text: &str) -> String {
    shown(text, false).into_owned()
}

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
