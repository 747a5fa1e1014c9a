//! Names of addresses, looked up on a thread of its own while the processes still live.

use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use blazesym::{MaybeDefault, Pid};

use crate::clock;
use crate::maps::Maps;

/// Questions that may wait; more are not asked.
const QUESTIONS_MAX: usize = 512;
/// Tables of symbols are kept for the files of so many programs, then all are forgotten.
const PROGRAMS_MAX: usize = 200;

/// Addresses of a program, or of the kernel (process 0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) pid: i32,
    /// When the process began to run the program.
    pub(crate) since: u64,
    pub(crate) addresses: Vec<Address>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) address: u64,
    /// Where a function goes on when another one returns, which may be behind its end.
    pub(crate) is_return: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) address: u64,
    /// From the begin of the function, or of the module without one.
    pub(crate) distance: u64,
    pub(crate) function: Vec<u8>,
    pub(crate) module: Vec<u8>,
}

/// What was found. Addresses of which nothing is known are left out.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pid: i32,
    pub(crate) since: u64,
    /// When the last of it was looked up.
    pub(crate) at: u64,
    pub(crate) names: Vec<Name>,
}

/// Where questions go, and what was found.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) kernel: SyncSender<Question>,
    pub(crate) user: SyncSender<Question>,
    pub(crate) found: Receiver<Found>,
}

/// A thread for the kernel, whose names take long to read, and one for processes, which may end
/// meanwhile. They end when the line is dropped.
pub(crate) fn start() -> Option<Line> {
    let (sender, found) = channel();
    Some(Line {
        kernel: answer(sender.clone(), |symbols, question| {
            symbols.of_kernel(&question.addresses)
        })?,
        user: answer(sender, Symbols::of_program)?,
        found,
    })
}

fn answer(
    found: Sender<Found>,
    find: fn(&mut Symbols, &Question) -> Vec<Name>,
) -> Option<SyncSender<Question>> {
    let (sender, questions) = sync_channel::<Question>(QUESTIONS_MAX);
    let work = move || {
        let mut symbols = Symbols::new();
        for question in questions {
            let names = find(&mut symbols, &question);
            let answer = Found {
                pid: question.pid,
                since: question.since,
                at: clock::monotonic(),
                names,
            };
            if found.send(answer).is_err() {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name("naming".into());
    thread.spawn(work).ok()?;
    Some(sender)
}

struct Symbols {
    symbolizer: Symbolizer,
    /// Programs that the tables were made for.
    programs: usize,
    last: (i32, u64),
}

/// Symbols of files only: tables of lines are a hundred times larger.
fn symbolizer() -> Symbolizer {
    Symbolizer::builder()
        .enable_code_info(false)
        .enable_inlined_fns(false)
        .build()
}

impl Symbols {
    fn new() -> Self {
        Self {
            symbolizer: symbolizer(),
            programs: 0,
            last: (0, 0),
        }
    }

    fn of_program(&mut self, question: &Question) -> Vec<Name> {
        let program = (question.pid, question.since);
        if self.last != program {
            self.last = program;
            self.programs += 1;
        }
        if self.programs > PROGRAMS_MAX {
            self.programs = 1;
            self.symbolizer = symbolizer();
        }
        self.of_process(question.pid, &question.addresses)
    }

    fn of_kernel(&self, addresses: &[Address]) -> Vec<Name> {
        let source = Source::Kernel(Kernel {
            vmlinux: MaybeDefault::None,
            debug_syms: false,
            ..Kernel::default()
        });
        let found = look_up(&self.symbolizer, &source, addresses);
        let known = addresses.iter().zip(found);
        known
            .filter_map(|(address, symbol)| symbol.map(|symbol| named(*address, &symbol)))
            .collect()
    }

    fn of_process(&self, pid: i32, addresses: &[Address]) -> Vec<Name> {
        let source = Source::Process(Process {
            debug_syms: false,
            ..Process::new(Pid::from(pid as u32))
        });
        let found = look_up(&self.symbolizer, &source, addresses);
        let mut maps = None;
        let mut names = Vec::with_capacity(addresses.len());
        for (address, symbol) in addresses.iter().zip(found) {
            if let Some(symbol) = symbol {
                names.push(named(*address, &symbol));
                continue;
            }
            let maps = maps.get_or_insert_with(|| Maps::of(pid));
            if let Some((module, distance)) = maps.find(address.address) {
                names.push(Name {
                    address: address.address,
                    distance,
                    function: Vec::new(),
                    module: module.to_vec(),
                });
            }
        }
        names
    }
}

/// As many as there are addresses.
fn look_up<'s>(
    symbolizer: &'s Symbolizer,
    source: &Source<'_>,
    addresses: &[Address],
) -> Vec<Option<Sym<'s>>> {
    let places: Vec<u64> = addresses.iter().map(Address::place).collect();
    // A process that is gone has no names any more.
    let mut found = symbolizer
        .symbolize(source, Input::AbsAddr(&places))
        .unwrap_or_default()
        .into_iter()
        .map(Symbolized::into_sym)
        .collect::<Vec<_>>();
    found.resize_with(addresses.len(), || None);
    found
}

impl Address {
    /// A place within the function.
    fn place(&self) -> u64 {
        self.address.saturating_sub(u64::from(self.is_return))
    }
}

fn named(address: Address, symbol: &Sym<'_>) -> Name {
    let module = symbol.module.as_deref().map(OsStrExt::as_bytes);
    Name {
        address: address.address,
        distance: symbol.offset as u64 + u64::from(address.is_return),
        function: symbol.name.as_bytes().to_vec(),
        module: module.unwrap_or_default().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_this_process_has_its_name() {
        let line = start().expect("a thread");
        let address = a_function_of_this_process_has_its_name as *const () as usize as u64;
        let question = Question {
            pid: std::process::id() as i32,
            since: 3,
            addresses: vec![
                Address {
                    address: address + 1,
                    is_return: true,
                },
                Address {
                    address: 8,
                    is_return: true,
                },
            ],
        };
        line.user.send(question).expect("it lives");
        let found = line.found.recv().expect("it answers");
        assert_eq!(found.since, 3);
        let [name] = found.names.as_slice() else {
            panic!("{found:?}");
        };
        let function = String::from_utf8_lossy(&name.function);
        assert!(
            function.contains("a_function_of_this_process_has_its_name"),
            "{function}"
        );
        assert_eq!(name.distance, 1);
        assert!(!name.module.is_empty());
    }

    #[test]
    fn a_process_that_is_gone_has_no_names() {
        let mut symbols = Symbols::new();
        let names = symbols.of_program(&Question {
            pid: i32::MAX,
            since: 0,
            addresses: vec![Address {
                address: 0x1000,
                is_return: false,
            }],
        });
        assert_eq!(names, []);
    }
}
