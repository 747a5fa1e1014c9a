//! Threads: switches, wakeups, creation and exit.

use whyslow_model::event::{Body, WakeupKind};

use super::Fields;
use super::Mapping;
use crate::importers::task_state;

pub(super) static EVENTS: &[Mapping] = &[
    Mapping {
        names: &["sched_switch"],
        fields: &[
            "prev_comm",
            "prev_tid|prev_pid",
            "prev_prio",
            "prev_state",
            "next_comm",
            "next_tid|next_pid",
            "next_prio",
        ],
        body: switch,
    },
    Mapping {
        names: &["sched_waking"],
        fields: WAKEUP,
        body: waking,
    },
    Mapping {
        names: &["sched_wakeup"],
        fields: WAKEUP,
        body: wakeup,
    },
    Mapping {
        names: &["sched_wakeup_new"],
        fields: WAKEUP,
        body: wakeup_new,
    },
    Mapping {
        names: &["sched_migrate_task"],
        fields: &["tid|pid", "dest_cpu"],
        body: migrate,
    },
    Mapping {
        names: &["sched_process_fork"],
        fields: &[
            "parent_comm",
            // The kernel calls the tid `pid`.
            "parent_tid|parent_pid",
            "parent_pid",
            "child_comm",
            "child_tid|child_pid",
            "child_pid",
        ],
        body: fork,
    },
    Mapping {
        names: &["sched_process_exec"],
        fields: &["filename", "tid|pid", "old_tid|old_pid"],
        body: exec,
    },
    Mapping {
        names: &["sched_process_exit"],
        fields: &["comm", "tid|pid"],
        body: exit,
    },
    Mapping {
        names: &["sched_process_free"],
        fields: &["comm", "tid|pid"],
        body: free,
    },
    Mapping {
        names: &["sched_pi_setprio"],
        fields: &["tid|pid", "newprio"],
        body: set_prio,
    },
    Mapping {
        names: &["task_rename"],
        fields: &["newcomm", "tid|pid"],
        body: rename,
    },
];

const WAKEUP: &[&str] = &["comm", "tid|pid", "prio", "target_cpu", "success"];

fn switch<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::SchedSwitch {
        prev_comm: fields.name(0),
        prev_tid: fields.i32(1)?,
        prev_prio: fields.prio(2),
        prev_state: task_state::decode(fields.i64(3)?, fields.facts.kernel),
        next_comm: fields.name(4),
        next_tid: fields.i32(5)?,
        next_prio: fields.prio(6),
    })
}

fn waking<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    woken(fields, WakeupKind::Waking)
}

fn wakeup<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    woken(fields, WakeupKind::Wakeup)
}

fn wakeup_new<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    woken(fields, WakeupKind::WakeupNew)
}

/// Until Linux 4.3 an attempt that woke no thread was recorded as well, with `success` 0; there
/// LTTng recorded the kernel-internal priority for this one event.
fn woken<'a>(fields: &Fields<'_, 'a>, kind: WakeupKind) -> Option<Body<'a>> {
    let success = fields.i64(4);
    if success == Some(0) {
        return Some(Body::Other);
    }
    let prio = fields.i32(2).map(|prio| match success {
        Some(_) if prio >= 0 => prio,
        _ => prio.saturating_add(fields.facts.prio_base),
    });
    Some(Body::SchedWakeup {
        kind,
        comm: fields.name(0),
        tid: fields.i32(1)?,
        prio,
        target_cpu: fields.i32(3),
    })
}

fn migrate<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::SchedMigrate {
        tid: fields.i32(0)?,
        to_cpu: fields.i32(1)?,
    })
}

fn fork<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::Fork {
        parent_comm: fields.name(0),
        parent_tid: fields.i32(1)?,
        parent_pid: fields.i32(2).filter(|_| !fields.facts.pids_are_tids),
        child_comm: fields.name(3),
        child_tid: fields.i32(4)?,
        child_pid: fields.i32(5).filter(|_| !fields.facts.pids_are_tids),
    })
}

fn exec<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::Exec {
        filename: fields.bytes(0)?,
        tid: fields.i32(1),
        old_tid: fields.i32(2),
    })
}

fn exit<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::Exit {
        comm: fields.name(0),
        tid: fields.i32(1)?,
    })
}

fn free<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::Free {
        tid: fields.i32(1)?,
    })
}

fn set_prio<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::PrioChange {
        tid: fields.i32(0)?,
        prio: fields.prio(1)?,
    })
}

fn rename<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::CommChange {
        comm: fields.bytes(0)?,
        tid: fields.i32(1)?,
    })
}
