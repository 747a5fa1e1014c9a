//! A worker: one request after the other, each told whatever becomes of it.

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
use crate::flight::{self, Flight};
use crate::line::digits;
use crate::pacer::Pacer;
use crate::plan::{Connections, Redirects};
use crate::row::{Outcome, Row};
use crate::shared::{Halt, Shared, Stage};
use crate::stream::Transport;
use crate::target::Target;

/// Redirects after one request.
const HOPS_MAX: u32 = 10;
/// Of `Server-Timing`: a row is not there to keep what servers like to say.
const SERVER_TIMING_BYTES: usize = 1_000;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// What the workers of a thread share.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(crate) stage: Arc<Stage>,
    /// The thread's own: what several processors count references of is slow to count.
    pub(crate) targets: Vec<Arc<Target>>,
    pub(crate) pacer: Pacer,
    /// Requests that ended and were not handed on yet.
    pub(crate) rows: RefCell<Vec<Row>>,
}

/// The request that a worker has under way.
pub(crate) type Slot = Rc<RefCell<Option<Flight>>>;

pub(crate) struct Worker {
    local: Rc<Local>,
    number: u32,
    slot: Slot,
    /// One a server.
    connections: Vec<Connection>,
    deadline: Deadline,
}

/// An answer, read to its end.
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

    /// Where an answer leads, if it is to be followed.
    fn next(&self, from: &Target, answered: &Answered) -> Option<Target> {
        let shared = &self.local.shared;
        let location = answered.location.as_deref()?;
        let next = from.redirected(answered.status, location, &shared.plan.asked);
        let next = next.ok().filter(|next| shared.is_asked(next.host()));
        if next.is_none() {
            shared.unfollowed.fetch_add(1, Relaxed);
        }
        next
    }

    /// Makes a request and tells of it.
    async fn request(
        &mut self,
        target: &Arc<Target>,
        intended_ns: Option<u64>,
    ) -> Option<Answered> {
        let local = Rc::clone(&self.local);
        let shared = &local.shared;
        let seq = shared.next_request();
        let start_ns = shared.clock.now_ns();
        let mut flight = Flight::new(seq, self.number, start_ns, Arc::clone(target));
        flight.intended_ns = intended_ns;
        flight.trace = shared.trace(seq);
        *self.slot.borrow_mut() = Some(flight);
        let timeout = shared.plan.timeout;
        let limit = Instant::from_std(shared.clock.at(start_ns)) + timeout;
        let mut attempt = Attempt {
            local: &local,
            slot: &self.slot,
            target,
            seq,
        };
        let asked = attempt.run(&mut self.connections);
        let answered = self.deadline.within(limit, asked).await;
        let end_ns = shared.clock.now_ns();
        let flight = self.slot.borrow_mut().take()?;
        let (outcome, error, answered) = match answered {
            Some(Ok(answered)) if answered.status < 400 => (Outcome::Ok, None, Some(answered)),
            Some(Ok(answered)) => (Outcome::Error, None, Some(answered)),
            Some(Err(fault)) => (fault.outcome, Some(fault.words), None),
            None => {
                let words = format!("{} within {timeout:?}", flight.awaited());
                (Outcome::Timeout, Some(words), None)
            }
        };
        let is_slow = |slow: Duration| u128::from(end_ns - start_ns) >= slow.as_nanos();
        if shared.plan.until_slow.is_some_and(is_slow) {
            shared.stop(Halt::Slow);
        }
        local
            .rows
            .borrow_mut()
            .push(flight.end(end_ns, outcome, error));
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
    /// A connection leaves the list while it is used: if the time runs out, it goes with the request.
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
                // In a box: it is large, happens rarely, and would be moved with each request.
                None => Box::pin(self.connect()).await?,
            };
            match self.ask(&mut connection).await {
                Ok(response) => break (connection, response),
                // It had been closed meanwhile: nobody was asked.
                Err(None) => self.note(Flight::begin_again),
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

    /// Without a fault if a kept connection turns out to be closed before anything was sent.
    async fn ask(
        &self,
        connection: &mut Connection,
    ) -> Result<Response<hyper::body::Incoming>, Option<Fault>> {
        let request = self.prepare(connection);
        connection.marks.begin();
        let clock = self.local.shared.clock;
        self.note(|flight| {
            flight.enter(flight::Stage::Exchange, clock);
            flight.is_reused = connection.is_used;
            flight.protocol = Some(connection.protocol());
            flight.link = Some(Arc::clone(&connection.link));
            flight.marks = Some(Rc::clone(&connection.marks));
        });
        connection.ask(request).await
    }

    async fn connect(&self) -> Result<Connection, Fault> {
        let shared = &self.local.shared;
        let (origin, clock) = (&self.target.origin, shared.clock);
        let enter = |stage| self.note(|flight| flight.enter(stage, clock));
        let addresses = if let Some(address) = connection::literal(origin) {
            vec![address]
        } else {
            enter(flight::Stage::Resolve);
            connection::resolve(origin).await?
        };
        enter(flight::Stage::Connect);
        let stream = connection::connect(&addresses).await?;
        let transport = if origin.is_tls {
            enter(flight::Stage::Tls);
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
            tell_trace(trace, request.headers_mut());
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
        self.note(|flight| {
            flight.status = Some(status);
            flight.server_timing = text(SERVER_TIMING).map(|mut timing| {
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

    fn note(&self, note: impl FnOnce(&mut Flight)) {
        if let Some(flight) = self.slot.borrow_mut().as_mut() {
            note(flight);
        }
    }
}

/// `traceparent` as the W3C has it. There is no `tracestate`: the number of the trace says all that it
/// could, and each header has its price.
fn tell_trace((trace, span): (u128, u64), headers: &mut HeaderMap) {
    let [high, low] = [trace >> 64, trace].map(|half| digits(half as u64));
    let parent = [b"00-", &high[..], &low[..], b"-", &digits(span)[..], b"-01"].concat();
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(parent)) {
        headers.insert(TRACEPARENT, value);
    }
}

/// Ends requests that take too long. The timer is set anew only when it rings too early, and looked at
/// only when it was set or rings, so that a request which is fast costs none.
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

    /// Whether the time has run out. Always asked by the same task, which is woken when it has.
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

    /// None if the time runs out first.
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
