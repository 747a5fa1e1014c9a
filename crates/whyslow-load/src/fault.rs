//! Why a request failed, as recorded in its row.

use std::error::Error;
use std::io;

use tokio_rustls::rustls;

use crate::row::Outcome;

/// Outcome and message.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) outcome: Outcome,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            outcome,
            message: message.into(),
        }
    }

    /// An error of the name lookup.
    pub(crate) fn of_lookup(host: &str, error: &io::Error) -> Self {
        let message = error.to_string();
        let reason = message.rsplit(": ").next().unwrap_or_default();
        Self::new(
            Outcome::Unresolved,
            format!("cannot resolve `{host}`: {reason}"),
        )
    }

    pub(crate) fn of_io(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let inner = error.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::of_tls(error);
        }
        match error.kind() {
            Kind::ConnectionRefused => Self::new(Outcome::Refused, "the connection was refused"),
            // Without an errno it is HTTP/2's term for an end between frames.
            Kind::BrokenPipe if error.raw_os_error().is_none() => Self::early(),
            Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted => {
                Self::new(Outcome::Reset, "the connection was reset")
            }
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
                Self::new(Outcome::Unreachable, error.to_string())
            }
            Kind::TimedOut => Self::new(Outcome::Timeout, "the connection timed out"),
            Kind::UnexpectedEof => Self::early(),
            Kind::AddrNotAvailable => Self::new(Outcome::Failed, "no free local port"),
            _ => Self::new(Outcome::Failed, error.to_string()),
        }
    }

    fn early() -> Self {
        Self::new(
            Outcome::Closed,
            "the server closed the connection prematurely",
        )
    }

    fn of_tls(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Certificate;
        let message = match error {
            rustls::Error::InvalidCertificate(
                Certificate::Expired | Certificate::ExpiredContext { .. },
            ) => "the certificate has expired".to_owned(),
            rustls::Error::InvalidCertificate(
                Certificate::NotValidYet | Certificate::NotValidYetContext { .. },
            ) => "the certificate is not valid yet".to_owned(),
            rustls::Error::InvalidCertificate(Certificate::UnknownIssuer) => {
                "the certificate was issued by an unknown authority".to_owned()
            }
            rustls::Error::InvalidCertificate(
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
            ) => "the certificate was issued for another host".to_owned(),
            rustls::Error::InvalidMessage(_) => "the server does not speak TLS".to_owned(),
            error => error.to_string(),
        };
        Self::new(Outcome::Tls, message)
    }

    pub(crate) fn of_http(error: &hyper::Error) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = error.source();
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<h2::Error>() {
                return Self::of_frames(error);
            }
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return Self::of_io(error);
            }
            next = error.source();
        }
        if error.is_parse() {
            Self::new(
                Outcome::Protocol,
                format!("the response is not HTTP: {error}"),
            )
        } else if error.is_incomplete_message() {
            Self::early()
        } else if error.is_canceled() || error.is_closed() {
            Self::new(Outcome::Closed, "the server closed the connection")
        } else {
            Self::new(Outcome::Failed, error.to_string())
        }
    }

    fn of_frames(error: &h2::Error) -> Self {
        if let Some(error) = error.get_io() {
            return Self::of_io(error);
        }
        let reason = error
            .reason()
            .map_or_else(|| error.to_string(), |reason| format!("{reason:?}"));
        match (error.is_go_away(), error.is_remote()) {
            (true, true) => Self::new(
                Outcome::Closed,
                format!("the server closed the connection: GOAWAY, {reason}"),
            ),
            (false, true) => Self::new(
                Outcome::Reset,
                format!("the server reset the stream: RST_STREAM, {reason}"),
            ),
            _ => Self::new(
                Outcome::Protocol,
                format!("the response is not HTTP/2: {reason}"),
            ),
        }
    }
}
