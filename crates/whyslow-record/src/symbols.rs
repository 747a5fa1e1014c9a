//! Symbolizes addresses, in a separate thread while the processes still live.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use blazesym::{MaybeDefault, Pid};

use crate::clock;
use crate::heap;
use crate::libraries::elf;
use crate::maps::Maps;
use crate::plain;

/// Maximum number of queued requests; further ones are not sent.
const REQUESTS_MAX: usize = 512;
/// Symbol tables are cached for the files of this many programs, up to this total size; then all
/// are dropped. A file that alone exceeds the size is not symbolized.
const PROGRAMS_MAX: usize = 200;
const TABLES_BYTES_MAX: u64 = 12 << 20;
/// Memory per symbol: its entry in the mapped file, and its place in an index.
const SYMBOL_BYTES: u64 = 24 + 2 * 8;
/// Where JIT compilers write their perf maps.
const PERF_MAPS: &str = "tmp";
/// Memory per byte of a perf map.
const PERF_MAP_FACTOR: u64 = 3;

/// Addresses in a program, or in the kernel (pid 0); empty to drop the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SymbolRequest {
    pub(crate) pid: i32,
    /// When the process started to run the program.
    pub(crate) since: u64,
    pub(crate) addresses: Vec<Address>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) address: u64,
    /// A return address, which may be after the end of the function.
    pub(crate) is_return: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) address: u64,
    /// Offset from the start of the function, or of the module if there is none.
    pub(crate) distance: u64,
    pub(crate) function: Vec<u8>,
    pub(crate) module: Vec<u8>,
}

/// Result of a request. Unknown addresses are left out.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pid: i32,
    pub(crate) since: u64,
    /// When the last address was looked up.
    pub(crate) at: u64,
    pub(crate) names: Vec<Name>,
}

/// Channels to the symbolizer threads.
#[derive(Debug)]
pub(crate) struct Workers {
    pub(crate) kernel: SyncSender<SymbolRequest>,
    pub(crate) user: SyncSender<SymbolRequest>,
    pub(crate) found: Receiver<Found>,
    /// Files without symbols because their tables would be too large.
    pub(crate) too_large: Arc<AtomicU64>,
}

/// Starts a thread for the kernel, whose symbols take long to read, and one for processes, which
/// may exit meanwhile. They end when the channels are dropped.
pub(crate) fn start() -> Option<Workers> {
    let (sender, found) = channel();
    let too_large = Arc::<AtomicU64>::default();
    let of_kernel =
        |symbols: &mut Symbols, request: &SymbolRequest| symbols.of_kernel(&request.addresses);
    Some(Workers {
        kernel: spawn_worker(sender.clone(), Arc::clone(&too_large), of_kernel)?,
        user: spawn_worker(sender, Arc::clone(&too_large), Symbols::of_program)?,
        found,
        too_large,
    })
}

