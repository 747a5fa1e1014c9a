//! Calls of functions, and hits of static probes, that somebody asked for.

use crate::probe::TEXTS;

/// A function of a program is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// Number of the probe, which tells functions of the same name apart.
    pub probe: u32,
    /// Name of the function.
    pub function: &'a [u8],
    /// File that it is in.
    pub module: &'a [u8],
    /// Stack pointer at the entry.
    pub sp: u64,
    /// Not called but jumped to, at the end of another one.
    pub is_tail: bool,
    /// Arguments in order; `None` where the value is not known.
    pub args: &'a [Option<i64>],
    /// Texts that arguments point at, in the order of these arguments; `None` where one could not
    /// be read.
    pub texts: [Option<&'a [u8]>; TEXTS],
}

/// A static probe of a program is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsdtHit<'a> {
    /// Provider of the static probe.
    pub provider: &'a [u8],
    /// Name of the static probe.
    pub name: &'a [u8],
    /// File that it is in.
    pub module: &'a [u8],
    /// Arguments in order; `None` where the value is not known.
    pub args: &'a [Option<i64>],
    /// Texts that arguments point at, in the order of these arguments; `None` where one could not
    /// be read.
    pub texts: [Option<&'a [u8]>; TEXTS],
}
