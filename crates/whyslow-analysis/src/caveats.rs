//! Sentences that a reader of an answer must know: what the recording cannot tell, and what is in
//! the numbers that one would not expect.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue, label};
use crate::kinds::{MAPPINGS, PAGES, RECLAIM, SLICES, STACKS, STATES, SYSCALLS};
use crate::pass::{Count, Summing};
use crate::query::{Filter, Kind, Verb};
use crate::scan::{ColumnRef, Ints, Texts};
use crate::spec::Spec;

/// What is missing, and what cannot be told without it.
pub(crate) fn missing(context: &Context<'_>, spec: &Spec) -> Option<String> {
    // Memory usage is told by either table.
    let or_reclaim = spec.table.name == PAGES.table.name && context.has(RECLAIM.table.name);
    let by_samples = context.question.verb == Verb::Timeline && context.has(STACKS.table.name);
    if context.has(spec.table.name) || or_reclaim || by_samples {
        return None;
    }
    // Where it was recorded and there is nothing, nothing of the kind happened.
    let topic = match spec.table.name {
        "syscall" => "syscalls",
        "block_io" => "block",
        "thread_state" | "sched_slice" => "sched",
        "irq" => "irq",
        "net_packet" => "net",
        "reclaim" => "mem",
        "kernel_work" => "fs",
        "work_item" => "work",
        "tcp_connection" => "tcp",
        "signal" => "sched",
        "function_call" => "functions",
        "usdt_event" => "usdt",
        _ => "",
    };
    if context
        .names
        .topics
        .iter()
        .any(|recorded| recorded == topic)
    {
        return None;
    }
    let (events, question) = match spec.table.name {
        "syscall" => ("system calls", "what they did and how long they took"),
        "block_io" => ("block requests", "what the disks did"),
        "thread_state" => ("thread states (sched_switch)", "who ran or waited"),
        "sched_slice" => ("switches of threads (sched_switch)", "who used the CPUs"),
        "irq" => (
            "interrupts (irq_handler_entry, softirq_entry)",
            "what they took",
        ),
        "net_packet" => (
            "packets (net_dev_queue, netif_receive_skb)",
            "what was sent and received",
        ),
        "page_count" => (
            "pages (mm_page_alloc, mm_page_free), page faults or reclaim",
            "who allocated memory",
        ),
        "reclaim" => (
            "reclaim (mm_vmscan_direct_reclaim_begin), or there was none",
            "who waited for memory",
        ),
        "request" | "request_phase" => (
            "requests (whyslow load, logs of a server or a client, or record --what tcp,syscalls)",
            "who asked for what and how long it took",
        ),
        "request_thread" => (
            "threads of requests (record --what syscalls,sched)",
            "who worked for a request",
        ),
        "dns_lookup" => (
            "lookups of names (whyslow record --what dns), or there were none",
            "who looked up which name",
        ),
        "dns_query" => (
            "questions to name servers (whyslow record --what syscalls), or there were none",
            "which name servers answered",
        ),
        "function_call" => (
            "calls of functions (whyslow record --function FILE:NAME), or there were none",
            "who called which function",
        ),
        "usdt_event" => (
            "passes of static probes (whyslow record --usdt FILE:PROVIDER:NAME), or there were none",
            "which were passed",
        ),
        "lock_wait" => (
            "waits for locks (record --what locks, or import a profile of a program), or there were none",
            "who waited for locks",
        ),
        "stack_sample" => ("stacks (record --stacks, --sample)", "where threads waited"),
        "sample_gap" => (
            "times without samples of a sampler that goes round all threads (import a wall-clock profile), or there were none",
            "who waited unseen",
        ),
        "runtime_event" => (
            "what a runtime tells of its threads (import a JFR file)",
            "which locks of the program they waited for",
        ),
        "kernel_work" => (
            "work of file systems (jbd2, writeback, balance_dirty_pages), or there was none",
            "what file systems waited for",
        ),
        "tcp_connection" => (
            "TCP connections (whyslow record --what tcp)",
            "who connected where",
        ),
        "signal" => (
            "signals (whyslow record --what sched)",
            "who stopped or ended processes",
        ),
        "work_item" => (
            "work that the kernel put off (whyslow record --what work)",
            "for whom threads of the kernel work",
        ),
        "counter" => ("counters", "load, memory and the like"),
        "file_life" | "fd_life" => ("files being opened", "which files were used"),
        _ => ("threads", "who there was"),
    };
    Some(format!(
        "cannot tell {question}: the recording holds no {events}"
    ))
}

