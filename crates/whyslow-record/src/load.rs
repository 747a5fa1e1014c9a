//! Loads the programs, each of which a kernel may refuse, and attaches them.

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, OpenObject, PrintLevel};
use whyslow_model::syscall::Abi;

use crate::error::RecordError;
use crate::options::{LOCK_MIN, LOCK_STACK_MIN, Options};
use crate::programs::{Hook, OLDER, Off, PROGRAMS, Program, STACKS, Topic};
use crate::skeleton::{OpenRecorderSkel, RecorderSkel, RecorderSkelBuilder};
use crate::targets::NAMES_MAX;
use crate::{preflight, specs, tick};

/// More rings than this are not needed so that CPUs do not wait for each other.
const RINGS_MAX: usize = 16;
/// Entry and return: neither is of use without the other.
const FUNCTION_PROGRAMS: usize = 2;
/// The kernel wants a power of two, and whole pages.
const RING_BYTES_MIN: u64 = 64 << 10;

/// Programs at work; they stop when this is dropped.
pub(crate) struct Loaded<'o> {
    pub(crate) skeleton: RecorderSkel<'o>,
    pub(crate) rings: Vec<MapHandle>,
    pub(crate) off: Vec<Off>,
    /// By program.
    pub(crate) links: Vec<(&'static str, Link)>,
    /// Runs at the end.
    pub(crate) last: Option<Link>,
    /// Lookups of names are to be watched.
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
    // What libbpf says is told with the program that it is about.
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
    let rings = rings(options)?;
    let mut wanted = wanted(options);
    let mut off = Vec::new();
    let is_refused = {
        let mut trial = MaybeUninit::uninit();
        let open = open(options, rings.len(), &wanted, &mut trial)?;
        open.load().is_err()
    };
    if is_refused {
        off = refused(&mut wanted, |program| alone(options, program))?;
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
        off,
        links: Vec::new(),
        last: None,
        watches: false,
    };
    loaded.attach(&wanted, options.sample_hz);
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
    fn attach(&mut self, wanted: &[&'static Program], sample_hz: u32) {
        let functions = wanted
            .iter()
            .filter(|program| program.hook == Hook::Function);
        self.watches = functions.count() == FUNCTION_PROGRAMS;
        for program in wanted {
            let found = self
                .skeleton
                .object_mut()
                .progs_mut()
                .find(|found| found.name() == program.name);
            let Some(found) = found else { continue };
            let attached = match program.hook {
                Hook::Tracepoint => found
                    .attach()
                    .map(|link| self.links.push((program.name, link))),
                Hook::Iterator => found.attach().map(|link| self.last = Some(link)),
                // Functions are found later.
                Hook::Function => Ok(()),
                Hook::Tick | Hook::Sample => {
                    let of_samples = program.hook == Hook::Sample;
                    let hz = if of_samples {
                        sample_hz
                    } else {
                        tick::FREQUENCY
                    };
                    let links = tick::attach(&found, hz);
                    let named = |link| (program.name, link);
                    links.map(|links| self.links.extend(links.into_iter().map(named)))
                }
            };
            if let Err(error) = attached {
                self.off.push(off(program, reason(&error)));
            }
        }
    }
}

fn wanted(options: &Options) -> Vec<&'static Program> {
    let is_wanted = |program: &&Program| {
        let topic = program.topic;
        let has = |topic| options.topics.contains(&topic);
        // A switch tells of the call that the thread is in, too.
        let is_older = OLDER.iter().any(|(_, older)| *older == program.name);
        let is_needed = program.name == SWITCH && has(Topic::Syscalls);
        match program.name {
            _ if is_older => false,
            GROUP => !options.groups.is_empty(),
            STACKS => options.stack_min.is_some() && (has(Topic::Sched) || has(Topic::Syscalls)),
            _ if program.hook == Hook::Sample => options.sample_hz > 0,
            _ => is_needed || topic.is_none_or(has),
        }
    };
    let raw = |program: &'static Program| {
        let raw = older(program).filter(|older| options.raw && older.name.starts_with(RAW));
        raw.unwrap_or(program)
    };
    PROGRAMS.iter().filter(is_wanted).map(raw).collect()
}

const SWITCH: &str = "on_switch";
/// Programs at tracepoints without types.
const RAW: &str = "raw_";
const GROUP: &str = "on_cgroup";

/// Takes out the programs that the kernel does not load, and says why.
fn refused(
    wanted: &mut Vec<&'static Program>,
    mut why: impl FnMut(&'static Program) -> Result<Option<String>, RecordError>,
) -> Result<Vec<Off>, RecordError> {
    let mut refused = Vec::new();
    let mut taken = Vec::new();
    for program in wanted.drain(..) {
        match why(program)? {
            None => taken.push(program),
            Some(reason) => match older(program) {
                Some(old) if why(old)?.is_none() => taken.push(old),
                _ => refused.push(off(program, reason)),
            },
        }
    }
    *wanted = taken;
    Ok(refused)
}

/// What an older kernel may take instead.
fn older(program: &Program) -> Option<&'static Program> {
    let (_, older) = OLDER.iter().find(|(newer, _)| *newer == program.name)?;
    PROGRAMS.iter().find(|other| other.name == *older)
}

