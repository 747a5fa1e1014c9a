//! A sample of a thread, in the layout of the BPF iterator (`bpf/wall.h`).

use super::unwind::Registers;

/// Flags of a sample.
const ON_CPU: u16 = 1;
const SAME: u16 = 2;
const OF_KERNEL: u16 = 4;
const COMPAT: u16 = 8;

const HEAD_BYTES: usize = 40;
const SAMPLE_BYTES: usize = HEAD_BYTES + 48;

/// State of a thread at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadSample {
    pub(super) ts: u64,
    pub(super) tid: i32,
    pub(super) pid: i32,
    /// Number of times that it left the CPU; if unknown, number of times that it got one.
    pub(super) switches: u64,
    /// CPU time in ns; 0 if unknown.
    pub(super) ran: u64,
    pub(super) doing: Doing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doing {
    /// It is on a CPU; only that CPU knows where.
    Runs,
    /// It is on a CPU or waits for one: a tick of the CPU shows which.
    MayRun,
    /// It is off-CPU, in this kernel task state, …
    Away(u32, Away),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Away {
    /// … as in the previous sample, without having run since.
    Same,
    OffCpu(Box<Place>),
}

/// Where an off-CPU thread is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Number of times that it got a CPU; 0 if not counted.
    pub(super) runs: u64,
    /// `None` for a kernel thread, and if unknown.
    pub(super) registers: Option<Registers>,
    /// -1 if it is not in a system call.
    pub(super) nr: i32,
    pub(super) is_compat: bool,
    /// Innermost first.
    pub(super) kernel: Vec<u64>,
}

impl ThreadSample {
    /// It waits for a CPU, and had one since the previous sample.
    pub(super) fn is_preempted(&self) -> bool {
        matches!(self.doing, Doing::Away(0, Away::OffCpu(_)))
    }
}

/// Parses the iterator's output, up to a sample that is truncated or has an invalid length.
pub(super) fn parse(mut bytes: &[u8], found: &mut Vec<ThreadSample>) {
    while let Some((sample, rest)) = one(bytes) {
        found.push(sample);
        bytes = rest;
    }
}

fn one(bytes: &[u8]) -> Option<(ThreadSample, &[u8])> {
    let length = usize::from(u16::from_le_bytes(bytes.get(36..38)?.try_into().ok()?));
    let flags = u16::from_le_bytes(bytes.get(38..40)?.try_into().ok()?);
    if length < HEAD_BYTES {
        return None;
    }
    let (sample, rest) = bytes.split_at_checked(length)?;
    let u64_at = |at: usize| Some(u64::from_le_bytes(sample.get(at..at + 8)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(sample.get(at..at + 4)?.try_into().ok()?));
    let has = |flag| flags & flag != 0;
    let doing = if has(ON_CPU) {
        Doing::Runs
    } else if has(SAME) {
        Doing::Away(u32_at(32)?, Away::Same)
    } else {
        let kernel = sample.get(SAMPLE_BYTES..)?.chunks_exact(8);
        let address = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let registers = Registers {
            ip: u64_at(48)?,
            sp: u64_at(56)?,
            bp: Some(u64_at(64)?),
            lr: u64_at(72)?,
        };
        let place = Place {
            runs: u64_at(40)?,
            registers: (!has(OF_KERNEL)).then_some(registers),
            nr: u32_at(80)? as i32,
            is_compat: has(COMPAT),
            kernel: kernel
                .map(address)
                .filter(|address| *address != 0)
                .collect(),
        };
        Doing::Away(u32_at(32)?, Away::OffCpu(Box::new(place)))
    };
    let sample = ThreadSample {
        ts: u64_at(0)?,
        switches: u64_at(8)?,
        ran: u64_at(16)?,
        tid: u32_at(24)? as i32,
        pid: u32_at(28)? as i32,
        doing,
    };
    Some((sample, rest))
}

/// A thread that was running at a tick of its CPU.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) ts: u64,
    pub(super) cpu: u16,
    pub(super) tid: i32,
    pub(super) pid: i32,
    pub(super) is_compat: bool,
    pub(super) nr: i32,
    pub(super) registers: Registers,
    pub(super) kernel: Vec<u64>,
    /// Number of times that it had got a CPU; 0 if not counted.
    pub(super) runs: u64,
    /// From the stack pointer on; empty for a kernel thread.
    pub(super) stack: Vec<u8>,
}

