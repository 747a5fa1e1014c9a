//! A worker: sends one request after the other and reports each, whatever its outcome.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Full;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Request, Response};
use tokio::time::{Instant, Sleep};

use crate::connection::{self, Connection};
use crate::fault::Fault;
use crate::in_flight::{self, InFlight};
use crate::line::digits;
use crate::pacer::Pacer;
use crate::plan::{Connections, Redirects};
use crate::row::{Outcome, Row};
use crate::shared::{Halt, Shared, Stage};
use crate::stream::Transport;
use crate::target::Target;

/// Maximum number of redirects after one request.
const HOPS_MAX: u32 = 10;
/// Maximum length of `Server-Timing` in a row.
const SERVER_TIMING_BYTES: usize = 1_000;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// State shared by the workers of a thread.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(crate) stage: Arc<Stage>,
    /// The thread's own copy: reference counts that several CPUs modify are slow.
    pub(crate) targets: Vec<Arc<Target>>,
    pub(crate) pacer: Pacer,
    /// Requests that ended and were not passed on yet.
    pub(crate) rows: RefCell<Vec<Row>>,
}

/// The request that a worker has in flight.
pub(crate) type Slot = Rc<RefCell<Option<InFlight>>>;

pub(crate) struct Worker {
    local: Rc<Local>,
    number: u32,
    slot: Slot,
    /// At most one per server.
    connections: Vec<Connection>,
    deadline: Deadline,
}

/// A response that was read to its end.
struct Answered {
    status: u16,
    location: Option<String>,
}

impl Worker {
    pub(crate) fn new(local: Rc<Local>, number: u32, slot: Slot) -> Self {
        Self {
            local,
            number,
            slot,
            connections: Vec::new(),
            deadline: Deadline::new(),
        }
    }

    pub(crate) async fn run(mut self) {
        let local = Rc::clone(&self.local);
        let shared = &local.shared;
        let mut had = 0;
        while let Some(turn) = local.stage.turn(shared, had) {
            had += 1;
            if let Some(due_ns) = turn.intended_ns {
                local.pacer.until(due_ns).await;
                if shared.halt() != Halt::No {
                    return;
                }
            }
            let mut target = Arc::clone(&local.targets[shared.place(turn)]);
            let mut intended_ns = turn.intended_ns;
            for hop in 0..=HOPS_MAX {
                let answered = self.request(&target, intended_ns.take()).await;
                let next = answered.and_then(|answered| self.next(&target, &answered));
                match next {
                    Some(next) if hop < HOPS_MAX && shared.halt() == Halt::No => {
                        target = Arc::new(next);
                    }
                    _ => break,
                }
            }
            if !shared.plan.pause.is_zero() {
                tokio::time::sleep(shared.plan.pause).await;
            }
        }
    }

    /// The target of a redirect, if it is to be followed.
    fn next(&self, from: &Target, answered: &Answered) -> Option<Target> {
        let shared = &self.local.shared;
        let location = answered.location.as_deref()?;
        let next = from.redirected(answered.status, location, &shared.plan.template);
        let next = next.ok().filter(|next| shared.is_target(next.host()));
        if next.is_none() {
            shared.unfollowed.fetch_add(1, Relaxed);
        }
        next
    }

    /// Sends a request and reports it.
    async fn request(
        &mut self,
        target: &Arc<Target>,
        intended_ns: Option<u64>,
    ) -> Option<Answered> {
        let local = Rc::clone(&self.local);
        let shared = &local.shared;
        let seq = shared.next_request();
        let start_ns = shared.clock.now_ns();
        let mut request = InFlight::new(seq, self.number, start_ns, Arc::clone(target));
        request.intended_ns = intended_ns;
        request.trace = shared.trace(seq);
        *self.slot.borrow_mut() = Some(request);
        let timeout = shared.plan.timeout;
        let limit = Instant::from_std(shared.clock.at(start_ns)) + timeout;
        let mut attempt = Attempt {
            local: &local,
            slot: &self.slot,
            target,
            seq,
        };
        let attempted = attempt.run(&mut self.connections);
        let answered = self.deadline.within(limit, attempted).await;
        let end_ns = shared.clock.now_ns();
        let request = self.slot.borrow_mut().take()?;
        let (outcome, error, answered) = match answered {
            Some(Ok(answered)) if answered.status < 400 => (Outcome::Ok, None, Some(answered)),
            Some(Ok(answered)) => (Outcome::Error, None, Some(answered)),
            Some(Err(fault)) => (fault.outcome, Some(fault.message), None),
            None => {
                let message = format!("{} within {timeout:?}", request.awaited());
                (Outcome::Timeout, Some(message), None)
            }
        };
        let is_slow = |slow: Duration| u128::from(end_ns - start_ns) >= slow.as_nanos();
        if shared.plan.until_slow.is_some_and(is_slow) {
            shared.stop(Halt::Slow);
        }
        local
            .rows
            .borrow_mut()
            .push(request.end(end_ns, outcome, error));
        answered
    }
}

struct Attempt<'w> {
    local: &'w Local,
    slot: &'w Slot,
    target: &'w Target,
    seq: u64,
}

