//! Interprets reads and writes on connections as requests and replies.

use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, stat};

use super::super::identity::{Output, ThreadRef};
use super::RequestTracker;
use super::connection::{EDGES_MAX, Exchange, Key, Nested, Role};
use super::rows::Ending;

impl RequestTracker {
    pub(super) fn write_began<S: EmitAll>(
        &mut self,
        socket: i64,
        (thread, ts): (&ThreadRef, Ns),
        out: &mut Output<'_, S>,
    ) {
        let Some(connection) = self.connections.get(&socket) else {
            return;
        };
        let is_more = connection
            .open
            .as_ref()
            .is_some_and(|open| open.answer.is_none());
        if connection.role != Role::Client || is_more {
            return;
        }
        self.settle(socket, Ending::Next, out);
        self.used(socket, thread);
        let connection = self.connections.get_mut(&socket);
        let cause = connection.and_then(|connection| connection.cause.take());
        let current = self.workers.current(thread);
        let mut causes = [cause, current].into_iter().flatten();
        let parent = causes.find(|key| self.is_unanswered(*key));
        let touch = self.workers.touch(thread, ts);
        let mut exchange = Exchange::new(self.next_id, touch);
        let key = Key {
            socket,
            id: self.next_id,
        };
        self.next_id += 1;
        exchange.parent = parent;
        if let Some(cause) = parent.and_then(|parent| self.open(parent)) {
            if cause.nested.len() < EDGES_MAX {
                cause.nested.push(Nested {
                    key,
                    requested: touch,
                    answered: None,
                    chain: Vec::new(),
                });
            } else {
                out.anomalies.count(&stat::REQUEST_TURNS_LIMIT, ts);
            }
        }
        if let Some(connection) = self.connections.get_mut(&socket) {
            connection.open = Some(Box::new(exchange));
        }
    }

    pub(super) fn wrote(
        &mut self,
        socket: i64,
        bytes: i64,
        (thread, begun, ts): (&ThreadRef, Ns, Ns),
    ) {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        let role = connection.role;
        let Some(open) = &mut connection.open else {
            // A greeting, or the reply to a request read before the connection was known.
            connection.arrived = None;
            return;
        };
        if role == Role::Client {
            let is_nothing = bytes == 0 && open.bytes_sent == 0 && open.other.is_none();
            open.bytes_sent = open.bytes_sent.saturating_add(bytes);
            if bytes > 0 && open.answer.is_none() {
                open.sent = Some(ts);
            } else if is_nothing {
                self.take_back(socket);
            }
            return;
        }
        if bytes == 0 {
            return;
        }
        open.bytes_sent = open.bytes_sent.saturating_add(bytes);
        open.answered(begun, ts);
        let key = Key {
            socket,
            id: open.id,
        };
        let touch = self.workers.take_up(thread, key, ts);
        let free = self.workers.of(thread).free;
        let since = match open.writer {
            Some((before, since)) if before.thread.utid == thread.utid => since,
            // Unknown for a thread that was never seen idle.
            _ if free == 0 => begun,
            _ => free.min(begun),
        };
        open.writer = Some((touch, since));
        self.workers.of(thread).free = ts;
        self.used(socket, thread);
    }

    pub(super) fn read<S: EmitAll>(
        &mut self,
        socket: i64,
        bytes: i64,
        (thread, ts): (&ThreadRef, Ns),
        out: &mut Output<'_, S>,
    ) {
        let woken = self.workers.of(thread).woken.take();
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        let arrived = connection.arrived.take().or(woken);
        if bytes == 0 {
            // The other side sends no more requests.
            let (is_over, role) = (connection.is_over, connection.role);
            if role == Role::Client || connection.is_answered() {
                self.settle(socket, Ending::Closed(ts), out);
            }
            if is_over {
                self.remove(socket, Ending::Closed(ts), out);
            }
            return;
        }
        if connection.role == Role::Client {
            return self.read_reply(socket, bytes, (thread, ts));
        }
        self.used(socket, thread);
        if !self.is_open_request(socket) {
            self.settle(socket, Ending::Next, out);
            self.begin(socket, arrived, (thread, ts));
        }
        if let Some(connection) = self.connections.get_mut(&socket)
            && let Some(open) = &mut connection.open
        {
            open.bytes_received = open.bytes_received.saturating_add(bytes);
            let key = Key {
                socket,
                id: open.id,
            };
            let touch = self.workers.take_up(thread, key, ts);
            if open.bytes_received == bytes {
                open.begun = touch;
            }
        }
    }

    fn begin(&mut self, socket: i64, arrived: Option<Ns>, (thread, ts): (&ThreadRef, Ns)) {
        let touch = self.workers.touch(thread, ts);
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        let mut exchange = Exchange::new(self.next_id, touch);
        self.next_id += 1;
        let backlog = connection
            .accepted
            .zip(connection.standing)
            .filter(|_| connection.done == 0)
            .and_then(|(accepted, standing)| Some(accepted.saturating_sub(standing.established?)));
        exchange.queue_ns = arrived
            .map(|arrived| ts.saturating_sub(arrived))
            .or(backlog)
            .filter(|waited| *waited >= 0);
        let key = Key {
            socket,
            id: exchange.id,
        };
        let standing = connection.standing;
        let opposite = standing.and_then(|standing| self.socks.opposite(&standing));
        if let Some(client_socket) = opposite
            && let Some(other) = self.connections.get_mut(&client_socket)
            && let Some(client) = &mut other.open
            && client.answer.is_none()
            && client.other.is_none()
        {
            client.other = Some(key);
            exchange.other = Some(Key {
                socket: client_socket,
                id: client.id,
            });
        }
        if let Some(connection) = self.connections.get_mut(&socket) {
            connection.open = Some(Box::new(exchange));
        }
    }

    /// A part of the reply was read.
    fn read_reply(&mut self, socket: i64, bytes: i64, (thread, ts): (&ThreadRef, Ns)) {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        let Some(open) = &mut connection.open else {
            return; // a greeting
        };
        let is_first = open.answer.is_none();
        open.bytes_received = open.bytes_received.saturating_add(bytes);
        open.answered(ts, ts);
        let (id, parent) = (open.id, open.parent);
        self.used(socket, thread);
        let Some(parent) = parent.filter(|parent| self.is_unanswered(*parent)) else {
            return;
        };
        if !is_first {
            return;
        }
        let is_same = self.workers.current(thread) == Some(parent);
        if !is_same && !self.is_idle(thread, None) {
            return;
        }
        let touch = self.workers.take_up(thread, parent, ts);
        let Some(cause) = self.open(parent) else {
            return;
        };
        let nested = cause.nested.iter_mut().find(|it| it.key.id == id);
        if let Some(nested) = nested {
            nested.answered = Some(touch);
        }
    }
}
