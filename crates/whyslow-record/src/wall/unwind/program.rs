//! A program that runs: what is where in its memory, and how to get from a function to its caller.

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as Regs, UnwinderAarch64 as Native,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Regs, UnwinderX86_64 as Native};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};

use super::memory::Memory;
use super::tables::{Bytes, Table, Tables};
use super::{End, Registers};
use crate::maps::{Code, Maps};

/// Programs that are known; then all are forgotten.
const PROGRAMS_MAX: usize = 512;
/// Files with code that a program may have.
const MODULES_MAX: usize = 4096;
/// A program that runs what it had not mapped is looked at again after so long, while it loads its libraries: a
/// thread that waits then has its stack read once, however long it waits. Where nothing new is found, as with
/// code that is made at run time, each time is twice as long as the one before, up to the other.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(5);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(200);
/// No stack waits for longer until its program may be looked at again.
const WAITED_FOR: Duration = Duration::from_millis(10);
/// As many as the kernel gives of its own.
const FRAMES_MAX: usize = 127;

#[derive(Default)]
pub(super) struct Programs {
    known: HashMap<i32, Program>,
}

impl Programs {
    pub(super) fn of(&mut self, pid: i32) -> &mut Program {
        if self.known.len() >= PROGRAMS_MAX && !self.known.contains_key(&pid) {
            self.known.clear();
        }
        self.known.entry(pid).or_insert_with(|| Program::new(pid))
    }

    pub(super) fn forget(&mut self, pid: i32) {
        self.known.remove(&pid);
    }
}

pub(super) struct Program {
    pid: i32,
    maps: Maps,
    looked: Option<Instant>,
    look_again: Duration,
    /// Something was mapped otherwise by the time its file was opened, as while another program is begun.
    is_partial: bool,
    unwinder: Native<Bytes>,
    cache: Box<Cache>,
    /// Where modules begin, and that of their files.
    added: HashMap<u64, (u64, u64)>,
}

impl Program {
    fn new(pid: i32) -> Self {
        Self {
            pid,
            maps: Maps::default(),
            looked: None,
            look_again: LOOK_AGAIN_MIN,
            is_partial: false,
            unwinder: Native::new(),
            cache: Box::new(Cache::new()),
            added: HashMap::new(),
        }
    }

    /// Addresses of the functions that called each other, innermost first.
    pub(super) fn walk(
        &mut self,
        registers: &Registers,
        memory: &mut Memory,
        tables: &mut Tables,
    ) -> (Vec<u64>, End) {
        self.know(registers.ip, tables);
        let (mut frames, mut end) = self.walk_once(registers, memory);
        // A library that was loaded since is in the middle of it.
        let unknown = frames.iter().find(|ip| self.maps.code_at(**ip).is_none());
        if let Some(unknown) = unknown.copied()
            && end == End::Cut
            && self.know(unknown, tables)
        {
            (frames, end) = self.walk_once(registers, memory);
        }
        (frames, end)
    }

    fn walk_once(&mut self, registers: &Registers, memory: &mut Memory) -> (Vec<u64>, End) {
        let mut read = |address| memory.at(address).ok_or(());
        let regs = native(registers);
        let mut callers = self
            .unwinder
            .iter_frames(registers.ip, regs, &mut self.cache, &mut read);
        let mut frames = Vec::new();
        loop {
            match callers.next() {
                Ok(Some(frame)) if frames.len() < FRAMES_MAX => frames.push(frame.address()),
                Ok(None) => break (frames, End::Whole),
                Ok(Some(_)) | Err(_) => break (frames, End::Cut),
            }
        }
    }

    /// Looks at what is mapped if this place is not known; tells whether it is new.
    fn know(&mut self, address: u64, tables: &mut Tables) -> bool {
        let is_known = self.maps.code_at(address).is_some() && !self.is_partial;
        if is_known {
            return false;
        }
        let since = self.looked.map_or(self.look_again, |at| at.elapsed());
        let early = self.look_again.saturating_sub(since);
        if !early.is_zero() && self.look_again > WAITED_FOR {
            return false;
        }
        thread::sleep(early);
        self.looked = Some(Instant::now());
        self.maps = Maps::of(self.pid);
        let mut added = HashMap::new();
        self.is_partial = false;
        for code in self.maps.code().take(MODULES_MAX) {
            let begin = code.range.start;
            let what = (code.range.end, code.inode);
            if self.added.remove(&begin) == Some(what) {
                added.insert(begin, what);
                continue;
            }
            self.unwinder.remove_module(begin);
            match module(self.pid, &code, tables) {
                Ok(Some(module)) => {
                    self.unwinder.add_module(module);
                    added.insert(begin, what);
                }
                Ok(None) => {}
                Err(_) => self.is_partial = true,
            }
        }
        for gone in self.added.keys() {
            if !added.contains_key(gone) {
                self.unwinder.remove_module(*gone);
            }
        }
        self.added = added;
        let is_found = self.maps.code_at(address).is_some();
        self.look_again = if is_found && !self.is_partial {
            LOOK_AGAIN_MIN
        } else {
            (self.look_again * 2).min(LOOK_AGAIN_MAX)
        };
        is_found
    }
}

#[cfg(target_arch = "x86_64")]
fn native(registers: &Registers) -> Regs {
    Regs::new(registers.ip, registers.sp, registers.bp.unwrap_or(0))
}

#[cfg(target_arch = "aarch64")]
fn native(registers: &Registers) -> Regs {
    Regs::new(registers.lr, registers.sp, registers.bp.unwrap_or(0))
}

/// Nothing for code that has no file, or whose file tells nothing of callers.
fn module(pid: i32, code: &Code<'_>, tables: &mut Tables) -> io::Result<Option<Module<Bytes>>> {
    if code.inode == 0 {
        return Ok(None);
    }
    let range = format!("{:x}-{:x}", code.range.start, code.range.end);
    let Some(table) = tables.of((code.inode, code.path.to_vec()), (pid, &range))? else {
        return Ok(None);
    };
    let base = table.at.base(code.range.start, code.offset);
    let (range, sections) = (code.range.clone(), sections(&table));
    Ok(base.map(|base| Module::new(String::new(), range, base, sections)))
}

fn sections(table: &Table) -> ExplicitModuleSectionInfo<Bytes> {
    let range = |address: u64, size: u64| address..address.saturating_add(size);
    let (frames, header) = (&table.at.frames, &table.at.header);
    let has_header = table.header.is_some();
    ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_svma: Some(range(frames.address, frames.size)),
        eh_frame: Some(table.frames.clone()),
        eh_frame_hdr_svma: header
            .filter(|_| has_header)
            .map(|header| range(header.address, header.size)),
        eh_frame_hdr: table.header.clone(),
        ..Default::default()
    }
}
