//! Loads and attaches the programs, each of which the kernel may reject.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, OpenObject, PrintLevel, UprobeOpts};
use whyslow_model::syscall::Abi;

use crate::error::RecordError;
use crate::options::{LOCK_MIN, LOCK_STACK_MIN, Options};
use crate::probes::What;
use crate::programs::{
    Chosen, FUNCTIONS, Hook, LOOKUPS, Off, PROGRAMS, Program, STACKS, StandIn, Topic, USDT,
    WALL_ITERATOR, WALL_TICK,
};
use crate::skeleton::{OpenRecorderSkel, RecorderSkel, RecorderSkelBuilder};
use crate::targets::NAMES_MAX;
use crate::{libraries, percpu, preflight, specs, tick, wall};

/// More rings than this no longer reduce contention between CPUs.
const RINGS_MAX: usize = 16;
/// The kernel requires a power of two in whole pages.
const RING_BYTES_MIN: u64 = 64 << 10;

/// The loaded programs, detached when this is dropped.
pub(crate) struct Loaded<'o> {
    pub(crate) skeleton: RecorderSkel<'o>,
    pub(crate) rings: Vec<MapHandle>,
    /// Size of each ring.
    pub(crate) ring_bytes: u64,
    pub(crate) off: Vec<Off>,
    pub(crate) stand_ins: Vec<StandIn>,
    pub(crate) links: Vec<(Chosen, Link)>,
    /// Runs at the end.
    pub(crate) last: Option<Link>,
    /// Reads all threads, for wall-clock sampling.
    pub(crate) wall_iter: Option<Link>,
    /// Whether DNS lookups are to be probed.
    pub(crate) watches: bool,
}

pub(crate) fn load<'o>(
    options: &Options,
    storage: &'o mut MaybeUninit<OpenObject>,
) -> Result<Loaded<'o>, RecordError> {
    if !Path::new(preflight::TYPES).exists() {
        return Err(RecordError::NoTypes);
    }
    if !preflight::are_ids_those_of_the_host() {
        return Err(RecordError::Container);
    }
    // libbpf's messages are reported with the program that they concern.
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
    let (rings, ring_bytes) = rings(options)?;
    let (mut wanted, mut off) = wanted(options);
    let is_refused = {
        let mut trial = MaybeUninit::uninit();
        let open = open(options, rings.len(), &wanted, &mut trial)?;
        open.load().is_err()
    };
    if is_refused {
        off.extend(refused(&mut wanted, options, |chosen| {
            alone(options, chosen)
        })?);
    }
    if wanted.is_empty() {
        return Err(RecordError::AllRefused { off });
    }
    let open = open(options, rings.len(), &wanted, storage)?;
    let skeleton = open.load().map_err(RecordError::Load)?;
    for (number, ring) in rings.iter().enumerate() {
        let (key, fd) = (number as u32, ring.as_fd_number());
        let rings = &skeleton.maps.rings;
        rings
            .update(&key.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
            .map_err(RecordError::Load)?;
    }
    for pid in &options.pids {
        let targets = &skeleton.maps.targets;
        targets
            .update(&pid.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(RecordError::Load)?;
    }
    let mut loaded = Loaded {
        skeleton,
        rings,
        ring_bytes,
        off,
        stand_ins: Vec::new(),
        links: Vec::new(),
        last: None,
        wall_iter: None,
        watches: false,
    };
    loaded.attach(&wanted, options);
    Ok(loaded)
}

trait FdNumber {
    fn as_fd_number(&self) -> i32;
}

impl FdNumber for MapHandle {
    fn as_fd_number(&self) -> i32 {
        use std::os::fd::AsFd;
        self.as_fd().as_raw_fd()
    }
}

impl Loaded<'_> {
    fn attach(&mut self, wanted: &[Chosen], options: &Options) {
        let is_loaded = |name: &&str| wanted.iter().any(|chosen| chosen.form == *name);
        self.watches = LOOKUPS.iter().all(is_loaded);
        for chosen in wanted {
            let program = chosen.program;
            let found = self
                .skeleton
                .object_mut()
                .progs_mut()
                .find(|found| found.name() == chosen.form);
            let Some(found) = found else { continue };
            let attached = match program.hook {
                Hook::Tracepoint => found.attach().map(|link| self.links.push((*chosen, link))),
                Hook::Iterator => found.attach().map(|link| self.last = Some(link)),
                Hook::WallIterator => found.attach().map(|link| self.wall_iter = Some(link)),
                // Functions are located later.
                Hook::Function => Ok(()),
                Hook::Tick | Hook::Sample | Hook::Wall => {
                    let hz = match program.hook {
                        Hook::Sample => options.sample_hz,
                        Hook::Wall => wall::frequency(options),
                        _ => tick::FREQUENCY,
                    };
                    let links = tick::attach(&found, hz);
                    let of_it = |link| (*chosen, link);
                    links.map(|links| self.links.extend(links.into_iter().map(of_it)))
                }
            };
            match attached {
                Err(error) => self.off.push(off(program, reason(&error))),
                Ok(()) => self.stand_ins.extend(stand_in(chosen)),
            }
        }
        if options.wall.is_some() && self.wall_iter.is_none() {
            by_files(&mut self.off, &mut self.stand_ins);
        }
    }
}

