//! Converts page-cache records.

use whyslow_model::Ns;
use whyslow_model::event::{CacheFill, FillCause, FilledPages};
use whyslow_model::spool::{FillBy, FillRecord, Head};
use whyslow_model::syscall::{self, Abi, Op, Role};

/// `path` is a buffer for the assembled path.
pub(super) fn fill<'a>(
    (head, ts): (&Head, Ns),
    record: FillRecord<'_>,
    abi: Option<Abi>,
    path: &'a mut Vec<u8>,
) -> CacheFill<'a> {
    match record {
        FillRecord::Pages {
            since,
            until,
            inode,
            pages,
            bytes,
            dev,
            by,
        } => {
            let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let at = |time: u64| ts.saturating_sub(int(head.ts.saturating_sub(time)));
            CacheFill::Pages(FilledPages {
                since: at(since),
                until: at(until),
                dev: dev.into(),
                inode,
                pages: int(pages),
                bytes: int(bytes),
                cause: cause(by, abi),
                fd: match by {
                    FillBy::Call { fd, .. } => fd.map(|(_, fd)| fd).filter(|fd| *fd >= 0),
                    _ => None,
                },
            })
        }
        FillRecord::Place { inode, dev, names } => {
            put_path(names, path);
            CacheFill::Place {
                dev: dev.into(),
                inode,
                path,
            }
        }
    }
}

fn cause(by: FillBy, abi: Option<Abi>) -> FillCause {
    let (nr, fd) = match by {
        FillBy::Call { nr, fd } => (nr, fd),
        FillBy::Fault => return FillCause::Mapped,
        FillBy::Kernel => return FillCause::Other,
    };
    let name = abi.and_then(|abi| syscall::number_name(abi, nr.into()));
    let call = syscall::call(name.unwrap_or_default());
    let arg = fd.and_then(|(arg, _)| call.args.get((arg as usize).checked_sub(1)?));
    match (call.op, arg.and_then(|arg| arg.role)) {
        (Op::Read | Op::ReadWrite, Some(Role::Fd)) if call.returns_bytes => FillCause::Read,
        (Op::Write, Some(Role::Fd)) | (Op::ReadWrite, Some(Role::Fd2)) => FillCause::Write,
        // A buffer in a mapping is unrelated to the files of the call.
        (Op::Read | Op::Write | Op::ReadWrite, None) | (Op::Memory, _) => FillCause::Mapped,
        _ => FillCause::Other,
    }
}

/// Path components are stored last to first.
fn put_path(names: &[u8], path: &mut Vec<u8>) {
    path.clear();
    let names = names.strip_suffix(b"\0").unwrap_or(names);
    for name in names.rsplit(|byte| *byte == 0) {
        path.push(b'/');
        path.extend(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_together_from_their_ends() {
        let check = |names: &[u8], expected: &[u8]| {
            let mut path = b"before".to_vec();
            put_path(names, &mut path);
            assert_eq!(path, expected);
        };
        check(b"c\0b\0a\0", b"/a/b/c");
        check(b"a\0", b"/a");
        check(b"", b"/");
        check(b"cut", b"/cut");
    }

    #[test]
    fn a_cause_is_what_the_call_does_with_the_file() {
        let check = |name: &str, arg: u32, expected: FillCause| {
            let nr = syscall::number_of(Abi::X86_64, name).expect("a known system call") as u32;
            let fd = (arg > 0).then_some((arg, 3));
            let found = cause(FillBy::Call { nr, fd }, Some(Abi::X86_64));
            assert_eq!(found, expected, "{name} {arg}");
        };
        check("read", 1, FillCause::Read);
        check("preadv2", 1, FillCause::Read);
        check("write", 1, FillCause::Write);
        check("sendfile", 2, FillCause::Read);
        check("sendfile", 1, FillCause::Write);
        check("copy_file_range", 1, FillCause::Read);
        check("copy_file_range", 3, FillCause::Write);
        check("splice", 1, FillCause::Read);
        // These calls return no data to the caller.
        check("readahead", 1, FillCause::Other);
        check("fadvise64", 1, FillCause::Other);
        check("execve", 0, FillCause::Other);
        check("openat", 0, FillCause::Other);
        check("mmap", 0, FillCause::Mapped);
        check("madvise", 0, FillCause::Mapped);
        // The buffer is in a mapping.
        check("write", 0, FillCause::Mapped);
        check("read", 0, FillCause::Mapped);
        assert_eq!(cause(FillBy::Fault, None), FillCause::Mapped);
        assert_eq!(cause(FillBy::Kernel, None), FillCause::Other);
        assert_eq!(
            cause(FillBy::Call { nr: 0, fd: None }, None),
            FillCause::Other
        );
    }
}