/// Kind of the record.
pub(crate) const RUNS: u16 = 61;

const RUN_BYTES: usize = 72;

impl Run {
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let u16_at = |at: usize| Some(u16::from_le_bytes(record.get(at..at + 2)?.try_into().ok()?));
        let (kernel, stack) = (u16_at(68)?, u16_at(70)?);
        let rest = record.get(RUN_BYTES..)?;
        let (kernel, rest) = rest.split_at_checked(8 * usize::from(kernel))?;
        let address = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let kernel = kernel.chunks_exact(8).map(address);
        Some(Self {
            ts: u64_at(8)?,
            cpu: u16_at(4)?,
            tid: u32_at(16)? as i32,
            pid: u32_at(20)? as i32,
            is_compat: u16_at(6)? & whyslow_model::spool::COMPAT != 0,
            nr: u32_at(64)? as i32,
            runs: u64_at(56)?,
            registers: Registers {
                ip: u64_at(24)?,
                sp: u64_at(32)?,
                bp: Some(u64_at(40)?),
                lr: u64_at(48)?,
            },
            kernel: kernel.filter(|address| *address != 0).collect(),
            stack: rest.get(..usize::from(stack))?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeleton::types;

    #[test]
    fn layouts_are_those_of_the_programs() {
        assert_eq!(size_of::<types::thread_sample_head>(), HEAD_BYTES);
        assert_eq!(size_of::<types::thread_sample>(), SAMPLE_BYTES);
        assert_eq!(size_of::<types::wall_run>(), RUN_BYTES);
        assert!(include_str!("../bpf/wall.h").contains("#define WALL_RUNS 61\n"));
    }

    fn sample(flags: u16, kernel: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(5_u64.to_le_bytes());
        bytes.extend(6_u64.to_le_bytes());
        bytes.extend(14_u64.to_le_bytes());
        bytes.extend([7_u32, 8, 2].map(u32::to_le_bytes).concat());
        let is_short = flags & (ON_CPU | SAME) != 0;
        let length = if is_short {
            HEAD_BYTES
        } else {
            SAMPLE_BYTES + 8 * kernel.len()
        };
        bytes.extend((length as u16).to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        if !is_short {
            bytes.extend([9_u64, 10, 11, 12, 13].map(u64::to_le_bytes).concat());
            bytes.extend((-1_i32).to_le_bytes());
            bytes.extend((kernel.len() as u32).to_le_bytes());
            bytes.extend(kernel.iter().flat_map(|address| address.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn looks_come_one_after_another() {
        let bytes = [
            sample(ON_CPU, &[]),
            sample(0, &[3, 4]),
            sample(SAME, &[]),
            sample(OF_KERNEL, &[]),
        ];
        let mut found = Vec::new();
        parse(&bytes.concat(), &mut found);
        assert_eq!(found.len(), 4);
        assert_eq!(
            (found[0].ts, found[0].switches, found[0].tid, found[0].pid),
            (5, 6, 7, 8)
        );
        assert_eq!(found[0].ran, 14);
        assert_eq!(found[0].doing, Doing::Runs);
        let Doing::Away(2, Away::OffCpu(place)) = &found[1].doing else {
            panic!("{found:?}");
        };
        assert_eq!(
            (place.runs, place.nr, place.kernel.as_slice()),
            (9, -1, &[3, 4][..])
        );
        let registers = place.registers.expect("of a program");
        assert_eq!(
            (registers.ip, registers.sp, registers.bp),
            (10, 11, Some(12))
        );
        assert_eq!(found[2].doing, Doing::Away(2, Away::Same));
        let Doing::Away(2, Away::OffCpu(place)) = &found[3].doing else {
            panic!("{found:?}");
        };
        assert_eq!(place.registers, None);
    }

    #[test]
    fn what_is_cut_or_lies_ends_it() {
        let whole = [sample(SAME, &[]), sample(0, &[3, 4])].concat();
        for length in 0..whole.len() {
            let mut found = Vec::new();
            parse(&whole[..length], &mut found);
            assert_eq!(found.len(), usize::from(length >= HEAD_BYTES), "{length}");
        }
        for at in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            let mut found = Vec::new();
            parse(&bytes, &mut found);
            assert!(found.len() <= 3, "{at}");
            Run::parse(&bytes);
        }
    }
}
