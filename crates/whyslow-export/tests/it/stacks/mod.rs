//! Stacks as exported: the same time in every format, and harmless output for hostile names.

mod beside;
mod made;

use std::collections::BTreeMap;
use std::io::Read as _;

use made::HOSTILE;
use proptest::prelude::*;
use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_export::flame::{FlameGraph, ROOT};
use whyslow_export::stacks::{Callsites, StackQuery, Weight, each_sample};
use whyslow_export::{SvgLook, write_collapsed, write_pprof, write_speedscope, write_svg};
use whyslow_model::Window;
use whyslow_model::answer::Value;
use whyslow_store::Tables as _;
use whyslow_test_recordings::Recorded;

const STACKS: &str = "\
1.000000 [0] (tid=10 pid=10 comm=web) sched_switch prev=10 prev_comm=web prev_state=D next=0
1.030000 [0] sched_switch prev=0 prev_state=R next=10 next_comm=web
1.030000 [0] (tid=10 comm=web) stack kind=back since=1.000000000 state=D cpu=0 kernel=io_schedule;submit;read user=load;main
1.040000 [0] (tid=10) sched_switch prev=10 prev_comm=web prev_state=S next=0
1.140000 [0] sched_switch prev=0 prev_state=R next=10 next_comm=web
1.140000 [0] (tid=10 comm=web) stack kind=back since=1.040000000 state=S cpu=0 kernel=futex_wait user=lock;main
1.150000 [0] (tid=10) sched_switch prev=10 prev_comm=web prev_state=S next=11 next_comm=db
1.151000 [0] (tid=11 pid=11 comm=db) sched_switch prev=11 prev_comm=db prev_state=D next=0
1.171000 [0] sched_switch prev=0 prev_state=R next=11 next_comm=db
1.171000 [0] (tid=11 comm=db) stack kind=back since=1.151000000 state=D cpu=0 kernel=io_schedule;submit;fsync user=main
1.172000 [0] (tid=11) sched_switch prev=11 prev_comm=db prev_state=S next=10 next_comm=web
";

fn with_weight(weight: Weight) -> StackQuery {
    StackQuery {
        weight,
        ..StackQuery::default()
    }
}

/// Total time according to `stacks usage`, of all processes.
fn off_cpu_total(recorded: &Recorded) -> i64 {
    let mut query = Query::new(Kind::Stacks, Verb::Usage);
    query.limit = Some(0);
    query.filter.ops = vec!["offcpu".to_owned()];
    let answer = evaluate(&recorded.recording, &query).expect("an answer");
    let table = &answer.tables[0];
    let at = table
        .columns
        .iter()
        .position(|column| column.name == "total_ns");
    let at = at.expect("a total");
    let totals = table.rows.iter().filter_map(|row| match row[at] {
        Value::Int(ns) => Some(ns),
        _ => None,
    });
    totals.sum()
}

fn collapsed(recorded: &Recorded, query: &StackQuery) -> String {
    let mut out = Vec::new();
    write_collapsed(&recorded.recording, query, &mut out).expect("written");
    String::from_utf8(out).expect("text")
}

fn time_of_lines(text: &str) -> i64 {
    let weights = text.lines().map(|line| {
        let (_, weight) = line.rsplit_once(' ').expect("a weight");
        weight.parse::<i64>().expect("a number")
    });
    weights.sum()
}

#[test]
fn every_form_has_the_time_that_the_program_tells() {
    let recorded = Recorded::of_text(STACKS);
    let query = with_weight(Weight::OffCpu);
    assert_eq!(off_cpu_total(&recorded), 150_000_000);
    let graph = FlameGraph::of(&recorded.recording, &query, None).expect("a graph");
    assert_eq!(graph.total_ns(), 150_000_000);
    assert_eq!(graph.samples, 3);
    assert_eq!(time_of_lines(&collapsed(&recorded, &query)), 150_000_000);
    let mut out = Vec::new();
    write_speedscope(&recorded.recording, &query, "x", &mut out).expect("written");
    let document: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let profiles = document["profiles"].as_array().expect("profiles");
    let weights = profiles
        .iter()
        .flat_map(|profile| profile["weights"].as_array().expect("weights"));
    let sum: i64 = weights.filter_map(serde_json::Value::as_i64).sum();
    assert_eq!((profiles.len(), sum), (2, 150_000_000));
}

