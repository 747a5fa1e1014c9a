//! Requested functions (uprobes) and USDT probes: which were found, and which are attached.

use std::collections::HashSet;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;

use libbpf_rs::{Link, MapCore as _, MapFlags, UprobeOpts};
use rustix::process::{Resource, getrlimit, setrlimit};
use whyslow_model::probe::USDT_ARGS;
use whyslow_model::spool::{Encoder, Kind};

use crate::drop;
use crate::error::RecordError;
use crate::libraries::{Lacking, Library, SPOTS_MAX, Spot};
use crate::load::Loaded;
use crate::probes::{ProbeSpec, What, wire};
use crate::programs::{FUNCTIONS, Off, USDT};

/// Maximum number of attached probes in all files: each function takes four descriptors.
const WATCHED_MAX: usize = 1024;

/// A function or USDT probe of a file.
#[derive(Debug)]
struct Watched {
    provider: String,
    name: String,
    path: String,
    /// Type numbers.
    types: Vec<u8>,
}

/// State of a requested probe.
#[derive(Debug, Default)]
struct State {
    watched: usize,
    lacking: Option<(String, Lacking)>,
    near_files: Vec<String>,
    refused: Option<String>,
}

pub(crate) struct ProbeLinks {
    specs: Arc<[ProbeSpec]>,
    states: Vec<State>,
    /// By probe number.
    watched: Vec<Watched>,
    pub(crate) links: Vec<Link>,
    /// Probes beyond the limit.
    pub(crate) over: u64,
}

impl ProbeLinks {
    pub(crate) fn new(loaded: &Loaded<'_>, specs: &[ProbeSpec]) -> Result<Self, RecordError> {
        let refused = loaded.off.iter();
        let mut refused =
            refused.filter(|off| FUNCTIONS.contains(&off.program) || off.program == USDT);
        if let (Some(off), false) = (refused.next(), specs.is_empty()) {
            return Err(RecordError::Probe {
                what: format!("cannot attach probes: {}", off.reason),
                hint: "run `whyslow doctor` to check uprobe support".into(),
            });
        }
        if !specs.is_empty() {
            allow_descriptors();
        }
        Ok(Self {
            states: specs.iter().map(|_| State::default()).collect(),
            specs: specs.into(),
            watched: Vec::new(),
            links: Vec::new(),
            over: 0,
        })
    }

    pub(crate) fn specs(&self) -> Arc<[ProbeSpec]> {
        Arc::clone(&self.specs)
    }

    pub(crate) fn count(&self) -> usize {
        self.watched.len()
    }

    pub(crate) fn lacks(&mut self, number: usize, path: String, lacking: Lacking) {
        self.states[number].lacking = Some((path, lacking));
    }

    pub(crate) fn has_no_file(&mut self, number: usize, near: Vec<String>) {
        self.states[number].near_files = near;
    }

    /// Attaches what was found in a file.
    pub(crate) fn watch(&mut self, library: &Library, loaded: &mut Loaded<'_>) {
        let mut watched = HashSet::new();
        for spot in &library.spots {
            // The first request for an address counts.
            if !watched.insert(spot.offset) {
                self.states[spot.number].watched += 1;
                continue;
            }
            if self.watched.len() >= WATCHED_MAX {
                self.over += 1;
                continue;
            }
            match self.attach(spot, library, loaded) {
                Ok(()) => self.states[spot.number].watched += 1,
                Err(error) => {
                    let reason = format!("{} in {}: {error}", spot.name, library.path);
                    let state = &mut self.states[spot.number];
                    // One failure is enough to report the reason.
                    if state.refused.is_none() {
                        loaded.off.push(Off {
                            program: if spot.usdt.is_some() {
                                USDT
                            } else {
                                FUNCTIONS[0]
                            },
                            topic: None,
                            provides: "requested probes",
                            reason: reason.clone(),
                        });
                    }
                    state.refused = Some(reason);
                }
            }
        }
    }

