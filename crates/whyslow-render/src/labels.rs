//! Labels of the parts of a finding: grade, thread, call, culprit.

use std::fmt::Write as _;

use whyslow_explain::{Activity, Actor, ActorKind, Part};

pub(super) fn grade(part: &Part) -> String {
    format!("{:?}", part.grade)
}

pub(super) fn actor(actor: &Actor) -> String {
    let name = match (actor.pid, actor.tid) {
        (Some(pid), Some(tid)) if pid != tid => format!("{}[{pid}/{tid}]", actor.name),
        (Some(pid), _) => format!("{}[{pid}]", actor.name),
        (None, Some(tid)) => format!("{}[{tid}]", actor.name),
        _ => actor.name.clone(),
    };
    match &actor.host {
        Some(host) => format!("{name} on {host}"),
        None => name,
    }
}

pub(super) fn call(activity: &Activity) -> String {
    match &activity.path {
        Some(path) => format!("{}({path})", activity.call),
        None => activity.call.clone(),
    }
}

/// The culprit of a part, and what it worked on.
pub(super) fn about(part: &Part) -> String {
    let mut words = match part.culprit.kind {
        ActorKind::Own => "itself".to_owned(),
        ActorKind::Unknown => {
            let host = part.culprit.host.as_ref();
            host.map_or_else(String::new, |host| format!("on {host}"))
        }
        _ => actor(&part.culprit),
    };
    if part.root != part.mechanism {
        let _ = write!(words, " ({})", part.root);
    }
    if let Some(object) = &part.object {
        let _ = write!(words, " {} {}", object.kind, object.name);
    }
    if let Some(activity) = &part.activity
        && part.culprit.kind != ActorKind::Own
    {
        let _ = write!(words, " in {}", call(activity));
    }
    words.trim().to_owned()
}
