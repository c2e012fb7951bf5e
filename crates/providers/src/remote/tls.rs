//! TLS to a server: the certificates to trust, for plain requests and WebSockets alike.

use std::io;
use std::path::Path;
use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, ConfigBuilder};

use super::named_certificates::{NamedCertificates, is_of_an_authority};

/// Makes the TLS configuration. It trusts the certificates in this file, or else those that the
/// system trusts.
pub(super) fn config(ca_certificate: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let builder = match ca_certificate {
        Some(file) => of_file(file)?,
        None => of_system()?,
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Finds the TLS failure behind an error, if there is one.
pub(super) fn failure<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // Its `source` is that of what it wraps, not what it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

/// Says in plain words why a server is not trusted.
pub(super) fn distrust(failure: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(reason) = failure else { return failure.to_string() };
    match reason {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by an authority that is not trusted here".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: is this machine's clock right?".to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("its certificate is for {}, not for {}", presented.join(", "), expected.to_str())
        }
        _ if is_of_an_authority(failure) => {
            "its certificate signs itself, and is not one that was named".to_owned()
        }
        _ => failure.to_string(),
    }
}

fn builder() -> Result<ConfigBuilder<ClientConfig, rustls::WantsVerifier>> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)
}

fn of_system() -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    builder()?.with_platform_verifier().map_err(failed)
}

fn of_file(file: &Path) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let verifier = NamedCertificates::new(certificates(file)?).map_err(|reason| wrong_file(file, &reason))?;
    Ok(builder()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

fn failed(error: rustls::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("prepare TLS to the server: {error}"))
        .with_hint("name a PEM file with the certificates to trust: EYOT_CA_CERT")
        .with_source(error)
}

fn wrong_file(file: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::invalid("EYOT_CA_CERT", format!("names `{}`: {reason}", file.display()))
        .with_hint("name a PEM file with the certificates that the server's may come from")
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).map_err(|error| wrong_file(file, &error))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong_file(file, &error))?;
    if found.is_empty() {
        Err(wrong_file(file, &"it has no `-----BEGIN CERTIFICATE-----`"))
    } else {
        Ok(found)
    }
}