fn spawn_worker(
    found: Sender<Found>,
    too_large: Arc<AtomicU64>,
    find: fn(&mut Symbols, &SymbolRequest) -> Vec<Name>,
) -> Option<SyncSender<SymbolRequest>> {
    let (sender, requests) = sync_channel::<SymbolRequest>(REQUESTS_MAX);
    let work = move || {
        let mut symbols = Symbols::new(too_large);
        for request in requests {
            if request.addresses.is_empty() {
                symbols.forget();
                continue;
            }
            let names = find(&mut symbols, &request);
            let reply = Found {
                pid: request.pid,
                since: request.since,
                at: clock::monotonic(),
                names,
            };
            if found.send(reply).is_err() {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name("naming".into());
    thread.spawn(work).ok()?;
    Some(sender)
}

/// Inode and path.
type FileKey = (u64, Vec<u8>);

struct Symbols {
    too_large: Arc<AtomicU64>,
    symbolizer: Symbolizer,
    /// Number of programs with tables in the cache.
    programs: usize,
    /// Whether each file may have a table, or is too large for one.
    files: HashMap<FileKey, bool>,
    /// Memory of the tables.
    bytes: u64,
    last: (i32, u64),
}

/// Function symbols only: line tables are a hundred times larger.
fn symbolizer() -> Symbolizer {
    Symbolizer::builder()
        .enable_code_info(false)
        .enable_inlined_fns(false)
        .build()
}

impl Symbols {
    fn new(too_large: Arc<AtomicU64>) -> Self {
        Self {
            too_large,
            symbolizer: symbolizer(),
            programs: 0,
            files: HashMap::new(),
            bytes: 0,
            last: (0, 0),
        }
    }

    fn of_program(&mut self, request: &SymbolRequest) -> Vec<Name> {
        let program = (request.pid, request.since);
        if self.last != program {
            self.last = program;
            self.programs += 1;
        }
        if self.programs > PROGRAMS_MAX {
            self.forget();
        }
        self.of_process(request.pid, &request.addresses)
    }

    fn forget(&mut self) {
        self.symbolizer = symbolizer();
        self.programs = 1;
        self.bytes = 0;
        // Files that are too large remain so.
        self.files.retain(|_, fits| !*fits);
        heap::trim();
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

    fn of_process(&mut self, pid: i32, addresses: &[Address]) -> Vec<Name> {
        let maps = Maps::of(pid);
        let (small, large): (Vec<Address>, Vec<Address>) = addresses
            .iter()
            .partition(|address| self.fits(pid, maps.file(address.address)));
        let source = Source::Process(Process {
            debug_syms: false,
            perf_map: self.compiled_fits(pid),
            ..Process::new(Pid::from(pid as u32))
        });
        let found = look_up(&self.symbolizer, &source, &small);
        let mut names = Vec::with_capacity(addresses.len());
        let unknown = large.iter().map(|address| (address, None));
        for (address, symbol) in small.iter().zip(found).chain(unknown) {
            if let Some(symbol) = symbol {
                names.push(named(*address, &symbol));
            } else if let Some((module, distance)) = maps.find(address.address) {
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

    /// Whether the file may have a symbol table; may evict others for it.
    fn fits(&mut self, pid: i32, file: Option<((u64, &[u8]), String)>) -> bool {
        let Some(((inode, path), range)) = file else {
            return true;
        };
        let key = (inode, path.to_vec());
        if let Some(fits) = self.files.get(&key) {
            return *fits;
        }
        let mapped = plain::open_mapped(pid, &range);
        // An unreadable file has no table either.
        let symbols = mapped.and_then(|file| elf::symbols(&file)).unwrap_or(0);
        let bytes = symbols.saturating_mul(SYMBOL_BYTES);
        let fits = bytes <= TABLES_BYTES_MAX;
        if fits {
            self.evict_for(bytes);
        } else {
            self.too_large.fetch_add(1, Ordering::Relaxed);
        }
        self.files.insert(key, fits);
        fits
    }

    /// The same for the perf map of a JIT compiler.
    fn compiled_fits(&mut self, pid: i32) -> bool {
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        let place = root.join(format!("{PERF_MAPS}/perf-{pid}.map"));
        let Ok(about) = fs::metadata(place) else {
            return true;
        };
        let bytes = about.len().saturating_mul(PERF_MAP_FACTOR);
        if bytes <= TABLES_BYTES_MAX {
            // It grows, and is then read again.
            self.evict_for(bytes);
        }
        bytes <= TABLES_BYTES_MAX
    }

    fn evict_for(&mut self, bytes: u64) {
        if self.bytes + bytes > TABLES_BYTES_MAX {
            self.forget();
        }
        self.bytes += bytes;
    }
}

/// One result per address.
fn look_up<'s>(
    symbolizer: &'s Symbolizer,
    source: &Source<'_>,
    addresses: &[Address],
) -> Vec<Option<Sym<'s>>> {
    let places: Vec<u64> = addresses.iter().map(Address::place).collect();
    // An exited process has no symbols.
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
    /// An address within the function.
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
        let workers = start().expect("a thread");
        let address = a_function_of_this_process_has_its_name as *const () as usize as u64;
        let request = SymbolRequest {
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
        workers.user.send(request).expect("it lives");
        let found = workers.found.recv().expect("it answers");
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
        let mut symbols = Symbols::new(Arc::default());
        let names = symbols.of_program(&SymbolRequest {
            pid: i32::MAX,
            since: 0,
            addresses: vec![Address {
                address: 0x1000,
                is_return: false,
            }],
        });
        assert_eq!(names, []);
    }

    #[test]
    fn tables_of_files_make_room_for_each_other() {
        let mut symbols = Symbols::new(Arc::default());
        let pid = std::process::id() as i32;
        let maps = Maps::of(pid);
        let here = tables_of_files_make_room_for_each_other as *const () as usize as u64;
        let is_root = rustix::process::getuid().is_root();
        assert!(symbols.fits(pid, maps.file(here)));
        assert!(symbols.bytes > 0 || !is_root);
        let bytes = symbols.bytes;
        assert!(symbols.fits(pid, maps.file(here)));
        assert_eq!(symbols.bytes, bytes);
        symbols.evict_for(TABLES_BYTES_MAX - 1);
        assert_eq!(
            (symbols.bytes, symbols.files.len()),
            (TABLES_BYTES_MAX - 1, 0)
        );
    }
}
