//! A worker's connection: how it is established, and a request on it.

use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::clock::Clock;
use crate::fault::Fault;
use crate::plan::Http;
use crate::row::{Link, Outcome};
use crate::stream::{Framing, Marks, Timed, Transport};
use crate::target::Origin;

/// A body up to this size is sent in one write with the head.
const COPIED_BYTES_MAX: usize = 16 << 10;

type Io = TokioIo<Timed>;
type Body = Full<Bytes>;

pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    pub(crate) marks: Rc<Marks>,
    pub(crate) origin: Origin,
    pub(crate) is_used: bool,
    wire: Wire,
}

/// hyper's two halves of a connection: one accepts requests, the other moves bytes whenever it is
/// polled, until the connection ends. The worker polls both itself, which saves a task and its
/// wakeups.
enum Wire {
    One(
        http1::SendRequest<Body>,
        Option<Pin<Box<http1::Connection<Io, Body>>>>,
    ),
    Two(
        http2::SendRequest<Body>,
        Option<Pin<Box<http2::Connection<Io, Body, Spawner>>>>,
    ),
}

/// Runs hyper's HTTP/2 tasks in the thread of their worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spawner;

impl<F: Future + 'static> hyper::rt::Executor<F> for Spawner {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

/// The address of a host that is an IP literal, which needs no lookup.
pub(crate) fn literal(origin: &Origin) -> Option<SocketAddr> {
    let ip: IpAddr = origin.host.parse().ok()?;
    Some(SocketAddr::new(ip, origin.port))
}

pub(crate) async fn resolve(origin: &Origin) -> Result<Vec<SocketAddr>, Fault> {
    let (host, port) = (origin.host.clone(), origin.port);
    let found = tokio::task::spawn_blocking(move || {
        let addresses = (host.as_str(), port).to_socket_addrs();
        addresses.map(Iterator::collect::<Vec<_>>)
    })
    .await
    .map_err(|_| Fault::new(Outcome::Failed, "the lookup was cancelled"))?;
    match found {
        Ok(addresses) if addresses.is_empty() => Err(Fault::new(
            Outcome::Unresolved,
            format!("no address for `{}`", origin.host),
        )),
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(Fault::of_lookup(&origin.host, &error)),
    }
}

/// Connects to the first address that accepts.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Fault> {
    let mut fault = Fault::new(Outcome::Unresolved, "the name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Without it, Nagle's algorithm would delay requests, which would distort the
                // measurement.
                return match stream.set_nodelay(true) {
                    Ok(()) => Ok(stream),
                    Err(error) => Err(Fault::of_io(&error)),
                };
            }
            Err(error) => fault = Fault::of_io(&error),
        }
    }
    Err(fault)
}

pub(crate) async fn encrypt(
    stream: TcpStream,
    connector: &TlsConnector,
    origin: &Origin,
) -> Result<Transport, Fault> {
    let name = ServerName::try_from(origin.host.clone()).map_err(|_| {
        Fault::new(
            Outcome::Tls,
            format!("`{}` is not a valid name for a certificate", origin.host),
        )
    })?;
    let stream = connector.connect(name, stream).await;
    let stream = stream.map_err(|error| Fault {
        // Whatever the error is, there is no TLS connection; the text has the details.
        outcome: match Fault::of_io(&error).outcome {
            Outcome::Failed | Outcome::Closed => Outcome::Tls,
            outcome => outcome,
        },
        ..Fault::of_io(&error)
    })?;
    Ok(Transport::Tls(Box::new(stream)))
}

impl Connection {
    pub(crate) async fn over(
        transport: Transport,
        origin: &Origin,
        (http, body_bytes): (Http, usize),
        number: u64,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let (tcp, agreed) = match &transport {
            Transport::Plain(stream) => (stream, None),
            Transport::Tls(stream) => {
                let (tcp, session) = stream.get_ref();
                (tcp, session.alpn_protocol())
            }
        };
        let text = |address: std::io::Result<SocketAddr>| {
            address.map_or_else(|_| String::new(), |address| address.to_string())
        };
        let link = Arc::new(Link::new(
            number,
            text(tcp.local_addr()),
            text(tcp.peer_addr()),
        ));
        let is_two = match http {
            Http::Agreed => agreed == Some(b"h2"),
            Http::One => false,
            Http::Two => true,
        };
        let marks = Rc::new(Marks::new(clock));
        let io = TokioIo::new(Timed {
            transport,
            marks: Rc::clone(&marks),
        });
        let wire = if is_two {
            let made = http2::handshake(Spawner, io).await;
            let (sender, driver) = made.map_err(|error| Fault::of_http(&error))?;
            Wire::Two(sender, Some(Box::pin(driver)))
        } else {
            let mut builder = http1::Builder::new();
            // Two writes cost more than copying the smaller piece.
            if body_bytes <= COPIED_BYTES_MAX {
                builder.writev(false);
            }
            let made = builder.handshake(io).await;
            let (sender, driver) = made.map_err(|error| Fault::of_http(&error))?;
            Wire::One(sender, Some(Box::pin(driver)))
        };
        Ok(Self {
            link,
            marks,
            origin: origin.clone(),
            is_used: false,
            wire,
        })
    }

