//! Connections: bounded in number, each with a timeout for its requests.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use whyslow_base::failure::Failure;

use crate::args::ListenArg;

/// Maximum number of connections; more wait until one ends.
const CONNECTIONS_MAX: usize = 256;
/// Timeout for request headers and for idle connections.
const HEADERS_TIME_MAX: Duration = Duration::from_secs(20);
/// Maximum size of request line and headers.
const HEADERS_BYTES_MAX: usize = 48 << 10;
const HEADERS_MAX: usize = 64;
/// Pause after a failed accept (for example, out of descriptors).
const PAUSE: Duration = Duration::from_millis(100);

/// A bound socket that is not yet registered with the runtime.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(std::net::TcpListener, SocketAddr),
    Unix(std::os::unix::net::UnixListener, PathBuf),
}

/// Removes the socket file when it is dropped.
pub(crate) struct SocketCleanup(Option<(Sender<()>, JoinHandle<()>)>);

impl Drop for SocketCleanup {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

impl Socket {
    /// The cleanup of a Unix socket.
    pub(crate) fn cleanup(&self) -> SocketCleanup {
        let Self::Unix(_, path) = self else {
            return SocketCleanup(None);
        };
        let path = path.clone();
        let (sender, receiver) = channel::<()>();
        let thread = thread::spawn(move || {
            let _ = receiver.recv();
            let _ = std::fs::remove_file(path);
        });
        SocketCleanup(Some((sender, thread)))
    }

    pub(crate) fn bind(listen: &ListenArg, port: Option<u16>) -> Result<Self, Failure> {
        match (listen, port) {
            (ListenArg::Unix(path), _) => bind_unix(path),
            (ListenArg::Address(address), None) => bind_tcp(*address),
            (ListenArg::Address(address), Some(port)) => {
                bind_tcp(SocketAddr::new(address.ip(), port))
            }
        }
    }
}

fn bind_tcp(address: SocketAddr) -> Result<Socket, Failure> {
    let bound = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Socket::Tcp(listener, address))
    });
    bound.map_err(|error| {
        let failure = Failure::new(format!("cannot listen on {address}")).caused_by(&error);
        match error.kind() {
            io::ErrorKind::AddrInUse => failure.hint("omit --port to use a free port"),
            _ => failure,
        }
    })
}

/// A socket for this user only. A stale socket is replaced; a socket in use and other files are
/// kept.
fn bind_unix(path: &Path) -> Result<Socket, Failure> {
    let failed = |error: io::Error| {
        Failure::new(format!("cannot listen on `{}`", path.display())).caused_by(&error)
    };
    let is_left = std::fs::symlink_metadata(path)
        .is_ok_and(|about| std::os::unix::fs::FileTypeExt::is_socket(&about.file_type()))
        && std::os::unix::net::UnixStream::connect(path).is_err();
    if is_left {
        std::fs::remove_file(path).map_err(failed)?;
    }
    // The mode must be right from the start, not only after a chmod.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = std::os::unix::net::UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound.map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let path = std::path::absolute(path).map_err(failed)?;
    Ok(Socket::Unix(listener, path))
}

/// Accepts connections until `end` completes.
pub(crate) async fn serve(
    socket: Socket,
    app: Router,
    mut end: watch::Receiver<bool>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let listener = Listener::new(socket)?;
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let (place, stream) = tokio::select! {
            _ = end.wait_for(|is_over| *is_over) => return Ok(()),
            found = async { (place.await, listener.accept().await) } => found,
        };
        let (Ok(place), Ok(stream)) = (place, stream) else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (app, end) = (app.clone(), end.clone());
        tokio::spawn(async move {
            match stream {
                Stream::Tcp(stream) => talk(stream, app, end).await,
                Stream::Unix(stream) => talk(stream, app, end).await,
            }
            drop(place);
        });
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

impl Listener {
    fn new(socket: Socket) -> io::Result<Self> {
        Ok(match socket {
            Socket::Tcp(listener, _) => Self::Tcp(TcpListener::from_std(listener)?),
            Socket::Unix(listener, _) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Small responses must not wait for an acknowledgement.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// Serves a connection until it ends. Errors of a connection only concern its client.
async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    app: Router,
    mut end: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIME_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = end.wait_for(|is_over| *is_over) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