/// Programs in their preferred forms, and those of which all forms are disabled.
fn wanted(options: &Options) -> (Vec<Chosen>, Vec<Off>) {
    let has_probe = |is_meant: fn(&What) -> bool| {
        let mut probes = options.probes.iter();
        probes.any(|probe| is_meant(&probe.what))
    };
    let is_function: fn(&What) -> bool = |what| matches!(what, What::Function { .. });
    let is_wanted = |program: &&Program| {
        let topic = program.topic;
        let has = |topic| options.topics.contains(&topic);
        // A switch also reports the call in which the thread is.
        let is_needed = program.name == SWITCH && has(Topic::Syscalls);
        match program.name {
            name if FUNCTIONS.contains(&name) => has_probe(is_function),
            USDT => has_probe(|what| matches!(what, What::Usdt { .. })),
            GROUP => !options.groups.is_empty(),
            STACKS => options.stack_min.is_some() && (has(Topic::Sched) || has(Topic::Syscalls)),
            _ if program.hook == Hook::Sample => options.sample_hz > 0,
            WALL_ITERATOR | WALL_TICK => options.wall.is_some(),
            _ => is_needed || topic.is_none_or(has),
        }
    };
    let (mut wanted, mut none) = (Vec::new(), Vec::new());
    for program in PROGRAMS.iter().filter(is_wanted) {
        match Chosen::forms(program, &options.refuse).next() {
            Some(chosen) => wanted.push(chosen),
            None => none.push(off(program, NO_FORM.into())),
        }
    }
    (wanted, none)
}

const SWITCH: &str = "on_switch";
const GROUP: &str = "on_cgroup";
const NO_FORM: &str = "all forms are disabled";

/// Replaces forms that the kernel rejects with their fallbacks, and removes programs that it
/// rejects in every form; reports why the preferred form was rejected.
fn refused(
    wanted: &mut Vec<Chosen>,
    options: &Options,
    mut why: impl FnMut(Chosen) -> Result<Option<String>, RecordError>,
) -> Result<Vec<Off>, RecordError> {
    let mut refused = Vec::new();
    let mut taken = Vec::new();
    for wanted in wanted.drain(..) {
        let mut first = None;
        let mut found = None;
        for form in Chosen::forms(wanted.program, &options.refuse) {
            match why(form)? {
                None => {
                    found = Some(form);
                    break;
                }
                Some(reason) => first = first.or(Some(reason)),
            }
        }
        match (found, first) {
            (Some(form), _) => taken.push(form),
            (None, reason) => {
                let reason = reason.unwrap_or_else(|| NO_FORM.into());
                refused.push(off(wanted.program, reason));
            }
        }
    }
    *wanted = taken;
    Ok(refused)
}

/// Files of `/proc` replace the iterator.
fn by_files(off: &mut Vec<Off>, stand_ins: &mut Vec<StandIn>) {
    off.retain(|off| off.program != WALL_ITERATOR);
    stand_ins.push(StandIn {
        program: WALL_ITERATOR,
        form: "proc",
        topic: None,
    });
}

fn stand_in(chosen: &Chosen) -> Option<StandIn> {
    chosen.stands_in().then_some(StandIn {
        program: chosen.program.name,
        form: chosen.form,
        topic: chosen.program.topic,
    })
}

fn off(program: &Program, reason: String) -> Off {
    Off {
        program: program.name,
        topic: program.topic,
        provides: program.provides,
        reason,
    }
}

/// Programs that the kernel rejects, and the forms that replace others. Attaches nothing.
pub(crate) fn trial(options: &Options) -> Result<(Vec<Off>, Vec<StandIn>), RecordError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
    let (mut wanted, mut off) = wanted(options);
    let mut storage = MaybeUninit::uninit();
    if open(options, 1, &wanted, &mut storage)?.load().is_err() {
        off.extend(refused(&mut wanted, options, |chosen| {
            alone(options, chosen)
        })?);
    }
    Ok((off, wanted.iter().filter_map(stand_in).collect()))
}

