//! The name server whose reply a call waits for.

use whyslow_model::Ns;

use crate::window_slice::{Call, TextId, Unanswered, WindowSlice};

/// Maximum time between a resolver's query and its wait for the reply.
const QUERIED_NS: Ns = 50_000_000;
/// Maximum time between a timeout and the close of the socket.
const GIVEN_UP_NS: Ns = 20_000_000;

/// The name server that the thread queried just before this call: resolvers send, then wait.
pub(crate) fn name_server(slice: &WindowSlice, call: &Call) -> Option<TextId> {
    let before = slice.calls(call.utid, (call.begin - QUERIED_NS, call.begin + 1));
    let names = |call: &&Call| {
        let path = call.path.map(|path| slice.text(path));
        path.is_some_and(|path| path.ends_with(":53"))
    };
    // If it has sent something else since then, it does not wait for a name.
    let others = |call: &&Call| {
        let is_sent = matches!(
            slice.text(call.name),
            "connect" | "sendto" | "sendmsg" | "sendmmsg" | "write"
        );
        is_sent && call.path.is_some()
    };
    let last = before.iter().rev().find(|call| names(call) || others(call));
    match last {
        Some(last) if names(&last) => last.path,
        _ => given_up(slice, call),
    }
}

/// The name server that the program itself queried: one thread waits for all sockets and timers,
/// and gives a query up when it times out.
fn given_up(slice: &WindowSlice, call: &Call) -> Option<TextId> {
    let upid = slice.thread_table.get(call.utid)?.upid?;
    let is_it = |query: &&Unanswered| {
        let is_begun = query.begin <= call.begin + QUERIED_NS;
        query.upid == upid && is_begun && (query.end - call.end).abs() <= GIVEN_UP_NS
    };
    let query = slice.unanswered.iter().find(is_it)?;
    Some(query.server)
}
