//! speedscope's file format: a profile per thread, samples in time order, weights in ns.
//!
//! <https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts>

use std::io::Write;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use whyslow_store::Tables;

use crate::ExportError;
use crate::profile::{Place, Threads};
use crate::stacks::{About, Callsites, StackQuery, each_sample};

#[derive(Default)]
struct OfThread {
    samples: Vec<usize>,
    weights: Vec<i64>,
}

/// Writes the stacks of a query; returns what the reader must know about them.
pub fn write_speedscope(
    tables: &dyn Tables,
    query: &StackQuery,
    name: &str,
    out: &mut dyn Write,
) -> Result<About, ExportError> {
    let callsites = Callsites::read(tables)?;
    let mut threads = Threads::default();
    let mut samples: Vec<OfThread> = Vec::new();
    let mut stacks: Vec<Vec<usize>> = Vec::new();
    let mut known: FxHashMap<Place, usize> = FxHashMap::default();
    let no_stack = callsites.frames.len();
    let about = each_sample(tables, query, &mut |sample| {
        let thread = threads.place(sample.comm, sample.pid, sample.tid);
        if samples.len() <= thread {
            samples.resize_with(thread + 1, OfThread::default);
        }
        let stack = *known.entry(sample.place()).or_insert_with(|| {
            let mut stack = callsites.stack(sample.place());
            if stack.is_empty() {
                stack.push(no_stack);
            }
            stacks.push(stack);
            stacks.len() - 1
        });
        samples[thread].samples.push(stack);
        samples[thread].weights.push(sample.dur);
    })?;
    let mut frames: Vec<Value> = callsites
        .frames
        .iter()
        .map(|frame| match &frame.module {
            Some(module) => json!({"name": frame.name, "file": module}),
            None => json!({"name": frame.name}),
        })
        .collect();
    frames.push(json!({"name": "[no stack]"}));
    let profiles: Vec<Value> = threads
        .all
        .iter()
        .zip(&samples)
        .map(|(thread, of)| {
            let end: i64 = of
                .weights
                .iter()
                .fold(0, |sum, weight| sum.saturating_add(*weight));
            let stacks: Vec<&Vec<usize>> = of.samples.iter().map(|stack| &stacks[*stack]).collect();
            json!({
                "type": "sampled",
                "name": thread.label(),
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": end,
                "samples": stacks,
                "weights": of.weights,
            })
        })
        .collect();
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": concat!("whyslow ", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(about)
}
