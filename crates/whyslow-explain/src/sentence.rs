//! The sentences of a finding. Each is built from the figures of the finding and the verb that its
//! grade allows, and from nothing else.

mod clause;
mod scene;

use whyslow_model::Ns;
use whyslow_model::text::duration;

use crate::report::{Activity, Actor, ActorKind, Baseline, Grade, Hop, Part, Target, Thing};
pub(crate) use clause::Clause;
pub(crate) use scene::clause;

/// A duration with three significant digits and the unit that suits it.
pub(crate) fn length(ns: Ns) -> String {
    duration(ns)
}

/// A time window in the form that commands accept.
pub(crate) fn window(begin: Ns, end: Ns) -> String {
    let seconds = |ns: Ns| {
        format!(
            "{}.{:09}",
            ns.div_euclid(1_000_000_000),
            ns.rem_euclid(1_000_000_000)
        )
    };
    format!("{}..{}", seconds(begin), seconds(end))
}

pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        share if share > 99.0 && share < 100.0 => format!("{share:.1} %"),
        share => format!("{share:.0} %"),
    }
}

pub(crate) fn thread(actor: &Actor) -> String {
    match (actor.pid, actor.tid) {
        (Some(pid), Some(tid)) if pid != tid => format!("{}[{pid}/{tid}]", actor.name),
        (Some(pid), _) => format!("{}[{pid}]", actor.name),
        (None, Some(tid)) => format!("{}[{tid}]", actor.name),
        _ => actor.name.clone(),
    }
}

pub(crate) fn activity(activity: &Activity) -> String {
    match &activity.path {
        Some(path) => format!("{}({path})", activity.call),
        None => activity.call.clone(),
    }
}

/// Whether a mechanism leads to another thread first.
pub(crate) fn leads_on(mechanism: &str) -> bool {
    mechanism.starts_with("lock_")
        || matches!(
            mechanism,
            "local_ipc"
                | "pipe_wait"
                | "child_wait"
                | "kernel_wait"
                | "fuse_wait"
                | "runtime_pause"
                | "woken_by"
        )
}

/// The object of the first wait of a chain if that is what the mechanism of the part names: the
/// object of a part belongs to its root, such as the CPU that the holder of a lock was queued for.
pub(crate) fn first_object<'f>(part: &'f Part, chain: &'f [Hop]) -> Option<&'f Thing> {
    match chain {
        [first, _, ..] if first.mechanism == part.mechanism => first.object.as_ref(),
        _ => part.object.as_ref().filter(|_| part.root == part.mechanism),
    }
}

/// A part for the clause of its first wait, with the object of that.
pub(crate) fn of_first(part: &Part, chain: &[Hop]) -> Part {
    let is_first = leads_on(&part.mechanism) && part.root != part.mechanism;
    match first_object(part, chain) {
        object if is_first => Part {
            object: object.cloned(),
            ..part.clone()
        },
        _ => part.clone(),
    }
}

/// The usual duration: ` (normally 304 us, n = 31)`, with the result unless it is success.
pub(crate) fn usually(baseline: &Baseline) -> String {
    let result = match baseline.result.as_str() {
        "" | "ok" | "2xx" => String::new(),
        result => format!(" with {result}"),
    };
    let (median, count) = (length(baseline.median_ns), baseline.count);
    format!(" (normally {median}{result}, n = {count})")
}

/// What took how long: the start of the verdict.
pub(crate) fn head(target: &Target, baseline: Option<&Baseline>) -> String {
    let took = length(target.end_ns - target.begin_ns);
    let usually = baseline.map_or_else(String::new, usually);
    let (what, victim) = (&target.what, thread(&target.actor));
    if target.kind == "thread" {
        return format!("{what} of {victim} ({took})");
    }
    format!("{what} by {victim} took {took}{usually}")
}

/// The verdict of a finding.
pub(crate) fn verdict(
    target: &Target,
    baseline: Option<&Baseline>,
    named: Option<(&Part, Ns, f64, Grade)>,
    chain: &[Hop],
    is_usual: bool,
) -> String {
    let head = head(target, baseline);
    if is_usual {
        return format!("{head}: not slower than usual");
    }
    let Some((part, sum, share, grade)) = named else {
        return format!("{head}: no single cause dominates");
    };
    let part = &of_first(part, chain);
    let victim = thread(&target.actor);
    let direct = chain.get(1).map(|hop| &hop.actor);
    let is_process = part.culprit.kind == ActorKind::Process;
    let cause = match direct {
        Some(direct)
            if is_process && leads_on(&part.mechanism) && direct.tid != part.culprit.tid =>
        {
            scene::through(part, &victim, direct)
        }
        _ => clause(part, &victim),
    };
    format!(
        "{head}: {} of it ({}) {}",
        length(sum),
        percent(share),
        cause.with_grade(grade)
    )
}
