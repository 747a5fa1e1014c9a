//! Which certificates TLS connections trust, and which HTTP versions they offer.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::LoadError;
use crate::plan::{Http, Plan, Trust};

pub(crate) fn connector(plan: &Plan) -> Result<TlsConnector, LoadError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(LoadError::Tls)?;
    let needs_tls = plan.targets.iter().any(|target| target.origin.is_tls);
    let mut config = match &plan.tls {
        Trust::Everyone => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Everyone(provider)))
            .with_no_client_auth(),
        Trust::File(path) => builder
            .with_root_certificates(authorities(path)?)
            .with_no_client_auth(),
        // Loading them takes time, so they are loaded only if needed.
        Trust::System if needs_tls => builder
            .with_root_certificates(of_system())
            .with_no_client_auth(),
        Trust::System => builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
    };
    let offered: &[&[u8]] = match plan.http {
        Http::Agreed => &[b"h2", b"http/1.1"],
        Http::One => &[b"http/1.1"],
        Http::Two => &[b"h2"],
    };
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Unreadable certificates are skipped: servers that need them are not trusted, and their requests
/// report that.
fn of_system() -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    store
}

fn authorities(path: &Path) -> Result<RootCertStore, LoadError> {
    let wrong = |reason: String| LoadError::Authorities {
        path: path.to_owned(),
        reason,
    };
    let mut store = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        store
            .add(certificate)
            .map_err(|error| wrong(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(wrong("it has none".to_owned()));
    }
    Ok(store)
}

/// Trusts every certificate, but verifies that the server has its private key.
#[derive(Debug)]
struct Everyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Everyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        tokio_rustls::rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signed,
            algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        tokio_rustls::rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signed,
            algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
