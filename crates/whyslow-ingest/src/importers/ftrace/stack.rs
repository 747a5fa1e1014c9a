//! Stack frames, one per line.
//!
//! ```text
//!     ffffffff813aa3e5 ttwu_do_activate+0x55 ([kernel.kallsyms])     perf script
//!         7fb299e99b1d __write (/usr/lib/libc.so.6)
//!  => schedule                                                       ftrace, trace-cmd report
//!  => do_syscall_64 <ffffffff8138f25f>
//! ```

use whyslow_model::event::Frame;

/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 1024;
const KERNEL_HALF: u64 = 1 << 63;

#[derive(Debug, Default)]
pub(super) struct Frames {
    lines: Vec<Printed>,
}

#[derive(Debug)]
struct Printed {
    is_kernel: bool,
    address: u64,
    function: Option<String>,
    module: Option<String>,
    distance: Option<u64>,
}

pub(super) fn is_frame(line: &str) -> bool {
    Printed::read(line).is_some() || is_head(line)
}

/// `<stack trace>` before ftrace frames.
fn is_head(line: &str) -> bool {
    line.starts_with("<stack trace") || line.starts_with("=> <stack trace")
}

impl Frames {
    /// Whether the line is a frame.
    pub(super) fn add(&mut self, line: &str) -> bool {
        if is_head(line) {
            return true;
        }
        let Some(frame) = Printed::read(line) else {
            return false;
        };
        if self.lines.len() < FRAMES_MAX {
            self.lines.push(frame);
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn frames(&self) -> Vec<Frame<'_>> {
        let lines = self.lines.iter();
        lines
            .map(|line| Frame {
                is_kernel: line.is_kernel,
                address: line.address,
                function: line.function.as_ref().map(String::as_bytes),
                module: line.module.as_ref().map(String::as_bytes),
                distance: line.distance,
                ..Frame::default()
            })
            .collect()
    }
}

impl Printed {
    fn read(line: &str) -> Option<Self> {
        if let Some(rest) = line.strip_prefix("=> ") {
            let (function, address) = match rest.split_once(" <") {
                Some((function, address)) => (function, address.trim_end_matches('>')),
                None => (rest, ""),
            };
            return Some(Self {
                is_kernel: true,
                address: u64::from_str_radix(address, 16).unwrap_or(0),
                function: Some(plain(function.trim()).to_owned()),
                module: None,
                distance: None,
            });
        }
        let (address, rest) = line.split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let (function, module) = match rest.rsplit_once(" (") {
            Some((function, module)) => (function, Some(module.strip_suffix(')')?)),
            None => (rest, None),
        };
        let (function, distance) = match function.rsplit_once("+0x") {
            Some((function, distance)) => (function, u64::from_str_radix(distance, 16).ok()),
            None => (function, None),
        };
        let is_kernel = match module {
            Some(module) => module.starts_with("[kernel") || module.starts_with("[guest"),
            None => address >= KERNEL_HALF,
        } || address >= KERNEL_HALF;
        Some(Self {
            is_kernel,
            address,
            function: Some(function.trim().to_owned()).filter(|name| name != "[unknown]"),
            module: module
                .filter(|module| !is_kernel && *module != "[unknown]")
                .map(str::to_owned),
            distance,
        })
    }
}

/// The name without `+0x10/0x20`.
fn plain(function: &str) -> &str {
    function.split('+').next().unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_both_tools() {
        let mut frames = Frames::default();
        for line in [
            "<stack trace>",
            "=> schedule",
            "=> do_syscall_64 <ffffffff8138f25f>",
            "ffffffff813aa3e5 ttwu_do_activate+0x55 ([kernel.kallsyms])",
            "7fb299e99b1d __write+0x4d (/usr/lib/libc.so.6)",
            "7fb299e99b1d [unknown] (/usr/bin/dd)",
            "ffffffff813aa3e5 no_module",
        ] {
            assert!(frames.add(line), "{line}");
        }
        assert!(!frames.add("hello world"));
        let frames = frames.frames();
        let shown: Vec<_> = frames
            .iter()
            .map(|frame| (frame.is_kernel, frame.function, frame.module))
            .collect();
        assert_eq!(shown[0], (true, Some(&b"schedule"[..]), None));
        assert_eq!(
            shown[3],
            (
                false,
                Some(&b"__write"[..]),
                Some(&b"/usr/lib/libc.so.6"[..])
            )
        );
        assert_eq!(shown[4], (false, None, Some(&b"/usr/bin/dd"[..])));
        assert_eq!(shown[5], (true, Some(&b"no_module"[..]), None));
        assert_eq!(frames[2].distance, Some(0x55));
    }
}
