//! Formats that [`detect`](crate::detect::detect) recognises, for the table of `import --formats`.

/// A format of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Name in `sources` of the manifest.
    pub name: &'static str,
    /// What writes it.
    pub written_by: &'static str,
    /// How such files are usually called. Formats are detected by content, never by name.
    pub files: &'static str,
    /// A command that writes such a file.
    pub example: &'static str,
}

const fn format(
    name: &'static str,
    written_by: &'static str,
    files: &'static str,
    example: &'static str,
) -> Format {
    Format {
        name,
        written_by,
        files,
        example,
    }
}

/// All formats: kernel traces, profiles, reports, requests.
pub const FORMATS: [Format; 31] = [
    format(
        "spool",
        "whyslow",
        "*.wsl.spool",
        "whyslow record --no-import -o web.wsl",
    ),
    format(
        "ctf",
        "LTTng and other CTF 1.8 and 2 tracers",
        "directory, *.tar.zst, *.zip",
        "lttng create web && lttng enable-event -k --all && lttng start",
    ),
    format(
        "perf",
        "perf",
        "perf.data",
        "perf record -k CLOCK_MONOTONIC -a -g -e 'sched:sched_switch,block:*' -- sleep 10",
    ),
    format(
        "trace-cmd",
        "trace-cmd",
        "trace.dat",
        "trace-cmd record --date -e sched -e block -- sleep 10",
    ),
    format(
        "ftrace",
        "perf script, trace-cmd report, tracefs",
        "*.txt",
        "perf script -i perf.data --ns > web.txt",
    ),
    format(
        "blktrace",
        "blktrace",
        "*.blktrace.CPU",
        "blktrace -d /dev/sda -D trace -w 10",
    ),
    format("blkparse", "blkparse", "*.txt", "blkparse -i sda > sda.txt"),
    format(
        "strace",
        "strace",
        "*.strace",
        "strace -f -ttt -T -y -o calls.strace -p PID",
    ),
    format(
        "snoop",
        "bcc, libbpf-tools, bpftrace tools",
        "*.txt",
        "opensnoop -T > opens.txt",
    ),
    format(
        "jfr",
        "async-profiler, Java Flight Recorder",
        "*.jfr",
        "asprof -e wall -i 10ms --lock 1ms -f kafka.jfr -d 60 PID",
    ),
    format(
        "jstack",
        "jstack, jcmd",
        "*.txt",
        "jcmd PID Thread.print -l > dump.txt",
    ),
    format(
        "py-spy",
        "py-spy dump",
        "*.json",
        "py-spy dump -j -p PID > dump.json",
    ),
    format(
        "collapsed",
        "stackcollapse-*, py-spy, async-profiler",
        "*.txt, *.folded",
        "py-spy record -f raw -o stacks.txt -p PID",
    ),
    format(
        "speedscope",
        "py-spy, rbspy, speedscope",
        "*.json",
        "py-spy record -f speedscope -o stacks.json -p PID",
    ),
    format(
        "chrome",
        "Chrome trace events: viztracer, py-spy",
        "*.json",
        "py-spy record -f chrometrace -o trace.json -p PID",
    ),
    format(
        "rbspy",
        "rbspy",
        "*.gz",
        "rbspy record --raw-file web.rbspy.gz --pid PID",
    ),
    format(
        "stackprof",
        "stackprof",
        "*.dump, *.json",
        "stackprof --json stackprof.dump > stackprof.json",
    ),
    format(
        "ruby-prof",
        "ruby-prof",
        "*.txt, callgrind.out.*",
        "ruby-prof -p graph -f web.txt web.rb",
    ),
    format(
        "pprof",
        "Go, pprof",
        "*.pb.gz",
        "curl -o cpu.pb.gz 'http://localhost:6060/debug/pprof/profile?seconds=10'",
    ),
    format(
        "report",
        "iostat, mpstat, pidstat, sar, sadf, vmstat, top, JmxTool",
        "*.txt, *.json, *.csv",
        "iostat -t -x 1 > iostat.txt",
    ),
    format(
        "access_log",
        "nginx, Apache",
        "access.log",
        "cp /var/log/nginx/access.log .",
    ),
    format(
        "kafka_requests",
        "Kafka brokers (kafka.request.logger)",
        "kafka-request.log",
        "cp /var/log/kafka/kafka-request.log .",
    ),
    format(
        "load",
        "whyslow load",
        "*.ndjson",
        "whyslow load http://localhost/ --for 10s -o requests.ndjson",
    ),
    format(
        "k6",
        "k6",
        "*.json, *.csv",
        "k6 run --out csv=requests.csv script.js",
    ),
    format(
        "vegeta",
        "vegeta",
        "*.json, *.csv",
        "vegeta encode --to csv results.bin > requests.csv",
    ),
    format(
        "hey",
        "hey",
        "*.csv",
        "hey -o csv http://localhost/ > requests.csv",
    ),
    format(
        "oha",
        "oha",
        "*.csv",
        "oha --output-format csv http://localhost/ > requests.csv",
    ),
    format(
        "ab",
        "ApacheBench",
        "*.tsv",
        "ab -n 1000 -g requests.tsv http://localhost/",
    ),
    format(
        "har",
        "browsers, proxies",
        "*.har",
        "\"Save all as HAR\" in the network panel",
    ),
    format(
        "otlp, jaeger, zipkin",
        "OpenTelemetry, Jaeger, Zipkin",
        "*.json",
        "curl -o spans.json 'http://localhost:16686/api/traces?service=web'",
    ),
    format(
        "markers, text",
        "scripts",
        "*.json, *.txt",
        "see docs/imports.md and docs/text-format.md",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::SourceKind;
    use crate::importers::{requests, samplers, sysstat};

    #[test]
    fn each_kind_of_source_has_an_entry() {
        let simple = [
            SourceKind::Ctf,
            SourceKind::Spool,
            SourceKind::Text,
            SourceKind::Strace,
            SourceKind::Jfr,
            SourceKind::Jstack,
            SourceKind::PySpy,
            SourceKind::Ftrace,
            SourceKind::TraceDat,
            SourceKind::Blktrace,
            SourceKind::Blkparse,
            SourceKind::Report(sysstat::Form::Table),
            SourceKind::Snoop,
            SourceKind::Markers,
            SourceKind::Perf,
        ];
        let requests = [
            requests::Form::Load,
            requests::Form::Access,
            requests::Form::Kafka,
            requests::Form::K6Json,
            requests::Form::VegetaJson,
            requests::Form::Hey,
            requests::Form::Oha,
            requests::Form::Ab,
            requests::Form::Har,
            requests::Form::Otlp,
            requests::Form::Jaeger,
            requests::Form::Zipkin,
        ];
        let samples = samplers::Form::ALL.map(SourceKind::Samples);
        let kinds = simple.into_iter().chain(samples);
        for kind in kinds.chain(requests.map(SourceKind::Requests)) {
            let name = kind.name();
            let mut listed = FORMATS.iter().flat_map(|format| format.name.split(", "));
            assert!(listed.any(|listed| listed == name), "{name}");
        }
    }
}
