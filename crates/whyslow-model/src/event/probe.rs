//! Calls of functions, and hits of static probes, that somebody asked for.

use crate::probe::TEXTS;

/// A function of a program is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// Number of the probe, which tells functions of the same name apart.
    pub probe: u32,
    pub function: &'a [u8],
    /// File that it is in.
    pub module: &'a [u8],
    /// Stack pointer at the entry.
    pub sp: u64,
    /// Not called but jumped to, at the end of another one.
    pub is_tail: bool,
    pub args: &'a [Option<i64>],
    pub texts: [Option<&'a [u8]>; TEXTS],
}

/// A static probe of a program is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsdtHit<'a> {
    pub provider: &'a [u8],
    pub name: &'a [u8],
    /// File that it is in.
    pub module: &'a [u8],
    pub args: &'a [Option<i64>],
    pub texts: [Option<&'a [u8]>; TEXTS],
}
