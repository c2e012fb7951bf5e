//! TLS on a TCP listener, with a certificate that may change while the server runs.
//!
//! The files are checked before each handshake (two calls of `stat`), so a renewed certificate
//! needs no signal. If a new one cannot be used, the old one stays in use. Only HTTP/1.1 is
//! offered. Client certificates are not asked for: callers have keys.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyot::wire::SPEAKS_TLS;
use eyot::{Error, ErrorKind, Result};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

/// The protocol that the handshake agrees on.
const PROTOCOL: &[u8] = b"http/1.1";

/// A certificate with its key, and the paths of both. Clones of the `Arc` are the same.
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    in_use: Mutex<ActiveCertificate>,
}

struct ActiveCertificate {
    config: Arc<ServerConfig>,
    /// The state of the files when they were last read, with or without success.
    seen: FileStamps,
}

/// The metadata that changes when a file is written or replaced.
type FileStamp = (u64, u64, i64, i64, u64);
/// The stamps of certificate and key; `None`: the file does not exist.
type FileStamps = [Option<FileStamp>; 2];

impl Certificate {
    /// Reads a certificate with its chain, and its private key, both PEM. Fails with `invalid` if
    /// one of them cannot be read or parsed, or if the key does not belong to the certificate.
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>> {
        let seen = seen(certificate, key);
        let config = config(certificate, key)?;
        let in_use = Mutex::new(ActiveCertificate { config, seen });
        Ok(Arc::new(Self { certificate: certificate.to_owned(), key: key.to_owned(), in_use }))
    }

    /// Reads both files again, even if they look unchanged. After an error the old certificate
    /// stays in use; the caller reports the error.
    pub fn reload(&self) -> Result<()> {
        self.read(&mut self.in_use(), seen(&self.certificate, &self.key))
    }

    /// Returns a warning about the key's file: other users can read it.
    pub fn objection(&self) -> Option<String> {
        let mode = self.key.metadata().ok()?.mode();
        let text = || format!("others can read the key `{}`: chmod 600 it", self.key.display());
        (mode & 0o077 != 0 && mode & 0o007 != 0).then(text)
    }

    fn read(&self, in_use: &mut ActiveCertificate, seen: FileStamps) -> Result<()> {
        in_use.seen = seen;
        in_use.config = config(&self.certificate, &self.key)?;
        Ok(())
    }

    /// Returns the configuration for the next handshake, read anew if the files have changed.
    fn current(&self) -> Arc<ServerConfig> {
        let mut in_use = self.in_use();
        let now = seen(&self.certificate, &self.key);
        if now != in_use.seen {
            match self.read(&mut in_use, now) {
                Ok(()) => {
                    tracing::info!(certificate = %self.certificate.display(), "a new certificate is in use")
                }
                Err(error) => {
                    tracing::warn!(%error, "the certificate has changed and can't be used: the old one stays")
                }
            }
        }
        Arc::clone(&in_use.config)
    }

    /// Locks the state, even if poisoned: only plain values are moved in and out.
    fn in_use(&self) -> MutexGuard<'_, ActiveCertificate> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes the TLS handshake within this time. A client that speaks plain HTTP is told to use
    /// TLS.
    pub(super) async fn accept(
        self: &Arc<Self>,
        stream: TcpStream,
        within: Duration,
    ) -> io::Result<TlsStream<TcpStream>> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long");
        timeout(within, self.shake_hands(stream)).await.map_err(late)?
    }

    async fn shake_hands(self: &Arc<Self>, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        stream.peek(&mut first).await?;
        if first[0].is_ascii_uppercase() {
            return Err(say_that_it_is_tls(stream).await);
        }
        let certificate = Arc::clone(self);
        let config = tokio::task::spawn_blocking(move || certificate.current()).await;
        TlsAcceptor::from(config.map_err(io::Error::other)?).accept(stream).await
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("file", &self.certificate).finish_non_exhaustive()
    }
}

/// Answers a request that came without TLS, without looking at it: anybody on its way could have
/// read it.
async fn say_that_it_is_tls(mut stream: TcpStream) -> io::Error {
    let sentence = format!("{SPEAKS_TLS}\n");
    let length = sentence.len();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{sentence}"
    );
    // What is there already and stays unread would reset the connection, and the answer with it.
    drop(stream.try_read(&mut [0; 16 << 10]));
    let told = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    told.await.err().unwrap_or_else(|| io::Error::other("a client spoke plain HTTP"))
}

fn seen(certificate: &Path, key: &Path) -> FileStamps {
    let stamp = |of: Metadata| (of.dev(), of.ino(), of.ctime(), of.ctime_nsec(), of.size());
    [certificate, key].map(|file| file.metadata().ok().map(stamp))
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let chain = chain(certificate)?;
    let key_file = key;
    let key =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error, "BEGIN PRIVATE KEY"))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let failed = |error: rustls::Error| unusable(certificate, key_file, error);
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        builder.map_err(failed)?.with_no_client_auth().with_single_cert(chain, key).map_err(failed)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let failed = |error| unreadable(file, error, "BEGIN CERTIFICATE");
    let chain: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(|certificates| certificates.collect())
        .map_err(failed)?;
    if chain.is_empty() {
        Err(unreadable(file, pem::Error::NoItemsFound, "BEGIN CERTIFICATE"))
    } else {
        Ok(chain)
    }
}

fn unreadable(file: &Path, error: pem::Error, begins: &str) -> Error {
    let reason = match &error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("it has no `-----{begins}-----`"),
        other => other.to_string(),
    };
    Error::new(ErrorKind::Invalid, format!("read `{}` for TLS: {reason}", file.display()))
        .with_hint("name PEM files: the certificate with its intermediates, and its private key without a passphrase")
        .with_source(error)
}

fn unusable(certificate: &Path, key: &Path, error: rustls::Error) -> Error {
    let (certificate, key) = (certificate.display(), key.display());
    let (sentence, hint) = match error {
        rustls::Error::InconsistentKeys(_) => (
            format!("the key `{key}` is not that of the certificate `{certificate}`"),
            "the server's own certificate comes first in its file, intermediates after it",
        ),
        _ => (
            format!("use the certificate `{certificate}` with the key `{key}`: {error}"),
            "RSA from 2,048 bits, ECDSA (P-256, P-384) and Ed25519 can be used",
        ),
    };
    Error::new(ErrorKind::Invalid, sentence).with_hint(hint).with_source(error)
}
