//! Threads of several processes, some of which are covered by samples of a profile.

use std::collections::BTreeMap;

use whyslow_analysis::Filter;
use whyslow_export::flame::FlameGraph;
use whyslow_export::stacks::{Mark, StackQuery, Weight, each_sample};
use whyslow_model::tables::{Collected, MetadataRow, SampleGapRow, StackSampleRow};
use whyslow_model::{Symbols, Window};
use whyslow_store::{MemoryTables, RecordingInfo};

const MS: i64 = 1_000_000;

#[derive(Default)]
struct Made {
    symbols: Symbols,
    rows: Collected,
}

impl Made {
    /// With samples of a profile of processes 1 and 2, which have one thread each, 11 and 21.
    fn profiled() -> Self {
        let mut made = Self::default();
        let fact = MetadataRow {
            id: 0,
            source: None,
            key: made.symbols.intern("sample_interval_ns"),
            value: made.symbols.intern("10000000"),
        };
        made.rows.metadata.push(fact);
        made.sample((1, 11), (0, 100), None);
        made.sample((2, 21), (0, 100), None);
        made
    }

    fn sample(&mut self, (pid, tid): (i32, i32), (begin, end): (i64, i64), sampler: Option<&str>) {
        let row = StackSampleRow {
            id: self.rows.stack_sample.len() as i64,
            ts: begin * MS,
            dur: Some((end - begin) * MS),
            ts_end: Some(end * MS),
            kind: self.symbols.intern("wall"),
            state: Some(self.symbols.intern("sleeping")),
            utid: Some(tid),
            upid: Some(pid),
            tid: Some(tid),
            pid: Some(pid),
            comm: Some(self.symbols.intern(&format!("t{tid}"))),
            credits: Some(1),
            is_assumed: Some(false),
            sampler: sampler.map(|sampler| self.symbols.intern(sampler)),
            is_cut: Some(false),
            ..StackSampleRow::default()
        };
        self.rows.stack_sample.push(row);
    }

    fn stop(&mut self, pid: Option<i32>, time: (i64, i64)) {
        self.gap("process_stopped", (pid, None), time);
    }

    /// A sampling gap after a sample in stack 7, before one in stack 8.
    fn wait(&mut self, (pid, tid): (i32, i32), time: (i64, i64)) {
        self.gap("kernel_wait", (Some(pid), Some(tid)), time);
    }

    fn gap(
        &mut self,
        class: &str,
        (pid, tid): (Option<i32>, Option<i32>),
        (begin, end): (i64, i64),
    ) {
        let row = SampleGapRow {
            id: self.rows.sample_gap.len() as i64,
            ts: begin * MS,
            dur: Some((end - begin) * MS),
            ts_end: Some(end * MS),
            class: self.symbols.intern(class),
            utid: tid,
            upid: pid,
            tid,
            pid,
            comm: tid.map(|tid| self.symbols.intern(&format!("t{tid}"))),
            callsite_id: tid.map(|_| 8),
            before_callsite_id: tid.map(|_| 7),
            ..SampleGapRow::default()
        };
        self.rows.sample_gap.push(row);
    }

    fn tables(&self) -> MemoryTables {
        let info = RecordingInfo {
            end_ns: 1_000 * MS,
            ..RecordingInfo::default()
        };
        MemoryTables::new(&self.rows, &self.symbols, info)
    }

    /// Milliseconds by thread, and whether it was stopped.
    fn weights(&self, query: &StackQuery) -> BTreeMap<(i64, bool), i64> {
        let tables = self.tables();
        let mut actual = BTreeMap::new();
        let mut total = 0;
        each_sample(&tables, query, &mut |sample| {
            let is_stopped = sample.mark == Some(Mark::Stopped);
            *actual
                .entry((sample.tid.unwrap_or(0), is_stopped))
                .or_default() += sample.dur / MS;
            total += sample.dur;
        })
        .expect("samples");
        let graph = FlameGraph::of(&tables, query, None).expect("a graph");
        assert_eq!(graph.total_ns(), total);
        actual
    }
}

fn with_weight(weight: Weight) -> StackQuery {
    StackQuery {
        weight,
        ..StackQuery::default()
    }
}

#[test]
fn what_the_recorder_saw_counts_of_threads_that_no_profile_has() {
    let mut made = Made::profiled();
    made.sample((1, 11), (0, 100), Some("recorder"));
    made.sample((3, 31), (20, 100), Some("recorder"));
    for weight in [Weight::Time, Weight::OffCpu] {
        let actual = made.weights(&with_weight(weight));
        let wanted = [((11, false), 100), ((21, false), 100), ((31, false), 80)];
        assert_eq!(actual, BTreeMap::from(wanted), "{weight:?}");
    }
}

#[test]
fn a_stop_is_of_all_threads_of_its_process_whatever_is_asked_for() {
    let mut made = Made::profiled();
    made.stop(Some(1), (40, 70));
    let stopped = [((11, false), 70), ((11, true), 30)];
    let actual = made.weights(&with_weight(Weight::Time));
    let both = stopped.into_iter().chain([((21, false), 100)]);
    assert_eq!(actual, both.collect());
    let of_thread = StackQuery {
        filter: Filter {
            threads: vec!["t11".to_owned()],
            ..Filter::default()
        },
        ..with_weight(Weight::Time)
    };
    assert_eq!(made.weights(&of_thread), BTreeMap::from(stopped));
}

#[test]
fn a_stop_of_a_process_that_nobody_knows_is_of_all() {
    let mut made = Made::profiled();
    made.stop(None, (40, 70));
    made.stop(Some(2), (60, 80));
    let actual = made.weights(&with_weight(Weight::Time));
    let wanted = [
        ((11, false), 70),
        ((11, true), 30),
        ((21, false), 60),
        ((21, true), 40),
    ];
    assert_eq!(actual, BTreeMap::from(wanted));
}

/// With a sampling interval of 10 ms, the wait started 5 ms after the previous sample on average.
#[test]
fn half_an_interval_before_a_wait_is_of_what_was_before_it() {
    let mut made = Made::profiled();
    made.wait((1, 11), (100, 300));
    let tables = made.tables();
    let waited = |query: &StackQuery| {
        let mut waited = Vec::new();
        each_sample(&tables, query, &mut |sample| {
            if sample.tid == Some(11) && sample.callsite.is_some() {
                let begin = sample.begin / MS;
                waited.push((begin, sample.dur / MS, sample.callsite, sample.mark));
            }
        })
        .expect("samples");
        waited
    };
    let wait = (105, 195, Some(8), Some(Mark::Blocked));
    let both = vec![(100, 5, Some(7), None), wait];
    assert_eq!(waited(&with_weight(Weight::Time)), both);
    // Before the wait, it may have been on a CPU.
    assert_eq!(waited(&with_weight(Weight::OffCpu)), [wait]);
    let within = StackQuery {
        window: Some(Window::new(102 * MS, 110 * MS)),
        ..with_weight(Weight::Time)
    };
    let cut = vec![
        (102, 3, Some(7), None),
        (105, 5, Some(8), Some(Mark::Blocked)),
    ];
    assert_eq!(waited(&within), cut);
}
