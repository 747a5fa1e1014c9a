//! A running program: its memory layout, and how to unwind from a function to its caller.

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

/// Maximum number of known programs; then all are dropped.
const PROGRAMS_MAX: usize = 512;
/// Maximum number of files with code per program.
const MODULES_MAX: usize = 4096;
/// Delay before the mappings of a program that runs unknown code are read again, while it loads its
/// libraries: the stack of a waiting thread is read once, however long it waits. If nothing new is
/// found, as with JIT-compiled code, the delay doubles each time, up to the maximum.
const RESCAN_MIN: Duration = Duration::from_millis(5);
const RESCAN_MAX: Duration = Duration::from_millis(200);
/// Maximum delay for which a stack waits.
const RESCAN_WAIT_MAX: Duration = Duration::from_millis(10);
/// The kernel's own limit.
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
    scanned: Option<Instant>,
    rescan_delay: Duration,
    /// Some mappings changed before their file was opened, as during exec.
    is_partial: bool,
    unwinder: Native<Bytes>,
    cache: Box<Cache>,
    /// Start addresses of modules, with the identity of their files.
    added: HashMap<u64, (u64, u64)>,
}

impl Program {
    fn new(pid: i32) -> Self {
        Self {
            pid,
            maps: Maps::default(),
            scanned: None,
            rescan_delay: RESCAN_MIN,
            is_partial: false,
            unwinder: Native::new(),
            cache: Box::new(Cache::new()),
            added: HashMap::new(),
        }
    }

    /// Addresses of the calling functions, innermost first.
    pub(super) fn walk(
        &mut self,
        registers: &Registers,
        memory: &mut Memory,
        tables: &mut Tables,
    ) -> (Vec<u64>, End) {
        self.know(registers.ip, tables);
        let (mut frames, mut end) = self.walk_once(registers, memory);
        // A library that was loaded since is in the middle of the stack.
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

    /// Reads the mappings again if this address is not known; returns whether it now is.
    fn know(&mut self, address: u64, tables: &mut Tables) -> bool {
        let is_known = self.maps.code_at(address).is_some() && !self.is_partial;
        if is_known {
            return false;
        }
        let since = self.scanned.map_or(self.rescan_delay, |at| at.elapsed());
        let early = self.rescan_delay.saturating_sub(since);
        if !early.is_zero() && self.rescan_delay > RESCAN_WAIT_MAX {
            return false;
        }
        thread::sleep(early);
        self.scanned = Some(Instant::now());
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
        self.rescan_delay = if is_found && !self.is_partial {
            RESCAN_MIN
        } else {
            (self.rescan_delay * 2).min(RESCAN_MAX)
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

/// `None` for code without a file, or whose file has no call frame information.
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