/// Sums equal those of single samples, whatever counts and wherever the window cuts.
#[test]
fn sums_are_those_of_single_samples() {
    for fixture in [
        "jfr/batches.jfr",
        "jfr/both.jfr",
        "kafka/incident.jfr.gz",
        "perf/clock.data",
    ] {
        let recorded = Recorded::of_fixture(fixture);
        let info = recorded.recording.info();
        let (begin, third) = (info.begin_ns, (info.end_ns - info.begin_ns) / 3);
        for window in [None, Some(Window::new(begin + third, begin + 2 * third))] {
            for weight in [Weight::OffCpu, Weight::Samples, Weight::Time] {
                let query = StackQuery {
                    window,
                    weight,
                    ..StackQuery::default()
                };
                let mut single: BTreeMap<(String, usize), i64> = BTreeMap::new();
                let (mut count, mut total) = (0, 0);
                let callsites = Callsites::read(&recorded.recording).expect("stacks");
                each_sample(&recorded.recording, &query, &mut |sample| {
                    let label = match (sample.pid, sample.tid) {
                        (Some(pid), Some(tid)) if pid != tid => format!(" {pid}/{tid}"),
                        (_, Some(number)) | (Some(number), None) => format!(" {number}"),
                        (None, None) => String::new(),
                    };
                    let depth = callsites.stack(sample.place()).len().max(1);
                    let thread = format!("{}{label}", sample.comm.unwrap_or("?"));
                    *single.entry((thread, depth)).or_default() += sample.dur;
                    count += 1;
                    total += sample.dur;
                })
                .expect("samples");
                let mut summed: BTreeMap<(String, usize), i64> = BTreeMap::new();
                for line in collapsed(&recorded, &query).lines() {
                    let (stack, time) = line.rsplit_once(' ').expect("a weight");
                    let mut frames = stack.split(';');
                    let thread = frames.next().expect("a thread").to_owned();
                    let time: i64 = time.parse().expect("a number");
                    *summed.entry((thread, frames.count())).or_default() += time;
                }
                assert_eq!(summed, single, "{fixture} {query:?}");
                let graph = FlameGraph::of(&recorded.recording, &query, None).expect("a graph");
                assert_eq!(
                    (graph.samples, graph.total_ns()),
                    (count, total),
                    "{fixture} {query:?}"
                );
            }
        }
    }
}

#[test]
fn collapsed_stacks_go_from_the_outermost_caller_inwards() {
    let recorded = Recorded::of_text(STACKS);
    assert_eq!(
        collapsed(&recorded, &with_weight(Weight::OffCpu)),
        "db 11;main;fsync_[k];submit_[k];io_schedule_[k] 20000000\n\
         web 10;main;load;read_[k];submit_[k];io_schedule_[k] 30000000\n\
         web 10;main;lock;futex_wait_[k] 100000000\n"
    );
    let blocked = StackQuery {
        states: vec!["uninterruptible".to_owned()],
        ..with_weight(Weight::OffCpu)
    };
    assert_eq!(time_of_lines(&collapsed(&recorded, &blocked)), 50_000_000);
    assert_eq!(collapsed(&recorded, &with_weight(Weight::Samples)), "");
}

#[test]
fn a_window_cuts_the_time_and_a_baseline_stands_beside() {
    let recorded = Recorded::of_text(STACKS);
    let second = 1_000_000_000;
    let window = |begin_ms: i64, end_ms: i64| StackQuery {
        window: Some(Window::new(
            second + begin_ms * 1_000_000,
            second + end_ms * 1_000_000,
        )),
        ..StackQuery::default()
    };
    let graph = FlameGraph::of(
        &recorded.recording,
        &window(10, 50),
        Some(&window(100, 160)),
    )
    .expect("a graph");
    assert_eq!(graph.total_ns(), 30_000_000);
    assert_eq!(graph.base_total_ns(), 49_000_000);
    let json = graph.to_json();
    assert_eq!(json["total"], 30_000_000);
    assert_eq!(json["base_total"], 49_000_000);
    assert_eq!(json["nodes"][0].as_array().map(Vec::len), Some(6));
}

