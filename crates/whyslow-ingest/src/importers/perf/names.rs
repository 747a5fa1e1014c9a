//! Symbols of addresses: from the mapped files, if they are unchanged, and from the kernel's symbol
//! table if the recorded kernel is the running one.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::head::FileInfo;
use super::kernel::Recorded;
use super::maps::{KERNEL, Maps, Module};

/// Symbols whose address identifies the kernel, as perf names the kernel's mapping.
const KERNEL_STARTS: [&str; 2] = ["_text", "_stext"];
const KERNEL_PREFIX: &[u8] = b"[kernel.kallsyms]";

/// A function and an offset into it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    function: Vec<u8>,
    distance: u64,
}

/// Resolved symbol of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol<'n> {
    pub(super) function: Option<&'n [u8]>,
    pub(super) module: Option<&'n [u8]>,
    /// Offset from the start of the function, or of the module.
    pub(super) distance: Option<u64>,
}

/// An address in the address space of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) is_kernel: bool,
    pub(super) pid: i32,
    pub(super) at: u64,
    /// A return address, which may be beyond the end of the calling function.
    pub(super) is_return: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Kernel(u64),
    File(u32, u64),
}

pub(super) struct Names {
    symbolizer: Symbolizer,
    /// Whether the running kernel is the recorded one, once checked.
    kernel: Option<bool>,
    /// Load address of the recorded kernel.
    kernel_start: Option<(&'static str, u64)>,
    kernel_build_id: Option<Vec<u8>>,
    /// Mapped files that are unchanged.
    files: HashMap<u32, Option<PathBuf>>,
    found: HashMap<Place, Option<Name>>,
    pub(super) is_off: bool,
    /// Addresses without a symbol, each counted once.
    pub(super) unnamed: u64,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            symbolizer: Symbolizer::builder()
                .enable_code_info(false)
                .enable_inlined_fns(false)
                .build(),
            kernel: None,
            kernel_start: None,
            kernel_build_id: None,
            files: HashMap::new(),
            found: HashMap::new(),
            is_off: false,
            unnamed: 0,
        }
    }
}

impl Names {
    /// The mapping of the kernel itself: the address of one of its symbols, possibly with its build
    /// id.
    pub(super) fn kernel_at(&mut self, (path, address): (&[u8], u64), build_id: Option<&[u8]>) {
        let symbol = path.strip_prefix(KERNEL_PREFIX);
        let symbol = symbol.and_then(|symbol| {
            let mut starts = KERNEL_STARTS.iter();
            starts.find(|start| start.as_bytes() == symbol)
        });
        if let Some(symbol) = symbol {
            self.kernel_start = Some((*symbol, address));
            self.kernel_build_id = build_id.map(<[u8]>::to_vec);
        }
    }

    /// Resolves an address unless already done.
    pub(super) fn look_up(&mut self, maps: &Maps, info: &FileInfo, at: Address) {
        let place = place_of(maps, at);
        let Some(place) = place.filter(|place| !self.found.contains_key(place)) else {
            return;
        };
        let name = match place {
            _ if self.is_off => None,
            Place::Kernel(address) => self.kernel_name(address, info),
            Place::File(module, offset) => self.file_name(maps, &info.build_ids, module, offset),
        };
        self.unnamed += u64::from(name.is_none());
        self.found.insert(place, name);
    }

    pub(super) fn symbol<'n>(&'n self, maps: &'n Maps, at: Address) -> Symbol<'n> {
        let place = place_of(maps, at);
        let name = place.and_then(|place| self.found.get(&place)?.as_ref());
        let (module, offset) = match place {
            Some(Place::File(module, offset)) => {
                let module = maps.modules.get(module as usize);
                (module.map(|module| module.path.as_slice()), Some(offset))
            }
            Some(Place::Kernel(_)) => {
                let of = maps.find(KERNEL, at.at);
                let module = of.and_then(|(module, _)| maps.modules.get(module as usize));
                let path = module.map(|module| module.path.as_slice());
                (path.filter(|path| !path.starts_with(KERNEL_PREFIX)), None)
            }
            None => (None, None),
        };
        Symbol {
            function: name.map(|name| name.function.as_slice()),
            module,
            distance: name.map(|name| name.distance).or(offset),
        }
    }

    fn kernel_name(&mut self, address: u64, info: &FileInfo) -> Option<Name> {
        let (begin, build_id) = (self.kernel_start, self.kernel_build_id.as_deref());
        let listed = info.build_ids.get(KERNEL_PREFIX).map(Vec::as_slice);
        let is_same = *self.kernel.get_or_insert_with(|| {
            begin.is_some_and(|begin| {
                let recorded = Recorded {
                    begin,
                    release: info.release.as_deref(),
                    build_id: build_id.or(listed),
                };
                recorded.runs_here()
            })
        });
        if !is_same {
            return None;
        }
        let source = Source::Kernel(Kernel {
            kallsyms: blazesym::MaybeDefault::Default,
            vmlinux: blazesym::MaybeDefault::None,
            ..Kernel::default()
        });
        let input = Input::AbsAddr(address);
        name_of(&self.symbolizer.symbolize_single(&source, input).ok()?)
    }

    fn file_name(
        &mut self,
        maps: &Maps,
        build_ids: &HashMap<Vec<u8>, Vec<u8>>,
        module: u32,
        offset: u64,
    ) -> Option<Name> {
        let about = maps.modules.get(module as usize)?;
        let path = self
            .files
            .entry(module)
            .or_insert_with(|| same_file(about, build_ids))
            .clone()?;
        let source = Source::Elf(Elf::new(path));
        let input = Input::FileOffset(offset);
        name_of(&self.symbolizer.symbolize_single(&source, input).ok()?)
    }
}

fn place_of(maps: &Maps, at: Address) -> Option<Place> {
    let address = at.at.wrapping_sub(u64::from(at.is_return));
    if at.is_kernel {
        return Some(Place::Kernel(address));
    }
    let (module, offset) = maps.find(at.pid, address)?;
    Some(Place::File(module, offset))
}

fn name_of(found: &Symbolized<'_>) -> Option<Name> {
    let symbol = found.as_sym()?;
    Some(Name {
        function: symbol.name.as_bytes().to_vec(),
        distance: symbol.offset as u64,
    })
}

/// The file of a mapping, if it is the mapped one: symbols of another would be wrong.
fn same_file(module: &Module, build_ids: &HashMap<Vec<u8>, Vec<u8>>) -> Option<PathBuf> {
    if !module.path.starts_with(b"/") || module.path.starts_with(b"//") {
        return None;
    }
    let path = Path::new(OsStr::from_bytes(&module.path));
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let wanted = module.build_id.as_ref().or(build_ids.get(&module.path));
    let is_same = match wanted {
        Some(wanted) => {
            let has = blazesym::helper::read_elf_build_id(&path).ok().flatten();
            has.is_some_and(|has| *has == **wanted)
        }
        None => module.inode == Some(about.ino()),
    };
    is_same.then(|| path.to_owned())
}
