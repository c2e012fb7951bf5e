//! `eyot serve`: the sandboxes of this host for a team, over HTTP.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{CancellationToken, Error, ErrorKind, SandboxName, SandboxSpec};
use eyot_server::api::{Access, Api, Certificate, Listener, ServeOptions, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;

use crate::addresses::addresses;
use crate::args::ServeArgs;
use crate::config::Named;
use crate::context::Context;
use crate::errors::Failure;
use crate::parent::Parent;
use crate::signals::{SignalEvent, Signals};

/// Where it listens unless somebody says otherwise.
const ADDRESS: &str = "127.0.0.1:7070";
/// Its terminal is gone, or somebody wants files read again.
const SIGHUP: i32 = 1;

pub async fn run(args: ServeArgs, context: &Context) -> Result<u8, Failure> {
    let access = if args.no_keys { Access::Anybody } else { Access::Keys };
    if args.no_keys && !args.allow_host.is_empty() {
        // Browsers say of a page of loopback's alone that it is another site's.
        let message = "`--allow-host` lets others call the server, and `--no-keys` lets anybody in who does";
        return Err(Failure::usage(message).hint("leave one of the two out"));
    }
    let parent = args.parent_pid.map(Parent::open).transpose()?;
    let addresses = if args.listen.is_empty() { vec![ADDRESS.to_owned()] } else { args.listen };
    let certificate = certificate(&args.tls_cert, &args.tls_key, context)?;
    let mut doors = Vec::new();
    for address in &addresses {
        doors.push(Door::open(address, access, certificate.as_ref(), context).await?);
    }
    let engine = context.engine_for(None).await?;
    let config = context.config.clone();
    let api = Api::new(engine, access, move |name: SandboxName| {
        let mut template = SandboxSpec::default();
        config.defaults.fill(&mut template, Named::default());
        config.pool(name, template)
    });
    let api = match args.allow_private_networks {
        true => api.opening_private_networks(),
        false => api,
    };
    let api = match args.allow_host_networks {
        true => api.using_host_networks(),
        false => api,
    };
    let api = api.limited(args.limits.limits());
    // After the provider: what sandboxes inherit is the limit as it was.
    raise_open_files();
    if access == Access::Keys && api.keys().list().await?.iter().all(|key| key.revoked_ms.is_some()) {
        context.output.note("there is no key yet, so nobody gets in: eyot keys create NAME");
    }
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    for Door { listener, url, .. } in &mut doors {
        announce(url, context);
        let Some(listener) = listener.take() else { continue };
        let (api, stop) = (api.clone(), stop.clone());
        let options = ServeOptions {
            allowed_hosts: args.allow_host.clone(),
            allowed_origins: args.allow_origin.clone(),
            preview_domains: args.preview_domain.clone(),
            page: !args.no_page,
            ..ServeOptions::default()
        };
        serving.spawn(async move { serve(&api, listener, options, stop).await });
    }
    tokio::select! {
        () = told_to_end(&mut signals, certificate.as_deref(), context) => {}
        ended = ended(parent.as_ref()) => ended?,
    }
    stop.cancel();
    tokio::select! {
        ended = serving.join_all() => {
            ended.into_iter().collect::<eyot::Result<()>>()?;
            Ok(0)
        }
        // Somebody can't wait.
        signal = signals.end() => Ok(Failure::Interrupted(signal).exit_code()),
    }
}

/// The certificate of all TCP ports, if there is to be one.
fn certificate(
    file: &Option<PathBuf>,
    key: &Option<PathBuf>,
    context: &Context,
) -> Result<Option<Arc<Certificate>>, Failure> {
    let (Some(file), Some(key)) = (file, key) else { return Ok(None) };
    let certificate = Certificate::load(file, key)?;
    if let Some(objection) = certificate.objection() {
        context.output.note(&objection);
    }
    Ok(Some(certificate))
}

/// Comes back when a signal says so. With a certificate, SIGHUP has that read again, and says no more.
async fn told_to_end(signals: &mut Signals, certificate: Option<&Certificate>, context: &Context) {
    loop {
        match (signals.next().await, certificate) {
            (SignalEvent::Terminate(SIGHUP), Some(certificate)) => {
                context.output.note(&match certificate.reload() {
                    Ok(()) => "SIGHUP: the certificate was read again".to_owned(),
                    Err(error) => format!("SIGHUP: the old certificate stays in use: {error}"),
                })
            }
            (signal, _) if signal.ends_with().is_some() => return,
            _ => {}
        }
    }
}

/// Every connection and every sandbox in use takes descriptors.
fn raise_open_files() {
    let before = getrlimit(Resource::Nofile);
    let most = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::warn!(%error, limit = ?before.current, "the limit of open files stays as it is");
    }
}

