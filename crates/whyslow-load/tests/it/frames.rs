//! HTTP/2 and TLS.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use h2::Reason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use whyslow_load::{Http, Outcome, Row, Trust};

use crate::it::{closed, load, plan};

/// Listens and handles each connection with `with`, in a thread.
fn serve<F: Future<Output = ()> + 'static>(with: impl Fn(TcpStream) -> F + Send + 'static) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    listener.set_nonblocking(true).expect("a socket");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::task::spawn_local(with(stream));
            }
        });
    });
    port
}

/// Responds to streams according to their path.
async fn frames<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(stream: S) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        match request.uri().path() {
            "/reset" => respond.send_reset(Reason::REFUSED_STREAM),
            "/goaway" => connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM),
            _ => {
                let head = hyper::Response::new(());
                if let Ok(mut body) = respond.send_response(head, false) {
                    let _ = body.send_data(Bytes::from_static(b"ok"), true);
                }
            }
        }
    }
    // The last frame is read before the connection is reset.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
}

/// Replies to a request with a GOAWAY that states it was not processed: RFC 9113, sections 6.5 and
/// 6.8.
async fn unwilling(mut stream: TcpStream) {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let going = [
        0, 0, 8, 7, 0, 0, 0, 0, 0, // GOAWAY of eight bytes,
        0, 0, 0, 0, // the last processed request,
        0, 0, 0, 0xb, // and the error code.
    ];
    let mut buffer = [0; 4096];
    let _ = stream.write_all(&settings).await;
    let _ = stream.read(&mut buffer).await;
    // The request arrives with the preface or after it, depending on the load of the machine.
    let pause = std::time::Duration::from_millis(100);
    while let Ok(Ok(1..)) = tokio::time::timeout(pause, stream.read(&mut buffer)).await {}
    let _ = stream.write_all(&going).await;
    let _ = stream.shutdown().await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
}

fn certificate(name: &str) -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/certificates");
    PathBuf::from(root).join(name)
}

fn serve_tls(name: &str) -> u16 {
    let chain = CertificateDer::pem_file_iter(certificate(name)).expect("a certificate");
    let chain = chain.map(|certificate| certificate.expect("PEM")).collect();
    let key = PrivateKeyDer::from_pem_file(certificate("key.pem")).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a pair");
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    serve(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                frames(stream).await;
            }
        }
    })
}

fn only(url: &str, http: Http, tls: Trust) -> Row {
    let mut plan = plan(&[url]);
    (plan.http, plan.tls) = (http, tls);
    let (mut rows, _) = load(plan);
    rows.remove(0)
}

#[test]
fn requests_of_http2_share_a_connection_and_their_failures_have_names() {
    let port = serve(frames);
    let mut plan = plan(&[&format!("http://127.0.0.1:{port}/ok")]);
    plan.http = Http::Two;
    plan.model = closed(5);
    let (rows, _) = load(plan);
    assert!(
        rows.iter()
            .all(|row| row.outcome == Outcome::Ok && row.protocol == Some("HTTP/2"))
    );
    assert_eq!(rows.iter().filter(|row| row.is_reused).count(), 4);
    let check = |path: &str, outcome, words: &str| {
        let row = only(
            &format!("http://127.0.0.1:{port}{path}"),
            Http::Two,
            Trust::System,
        );
        let error = row.error.as_deref().unwrap_or_default();
        assert_eq!(row.outcome, outcome, "{path}: {error}");
        assert!(error.contains(words), "{path}: {error}");
    };
    check("/reset", Outcome::Reset, "REFUSED_STREAM");
    // It states that it has seen the request, and then closes the connection.
    check("/goaway", Outcome::Closed, "prematurely");
    let port = serve(unwilling);
    let row = only(
        &format!("http://127.0.0.1:{port}/"),
        Http::Two,
        Trust::System,
    );
    let error = row.error.as_deref().unwrap_or_default();
    assert_eq!(row.outcome, Outcome::Closed, "{error}");
    assert!(error.contains("GOAWAY, ENHANCE_YOUR_CALM"), "{error}");
}

#[test]
fn a_certificate_is_believed_or_told_why_not() {
    let check = |name: &str, host: &str, tls: Trust, outcome, words: &str| {
        let port = serve_tls(name);
        let row = only(&format!("https://{host}:{port}/"), Http::Agreed, tls);
        let error = row.error.as_deref().unwrap_or_default();
        assert_eq!(row.outcome, outcome, "{name}: {error}");
        assert!(error.contains(words), "{name}: {error}");
        assert!(row.phases.tls.is_some(), "{name}");
    };
    let ours = || Trust::File(certificate("authority.pem"));
    check("valid.pem", "localhost", ours(), Outcome::Ok, "");
    check(
        "valid.pem",
        "127.0.0.1",
        Trust::System,
        Outcome::Tls,
        "unknown authority",
    );
    check(
        "valid.pem",
        "127.0.0.2",
        ours(),
        Outcome::Tls,
        "another host",
    );
    check("expired.pem", "localhost", ours(), Outcome::Tls, "expired");
    check("expired.pem", "localhost", Trust::Everyone, Outcome::Ok, "");
    // Unread data resets the connection on close, so it is read here.
    let port = serve(|mut stream: TcpStream| async move {
        let _ = stream.read(&mut [0; 4096]).await;
    });
    let row = only(&format!("https://127.0.0.1:{port}/"), Http::Agreed, ours());
    assert_eq!(row.outcome, Outcome::Tls, "{:?}", row.error);
}
