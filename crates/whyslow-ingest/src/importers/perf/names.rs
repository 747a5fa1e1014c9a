//! Names of addresses: from the files that were mapped, as far as they are still the same, and from the
//! kernel's list of symbols if it is the same kernel that runs here.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::head::Told;
use super::kernel::Recorded;
use super::maps::{KERNEL, Maps, Module};

/// Symbols whose address tells whether it is the same kernel, as perf names their mapping.
const KERNEL_BEGINS: [&str; 2] = ["_text", "_stext"];
const KERNEL_PREFIX: &[u8] = b"[kernel.kallsyms]";

/// A function and how far into it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    function: Vec<u8>,
    distance: u64,
}

/// What is known of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known<'n> {
    pub(super) function: Option<&'n [u8]>,
    pub(super) module: Option<&'n [u8]>,
    /// From the begin of the function, or of the module.
    pub(super) distance: Option<u64>,
}

/// An address with the process it is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) is_kernel: bool,
    pub(super) pid: i32,
    pub(super) at: u64,
    /// Where a function goes on when the one it called returns: that may be behind its end.
    pub(super) is_return: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Kernel(u64),
    File(u32, u64),
}

pub(super) struct Names {
    symbolizer: Symbolizer,
    /// Whether the kernel that runs here is the one that was recorded, once that was looked at.
    kernel: Option<bool>,
    /// Where the recorded kernel begins.
    kernel_begin: Option<(&'static str, u64)>,
    kernel_build_id: Option<Vec<u8>>,
    /// The files that are still the same.
    files: HashMap<u32, Option<PathBuf>>,
    found: HashMap<Place, Option<Name>>,
    pub(super) is_off: bool,
    /// Addresses without name, each counted once.
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
            kernel_begin: None,
            kernel_build_id: None,
            files: HashMap::new(),
            found: HashMap::new(),
            is_off: false,
            unnamed: 0,
        }
    }
}

impl Names {
    /// The mapping of the kernel itself: where a symbol of it lies, perhaps with its build id.
    pub(super) fn kernel_at(&mut self, (path, address): (&[u8], u64), build_id: Option<&[u8]>) {
        let symbol = path.strip_prefix(KERNEL_PREFIX);
        let known = symbol.and_then(|symbol| {
            let mut begins = KERNEL_BEGINS.iter();
            begins.find(|begin| begin.as_bytes() == symbol)
        });
        if let Some(symbol) = known {
            self.kernel_begin = Some((*symbol, address));
            self.kernel_build_id = build_id.map(<[u8]>::to_vec);
        }
    }

    /// Looks an address up, if that was not done before.
    pub(super) fn look_up(&mut self, maps: &Maps, told: &Told, at: Address) {
        let place = place_of(maps, at);
        let Some(place) = place.filter(|place| !self.found.contains_key(place)) else {
            return;
        };
        let name = match place {
            _ if self.is_off => None,
            Place::Kernel(address) => self.kernel_name(address, told),
            Place::File(module, offset) => self.file_name(maps, &told.build_ids, module, offset),
        };
        self.unnamed += u64::from(name.is_none());
        self.found.insert(place, name);
    }

    pub(super) fn known<'n>(&'n self, maps: &'n Maps, at: Address) -> Known<'n> {
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
        Known {
            function: name.map(|name| name.function.as_slice()),
            module,
            distance: name.map(|name| name.distance).or(offset),
        }
    }

    fn kernel_name(&mut self, address: u64, told: &Told) -> Option<Name> {
        let (begin, build_id) = (self.kernel_begin, self.kernel_build_id.as_deref());
        let listed = told.build_ids.get(KERNEL_PREFIX).map(Vec::as_slice);
        let is_same = *self.kernel.get_or_insert_with(|| {
            begin.is_some_and(|begin| {
                let recorded = Recorded {
                    begin,
                    release: told.release.as_deref(),
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

/// The file of a mapping, if it is the one that was mapped: names of another would be wrong.
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