/// Sentences about an answer that has its tables.
pub(crate) fn about(
    context: &Context<'_>,
    spec: &Spec,
    tables: &[AnswerTable],
) -> Result<Vec<String>, AnalysisError> {
    let mut caveats = context.take_notes();
    let verb = context.question.verb;
    let is_list = spec.kind == Kind::Threads && context.question.by.is_empty();
    if is_list && !context.has(SLICES.table.name) {
        caveats.push("cannot tell CPU times: the recording holds no scheduler events".into());
    }
    if is_list && !context.has(SYSCALLS.table.name) {
        caveats.push("cannot tell I/O of threads: the recording holds no system calls".into());
    }
    let of_waits = matches!(
        (spec.kind, verb),
        (Kind::Sched | Kind::States | Kind::Use, _) | (_, Verb::States | Verb::Timeline)
    );
    if of_waits && !context.has("wakeup") && context.has(STATES.table.name) {
        caveats.push(
            "the recording holds no wakeups (sched_wakeup): of waits for a CPU only those of threads \
             that lost theirs are known, others count as sleep"
                .into(),
        );
    }
    if spec.kind == Kind::Io && verb == Verb::Usage && !context.has("block_io") {
        caveats.push(
            "cannot tell what reached the disks: the recording holds no block requests".into(),
        );
    }
    if context.has(spec.table.name) && !context.has("thread") {
        caveats.push("cannot tell whose they were: the source did not say which thread ran".into());
    }
    caveats.extend(unfinished(spec, tables));
    caveats.extend(tracer(context, spec));
    if matches!(spec.kind, Kind::Io | Kind::Files) && matches!(verb, Verb::Usage | Verb::Tree) {
        caveats.extend(mapped(context)?);
    }
    Ok(caveats)
}

/// Notes it where rows of several sides are taken together: one thing may be two rows.
pub(crate) fn note_sides(context: &Context<'_>, spec: &'static Spec) -> Result<(), AnalysisError> {
    let Some(sides) = spec.hooks.sides else {
        return Ok(());
    };
    let question = context.question;
    let name = sides.key.name();
    let are_apart = match question.verb {
        Verb::Stats | Verb::Hist | Verb::Top => {
            question.by.is_empty() || question.by.iter().any(|by| by == name)
        }
        Verb::Heat | Verb::Differs | Verb::Bursts => false,
        _ => true,
    };
    let is_chosen = question.filter.values.iter().any(|one| one.key == name);
    if are_apart || is_chosen {
        return Ok(());
    }
    let keys = [sides.key];
    let found = context.pass(spec, &keys)?.run(context.tables, &Count)?;
    if found.len() > 1 {
        let names = found.keys().map(|side| label(&keys, side, &context.names));
        context.note((sides.caveat)(&names.collect::<Vec<_>>()));
    }
    Ok(())
}

/// Operations that are counted but have no duration.
fn unfinished(spec: &Spec, tables: &[AnswerTable]) -> Option<String> {
    let table = tables.first()?;
    let place = table
        .columns
        .iter()
        .position(|column| column.name == "unfinished")?;
    let count: i64 = table
        .rows
        .iter()
        .filter_map(|row| match row.get(place) {
            Some(Value::Int(count)) => Some(*count),
            _ => None,
        })
        .sum();
    (count > 0).then(|| {
        format!(
            "{count} {} began before the recording or had not ended with it: they are counted, \
             but their durations are not known",
            spec.rows
        )
    })
}

fn tracer(context: &Context<'_>, spec: &Spec) -> Option<String> {
    let names = context.names.tracer_names();
    let concerned = spec.kind != Kind::Threads && context.question.verb != Verb::Log;
    (concerned && !names.is_empty() && !context.question.filter.no_tracer).then(|| {
        format!(
            "the tracer's own processes are included: {}; --no-tracer leaves them out",
            names.join(", ")
        )
    })
}