/// Attaches a uprobe to the entry point of this process, which never runs again; returns the error
/// if that fails. It must not be attached in other processes of this program: they start there,
/// with their arguments where a return probe would write its address.
pub(crate) fn try_function() -> Result<(), String> {
    let file = File::open("/proc/self/exe").map_err(|error| error.to_string())?;
    let offset = libraries::entry(&file).map_err(|error| error.to_string())?;
    let offset = offset.ok_or("cannot find the entry point of this program")?;
    let wanted: Vec<_> = PROGRAMS
        .iter()
        .filter(|program| FUNCTIONS.contains(&program.name))
        .flat_map(|program| Chosen::forms(program, &[]))
        .collect();
    let mut storage = MaybeUninit::uninit();
    let open = open(&Options::new(""), 1, &wanted, &mut storage);
    let open = open.map_err(|error| error.to_string())?;
    let skeleton = open.load().map_err(|error| reason(&error))?;
    let programs = &skeleton.progs;
    for (retprobe, program) in [
        (false, &programs.on_function),
        (true, &programs.on_function_end),
    ] {
        let options = UprobeOpts {
            retprobe,
            ..UprobeOpts::default()
        };
        let own = std::process::id() as i32;
        let link = program.attach_uprobe_with_opts(own, "/proc/self/exe", offset as usize, options);
        // Detaches immediately.
        drop(link.map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// The error with which the kernel rejects a program.
fn alone(options: &Options, chosen: Chosen) -> Result<Option<String>, RecordError> {
    let mut storage = MaybeUninit::uninit();
    let open = open(options, 1, &[chosen], &mut storage)?;
    Ok(open.load().err().map(|error| reason(&error)))
}

const NO_EVENT: &str = "not supported by this kernel";

fn reason(error: &libbpf_rs::Error) -> String {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => "permission denied".into(),
        libbpf_rs::ErrorKind::NotFound => NO_EVENT.into(),
        // libbpf's error for an event without a BTF type.
        _ if error.to_string().ends_with("(os error 3)") => NO_EVENT.into(),
        _ => error.to_string(),
    }
}

fn open<'o>(
    options: &Options,
    rings: usize,
    wanted: &[Chosen],
    storage: &'o mut MaybeUninit<OpenObject>,
) -> Result<OpenRecorderSkel<'o>, RecordError> {
    let mut open = RecorderSkelBuilder::default()
        .open(storage)
        .map_err(RecordError::Load)?;
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_owned();
        program.set_autoload(wanted.iter().any(|wanted| name == *wanted.form));
    }
    let Some(settings) = open.maps.rodata_data.as_mut() else {
        return Err(RecordError::Settings);
    };
    settings.own_pid = std::process::id();
    settings.ring_mask = rings as u32 - 1;
    settings.call_min_ns = options.call_min.as_nanos() as u64;
    settings.only_targets = options.only_pids;
    let names = options.names.iter().take(NAMES_MAX);
    settings.comm_pattern_count = names.len() as u32;
    for (pattern, names) in settings.comm_patterns.iter_mut().zip(names) {
        *pattern = names.pattern();
    }
    if let Some(group) = options.groups.first() {
        settings.cgroup_hierarchy = group.hierarchy;
    }
    // The verifier of 6.1 rejects these parts, and with them their programs.
    settings.wants_fills =
        options.topics.contains(&Topic::Pages) && preflight::is_kernel_since([6, 2]);
    settings.page_bytes = rustix::param::page_size() as u32;
    settings.wants_switches = options.topics.contains(&Topic::Sched);
    settings.stack_min_ns = options.stack_min.map_or(0, |min| min.as_nanos() as u64);
    settings.sample_ns = 1_000_000_000 / u64::from(options.sample_hz.max(1));
    settings.lock_min_ns = LOCK_MIN.as_nanos() as u64;
    settings.lock_stack_min_ns = LOCK_STACK_MIN.as_nanos() as u64;
    settings.switch_has_state = preflight::is_kernel_since([5, 18]);
    settings.cpus_possible = libbpf_rs::num_possible_cpus().unwrap_or(1) as u32;
    settings.preempt_count_distance = percpu::preempt_count_distance();
    settings.skip_spins = spins_are_skipped(rings);
    let abi = if cfg!(target_arch = "x86_64") {
        Abi::X86_64
    } else {
        Abi::Aarch64
    };
    specs::specs(abi, &mut settings.call_specs);
    specs::specs(abi.compat(), &mut settings.compat_specs);
    Ok(open)
}

