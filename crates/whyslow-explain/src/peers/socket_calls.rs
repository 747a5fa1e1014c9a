//! What a system call does with a socket.

use crate::addresses::plain;
use crate::window_slice::{Call, TextId, WindowSlice};

/// Option of a socket that shows whether it could connect: `SO_ERROR`.
const SO_ERROR: i64 = 4;

/// Whether the object of a call may be an IP socket: a descriptor from before the recording, or one
/// that was accepted in a call from before it, has an unknown class.
pub(crate) fn is_socket(slice: &WindowSlice, call: &Call) -> bool {
    call.fd_class
        .is_none_or(|class| matches!(slice.text(class), "inet" | "inet6" | "socket" | "unknown"))
}

pub(crate) fn is_sending(slice: &WindowSlice, call: &Call) -> bool {
    is_socket(slice, call)
        && matches!(
            slice.text(call.name),
            "sendto"
                | "sendmsg"
                | "sendmmsg"
                | "send"
                | "write"
                | "writev"
                | "sendfile"
                | "sendfile64"
                | "splice"
                | "connect"
                | "shutdown"
                | "close"
        )
}

/// Whether a call sends data, rather than opening or closing a connection.
pub(crate) fn is_sending_data(slice: &WindowSlice, call: &Call) -> bool {
    is_sending(slice, call) && !matches!(slice.text(call.name), "connect" | "shutdown" | "close")
}

pub(crate) fn is_receiving(slice: &WindowSlice, call: &Call) -> bool {
    is_socket(slice, call)
        && matches!(
            slice.text(call.name),
            "recvfrom"
                | "recvmsg"
                | "recvmmsg"
                | "recv"
                | "read"
                | "readv"
                | "splice"
                | "close"
                | "shutdown"
        )
}

/// Whether a call checks if a socket could connect.
pub(crate) fn is_checked(slice: &WindowSlice, call: &Call) -> bool {
    slice.text(call.name) == "getsockopt" && call.flags == Some(SO_ERROR)
}

/// Whether two addresses are the same, however they are written.
pub(crate) fn is_same(slice: &WindowSlice, one: TextId, other: TextId) -> bool {
    one == other || plain(slice.text(one)) == plain(slice.text(other))
}