/// Bytes moved on objects that are not known, with the reasons.
pub(crate) fn unknown_objects(mut reasons: Vec<(Box<str>, i64)>, bytes: i64) -> Option<String> {
    let unknown: i64 = reasons.iter().map(|(_, bytes)| bytes).sum();
    if unknown == 0 || bytes == 0 {
        return None;
    }
    reasons.index_sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let reasons: Vec<String> = reasons
        .into_iter()
        .map(|(reason, bytes)| format!("{reason} ({bytes} B)"))
        .collect();
    let share = unknown as f64 / bytes as f64 * 100.0;
    Some(format!(
        "{share:.1} % of the bytes were moved on unknown objects: {}",
        reasons.join(", ")
    ))
}

/// Processes that read files through mappings. Code is mapped by everyone and left out: mappings
/// that can be executed, and those of files of which a part can be.
fn mapped(context: &Context<'_>) -> Result<Option<String>, AnalysisError> {
    const NAMED: usize = 3;
    if !context.has(MAPPINGS.table.name) {
        return Ok(None);
    }
    let filter = Filter {
        pids: context.question.filter.pids.clone(),
        comms: context.question.filter.comms.clone(),
        files: context.question.filter.files.clone(),
        no_tracer: context.question.filter.no_tracer,
        ..Filter::default()
    };
    let mut pass = context.pass_of(&MAPPINGS, &[Key::Process, Key::File], &filter)?;
    let mappings = Mappings {
        bytes: pass.projection.need("bytes"),
        prot: pass.projection.need("prot"),
        path: pass.projection.need("path"),
    };
    let mut processes: BTreeMap<KeyValue, i64> = BTreeMap::new();
    for (group, sum) in pass.run(context.tables, &mappings)? {
        if let ([process, KeyValue::Text(_)], false) = (group.as_slice(), sum.executable) {
            *processes.entry(process.clone()).or_default() += sum.bytes;
        }
    }
    processes.retain(|_, bytes| *bytes > 0);
    if processes.is_empty() {
        return Ok(None);
    }
    let mut processes: Vec<_> = processes.into_iter().collect();
    processes.index_sort_by(|(process_a, a), (process_b, b)| {
        b.cmp(a).then_with(|| process_a.cmp(process_b))
    });
    let others = processes.len().saturating_sub(NAMED);
    let named = processes.iter().take(NAMED);
    let mut named: Vec<String> = named
        .map(|(process, bytes)| {
            format!(
                "{} ({bytes} B)",
                Key::Process.label(process, &context.names)
            )
        })
        .collect();
    if others > 0 {
        named.push(format!("{others} more"));
    }
    Ok(Some(format!(
        "files were mapped into memory by {}: what is read and written through mappings is not \
         visible to system calls",
        named.join(", ")
    )))
}

struct Mappings {
    bytes: ColumnRef,
    prot: ColumnRef,
    path: ColumnRef,
}

#[derive(Default)]
struct MappingSum {
    bytes: i64,
    executable: bool,
}

impl Summing for Mappings {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Texts<'b>);
    type Sum = MappingSum;

    fn columns<'b>(
        &self,
        batch: &'b arrow_array::RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let (bytes, prot) = (self.bytes.ints(batch)?, self.prot.ints(batch)?);
        Ok((bytes, prot, self.path.texts(batch)?))
    }

    fn add(&self, sum: &mut MappingSum, (bytes, prot, path): &Self::Columns<'_>, row: u32) {
        const PROT_EXEC: i64 = 4;
        let is_library = |path: &str| {
            path.ends_with(".so") || path.contains(".so.") || path.ends_with("/ld.so.cache")
        };
        sum.bytes += bytes.at(row);
        sum.executable |= prot.get(row).is_some_and(|prot| prot & PROT_EXEC != 0)
            || path.get(row).is_some_and(is_library);
    }

    fn merge(&self, sum: &mut MappingSum, other: MappingSum) {
        sum.bytes += other.bytes;
        sum.executable |= other.executable;
    }
}
