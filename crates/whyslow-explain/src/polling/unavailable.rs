//! Attempts to connect to a service that does not listen yet, or no longer.

use super::{BETWEEN_MAX, ECONNREFUSED, EINPROGRESS};
use crate::peers::is_own;
use crate::peers::socket_calls::{is_receiving, is_sending_data};
use crate::report::Grade;
use crate::window_slice::{Call, Segment, Utid, WindowSlice};

/// Whether a connection could not be established. If the call does not wait for that, the program
/// reads the error from the socket, which is not recorded: it closes the socket without using it.
pub(super) fn is_refused(slice: &WindowSlice, call: &Call) -> bool {
    match call.errno {
        Some(ECONNREFUSED) => true,
        Some(EINPROGRESS) => is_closed_unused(slice, call),
        _ => false,
    }
}

fn is_closed_unused(slice: &WindowSlice, connect: &Call) -> bool {
    let after = slice.calls(connect.utid, (connect.end, slice.recording_end));
    let mut on_socket = after
        .iter()
        .filter(|call| call.begin >= connect.end)
        .take(BETWEEN_MAX)
        .filter(|call| call.path == connect.path);
    on_socket
        .find_map(|call| {
            let is_used = is_sending_data(slice, call) || is_receiving(slice, call);
            let is_closed = slice.text(call.name) == "close";
            (is_used || is_closed).then_some(is_closed)
        })
        .unwrap_or(false)
}

/// The thread that a client waits for while its connections are refused: the first one of the
/// process that has the address and runs in the sleep, because it starts or is about to end.
pub(super) fn service(
    slice: &WindowSlice,
    sleep: &Segment,
    refused: &Call,
) -> Option<(Utid, Grade)> {
    let address = refused.path.filter(|path| is_own(slice, *path))?;
    if slice.text(refused.name) != "connect" {
        return None;
    }
    let client = slice.thread_table.upid(sleep.utid);
    let processes = slice.connections.processes_at(slice.text(address)).iter();
    let mains = processes
        .filter(|upid| Some(**upid) != client)
        .filter_map(|upid| slice.thread_table.main_of(*upid));
    let mut running = mains.filter(|utid| {
        let states = slice.states(*utid, (sleep.begin, sleep.end));
        !states.is_empty()
    });
    let first = running.next()?;
    match running.next_back() {
        // The one that started last.
        Some(last) => Some((last.max(first), Grade::C)),
        None => Some((first, Grade::B)),
    }
}