/// Comes back when the process has ended that we are to end with; never without one.
async fn ended(parent: Option<&Parent>) -> Result<(), Failure> {
    match parent {
        Some(parent) => parent.ended().await,
        None => std::future::pending().await,
    }
}

/// Where it listens.
struct Door {
    listener: Option<Listener>,
    url: String,
    /// Removed with it.
    _socket: Option<Socket>,
}

impl Door {
    async fn open(
        address: &str,
        access: Access,
        certificate: Option<&Arc<Certificate>>,
        context: &Context,
    ) -> Result<Self, Failure> {
        match address.strip_prefix("unix:") {
            Some(path) => {
                let (listener, socket) = socket(Path::new(path))?;
                Ok(Self { listener: Some(listener), url: address.to_owned(), _socket: Some(socket) })
            }
            None => {
                let (listener, bound) = port(address, access).await?;
                let (listener, url) = match certificate {
                    Some(certificate) => {
                        (Listener::Tls(listener, Arc::clone(certificate)), format!("https://{bound}"))
                    }
                    None => {
                        if !bound.ip().is_loopback() {
                            context.output.note(&readable_by_others(address));
                        }
                        (Listener::Tcp(listener), format!("http://{bound}"))
                    }
                };
                Ok(Self { listener: Some(listener), url, _socket: None })
            }
        }
    }
}

fn readable_by_others(address: &str) -> String {
    format!(
        "`{address}` can be reached from other machines, and without TLS whoever is in between reads the keys: \
         give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that has a certificate"
    )
}

async fn port(address: &str, access: Access) -> Result<(TcpListener, SocketAddr), Failure> {
    let found = addresses(address).await?;
    if access == Access::Anybody && !found.iter().all(|address| address.ip().is_loopback()) {
        let message =
            format!("`{address}` can be reached from other machines, and `--no-keys` lets anybody in");
        return Err(Failure::usage(message).hint("leave `--no-keys` out, or listen on 127.0.0.1"));
    }
    let listener = TcpListener::bind(found.as_slice()).await;
    let listener = listener.map_err(|error| Failure::host(format!("listen on `{address}`"), error))?;
    let bound = listener.local_addr().map_err(|error| Failure::host("find our address", error))?;
    Ok((listener, bound))
}

/// A socket's file, removed when the server ends.
struct Socket(std::path::PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "the socket's file stays");
        }
    }
}

/// Listens on a socket. One that nobody listens on any more is replaced.
fn socket(path: &Path) -> Result<(Listener, Socket), Failure> {
    let failed = |error| Failure::host(format!("listen on `unix:{}`", path.display()), error);
    if !path.is_absolute() {
        return Err(Failure::usage(format!("`unix:{}` is no absolute path", path.display())));
    }
    let is_dead = || {
        let tried = std::os::unix::net::UnixStream::connect(path);
        tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(there) if !there.file_type().is_socket() => {
            let message =
                format!("listen on `unix:{}`: something else than a socket is there", path.display());
            return Err(Error::new(ErrorKind::AlreadyExists, message)
                .with_hint("choose another path")
                .into());
        }
        Ok(_) if !is_dead() => {
            let message = format!("listen on `unix:{}`: somebody does already", path.display());
            return Err(Error::new(ErrorKind::Conflict, message).into());
        }
        Ok(_) => std::fs::remove_file(path).map_err(failed)?,
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    Ok((Listener::Unix(listener), Socket(path.to_owned())))
}

fn announce(url: &str, context: &Context) {
    if !context.output.quiet {
        // Whoever started us may have closed it; that keeps nobody from serving.
        drop(io::stderr().lock().write_all(format!("eyot: serving at {url}\n").as_bytes()));
    }
}
