//! The other direction of an explanation: which calls waited for one call, and for how long.

use std::collections::BTreeSet;

use whyslow_analysis::{AnalysisError, interval_of};
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::SyscallRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::attribution::Attribution;
use crate::blame::Blame;
use crate::finding::{ROWS_MAX, before, rows_in};
use crate::sentence::{length, thread};
use crate::slow::has_usual_length;
use crate::walk::walk;
use crate::window_slice::{Call, WindowSlice};

/// Shorter waits are not listed.
const WAIT_MIN_NS: Ns = 100_000;
/// Maximum number of calls that are walked, those with the longest overlap first.
const WALKED_MAX: usize = 1000;

/// A call, and how long it waited.
struct Victim<'m> {
    call: &'m Call,
    waited: Ns,
}

/// The calls of other threads whose wait leads to this call, the one that waited longest first.
pub fn victims(tables: &dyn Tables, id: i64) -> Result<Answer, AnalysisError> {
    let (_, whole) = interval_of(tables, SyscallRow::TABLE.name, id)?;
    let mut answer = Answer {
        query: format!("explain --victims op:{id}"),
        window: Some((whole.begin, whole.end)),
        ..Answer::default()
    };
    let window = affordable(tables, whole);
    if window != whole {
        answer.caveats.push(format!(
            "only the first {} of the call were examined: the rest has too many events",
            length(window.length())
        ));
    }
    let around = Window::new(window.begin - before(tables), window.end + 1);
    let slice = WindowSlice::load(tables, around)?;
    let Some(of) = slice.call(id) else {
        answer
            .tables
            .push(table(format!("calls that waited for op:{id}")));
        answer
            .caveats
            .push("waits unavailable: the thread of the call is unknown".into());
        return Ok(answer);
    };
    if !slice.recorded.sched {
        answer
            .caveats
            .push("waits unavailable: scheduling not recorded (add `--what +sched`)".into());
    }
    let candidates = candidates(&slice, of, window);
    if candidates.len() > WALKED_MAX {
        answer.caveats.push(format!(
            "{} calls with a shorter overlap were not followed",
            candidates.len() - WALKED_MAX
        ));
    }
    let attribution = Attribution::new(&slice);
    let walked = candidates.into_iter().take(WALKED_MAX);
    let mut victims: Vec<Victim<'_>> = walked
        .filter_map(|call| {
            let waited = waited(&slice, &attribution, (call, of), window);
            (waited >= WAIT_MIN_NS).then_some(Victim { call, waited })
        })
        .collect();
    victims.index_sort_by_key(|victim| (std::cmp::Reverse(victim.waited), victim.call.id));
    answer.tables.push(listed(&slice, of, &victims));
    Ok(answer)
}

/// The part of the window whose rows fit into memory.
fn affordable(tables: &dyn Tables, whole: Window) -> Window {
    let rows = rows_in(tables, whole.length() + before(tables));
    let share = (ROWS_MAX / rows.max(1.0)).min(1.0);
    let length = (whole.length() as f64 * share) as Ns;
    if share < 1.0 {
        return Window::new(whole.begin, whole.begin + length.max(1));
    }
    whole
}

/// Calls of other threads at the time of this one, those with the longest overlap first; without
/// those that usually wait for work.
fn candidates<'m>(slice: &'m WindowSlice, of: &Call, window: Window) -> Vec<&'m Call> {
    let overlap = |call: &Call| call.end.min(window.end) - call.begin.max(window.begin);
    let is_candidate = |call: &&Call| {
        let class = call.fd_class.map(|class| slice.text(class));
        let thread_info = slice.thread_table.get(call.utid);
        call.utid != of.utid
            && overlap(call) >= WAIT_MIN_NS
            && has_usual_length(slice.text(call.name), class, None)
            && !thread_info.is_some_and(|thread_info| thread_info.is_tracer)
    };
    let mut found: Vec<&Call> = slice.all_calls().iter().filter(is_candidate).collect();
    found.index_sort_by_key(|call| (std::cmp::Reverse(overlap(call)), call.id));
    found
}

/// How long a call waited for another call: for its thread, or for what that call caused.
fn waited(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    (call, of): (&Call, &Call),
    window: Window,
) -> Ns {
    let range = (call.begin.max(window.begin), call.end.min(window.end));
    if !slice.recorded.sched {
        return 0;
    }
    let walk = walk(slice, attribution, call.utid, range);
    let blame = Blame::new(slice, attribution, call.utid, &walk);
    let intervals = walk.intervals.iter();
    let due = intervals.filter(|interval| blame.is_due_to(&walk, interval, of));
    due.map(|interval| interval.end - interval.begin).sum()
}

fn table(title: String) -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("waited_ns", "waited", Measure::Duration),
        column("comm", "comm", Measure::Text),
        column("pid", "pid", Measure::Count).priority(2),
        column("tid", "tid", Measure::Count),
        column("name", "call", Measure::Text),
        column("path", "path", Measure::Text),
        column("ts_ns", "start", Measure::Time).priority(1),
        column("dur_ns", "duration", Measure::Duration),
        column("id", "id", Measure::Text),
    ];
    AnswerTable::new("victims", &title, columns)
}

fn listed(slice: &WindowSlice, of: &Call, victims: &[Victim<'_>]) -> AnswerTable {
    let total: Ns = victims.iter().map(|victim| victim.waited).sum();
    let info = |call: &Call| slice.thread_table.get(call.utid);
    let processes: BTreeSet<Option<i32>> = victims
        .iter()
        .map(|victim| info(victim.call).and_then(|thread_info| thread_info.upid))
        .collect();
    let attribution = Attribution::new(slice);
    let blame = Blame::new(slice, &attribution, of.utid, &crate::walk::Walk::default());
    let mut table = table(format!(
        "{} calls of {} processes waited for {} by {}, {} in total",
        victims.len(),
        processes.len(),
        slice.text(of.name),
        thread(&blame.actor_of(of.utid)),
        length(total)
    ));
    // The title is shown only beside other tables.
    let mut fact = |name: &str, title: &str, measure, value: i64| {
        let column = AnswerColumn::new(name, title, measure);
        table.facts.push((name.to_owned(), column, value.into()));
    };
    fact("calls", "calls", Measure::Count, victims.len() as i64);
    fact(
        "processes",
        "processes",
        Measure::Count,
        processes.len() as i64,
    );
    fact("total_ns", "waited in total", Measure::Duration, total);
    for Victim { call, waited } in victims {
        let thread_info = info(call);
        let pid = thread_info.and_then(|thread_info| thread_info.pid);
        let tid = thread_info.map(|thread_info| thread_info.tid);
        let path = call.path.map(|path| slice.text(path).to_owned());
        if call.is_open {
            table.cut.push((table.rows.len(), "end"));
        }
        table.rows.push(vec![
            Value::from(*waited),
            slice.thread_table.name(call.utid).into(),
            pid.map(i64::from).into(),
            tid.map(i64::from).into(),
            slice.text(call.name).into(),
            path.into(),
            call.begin.into(),
            (call.end - call.begin).into(),
            format!("op:{}", call.id).into(),
        ]);
    }
    table
}
