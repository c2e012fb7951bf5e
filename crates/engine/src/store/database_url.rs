//! The address of a database that several servers share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use eyot::{Error, Result};
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, poll_fn};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{self, ClientConfig};

use super::database_error::DatabaseError;

const FIELD: &str = "database";
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The time after which a server that does not answer is taken for gone.
const SILENCE: Duration = Duration::from_secs(15);

/// The address of a PostgreSQL database, with the user and the password: `postgresql://USER:PASSWORD@HOST:PORT/NAME`.
///
/// With `?sslmode=require` the connection is encrypted, and the server's certificate must be one that this host trusts.
/// Otherwise it is not encrypted.
#[derive(Clone)]
pub struct DatabaseUrl(Arc<Config>);

impl fmt::Debug for DatabaseUrl {
    /// Leaves the password out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatabaseUrl").field(&self.to_string()).finish()
    }
}

impl fmt::Display for DatabaseUrl {
    /// The host and the database, without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.0.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let database = self.0.get_dbname().or(self.0.get_user()).unwrap_or_default();
        write!(f, "{database} at {host}")
    }
}

/// The messages of a connection. It does something only while somebody waits for the next one.
pub(super) type Messages = BoxStream<'static, Result<AsyncMessage, tokio_postgres::Error>>;

impl DatabaseUrl {
    /// Parses an address. `invalid`: it is none, or names no host. The error does not repeat it: it has a password.
    pub fn parse(text: &str) -> Result<Self> {
        let example = "write it as postgresql://USER:PASSWORD@HOST:PORT/NAME";
        if !["postgresql://", "postgres://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(Error::invalid(FIELD, "must begin with `postgresql://`").with_hint(example));
        }
        // What vendors write; here it says no more than `require`, whose certificates are checked.
        let text = text.replace("sslmode=verify-full", "sslmode=require");
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| {
            Error::invalid(FIELD, "is no address of a PostgreSQL database")
                .with_hint(example)
                .with_source(error)
        })?;
        // The rest of a password that has an `@` itself would be shown as the host.
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.contains('@'))) {
            let reason = "has more than one `@`";
            return Err(Error::invalid(FIELD, reason).with_hint("write an `@` of the password as %40"));
        }
        if config.get_hosts().is_empty() {
            return Err(Error::invalid(FIELD, "names no host").with_hint(example));
        }
        config.application_name("eyot").connect_timeout(CONNECT_PATIENCE).tcp_user_timeout(SILENCE);
        config
            .keepalives(true)
            .keepalives_idle(SILENCE)
            .keepalives_interval(CONNECT_PATIENCE)
            .keepalives_retries(3);
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Self(Arc::new(config)))
    }

    /// Connects.
    pub(super) async fn connect(&self) -> Result<(Client, Messages), DatabaseError> {
        if self.0.get_ssl_mode() == SslMode::Disable {
            let (client, connection) = self.0.connect(NoTls).await?;
            return Ok((client, messages(connection)));
        }
        let trusted = trusted().map_err(|error| DatabaseError::Silent(error.to_string()))?;
        let (client, connection) = self.0.connect(MakeRustlsConnect::new(trusted)).await?;
        Ok((client, messages(connection)))
    }
}

fn messages<S, T>(mut connection: Connection<S, T>) -> Messages
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    poll_fn(move |context| connection.poll_message(context)).boxed()
}

/// Trusts the certificates that this host trusts.
fn trusted() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_platform_verifier()?.with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_neither_user_nor_password() {
        let url = DatabaseUrl::parse("postgresql://me:secret@db.test:5433/eyot").unwrap();
        assert_eq!(url.to_string(), "eyot at db.test");
        assert_eq!(format!("{url:?}"), "DatabaseUrl(\"eyot at db.test\")");
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for wrong in [
            "",
            "secret",
            "postgresql://me:a@secret@h/d",
            "mysql://me:secret@h/d",
            "postgresql:///d",
            "postgresql://me:secret@h:x/d",
        ] {
            let error = DatabaseUrl::parse(wrong).unwrap_err();
            assert!(error.hint().is_some() && !format!("{error:?}").contains("secret"), "{error:?}");
        }
    }
}