    pub(crate) fn protocol(&self) -> &'static str {
        match self.wire {
            Wire::One(..) => "HTTP/1.1",
            Wire::Two(..) => "HTTP/2",
        }
    }

    pub(crate) fn is_two(&self) -> bool {
        matches!(self.wire, Wire::Two(..))
    }

    /// Whether it accepts another request: the server may have closed it in the meantime.
    pub(crate) async fn is_ready(&mut self) -> bool {
        // hyper has already requested the next one, and reports its state only when polled.
        if let Wire::One(sender, Some(_)) = &self.wire
            && sender.is_ready()
        {
            return true;
        }
        poll_fn(|cx| {
            // First, because it detects that the connection was closed.
            let (is_over, readiness) = match &mut self.wire {
                Wire::One(sender, driver) => (move_bytes(driver, cx), sender.poll_ready(cx)),
                Wire::Two(sender, driver) => (move_bytes(driver, cx), sender.poll_ready(cx)),
            };
            if is_over {
                Poll::Ready(false)
            } else {
                readiness.map(|ready| ready.is_ok())
            }
        })
        .await
    }

    /// `None` as the error if the connection had been used before and was closed since, and nothing
    /// was sent.
    pub(crate) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Option<Fault>> {
        let was_used = std::mem::replace(&mut self.is_used, true);
        self.marks
            .framing
            .set(match (self.is_two(), request.body().is_end_stream()) {
                (false, _) => Framing::Bare,
                (true, true) => Framing::Frames,
                (true, false) => Framing::FramesOfBody,
            });
        let answered = match &mut self.wire {
            Wire::One(sender, driver) => drive(driver, sender.try_send_request(request)).await,
            Wire::Two(sender, driver) => drive(driver, sender.try_send_request(request)).await,
        };
        self.marks.head();
        answered.map_err(|error| {
            let is_unsent = was_used && error.message().is_some();
            (!is_unsent).then(|| Fault::of_http(&error.into_error()))
        })
    }

    /// Reads the body to its end and discards it.
    pub(crate) async fn drain(&mut self, mut body: Incoming) -> Result<(), Fault> {
        loop {
            let mut frame = pin!(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)));
            // Most of it arrived with the head.
            let here = poll_fn(|cx| match frame.as_mut().poll(cx) {
                Poll::Ready(frame) => Poll::Ready(Some(frame)),
                Poll::Pending => Poll::Ready(None),
            });
            let frame = match (here.await, &mut self.wire) {
                (Some(frame), _) => frame,
                (None, Wire::One(_, driver)) => drive(driver, frame).await,
                (None, Wire::Two(_, driver)) => drive(driver, frame).await,
            };
            match frame {
                None => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Fault::of_http(&error)),
            }
        }
    }
}

/// Polls something of a connection after moving its bytes: it can only be ready after that.
async fn drive<D: Future + Unpin, F: Future>(driver: &mut Option<D>, wanted: F) -> F::Output {
    let mut wanted = pin!(wanted);
    poll_fn(|cx| {
        // If the connection ended, the error is returned by `wanted`.
        move_bytes(driver, cx);
        wanted.as_mut().poll(cx)
    })
    .await
}

/// Whether the connection has ended. Its driver is dropped then, which returns requests that were
/// not sent.
fn move_bytes<D: Future + Unpin>(driver: &mut Option<D>, cx: &mut Context<'_>) -> bool {
    if let Some(moves) = driver
        && Pin::new(moves).poll(cx).is_ready()
    {
        *driver = None;
    }
    driver.is_none()
}