#[test]
fn thin_nodes_go_and_their_time_stays() {
    let recorded = Recorded::of_text(STACKS);
    let mut graph =
        FlameGraph::of(&recorded.recording, &with_weight(Weight::OffCpu), None).expect("a graph");
    let whole = graph.nodes.len();
    for most in (1..=whole).rev() {
        graph.prune(most);
        assert!(graph.nodes.len() <= most);
        let selves: i64 = graph.nodes.iter().map(|node| node.self_ns).sum();
        assert_eq!((selves, graph.total_ns()), (150_000_000, 150_000_000));
        let is_ordered = |(place, node): (usize, &whyslow_export::flame::Node)| {
            place == ROOT || node.parent < place
        };
        assert!(graph.nodes.iter().enumerate().all(is_ordered));
    }
    assert_eq!(graph.nodes.len(), 1);
}

#[test]
fn the_same_recording_makes_the_same_bytes() {
    let [first, second] = [Recorded::of_text(STACKS), Recorded::of_text(STACKS)].map(|recorded| {
        let mut out = Vec::new();
        let graph = FlameGraph::of(&recorded.recording, &with_weight(Weight::OffCpu), None)
            .expect("a graph");
        write_svg(&graph, &SvgLook::default(), &mut out).expect("written");
        write_pprof(&recorded.recording, &with_weight(Weight::OffCpu), &mut out).expect("written");
        write_speedscope(
            &recorded.recording,
            &with_weight(Weight::OffCpu),
            "x",
            &mut out,
        )
        .expect("written");
        out
    });
    assert!(first == second);
}

#[test]
fn hostile_names_are_text_in_every_form() {
    let recorded = Recorded::of_text(&made::hostile());
    let query = with_weight(Weight::OffCpu);
    let graph = FlameGraph::of(&recorded.recording, &query, None).expect("a graph");
    let look = SvgLook {
        title: HOSTILE.join(""),
        subtitle: HOSTILE.join(""),
        notes: vec![HOSTILE.join("")],
    };
    let mut svg = Vec::new();
    write_svg(&graph, &look, &mut svg).expect("written");
    let svg = String::from_utf8(svg).expect("text");
    assert_eq!(svg.matches("<script>").count(), 1, "our own");
    assert_eq!(svg.matches("<![CDATA[").count(), 1);
    assert!(!svg.contains("<img") && !svg.contains("onload=\""));
    let is_plain = |c: char| c == '\n' || !whyslow_model::text::is_hostile(c);
    assert!(svg.chars().all(is_plain));
    let lines = collapsed(&recorded, &query);
    assert_eq!(lines.lines().count(), HOSTILE.len());
    assert_eq!(time_of_lines(&lines), HOSTILE.len() as i64 * 1_000_000);
    let mut packed = Vec::new();
    write_pprof(&recorded.recording, &query, &mut packed).expect("written");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .expect("gzip");
    assert!(!bytes.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the stacks: the root has all the time, each node that of itself and its callees.
    #[test]
    fn times_add_up(stacks in prop::collection::vec((prop::collection::vec(0_u8..5, 0..12), 1_i64..90), 1..40)) {
        let recorded = Recorded::of_text(&made::trace(&stacks));
        let graph = FlameGraph::of(&recorded.recording, &with_weight(Weight::OffCpu), None).expect("a graph");
        let wanted: i64 = stacks.iter().map(|(_, ms)| ms * 1_000_000).sum();
        prop_assert_eq!(graph.total_ns(), wanted);
        prop_assert_eq!(off_cpu_total(&recorded), wanted);
        for (place, node) in graph.nodes.iter().enumerate() {
            let below = graph.nodes.iter().enumerate().filter(|(at, child)| *at != ROOT && child.parent == place);
            let sum: i64 = below.map(|(_, child)| child.total_ns).sum();
            prop_assert_eq!(node.total_ns, node.self_ns + sum);
        }
        prop_assert_eq!(time_of_lines(&collapsed(&recorded, &with_weight(Weight::OffCpu))), wanted);
    }
}
