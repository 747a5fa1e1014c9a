//! Flags of the heads of records.

/// Flag of a head: a system call through the 32-bit table.
pub const COMPAT: u16 = 1;
/// Flag of a head: the entry of the call was told in a record of its own.
pub const TOLD: u16 = 2;
/// Flag of a head: the thread is not the one that ran on the CPU.
pub const ELSEWHERE: u16 = 4;
/// Flag of a head: the thread was away from the CPU for long in its call, whose return tells of the
/// user stack.
pub const SLEPT: u16 = 8;
/// Flag of a head: the function was not called but jumped to, at the end of another one.
pub const TAIL: u16 = 16;
/// Flags of a head, of which one is set where the kernel tells: the CPU served no interrupt, …
pub const IN_TASK: u16 = 0x100;
/// … a soft one, …
pub const IN_SOFTIRQ: u16 = 0x200;
/// … a hard one.
pub const IN_HARDIRQ: u16 = 0x400;
