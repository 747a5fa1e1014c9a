//! Functions and static probes that somebody asked for: which of them were found, and those that are
//! watched.

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

/// What is watched, of all files together: a function takes four descriptors.
const WATCHED_MAX: usize = 1024;

/// A function or a static probe of a file.
#[derive(Debug)]
struct Watched {
    provider: String,
    name: String,
    path: String,
    /// Numbers of types.
    types: Vec<u8>,
}

/// What is known of one that was asked for.
#[derive(Debug, Default)]
struct State {
    watched: usize,
    lacking: Option<(String, Lacking)>,
    near_files: Vec<String>,
    refused: Option<String>,
}

pub(crate) struct Asked {
    specs: Arc<[ProbeSpec]>,
    states: Vec<State>,
    /// By number of their probe.
    watched: Vec<Watched>,
    pub(crate) links: Vec<Link>,
    /// What was too many.
    pub(crate) over: u64,
}

impl Asked {
    pub(crate) fn new(loaded: &Loaded<'_>, specs: &[ProbeSpec]) -> Result<Self, RecordError> {
        let refused = loaded.off.iter();
        let mut refused =
            refused.filter(|off| FUNCTIONS.contains(&off.program) || off.program == USDT);
        if let (Some(off), false) = (refused.next(), specs.is_empty()) {
            return Err(RecordError::Probe {
                what: "this kernel does not let programs be watched".into(),
                hint: off.reason.clone(),
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

    /// Watches what was found in a file.
    pub(crate) fn watch(&mut self, library: &Library, loaded: &mut Loaded<'_>) {
        let mut watched = HashSet::new();
        for spot in &library.spots {
            // Whoever asked first has it.
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
                    let reason = format!("{} of {}: {error}", spot.name, library.path);
                    let state = &mut self.states[spot.number];
                    // One of many is enough to tell why.
                    if state.refused.is_none() {
                        loaded.off.push(Off {
                            program: if spot.usdt.is_some() {
                                USDT
                            } else {
                                FUNCTIONS[0]
                            },
                            topic: None,
                            tells: "what was asked for",
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
        // The file that was looked at, whatever has its name by now.
        let place = format!("/proc/self/fd/{}", library.file.as_raw_fd());
        let number = self.watched.len() as u32;
        let spec = &self.specs[spot.number];
        let cookie = spec.cookie(number);
        let (programs, maps) = (&loaded.skeleton.progs, &loaded.skeleton.maps);
        // Returns first: no call is told of whose return is not.
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

    /// Whether each is watched somewhere; says why not, and what is near.
    pub(crate) fn check(&mut self) -> Result<(), RecordError> {
        for (spec, state) in self.specs.iter().zip(&self.states) {
            if state.watched == 0 {
                let (what, hint) = missing(spec, state);
                return Err(RecordError::Probe { what, hint });
            }
        }
        Ok(())
    }

    /// Tells what is watched, from this one on.
    pub(crate) fn tell(&self, from: usize, encoder: &mut Encoder) {
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

/// What is wrong, and what would help.
fn missing(spec: &ProbeSpec, state: &State) -> (String, String) {
    let (symbol, file) = (spec.name(), spec.file.shown());
    let is_usdt = matches!(spec.what, What::Usdt { .. });
    let or_near = |near: &[String], otherwise: &str| {
        if near.is_empty() {
            otherwise.to_owned()
        } else {
            format!("near: {}", near.join(", "))
        }
    };
    if let Some(reason) = &state.refused {
        return (
            format!("the kernel refuses to watch {reason}"),
            "what calls it, or what it calls, may do instead".into(),
        );
    }
    let Some((path, lacking)) = &state.lacking else {
        let hint = "name the file with its path, or start the program first: `cat /proc/PID/maps` tells its files";
        return (
            format!(
                "no program that runs has a file `{file}`, and there is none in the usual places"
            ),
            or_near(&state.near_files, hint),
        );
    };
    match lacking {
        Lacking::Near(near) if is_usdt => (
            format!("`{symbol}` is no static probe of {path}"),
            or_near(
                near,
                &format!("`readelf -n {path}` lists its probes (stapsdt), if it has any"),
            ),
        ),
        Lacking::Near(near) => (
            format!("`{symbol}` is no function of {path}"),
            or_near(
                near,
                &format!(
                    "`nm -DC {path}` and `nm -C {path}` list its functions; what is stripped or inlined has no name"
                ),
            ),
        ),
        Lacking::Choice(name) => (
            format!(
                "`{name}` of {path} is chosen when a program starts, from several that have names of their own"
            ),
            format!(
                "`nm {path}` lists them, unless the file is stripped: then only what calls it has a name"
            ),
        ),
        Lacking::TooMany(count) => (
            format!("`{symbol}` stands for {count} places of {path}: {SPOTS_MAX} may be watched"),
            "a longer pattern stands for fewer".into(),
        ),
        Lacking::MovesStacks => (
            format!(
                "{path} is written in Go, whose stacks move: it would crash if returns were watched"
            ),
            "its system calls, waits and lookups of names by libc are recorded without --function"
                .into(),
        ),
        Lacking::Foreign => (
            format!("{path} is no program of this machine's kind"),
            "32-bit programs and scripts have no functions that can be watched".into(),
        ),
    }
}

/// As many as this process may have: each function takes four.
pub(crate) fn allow_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, fewer functions can be watched, which is told.
    let _ = setrlimit(Resource::Nofile, limit);
}
