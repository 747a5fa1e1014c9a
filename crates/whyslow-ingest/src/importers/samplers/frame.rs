//! Parses the names of frames and threads.

use crate::profile::{CodeFrame, CodeKind, SampledThread};

/// `java/lang/Thread.run_[j]`, `do_syscall_64_[k]`, `lookup (app.py:17)`, `libc.so.6`write`, `main`.
pub(super) fn frame(text: &str) -> CodeFrame {
    let (name, kind) = match text.rsplit_once("_[") {
        Some((name, "k]")) => (name, Some(CodeKind::Kernel)),
        // Compiled, interpreted or inlined code in async-profiler's output.
        Some((name, "j]" | "i]" | "0]" | "1]")) => (name, Some(CodeKind::Managed)),
        _ => (text, None),
    };
    if kind.is_none()
        && let Some((function, place)) = name.rsplit_once(" (")
        && let Some((file, line)) = place
            .strip_suffix(')')
            .and_then(|place| place.rsplit_once(':'))
        && let Ok(line) = line.parse()
    {
        return CodeFrame {
            kind: CodeKind::Managed,
            function: function.to_owned(),
            module: Some(file.to_owned()),
            line: Some(line),
        };
    }
    // Class names with slashes are Java.
    let is_class = name.contains('/') && name.contains('.') && !name.starts_with('/');
    let kind = kind.unwrap_or(if is_class {
        CodeKind::Managed
    } else {
        CodeKind::User
    });
    CodeFrame {
        kind,
        function: if kind == CodeKind::Managed {
            name.replace('/', ".")
        } else {
            name.to_owned()
        },
        module: None,
        line: None,
    }
}

/// The thread denoted by a root frame or profile name: `[worker tid=123]`,
/// `thread (123): MainThread`, `Thread 123 "MainThread"`.
pub(super) fn thread(text: &str) -> Option<SampledThread> {
    let of = |tid: &str, name: &str| {
        let tid = tid.trim();
        let tid: i64 = match tid.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok()?,
            None => tid.parse().ok()?,
        };
        let name = name.trim().trim_matches('"');
        let tid32 = i32::try_from(tid).ok().filter(|tid| *tid < 1 << 22);
        Some(SampledThread {
            // A larger number is an address that the runtime uses as thread id.
            tid: tid32,
            runtime_id: tid32.is_none().then_some(tid % 100_000_000),
            name: (!name.is_empty()).then(|| name.to_owned()),
        })
    };
    if let Some(inside) = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        let (name, tid) = inside.rsplit_once("tid=")?;
        return of(tid, name);
    }
    if let Some(rest) = text.strip_prefix("thread (") {
        let (tid, name) = rest.split_once(')')?;
        return of(tid, name.trim_start_matches(':'));
    }
    let rest = text
        .strip_prefix("Thread ")
        .or_else(|| text.strip_prefix("Process "))?;
    let (tid, name) = rest.split_once(' ').unwrap_or((rest, ""));
    of(tid, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_tools() {
        for (text, kind, function, line) in [
            (
                "java/lang/Thread.run_[j]",
                CodeKind::Managed,
                "java.lang.Thread.run",
                None,
            ),
            (
                "java/lang/Thread.run",
                CodeKind::Managed,
                "java.lang.Thread.run",
                None,
            ),
            ("do_syscall_64_[k]", CodeKind::Kernel, "do_syscall_64", None),
            ("lookup (app.py:17)", CodeKind::Managed, "lookup", Some(17)),
            ("main", CodeKind::User, "main", None),
            (
                "std::map<a, b>::find(int)",
                CodeKind::User,
                "std::map<a, b>::find(int)",
                None,
            ),
        ] {
            let frame = frame(text);
            assert_eq!(
                (frame.kind, frame.function.as_str(), frame.line),
                (kind, function, line)
            );
        }
    }

    #[test]
    fn threads_of_all_tools() {
        for (text, tid, name) in [
            ("[pool-1 tid=123]", Some(123), Some("pool-1")),
            ("thread (123): MainThread", Some(123), Some("MainThread")),
            ("Thread 123 \"MainThread\"", Some(123), Some("MainThread")),
            ("Thread 140233 ", Some(140_233), None),
        ] {
            let thread = thread(text).expect("a thread");
            assert_eq!((thread.tid, thread.name.as_deref()), (tid, name), "{text}");
        }
        assert_eq!(thread("main"), None);
        assert_eq!(
            thread("thread (0x7f00deadbeef): x").and_then(|of| of.tid),
            None
        );
    }
}
