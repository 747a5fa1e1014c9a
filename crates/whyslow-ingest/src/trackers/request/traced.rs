//! Matches requests of one trace that several sources report: the client, the server, and proxies
//! between them.
//!
//! A client's span is the parent of the server's span, unless a proxy between them created its own
//! span. If it only passed the span id on, the proxy's log line and the server's have the same
//! parent. So the request served is the only one with that parent, or the only one without a cause
//! in the trace. If there are several candidates, none is chosen: clocks of several hosts cannot
//! decide.

use rustc_hash::FxHashMap;
use whyslow_model::Sym;
use whyslow_model::stat;
use whyslow_model::tables::{EmitAll, RequestRow};

use super::super::identity::Output;
use crate::importers::requests::Role;

/// Maximum number of requests buffered until the request that served them is known.
const PENDING_MAX: usize = 1 << 18;
/// Maximum number of served requests whose trace is known.
const SERVED_MAX: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct Served {
    id: i64,
    is_proxy: bool,
    span: Option<i64>,
    parent: Option<i64>,
}

#[derive(Debug, Default)]
struct Trace {
    served: Vec<Served>,
    /// Client requests without a cause in the trace.
    roots: u32,
}

/// The two halves of a trace id.
type Number = (i64, i64);

#[derive(Debug, Default)]
pub(super) struct Traced {
    /// Whether several sources report requests, or one reports both sides.
    is_expected: bool,
    traces: FxHashMap<Number, Trace>,
    served: usize,
    pending: Vec<(RequestRow, Role)>,
}

impl Traced {
    pub(super) fn expect(&mut self) {
        self.is_expected = true;
    }

    /// Adds a request reported by a source.
    pub(super) fn add<S: EmitAll>(
        &mut self,
        row: &RequestRow,
        role: Role,
        out: &mut Output<'_, S>,
    ) {
        let Some(number) = number(row).filter(|_| self.is_expected) else {
            return;
        };
        if self.served >= SERVED_MAX {
            // In an incomplete trace the only candidate may be one of several.
            self.traces.clear();
            return out.anomalies.count(&stat::REQUEST_JOIN_LIMIT, row.ts);
        }
        self.served += 1;
        let trace = self.traces.entry(number).or_default();
        match role {
            Role::Client => trace.roots += u32::from(row.parent_span.is_none()),
            Role::Server | Role::Proxy => trace.served.push(Served {
                id: row.id,
                is_proxy: role == Role::Proxy,
                span: row.span,
                parent: row.parent_span,
            }),
        }
    }

    /// Holds back a request whose server may be reported later; returns it if there is nothing to
    /// wait for.
    pub(super) fn hold<S: EmitAll>(
        &mut self,
        row: Box<RequestRow>,
        role: Role,
        out: &mut Output<'_, S>,
    ) -> Option<Box<RequestRow>> {
        if !self.is_expected || role == Role::Server || number(&row).is_none() {
            return Some(row);
        }
        if self.pending.len() >= PENDING_MAX {
            out.anomalies.count(&stat::REQUEST_JOIN_LIMIT, row.ts);
            return Some(row);
        }
        self.pending.push((*row, role));
        None
    }

    /// Fills in the request that served this one, and the one that caused it.
    pub(super) fn join(&self, row: &mut RequestRow, role: Role, by: Sym) {
        let Some(trace) = number(row).and_then(|number| self.traces.get(&number)) else {
            return;
        };
        if row.server_request.is_none()
            && let Some(found) = trace.served_of(row, role)
        {
            row.server_request = Some(found);
            row.joined_by = Some(by);
        }
        if row.parent_request.is_none()
            && role == Role::Client
            && let Some(parent) = row.parent_span
        {
            let is_parent = |served: &&Served| served.span == Some(parent);
            row.parent_request = only(trace.served.iter().filter(is_parent));
        }
    }

    /// Writes the requests buffered.
    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let by = out.symbols.intern_static("trace");
        let pending = std::mem::take(&mut self.pending);
        for (mut row, role) in pending {
            self.join(&mut row, role, by);
            out.sink.emit(row);
        }
        self.traces.clear();
    }
}

impl Trace {
    fn served_of(&self, row: &RequestRow, role: Role) -> Option<i64> {
        if role == Role::Proxy {
            // A proxy that passes the span id on, and one that creates its own span.
            let others = self.served.iter().filter(|served| {
                !served.is_proxy && (served.parent == row.parent_span || served.parent == row.span)
            });
            return only(others);
        }
        let caused = |served: &&Served| row.span.is_some() && served.parent == row.span;
        if self.served.iter().any(|served| caused(&served)) {
            let caused = || self.served.iter().filter(caused);
            return only(caused()).or_else(|| only(caused().filter(|served| served.is_proxy)));
        }
        if row.parent_span.is_some() || self.roots != 1 {
            return None;
        }
        let is_of_another = |served: &Served| {
            let parent = served.parent;
            parent.is_some() && self.served.iter().any(|other| other.span == parent)
        };
        only(self.served.iter().filter(|served| !is_of_another(served)))
    }
}

fn number(row: &RequestRow) -> Option<Number> {
    row.trace_high.zip(row.trace_low)
}

fn only<'s>(mut found: impl Iterator<Item = &'s Served>) -> Option<i64> {
    let first = found.next()?;
    found.next().is_none().then_some(first.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(served: &[(i64, bool, Option<i64>, Option<i64>)], roots: u32) -> Trace {
        let served = served.iter().map(|&(id, is_proxy, span, parent)| Served {
            id,
            is_proxy,
            span,
            parent,
        });
        Trace {
            served: served.collect(),
            roots,
        }
    }

    fn served_of(trace: &Trace, span: Option<i64>, parent: Option<i64>, role: Role) -> Option<i64> {
        let mut symbols = whyslow_model::Symbols::new();
        let mut row = super::super::tests::client_row(&mut symbols, 1, (0, None));
        (row.span, row.parent_span) = (span, parent);
        trace.served_of(&row, role)
    }

    #[test]
    fn what_the_clients_span_caused_was_served_for_it() {
        let both = trace(
            &[
                (5, false, Some(21), Some(20)),
                (6, false, Some(31), Some(30)),
            ],
            2,
        );
        assert_eq!(served_of(&both, Some(20), None, Role::Client), Some(5));
        assert_eq!(served_of(&both, Some(30), Some(9), Role::Client), Some(6));
        // Two roots, neither of which caused any of them.
        assert_eq!(served_of(&both, Some(40), None, Role::Client), None);
    }

    #[test]
    fn a_proxy_that_passes_the_number_on_stands_between() {
        let passed = trace(&[(5, true, None, Some(20)), (6, false, None, Some(20))], 1);
        assert_eq!(served_of(&passed, Some(20), None, Role::Client), Some(5));
        assert_eq!(served_of(&passed, None, Some(20), Role::Proxy), Some(6));
        // Two servers without a distinction.
        let twice = trace(&[(5, false, None, Some(20)), (6, false, None, Some(20))], 1);
        assert_eq!(served_of(&twice, Some(20), None, Role::Client), None);
    }

    #[test]
    fn behind_one_that_makes_its_own_spans_it_is_the_one_that_no_other_caused() {
        let own = trace(
            &[
                (5, false, Some(51), Some(50)),
                (6, false, Some(61), Some(51)),
            ],
            1,
        );
        assert_eq!(served_of(&own, Some(20), None, Role::Client), Some(5));
        let unknown = trace(&[(5, false, None, None)], 1);
        assert_eq!(served_of(&unknown, Some(20), None, Role::Client), Some(5));
    }
}
