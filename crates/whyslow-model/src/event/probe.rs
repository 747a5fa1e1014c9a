//! Hits of user-defined probes: function calls and USDT probes.

use crate::probe::TEXTS;

/// Entry to a probed function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// Number of the probe; distinguishes functions of the same name.
    pub probe: u32,
    /// Name of the function.
    pub function: &'a [u8],
    /// File that contains the function.
    pub module: &'a [u8],
    /// Stack pointer at entry.
    pub sp: u64,
    /// Entered by a jump at the end of another function (tail call).
    pub is_tail: bool,
    /// Arguments in order; `None` if the value is unknown.
    pub args: &'a [Option<i64>],
    /// Texts that arguments point to, in the order of these arguments; `None` if a text could not
    /// be read.
    pub texts: [Option<&'a [u8]>; TEXTS],
}

/// Hit of a USDT probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsdtHit<'a> {
    /// Provider of the probe.
    pub provider: &'a [u8],
    /// Name of the probe.
    pub name: &'a [u8],
    /// File that contains the probe.
    pub module: &'a [u8],
    /// Arguments in order; `None` if the value is unknown.
    pub args: &'a [Option<i64>],
    /// Texts that arguments point to, in the order of these arguments; `None` if a text could not
    /// be read.
    pub texts: [Option<&'a [u8]>; TEXTS],
}
