//! Flags in record heads.

/// Head flag: a system call through the 32-bit table.
pub const COMPAT: u16 = 1;
/// Head flag: the entry of the call was recorded separately.
pub const ENTRY_RECORDED: u16 = 2;
/// Head flag: the thread is not the one that was running on the CPU.
pub const ELSEWHERE: u16 = 4;
/// Head flag: the thread was off-CPU for long during its call; the user stack follows at the
/// return.
pub const SLEPT: u16 = 8;
/// Head flag: the function was entered by a jump at the end of another one (tail call).
pub const TAIL: u16 = 16;
/// Head flags, of which one is set if the kernel reports it: the CPU served no interrupt, …
pub const IN_TASK: u16 = 0x100;
/// … a softirq, …
pub const IN_SOFTIRQ: u16 = 0x200;
/// … a hard interrupt.
pub const IN_HARDIRQ: u16 = 0x400;