    fn attach(
        &mut self,
        spot: &Spot,
        library: &Library,
        loaded: &Loaded<'_>,
    ) -> Result<(), libbpf_rs::Error> {
        // The file that was examined, even if its path now leads to another one.
        let place = format!("/proc/self/fd/{}", library.file.as_raw_fd());
        let number = self.watched.len() as u32;
        let spec = &self.specs[spot.number];
        let cookie = spec.cookie(number);
        let (programs, maps) = (&loaded.skeleton.progs, &loaded.skeleton.maps);
        // Returns first, so that no call is recorded without its return.
        let of_function = [
            (true, &programs.on_function_end),
            (false, &programs.on_function),
        ];
        let of_usdt = [(false, &programs.on_usdt)];
        let programs = match &spot.usdt {
            Some(usdt) => {
                let args = (0..USDT_ARGS).map(|place| usdt.args.get(place).copied().flatten());
                let args: Vec<u8> = args.flat_map(wire).collect();
                let key = number.to_ne_bytes();
                maps.usdt_specs.update(&key, &args, MapFlags::ANY)?;
                &of_usdt[..]
            }
            None => &of_function,
        };
        let usdt = spot.usdt.as_ref();
        for (retprobe, program) in programs {
            let options = UprobeOpts {
                cookie,
                retprobe: *retprobe,
                ref_ctr_offset: usdt.map_or(0, |usdt| usdt.semaphore as usize),
                ..UprobeOpts::default()
            };
            let offset = spot.offset as usize;
            let attach = || program.attach_uprobe_with_opts(-1, &place, offset, options);
            self.links.push(drop::raised(attach)?);
        }
        self.watched.push(Watched {
            provider: usdt.map_or_else(String::new, |usdt| usdt.provider.clone()),
            name: spot.name.clone(),
            path: library.path.clone(),
            types: spec.types(usdt.map_or(&[], |usdt| &usdt.args)),
        });
        Ok(())
    }

    /// Whether each requested probe is attached somewhere; if not, returns why, with similar names.
    pub(crate) fn check(&mut self) -> Result<(), RecordError> {
        for (spec, state) in self.specs.iter().zip(&self.states) {
            if state.watched == 0 {
                let (what, hint) = missing(spec, state);
                return Err(RecordError::Probe { what, hint });
            }
        }
        Ok(())
    }

    /// Writes records of the attached probes, from this one on.
    pub(crate) fn write(&self, from: usize, encoder: &mut Encoder) {
        for (probe, watched) in self.watched.iter().enumerate().skip(from) {
            encoder
                .begin(Kind::Probe, 0, (0, 0))
                .u32(probe as u32)
                .text(watched.provider.as_bytes())
                .text(watched.name.as_bytes())
                .text(watched.path.as_bytes())
                .text(&watched.types)
                .end();
        }
    }
}

/// Error and hint for a probe that is not attached.
fn missing(spec: &ProbeSpec, state: &State) -> (String, String) {
    let (symbol, file) = (spec.name(), spec.file.shown());
    let is_usdt = matches!(spec.what, What::Usdt { .. });
    let or_near = |near: &[String], otherwise: &str| {
        if near.is_empty() {
            otherwise.to_owned()
        } else {
            format!("use a similar name: {}", near.join(", "))
        }
    };
    if let Some(reason) = &state.refused {
        return (
            format!("cannot probe {reason}"),
            "probe a caller or a callee instead".into(),
        );
    }
    let Some((path, lacking)) = &state.lacking else {
        let hint = "use the full path, or start the program first; `cat /proc/PID/maps` lists the files of a process";
        return (
            format!(
                "cannot find `{file}`: no running process maps it, and it is not in a standard directory"
            ),
            or_near(&state.near_files, hint),
        );
    };
    match lacking {
        Lacking::Near(near) if is_usdt => (
            format!("cannot probe `{symbol}`: no such USDT probe in {path}"),
            or_near(
                near,
                &format!("list its probes (stapsdt) with `readelf -n {path}`"),
            ),
        ),
        Lacking::Near(near) => (
            format!("cannot probe `{symbol}`: no such function in {path}"),
            or_near(
                near,
                &format!(
                    "list its functions with `nm -DC {path}` or `nm -C {path}`; stripped and inlined functions have no symbol"
                ),
            ),
        ),
        Lacking::Choice(name) => (
            format!(
                "cannot probe `{name}` in {path}: it is an indirect function (IFUNC), resolved at program start"
            ),
            format!(
                "probe one of its implementations, which `nm {path}` lists; in a stripped file, probe a caller"
            ),
        ),
        Lacking::TooMany(count) => (
            format!("cannot probe `{symbol}`: it matches {count} addresses in {path}, the maximum is {SPOTS_MAX}"),
            "use a longer pattern".into(),
        ),
        Lacking::MovesStacks => (
            format!(
                "cannot probe functions of {path}: Go moves stacks, and return probes would crash the program"
            ),
            "record without --function: system calls, waits and DNS lookups by libc are still recorded"
                .into(),
        ),
        Lacking::Foreign => (
            format!("cannot probe {path}: it is not an executable of this architecture"),
            "probe a 64-bit executable; functions of 32-bit programs and scripts are not supported".into(),
        ),
    }
}

/// Raises the limit of open descriptors to the maximum: each function takes four.
pub(crate) fn allow_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If that fails, fewer functions can be probed, which is reported.
    let _ = setrlimit(Resource::Nofile, limit);
}