/// The end of a wait for a spin lock is recorded while the lock is held. If it were the lock of the
/// ring buffer that takes the record, kernels before 6.15 would deadlock. That can happen only if
/// CPUs share rings.
fn spins_are_skipped(rings: usize) -> bool {
    let are_shared = libbpf_rs::num_possible_cpus().is_ok_and(|cpus| cpus > rings);
    are_shared && !preflight::is_kernel_since([6, 15])
}

/// One per CPU, up to a limit.
pub(crate) fn ring_count() -> u64 {
    let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1);
    cpus.next_power_of_two().min(RINGS_MAX) as u64
}

/// Size of each ring, so that all together have at least `buffer` bytes.
pub(crate) fn ring_bytes(buffer: u64, rings: u64) -> u64 {
    let share = buffer.div_ceil(rings).max(RING_BYTES_MIN);
    share.next_power_of_two().min(1 << 31)
}

/// The rings, and the size of each.
fn rings(options: &Options) -> Result<(Vec<MapHandle>, u64), RecordError> {
    let count = ring_count();
    let bytes = ring_bytes(options.buffer_bytes, count) as u32;
    let create = |_| {
        let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
            ..Default::default()
        };
        MapHandle::create(
            MapType::RingBuf,
            Some("whyslow_ring"),
            0,
            0,
            bytes,
            &options,
        )
        .map_err(|error| match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => RecordError::NotPermitted,
            _ => RecordError::Buffer(error),
        })
    };
    let rings = (0..count).map(create).collect::<Result<_, _>>()?;
    Ok((rings, u64::from(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Form;

    /// Names of the forms that are loaded, and of the programs reported as off, if the kernel
    /// rejects `refuses`.
    fn left(options: &Options, refuses: &[&str]) -> (Vec<&'static str>, Vec<&'static str>) {
        let (mut taken, mut off) = wanted(options);
        let why = |chosen: Chosen| {
            let is_refused = refuses.contains(&chosen.form) || refuses.contains(&"all");
            Ok(is_refused.then(|| format!("because of {}", chosen.form)))
        };
        let refused = refused(&mut taken, options, why).expect("nothing else fails");
        // The reported reason is that of the preferred form.
        let is_best = |off: &Off| {
            off.reason
                .starts_with(&format!("because of {}", off.program))
        };
        assert!(refused.iter().all(is_best), "{refused:?}");
        off.extend(refused);
        let taken = taken.iter().map(|chosen| chosen.form);
        (taken.collect(), off.iter().map(|off| off.program).collect())
    }

    #[test]
    fn what_is_refused_is_off_and_the_rest_is_not() {
        let options = Options::new("");
        let (all, off) = left(&options, &[]);
        assert!(all.contains(&SWITCH) && off.is_empty());
        let (rest, off) = left(&options, &["on_signal"]);
        assert_eq!((rest.len(), off), (all.len() - 1, vec!["on_signal"]));
        let (rest, off) = left(&options, &["all"]);
        assert_eq!((rest.len(), off), (0, all));
    }

    #[test]
    fn other_forms_stand_in_one_after_another() {
        let options = Options::new("");
        for program in PROGRAMS {
            let (all, _) = left(&options, &[]);
            if !all.contains(&program.name) {
                continue;
            }
            let mut refuses = vec![program.name];
            for other in program.others {
                let (taken, off) = left(&options, &refuses);
                assert!(taken.contains(other) && off.is_empty(), "{other}");
                assert_eq!(taken.len(), all.len());
                refuses.push(other);
            }
            let (taken, off) = left(&options, &refuses);
            assert_eq!(taken.len(), all.len() - 1);
            assert_eq!(off, [program.name]);
        }
    }

    #[test]
    fn forms_that_may_not_be_tried_are_not() {
        let mut options = Options::new("");
        options.topics = [Topic::Sched, Topic::Block, Topic::Syscalls, Topic::Tcp].into();
        options.refuse = vec![Form::Typed];
        let (taken, off) = left(&options, &[]);
        assert!(taken.contains(&"raw_switch") && taken.contains(&"raw_rq_issue"));
        // Those not attached to a tracepoint have one form only.
        assert!(taken.contains(&"on_tick") && taken.contains(&"on_end"));
        assert!(off.contains(&STACKS) && off.contains(&"on_tcp_state"));
        options.refuse = vec![Form::Typed, Form::Raw];
        let (taken, _) = left(&options, &[]);
        assert!(taken.contains(&"tp_switch") && taken.contains(&"tp_fork"));
        assert!(!taken.iter().any(|name| name.starts_with("raw_")));
    }
}
