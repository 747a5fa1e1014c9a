//! Derives DNS queries from system calls: see [`super::super::query`].

use whyslow_model::syscall::Op;
use whyslow_model::{Ns, Sym, Symbols};

use super::super::fd::Owner;
use super::super::identity::ThreadRef;
use super::super::object::{FdClass, Object};
use super::super::query::{DnsCall, DnsOp};
use super::{Pending, SyscallTracker};

/// Port of name servers.
const PORT: &str = ":53";

impl SyscallTracker {
    /// DNS socket operations of the event just processed.
    pub(in crate::trackers) fn dns_calls(&mut self) -> std::vec::Drain<'_, DnsCall> {
        self.dns_calls.drain(..)
    }

    /// A call returned.
    pub(super) fn dns_call(
        &mut self,
        pending: &Pending,
        thread: &ThreadRef,
        (ret, ts_end): (Option<i64>, Ns),
        symbols: &Symbols,
    ) {
        let (Some(ret), Some(fd)) = (ret, pending.numbers.fd) else {
            return;
        };
        if !matches!(pending.op, Op::Read | Op::Write | Op::Close) {
            return;
        }
        let target = pending.target.map(|target| target.object);
        let Some(object) = pending.named.or(target).filter(is_of_network) else {
            return;
        };
        let name = symbols.get(self.calls.get(pending.called.meaning).name);
        let messages = match name {
            "sendmmsg" | "recvmmsg" => ret,
            _ => 1,
        };
        let op = match pending.op {
            Op::Write if ret > 0 => {
                let Some(server) = object.path.filter(|path| self.is_server(*path, symbols)) else {
                    return;
                };
                self.has_queried = true;
                DnsOp::Queried { server, messages }
            }
            Op::Read if ret > 0 && self.has_queried => DnsOp::Read { messages },
            Op::Close if self.has_queried => DnsOp::Closed,
            _ => return,
        };
        self.dns_calls.push(DnsCall {
            op,
            owner: Owner::of(thread),
            fd,
            ts: pending.ts,
            ts_end,
            thread: *thread,
            cpu: pending.cpu,
        });
    }

    fn is_server(&mut self, path: Sym, symbols: &Symbols) -> bool {
        let known = self.servers.get(&path).copied();
        known.unwrap_or_else(|| {
            let is_server = symbols.get(path).ends_with(PORT);
            self.servers.insert(path, is_server);
            is_server
        })
    }
}

/// Until it is connected or bound, only the address family of a socket is known.
fn is_of_network(object: &Object) -> bool {
    matches!(object.class, FdClass::Inet | FdClass::Inet6)
}