impl Attempt<'_> {
    /// A connection is removed from the list while it is in use: on a timeout it is dropped with
    /// the request.
    async fn run(&mut self, connections: &mut Vec<Connection>) -> Result<Answered, Fault> {
        let origin = &self.target.origin;
        let found = connections.iter().position(|c| c.origin == *origin);
        let mut kept = found.map(|at| connections.swap_remove(at));
        if let Some(connection) = &mut kept
            && !connection.is_ready().await
        {
            kept = None;
        }
        let (mut connection, response) = loop {
            let mut connection = match kept.take() {
                Some(connection) => connection,
                // Boxed: it is large and rare, and would be moved with each request.
                None => Box::pin(self.connect()).await?,
            };
            match self.exchange(&mut connection).await {
                Ok(response) => break (connection, response),
                // The connection was closed in the meantime, before the request was sent.
                Err(None) => self.note(InFlight::restart),
                Err(Some(fault)) => return Err(fault),
            }
        };
        let answered = self.head(&response);
        connection.drain(response.into_body()).await?;
        if self.local.shared.plan.connections == Connections::Kept {
            connections.push(connection);
        }
        Ok(answered)
    }

    /// `None` as the error if a kept connection turns out to be closed before anything was sent.
    async fn exchange(
        &self,
        connection: &mut Connection,
    ) -> Result<Response<hyper::body::Incoming>, Option<Fault>> {
        let request = self.prepare(connection);
        connection.marks.begin();
        let clock = self.local.shared.clock;
        self.note(|request| {
            request.enter(in_flight::Stage::Exchange, clock);
            request.is_reused = connection.is_used;
            request.protocol = Some(connection.protocol());
            request.link = Some(Arc::clone(&connection.link));
            request.marks = Some(Rc::clone(&connection.marks));
        });
        connection.send(request).await
    }

    async fn connect(&self) -> Result<Connection, Fault> {
        let shared = &self.local.shared;
        let (origin, clock) = (&self.target.origin, shared.clock);
        let enter = |stage| self.note(|request| request.enter(stage, clock));
        let addresses = if let Some(address) = connection::literal(origin) {
            vec![address]
        } else {
            enter(in_flight::Stage::Resolve);
            connection::resolve(origin).await?
        };
        enter(in_flight::Stage::Connect);
        let stream = connection::connect(&addresses).await?;
        let transport = if origin.is_tls {
            enter(in_flight::Stage::Tls);
            connection::encrypt(stream, &shared.connector, origin).await?
        } else {
            Transport::Plain(stream)
        };
        let number = shared.next_connection();
        let sent = (shared.plan.http, self.target.body.len());
        Connection::over(transport, origin, sent, number, clock).await
    }

    fn prepare(&self, connection: &Connection) -> Request<Full<bytes::Bytes>> {
        let target = self.target;
        let mut request = Request::new(Full::new(target.body.clone()));
        *request.method_mut() = target.method.clone();
        *request.headers_mut() = target.headers.clone();
        if connection.is_two() {
            *request.uri_mut() = target.whole.clone();
            request.headers_mut().remove(HOST);
        } else {
            *request.uri_mut() = target.path.clone();
        }
        if let Some(trace) = self.local.shared.trace(self.seq) {
            add_traceparent(trace, request.headers_mut());
        }
        request
    }

    fn head(&self, response: &Response<hyper::body::Incoming>) -> Answered {
        let status = response.status().as_u16();
        let headers = response.headers();
        let text = |name| {
            let value: Option<&HeaderValue> = headers.get(name);
            value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        self.note(|request| {
            request.status = Some(status);
            request.server_timing = text(SERVER_TIMING).map(|mut timing| {
                timing.truncate(timing.floor_char_boundary(SERVER_TIMING_BYTES));
                timing.into_boxed_str()
            });
        });
        let is_followed = self.local.shared.plan.redirects == Redirects::Followed
            && matches!(status, 301 | 302 | 303 | 307 | 308);
        Answered {
            status,
            location: is_followed.then(|| text(LOCATION)).flatten(),
        }
    }

    fn note(&self, note: impl FnOnce(&mut InFlight)) {
        if let Some(request) = self.slot.borrow_mut().as_mut() {
            note(request);
        }
    }
}

/// `traceparent` as defined by the W3C. There is no `tracestate`: the trace id already has all the
/// information, and each header has a cost.
fn add_traceparent((trace, span): (u128, u64), headers: &mut HeaderMap) {
    let [high, low] = [trace >> 64, trace].map(|half| digits(half as u64));
    let parent = [b"00-", &high[..], &low[..], b"-", &digits(span)[..], b"-01"].concat();
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(parent)) {
        headers.insert(TRACEPARENT, value);
    }
}

/// Cancels requests that exceed the timeout. The timer is only re-armed when it fires too early,
/// and only polled after it was set or has fired, so fast requests cost nothing.
struct Deadline {
    timer: Pin<Box<Sleep>>,
    is_watched: bool,
}

impl Deadline {
    fn new() -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep(Duration::MAX)),
            is_watched: false,
        }
    }

    fn set(&mut self, limit: Instant) {
        self.timer.as_mut().reset(limit);
        self.is_watched = false;
    }

    /// Whether the timeout has expired. Always called by the same task, which is woken on expiry.
    fn is_over(&mut self, limit: Instant, cx: &mut Context<'_>) -> bool {
        if self.is_watched && !self.timer.is_elapsed() {
            return false;
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= limit {
                return true;
            }
            self.set(limit);
        }
        self.is_watched = true;
        false
    }

    /// `None` if the timeout expires first.
    async fn within<F: Future>(&mut self, limit: Instant, wanted: F) -> Option<F::Output> {
        let mut wanted = pin!(wanted);
        if self.timer.deadline() > limit {
            self.set(limit);
        }
        poll_fn(|cx| match wanted.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.is_over(limit, cx) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}
