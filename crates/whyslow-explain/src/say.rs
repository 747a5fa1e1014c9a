//! What is said of a story in words. Each sentence is made from the figures of the story and the
//! verb that its grade allows, and from nothing else.

use whyslow_model::Ns;

use crate::report::{Activity, Actor, ActorKind, Baseline, Grade, Hop, Part, Target, Thing};

/// A length of time for people: three digits.
pub(crate) fn length(ns: Ns) -> String {
    let value = ns as f64;
    let (value, unit) = match ns.abs() {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    let digits = match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A stretch of time as commands take it.
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

pub(crate) fn actor(actor: &Actor) -> String {
    match (actor.kind, actor.pid, actor.tid) {
        (ActorKind::Own, ..) => "itself".into(),
        (ActorKind::Process | ActorKind::Kernel, Some(pid), Some(tid)) if pid != tid => {
            format!("{}[{pid}/{tid}]", actor.name)
        }
        (ActorKind::Process | ActorKind::Kernel, Some(pid), _) => {
            format!("{}[{pid}]", actor.name)
        }
        (ActorKind::Process | ActorKind::Kernel, None, Some(tid)) => {
            format!("{}[{tid}]", actor.name)
        }
        (ActorKind::Device, ..) => format!("device {}", actor.name),
        (ActorKind::Interrupt, ..) => format!("interrupts ({})", actor.name),
        (ActorKind::Unknown, ..) => "somebody unknown".into(),
        _ => actor.name.clone(),
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

fn on(object: Option<&Thing>) -> String {
    match object {
        Some(thing) if thing.kind == "device" => format!(" on {}", thing.name),
        _ => String::new(),
    }
}

fn name_of<'t>(object: Option<&'t Thing>, otherwise: &'t str) -> &'t str {
    object.map_or(otherwise, |thing| thing.name.as_str())
}

/// What the culprit did, as a clause after the verb.
pub(crate) fn clause(part: &Part) -> String {
    let who = actor(&part.culprit);
    let is_own = part.culprit.kind == ActorKind::Own;
    let object = part.object.as_ref();
    let device = name_of(object, "the device");
    let doing = match &part.activity {
        Some(doing) if !is_own => format!(", in {}", activity(doing)),
        _ => String::new(),
    };
    match part.mechanism.as_str() {
        felt if part.root == "dns_lookup" && felt != "dns_lookup" => format!(
            "{who}, for which it waited, had no answer from the name server {}",
            name_of(object, "that it asked")
        ),
        "sync_storm" => format!("{who} had everything written{}{doing}", on(object)),
        "block_queue" if is_own => format!("it waited behind its own requests{}", on(object)),
        "block_queue" => format!("it waited behind requests of {who}{}{doing}", on(object)),
        "block_service" if is_own => format!("{device} took that long for its requests"),
        "block_service" if part.culprit.kind == ActorKind::Device => {
            format!("{device} took much longer for its request than it does for others like it")
        }
        "block_service" => format!("it needed what {who} was writing{}{doing}", on(object)),
        "block_held" => format!(
            "its I/O for {device} was held back before the block layer: a limit of its control group, or no room for requests"
        ),
        "writeback_wait" => format!(
            "its pages had to be written first by {who}{}{doing}",
            on(object)
        ),
        "journal_wait" => format!("the journal was busy with {who}{doing}"),
        "lock_inode" => format!("{who} held the lock of the file{doing}"),
        "lock_kernel" => format!(
            "{who} held the lock {} of the kernel{doing}",
            name_of(object, "")
        ),
        "lock_program" => format!(
            "{who} held {}{doing}",
            name_of(object, "the lock it waited for")
        ),
        "unseen_wait" => format!(
            "it waited in the kernel, in {}",
            name_of(object, "a system call")
        ),
        "lock_futex" => format!("{who} held the lock it waited for{doing}"),
        "cpu_runqueue" => format!("{who} ran on its CPU instead{doing}"),
        "cpu_idle_delay" => "it was runnable while its CPU was idle".into(),
        "cpu_throttled" => "its control group had used up its CPU quota".into(),
        "cpu_running" if is_own => "it ran itself".into(),
        "cpu_running" => format!("{who} ran{doing}"),
        "irq_stolen" => format!("{who} took its CPU"),
        "timer_sleep" if is_own => "it slept for a time that it asked for itself".into(),
        "timer_sleep" => format!("{who} slept{doing}"),
        "dns_lookup" => format!(
            "the lookup of {} was not answered",
            name_of(object, "a name")
        ),
        "network_remote" if object.is_some_and(|thing| thing.kind == "way") => {
            format!("it was on its way {}", name_of(object, "there and back"))
        }
        "network_remote" => format!("{} had not answered", name_of(object, "the other host")),
        _ if part.root == "network_retransmit" => format!(
            "packets to or from {} were lost and sent again",
            name_of(object, "the other host")
        ),
        "send_delayed" if is_own => format!(
            "what it had sent to {} was held back by the kernel",
            name_of(object, "the other side")
        ),
        "send_delayed" => format!("what {who} had sent was held back by the kernel"),
        "local_ipc" | "pipe_wait" if part.root == "send_delayed" => format!(
            "what was sent to {} was held back by the kernel until an acknowledgement came",
            name_of(object, "the other side")
        ),
        "local_ipc" | "pipe_wait" if is_own => "both sides waited for each other".into(),
        "local_ipc" | "pipe_wait" => format!("{who} had not answered{doing}"),
        "child_wait" => format!("its child {who} had not ended{doing}"),
        "signal_stop" => format!("{who} had stopped it ({})", name_of(object, "signal")),
        "reclaim" => "memory had to be reclaimed first".into(),
        "memory_throttle" => "it was held back because memory was short".into(),
        "dirty_throttle" if part.culprit.kind == ActorKind::Process => format!(
            "it was held back because {who} makes pages dirty faster than they are written{}{doing}",
            on(object)
        ),
        "dirty_throttle" => format!(
            "it was held back because pages are made dirty faster than they are written{}",
            on(object)
        ),
        "swap_in" => format!("a page had to come back from swap{}", on(object)),
        "producer_idle" => format!("{who} had not begun with it"),
        "kernel_wait" => format!(
            "{who} had not done its part in {}",
            name_of(object, "the kernel")
        ),
        "device_irq" => format!("{who} of a device had not come"),
        "woken_by" => format!("{who} had not woken it{doing}"),
        "io_wait" => "it was on its way to the block layer".into(),
        "still_blocked" => "what it waits for had not come when the recording ended".into(),
        "lost" => "events of that time were lost".into(),
        _ => "nothing that was recorded tells why".into(),
    }
}

/// The same where the thread waited for another one than the culprit, which held that one up.
fn clause_through(part: &Part, held_up: &Actor) -> String {
    let direct = Part {
        culprit: held_up.clone(),
        activity: None,
        ..part.clone()
    };
    let doing = match &part.activity {
        Some(doing) => format!(", in {}", activity(doing)),
        None => String::new(),
    };
    format!(
        "{}, held up by {}{doing}",
        clause(&direct),
        actor(&part.culprit)
    )
}

/// Whether a mechanism leads to another thread first.
fn leads_on(mechanism: &str) -> bool {
    mechanism.starts_with("lock_") || matches!(mechanism, "local_ipc" | "pipe_wait" | "child_wait")
}

/// What took how long, with which the sentence of a story begins.
pub(crate) fn head(target: &Target, baseline: Option<&Baseline>) -> String {
    let took = length(target.end_ns - target.begin_ns);
    let usually = match baseline {
        Some(baseline) => format!(
            " (normally {}, n = {})",
            length(baseline.median_ns),
            baseline.count
        ),
        None => String::new(),
    };
    let (what, who) = (&target.what, thread(&target.actor));
    format!("{what} by {who} took {took}{usually}")
}

/// The sentence of a story.
pub(crate) fn verdict(
    target: &Target,
    baseline: Option<&Baseline>,
    named: Option<(&Part, Ns, f64, Grade)>,
    chain: &[Hop],
    is_usual: bool,
) -> String {
    let clause = |part: &Part| {
        let direct = chain.get(1).map(|hop| &hop.actor);
        let is_process = part.culprit.kind == ActorKind::Process;
        match direct {
            Some(direct)
                if is_process && leads_on(&part.mechanism) && direct.tid != part.culprit.tid =>
            {
                clause_through(part, direct)
            }
            _ => clause(part),
        }
    };
    let head = head(target, baseline);
    if is_usual {
        return format!("{head}: not slower than such operations are");
    }
    match named {
        Some((part, sum, share, Grade::C)) => format!(
            "{head}: {} of it ({}) coincided with this: {}",
            length(sum),
            percent(share),
            clause(part)
        ),
        Some((part, sum, share, grade)) => format!(
            "{head}: {} of it ({}) {} {}",
            length(sum),
            percent(share),
            grade.verb(),
            clause(part)
        ),
        None => format!("{head}: no single cause dominates"),
    }
}
