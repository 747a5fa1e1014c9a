//! Whose request occupied a server while another client waited for it.

use whyslow_model::Ns;

use crate::window_slice::{Utid, WindowSlice};

/// The client of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client<'m> {
    /// Main thread of its process.
    Process(Utid),
    /// Its address, if its process is not known.
    Address(&'m str),
}

/// The client whose request a thread served for most of a range: none if it may be the process of
/// the thread `root` itself.
pub(crate) fn client_of(
    slice: &WindowSlice,
    (server, root): (Utid, Utid),
    (begin, end): (Ns, Ns),
) -> Option<Client<'_>> {
    let connections = &slice.connections;
    let turns = connections.served_by(server).iter();
    let common = |begin_of: Ns, end_of: Ns| end_of.min(end) - begin_of.max(begin);
    let turn = turns
        .filter(|turn| 2 * common(turn.begin, turn.end) > end - begin)
        .max_by_key(|turn| (common(turn.begin, turn.end), turn.begin, turn.request))?;
    let request = connections
        .exchange(turn.request)
        .filter(|one| !one.is_client)?;
    // Other requests in progress may be the slow thread's: then it is not known for which one the
    // server worked.
    let table = &slice.thread_table;
    if request.upid != table.upid(server) {
        return None;
    }
    let address = request.peer.as_deref()?;
    match connections.processes_at(address) {
        [one] if Some(*one) == table.upid(root) || Some(*one) == request.upid => None,
        [one] => Some(Client::Process(table.main_of(*one)?)),
        // Without a port it has no address, as clients of Unix sockets.
        _ if crate::addresses::split(address).is_some() => Some(Client::Address(address)),
        _ => None,
    }
}
