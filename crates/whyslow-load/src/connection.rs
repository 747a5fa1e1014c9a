//! A connection of a worker: how it is made, and a request on it.

use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

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

type Io = TokioIo<Timed>;
type Body = Full<Bytes>;

pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    pub(crate) marks: Rc<Marks>,
    pub(crate) origin: Origin,
    pub(crate) is_used: bool,
    wire: Wire,
    is_over: bool,
}

/// hyper's two sides of a connection: what takes requests, and what moves bytes as long as it is
/// polled. Both are polled by the worker itself, which saves a task and its wakeups.
enum Wire {
    One(
        http1::SendRequest<Body>,
        Pin<Box<http1::Connection<Io, Body>>>,
    ),
    Two(
        http2::SendRequest<Body>,
        Pin<Box<http2::Connection<Io, Body, Spawner>>>,
    ),
}

/// hyper's tasks of HTTP/2 run in the thread of their worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spawner;

impl<F: Future + 'static> hyper::rt::Executor<F> for Spawner {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

/// Addresses of a host, by the system's own `getaddrinfo`; those that need no lookup at once.
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
    .map_err(|_| Fault::new(Outcome::Failed, "the lookup was given up"))?;
    match found {
        Ok(addresses) if addresses.is_empty() => Err(Fault::new(
            Outcome::Unresolved,
            format!("`{}` has no address", origin.host),
        )),
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(Fault::of_lookup(&origin.host, &error)),
    }
}

/// To the first of the addresses that takes it.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Fault> {
    let mut fault = Fault::new(Outcome::Unresolved, "there is no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // A request that waits for the answer to the one before is not what is measured.
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
            format!("`{}` can have no certificate", origin.host),
        )
    })?;
    let stream = connector.connect(name, stream).await;
    let stream = stream.map_err(|error| Fault {
        // Whatever it is, there is no encrypted connection; its words tell of the rest.
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
        http: Http,
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
        let told = |address: std::io::Result<SocketAddr>| {
            address.map_or_else(|_| String::new(), |address| address.to_string())
        };
        let link = Arc::new(Link {
            number,
            local: told(tcp.local_addr()),
            peer: told(tcp.peer_addr()),
        });
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
            Wire::Two(sender, Box::pin(driver))
        } else {
            let made = http1::handshake(io).await;
            let (sender, driver) = made.map_err(|error| Fault::of_http(&error))?;
            Wire::One(sender, Box::pin(driver))
        };
        Ok(Self {
            link,
            marks,
            origin: origin.clone(),
            is_used: false,
            wire,
            is_over: false,
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

    /// Whether it takes another request: a server may have closed it meanwhile.
    pub(crate) async fn is_ready(&mut self) -> bool {
        let Self { wire, is_over, .. } = self;
        poll_fn(|cx| {
            if *is_over {
                return Poll::Ready(false);
            }
            // First, because it is what sees that it was closed.
            let (is_ended, readiness) = match wire {
                Wire::One(sender, driver) => {
                    (driver.as_mut().poll(cx).is_ready(), sender.poll_ready(cx))
                }
                Wire::Two(sender, driver) => {
                    (driver.as_mut().poll(cx).is_ready(), sender.poll_ready(cx))
                }
            };
            *is_over = is_ended;
            if is_ended {
                Poll::Ready(false)
            } else {
                readiness.map(|ready| ready.is_ok())
            }
        })
        .await
    }

    pub(crate) async fn ask(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Fault> {
        self.is_used = true;
        self.marks
            .framing
            .set(match (self.is_two(), request.body().is_end_stream()) {
                (false, _) => Framing::Bare,
                (true, true) => Framing::Frames,
                (true, false) => Framing::FramesOfBody,
            });
        let Self { wire, is_over, .. } = self;
        let answered = match wire {
            Wire::One(sender, driver) => drive(driver, is_over, sender.send_request(request)).await,
            Wire::Two(sender, driver) => drive(driver, is_over, sender.send_request(request)).await,
        };
        self.marks.head();
        answered.map_err(|error| Fault::of_http(&error))
    }

    /// Reads the body to its end and forgets it.
    pub(crate) async fn drain(&mut self, mut body: Incoming) -> Result<(), Fault> {
        let Self { wire, is_over, .. } = self;
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
            let frame = match wire {
                Wire::One(_, driver) => drive(driver, is_over, frame).await,
                Wire::Two(_, driver) => drive(driver, is_over, frame).await,
            };
            match frame {
                None => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Fault::of_http(&error)),
            }
        }
    }
}

/// Waits for something of a connection while moving its bytes.
async fn drive<D: Future + Unpin, F: Future>(
    driver: &mut D,
    is_over: &mut bool,
    wanted: F,
) -> F::Output {
    let mut wanted = pin!(wanted);
    poll_fn(|cx| {
        if let Poll::Ready(output) = wanted.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        if !*is_over {
            // What ended it comes back from what was wanted.
            *is_over = Pin::new(&mut *driver).poll(cx).is_ready();
        }
        wanted.as_mut().poll(cx)
    })
    .await
}
