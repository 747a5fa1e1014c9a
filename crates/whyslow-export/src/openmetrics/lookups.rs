//! DNS lookups counted by the kernel, as OpenMetrics text.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::text::{Labels, NONE, clean, seconds};
use crate::ExportError;

/// Counters of lookups since counting started; the series of each family are in the given order.
#[derive(Debug, Clone, Default)]
pub struct LookupMetrics {
    /// One for each host and resolver.
    pub series: Vec<LookupFigures>,
    /// Lookups that were not counted for lack of memory.
    pub uncounted: u64,
    /// Hosts with their own series, each in its mount namespace.
    pub hosts: u64,
    /// Maximum number of hosts; further ones are counted under `(other)`.
    pub hosts_max: u64,
    /// Files whose functions are probed.
    pub files: u64,
    /// Files that are not probed because there are too many.
    pub files_over: u64,
    /// Files that are not probed because they are 32-bit.
    pub files_narrow: u64,
}

/// Lookups of a host with the same resolver configuration.
#[derive(Debug, Clone, Default)]
pub struct LookupFigures {
    /// Host name; `(other)` for hosts without their own series.
    pub host: String,
    /// Addresses of the configured name servers; empty if unknown.
    pub resolver: String,
    /// Counts by result.
    pub results: Vec<(String, u64)>,
    /// Lookups that took at least the resolver's timeout.
    pub timeouts: u64,
    /// Sum of the latencies in ns.
    pub sum_ns: u64,
    /// Upper bound of each bucket in ns and its count, ascending; the last has no bound.
    pub buckets: Vec<(Option<u64>, u64)>,
}

impl LookupMetrics {
    /// Writes the metric families `whyslow_dns_…` and the end mark `# EOF`.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        let mut registry = Registry::with_prefix("whyslow_dns");
        registry.register_collector(Box::new(Arc::new(self.clone())));
        let mut written = String::new();
        text::encode(&mut written, &registry).expect("writing to a string");
        out.write_all(written.as_bytes())
            .map_err(ExportError::Write)
    }

    fn write_lookups(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "DNS lookups by C library functions, from call to return, by host name and name \
            servers of the resolv.conf in force; resolver is empty if unknown, and host is (other) \
            above the maximum number of hosts";
        let unit = Some(&Unit::Seconds);
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("lookup_duration", help, unit, kind)?;
        for one in &self.series {
            let buckets = one.buckets.iter();
            let end = |end: Option<u64>| end.map_or(f64::INFINITY, seconds);
            let buckets: Vec<(f64, u64)> = buckets
                .map(|(longest, count)| (end(*longest), *count))
                .collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = seconds(one.sum_ns);
            let labels = one.labels();
            let mut encoder = family.encode_family(&labels)?;
            encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        let help = "DNS lookups by result: ok, or the error name of the C library";
        let kind = MetricType::Counter;
        let mut family = encoder.encode_descriptor("lookups", help, None, kind)?;
        for one in &self.series {
            for (result, count) in &one.results {
                let mut labels = one.labels();
                labels.push(("result", clean(result)));
                family.encode_family(&labels)?.encode_counter(count, NONE)?;
            }
        }
        let help = "DNS lookups that took at least the timeout of the resolver in force (timeout of \
            resolv.conf, 5 s by default), whatever their result";
        let mut family = encoder.encode_descriptor("lookup_timeouts", help, None, kind)?;
        for one in &self.series {
            let labels = one.labels();
            let mut one_of = family.encode_family(&labels)?;
            one_of.encode_counter(&one.timeouts, NONE)?;
        }
        Ok(())
    }

    fn write_limits(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "DNS lookups that were not counted for lack of memory";
        let kind = MetricType::Counter;
        let mut uncounted = encoder.encode_descriptor("lookups_uncounted", help, None, kind)?;
        uncounted.encode_counter(&self.uncounted, NONE)?;
        let gauges = [
            (
                "hosts",
                "Hosts with their own series, each in its mount namespace",
                self.hosts,
            ),
            (
                "hosts_max",
                "Maximum number of hosts; further ones are counted as (other)",
                self.hosts_max,
            ),
            (
                "files",
                "Files whose lookup functions are probed",
                self.files,
            ),
            (
                "files_over",
                "Files beyond the maximum, whose lookups are not counted",
                self.files_over,
            ),
            (
                "files_32bit",
                "32-bit files, whose lookups are not counted",
                self.files_narrow,
            ),
        ];
        for (name, help, figure) in gauges {
            let kind = MetricType::Gauge;
            let mut gauge = encoder.encode_descriptor(name, help, None, kind)?;
            gauge.encode_gauge(&figure)?;
        }
        Ok(())
    }
}

impl LookupFigures {
    fn labels(&self) -> Labels {
        vec![
            ("host", clean(&self.host)),
            ("resolver", clean(&self.resolver)),
        ]
    }
}

impl Collector for LookupMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.write_lookups(&mut encoder)?;
        self.write_limits(&mut encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_what_the_format_wants() {
        let metrics = LookupMetrics {
            series: vec![LookupFigures {
                host: "a\"} 7\n# EOF\\\x1b[2J".to_owned(),
                resolver: "10.0.0.1,10.0.0.2".to_owned(),
                results: vec![("EAI_AGAIN".to_owned(), 1), ("ok".to_owned(), 4)],
                timeouts: 1,
                sum_ns: 5_004_000_000,
                buckets: vec![(Some(1_000_000), 4), (Some(5_000_000_000), 0), (None, 1)],
            }],
            hosts: 1,
            hosts_max: 4096,
            ..LookupMetrics::default()
        };
        let mut written = Vec::new();
        metrics.write(&mut written).expect("memory");
        let text = String::from_utf8(written).expect("UTF-8");
        let host = r#"host="a\"} 7\\n# EOF\\\\x1b[2J",resolver="10.0.0.1,10.0.0.2""#;
        let expected = [
            "# TYPE whyslow_dns_lookup_duration_seconds histogram",
            "# UNIT whyslow_dns_lookup_duration_seconds seconds",
            &format!("whyslow_dns_lookup_duration_seconds_sum{{{host}}} 5.004"),
            &format!("whyslow_dns_lookup_duration_seconds_count{{{host}}} 5"),
            &format!("whyslow_dns_lookup_duration_seconds_bucket{{le=\"0.001\",{host}}} 4"),
            &format!("whyslow_dns_lookup_duration_seconds_bucket{{le=\"5.0\",{host}}} 4"),
            &format!("whyslow_dns_lookup_duration_seconds_bucket{{le=\"+Inf\",{host}}} 5"),
            &format!("whyslow_dns_lookups_total{{{host},result=\"EAI_AGAIN\"}} 1"),
            &format!("whyslow_dns_lookups_total{{{host},result=\"ok\"}} 4"),
            &format!("whyslow_dns_lookup_timeouts_total{{{host}}} 1"),
            "whyslow_dns_lookups_uncounted_total 0",
            "whyslow_dns_hosts 1",
            "whyslow_dns_hosts_max 4096",
        ];
        for line in expected {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("\n# EOF").count(), 1, "{text}");
        assert!(
            text.ends_with("\n# EOF\n") && !text.contains('\x1b'),
            "{text}"
        );
    }
}