fn off(program: &Program, reason: String) -> Off {
    Off {
        program: program.name,
        topic: program.topic,
        tells: program.tells,
        reason,
    }
}

/// Which of the programs that are wanted the kernel refuses; none runs.
pub(crate) fn trial(options: &Options) -> Result<Vec<Off>, RecordError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
    let mut wanted = wanted(options);
    let mut storage = MaybeUninit::uninit();
    if open(options, 1, &wanted, &mut storage)?.load().is_ok() {
        return Ok(Vec::new());
    }
    refused(&mut wanted, |program| alone(options, program))
}

/// Why the kernel refuses a program.
fn alone(options: &Options, program: &'static Program) -> Result<Option<String>, RecordError> {
    let mut storage = MaybeUninit::uninit();
    let open = open(options, 1, &[program], &mut storage)?;
    Ok(open.load().err().map(|error| reason(&error)))
}

const NO_EVENT: &str = "this kernel has no such event";

fn reason(error: &libbpf_rs::Error) -> String {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => "the kernel refuses it".into(),
        libbpf_rs::ErrorKind::NotFound => NO_EVENT.into(),
        // What libbpf says of an event that no type describes.
        _ if error.to_string().ends_with("(os error 3)") => NO_EVENT.into(),
        _ => error.to_string(),
    }
}

fn open<'o>(
    options: &Options,
    rings: usize,
    wanted: &[&'static Program],
    storage: &'o mut MaybeUninit<OpenObject>,
) -> Result<OpenRecorderSkel<'o>, RecordError> {
    let mut open = RecorderSkelBuilder::default()
        .open(storage)
        .map_err(RecordError::Load)?;
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_owned();
        program.set_autoload(wanted.iter().any(|wanted| name == *wanted.name));
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
    settings.wants_switches = options.topics.contains(&Topic::Sched);
    settings.stack_min_ns = options.stack_min.map_or(0, |min| min.as_nanos() as u64);
    settings.sample_ns = 1_000_000_000 / u64::from(options.sample_hz.max(1));
    settings.lock_min_ns = LOCK_MIN.as_nanos() as u64;
    settings.lock_stack_min_ns = LOCK_STACK_MIN.as_nanos() as u64;
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

/// The end of a wait for a spin lock is told while the lock is held. Were it the lock of the ring
/// that takes the record, kernels before 6.15 would hang; it can be one only if CPUs share rings.
fn spins_are_skipped(rings: usize) -> bool {
    let are_shared = libbpf_rs::num_possible_cpus().is_ok_and(|cpus| cpus > rings);
    are_shared && !preflight::is_kernel_since([6, 15])
}

/// As many as there are CPUs, within reason.
fn rings(options: &Options) -> Result<Vec<MapHandle>, RecordError> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(RecordError::Load)?;
    let count = cpus.next_power_of_two().min(RINGS_MAX);
    let share = (options.buffer_bytes / count as u64).max(RING_BYTES_MIN);
    let bytes = u32::try_from(share.next_power_of_two()).unwrap_or(1 << 31);
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
    (0..count).map(create).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the programs that are loaded, and of those that are told to be off, where the kernel
    /// refuses these.
    fn left(refuses: &[&str]) -> (Vec<&'static str>, Vec<&'static str>) {
        let mut taken = wanted(&Options::new(""));
        let why = |program: &'static Program| {
            let is_refused = refuses.contains(&program.name) || refuses.contains(&"all");
            Ok(is_refused.then(|| "because".to_owned()))
        };
        let off = refused(&mut taken, why).expect("nothing else fails");
        assert!(off.iter().all(|off| off.reason == "because"));
        let taken = taken.iter().map(|program| program.name);
        (taken.collect(), off.iter().map(|off| off.program).collect())
    }

    #[test]
    fn what_is_refused_is_off_and_the_rest_is_not() {
        let (all, off) = left(&[]);
        assert!(all.contains(&SWITCH) && off.is_empty());
        let (rest, off) = left(&["on_rename"]);
        assert_eq!((rest.len(), off), (all.len() - 1, vec!["on_rename"]));
        let (rest, off) = left(&["all"]);
        assert_eq!((rest.len(), off), (0, all));
    }

    #[test]
    fn what_older_kernels_take_stands_in() {
        for (newer, older) in OLDER {
            let (all, _) = left(&[]);
            if !all.contains(newer) {
                continue;
            }
            let (taken, off) = left(&[newer]);
            assert!(taken.contains(older) && off.is_empty(), "{newer}");
            let (taken, off) = left(&[newer, older]);
            assert!(!taken.contains(older) && off == [*newer], "{newer}");
        }
    }
}
