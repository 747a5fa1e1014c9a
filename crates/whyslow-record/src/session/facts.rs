//! Records about the recording itself.

use std::collections::BTreeSet;

use std::time::Duration;

use whyslow_model::recorder::{RECORDER_CPU, RECORDER_ELAPSED};
use whyslow_model::spool::{ELSEWHERE, Encoder, Kind};

use super::Progress;
use crate::clock;
use crate::marks::Mark;
use crate::options::Options;
use crate::probes::What;
use crate::programs::{Off, STACKS, StandIn, Topic};

/// Names of the topics that are recorded completely.
pub(super) fn complete_topics(options: &Options, off: &[Off]) -> String {
    let is_whole = |topic: &&Topic| !off.iter().any(|off| off.topic == Some(**topic));
    let names = options
        .topics
        .iter()
        .filter(is_whole)
        .map(|topic| topic.name());
    let takes_stacks =
        options.stack_min.is_some() || options.sample_hz > 0 || options.wall.is_some();
    let stacks = takes_stacks && !off.iter().any(|off| off.program == STACKS);
    let names = names.chain(stacks.then_some("stacks"));
    let mut probes = options.probes.iter();
    let has_functions = probes.any(|probe| matches!(probe.what, What::Function { .. }));
    let mut probes = options.probes.iter();
    let has_usdt = probes.any(|probe| matches!(probe.what, What::Usdt { .. }));
    let names = names.chain(has_functions.then_some("functions"));
    let names = names.chain(has_usdt.then_some("usdt"));
    names.collect::<Vec<_>>().join(",")
}

/// BPF programs that do not run.
pub(super) fn write_off_programs(off: &[Off], encoder: &mut Encoder) {
    for off in off {
        let text = format!("{}: {} ({})", off.program, off.reason, off.provides);
        fact(encoder, "off", &text);
    }
    let topics: BTreeSet<Topic> = off.iter().filter_map(|off| off.topic).collect();
    if !topics.is_empty() {
        // Without rows of these, it is not known whether anything happened.
        let names: Vec<&str> = topics.into_iter().map(Topic::name).collect();
        fact(encoder, "topics_partial", &names.join(","));
    }
}

/// A mark that a user added.
pub(super) fn write_mark(mark: &Mark, encoder: &mut Encoder) {
    encoder
        .begin_on(Kind::Mark, mark.ts, (mark.pid, mark.pid), (0, ELSEWHERE))
        .text(mark.text.as_bytes())
        .end();
}

pub(super) fn fact(encoder: &mut Encoder, name: &str, value: &str) {
    encoder
        .begin(Kind::Fact, clock::monotonic(), (0, 0))
        .text(name.as_bytes())
        .text(value.as_bytes())
        .end();
}

/// What the recorder itself used, from its start to the end of the recording.
pub(super) fn write_cost(progress: &Progress, encoder: &mut Encoder) {
    let mut ns = |name, length: Duration| fact(encoder, name, &length.as_nanos().to_string());
    ns(RECORDER_CPU, progress.own_cpu);
    ns(RECORDER_ELAPSED, progress.elapsed);
}

/// Program forms that run instead of the preferred ones.
pub(super) fn write_stand_ins(stand_ins: &[StandIn], encoder: &mut Encoder) {
    for stand_in in stand_ins {
        let text = format!("{} for {}", stand_in.form, stand_in.program);
        fact(encoder, "stand_in", &text);
    }
}
