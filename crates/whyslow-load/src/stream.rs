//! The byte stream of a connection, with timestamps.
//!
//! hyper reports when the head and the body of a response were read; only the stream knows when the
//! request was sent and when the first byte arrived. It is above TLS, so that session tickets are
//! not mistaken for a response.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::clock::Clock;

pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// What was transferred since the start of the request. Times are ns of the run, 0 for none.
#[derive(Debug)]
pub(crate) struct Marks {
    clock: Clock,
    pub(crate) last_write_ns: Cell<u64>,
    pub(crate) first_read_ns: Cell<u64>,
    pub(crate) sent_bytes: Cell<u64>,
    pub(crate) received_bytes: Cell<u64>,
    /// Which bytes belong to a request.
    pub(crate) framing: Cell<Framing>,
}

/// What the bytes on the connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The request and its response only.
    Bare,
    /// Also connection frames: the first write is the request's, the response begins with its head.
    Frames,
    /// The same while a body is sent: the last write before the response is the request's.
    FramesOfBody,
}

impl Marks {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            last_write_ns: Cell::new(0),
            first_read_ns: Cell::new(0),
            sent_bytes: Cell::new(0),
            received_bytes: Cell::new(0),
            framing: Cell::new(Framing::Bare),
        }
    }

    /// A request starts.
    pub(crate) fn begin(&self) {
        self.last_write_ns.set(0);
        self.first_read_ns.set(0);
        self.sent_bytes.set(0);
        self.received_bytes.set(0);
    }

    /// The head of the response has been read.
    pub(crate) fn head(&self) {
        if self.first_read_ns.get() == 0 {
            self.first_read_ns.set(self.clock.now_ns());
        }
    }

    fn wrote(&self, bytes: usize) {
        self.sent_bytes.set(self.sent_bytes.get() + bytes as u64);
        let is_first = self.last_write_ns.get() == 0;
        if self.first_read_ns.get() == 0 && (is_first || self.framing.get() != Framing::Frames) {
            self.last_write_ns.set(self.clock.now_ns());
        }
    }

    fn read(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.received_bytes
            .set(self.received_bytes.get() + bytes as u64);
        if self.framing.get() == Framing::Bare {
            self.head();
        }
    }
}

pub(crate) struct Timed {
    pub(crate) transport: Transport,
    pub(crate) marks: Rc<Marks>,
}

impl AsyncRead for Timed {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(match &mut this.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        })?;
        this.marks.read(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(match &mut this.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        })?;
        this.marks.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(match &mut this.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        })?;
        this.marks.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
