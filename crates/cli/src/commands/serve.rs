//! `eyot serve`: serves the sandboxes of this host to a team, over HTTP.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{CancellationToken, Error, ErrorKind, SandboxName, SandboxSpec};
use eyot_engine::store::KeyRow;
use eyot_server::api::{Access, Api, Certificate, Listener, ServeOptions, prepare};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{JoinError, JoinSet};

use crate::addresses::{addresses, listen};
use crate::args::ServeArgs;
use crate::client_folder::ClientFolder;
use crate::config::SetFields;
use crate::context::Context;
use crate::errors::Failure;
use crate::open_files::OpenFiles;
use crate::parent::Parent;
use crate::repairs::Repairs;
use crate::served_agents;
use crate::signals::{SignalEvent, Signals};
use crate::usual_quotas::UsualQuotas;

/// The default address.
const ADDRESS: &str = "127.0.0.1:7070";
/// SIGHUP: the terminal is gone, or the certificate is to be read again.
const SIGHUP: i32 = 1;

pub async fn run(args: ServeArgs, context: &Context) -> Result<u8, Failure> {
    if args.no_keys && !args.allow_host.is_empty() {
        // Browsers say of a page of loopback's alone that it is another site's.
        let message = "`--allow-host` lets others call the server, and `--no-keys` lets anybody in who does";
        return Err(Failure::usage(message).hint("leave one of the two out"));
    }
    let parent = args.parent_pid.map(Parent::open).transpose()?;
    let certificate = certificate(&args.tls_cert, &args.tls_key, context)?;
    // Declared before the sockets, so that it is dropped after them.
    let _folder = parent.as_ref().and_then(|_| client_folder(&args.listen));
    let mut listeners = listeners(&args, certificate.as_ref(), context).await?;
    let api = api(&args, listeners.len(), context).await?;
    let agents = served_agents::agents(&args, &api, context)?;
    let api = api.running_agents(agents.clone());
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let stop = CancellationToken::new();
    let mut serving = serving(&args, &api, &mut listeners, &stop).await?;
    let _repairs = Repairs::begin(&api, agents);
    for bound in &listeners {
        announce(&bound.url, context);
    }
    let told = async {
        tokio::select! {
            () = told_to_end(&mut signals, certificate.as_deref(), context) => Ok(()),
            ended = ended(parent.as_ref()) => ended,
        }
    };
    supervise(&mut serving, told).await?;
    stop.cancel();
    tokio::select! {
        ended = all_ended(&mut serving) => ended.map(|()| 0),
        // Somebody can't wait.
        signal = signals.end() => Ok(Failure::Interrupted(signal).exit_code()),
    }
}

/// The running parts of a server, one for each listener.
type Serving = JoinSet<eyot::Result<()>>;

/// Starts to serve on all listeners, once everything is prepared.
async fn serving(
    args: &ServeArgs,
    api: &Api,
    listeners: &mut [BoundListener],
    stop: &CancellationToken,
) -> Result<Serving, Failure> {
    let mut ready = Vec::new();
    for listener in listeners.iter_mut().filter_map(|bound| bound.listener.take()) {
        let options = ServeOptions {
            allowed_hosts: args.allow_host.clone(),
            allowed_origins: args.allow_origin.clone(),
            preview_domains: args.preview_domain.clone(),
            page: !args.no_page,
            ..ServeOptions::default()
        };
        ready.push(prepare(api, listener, options, stop.clone()).await?);
    }
    let mut serving = JoinSet::new();
    for server in ready {
        serving.spawn(server.run());
    }
    Ok(serving)
}

/// Waits until the server is told to stop. If a part of it ends before, the whole server stops with
/// that reason, since it would not answer any more, or worse.
async fn supervise(
    serving: &mut Serving,
    told: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    tokio::select! {
        told = told => told,
        Some(part) = serving.join_next() => Err(ended_early(part)),
    }
}

/// Returns the reason why the server stops although nobody told it to.
fn ended_early(part: Result<eyot::Result<()>, JoinError>) -> Failure {
    let error = match part {
        Ok(Err(error)) => error.context("serve"),
        Ok(Ok(())) => Error::new(ErrorKind::Internal, "serve: a listener has ended"),
        Err(error) => {
            Error::new(ErrorKind::Internal, "serve: a part of the server has failed").with_source(error)
        }
    };
    Failure::from(error).hint("start it again; what sandboxes do goes on meanwhile")
}

/// Waits until all parts have ended, as they were told to.
async fn all_ended(serving: &mut Serving) -> Result<(), Failure> {
    while let Some(part) = serving.join_next().await {
        match part {
            Ok(ended) => ended?,
            failed => return Err(ended_early(failed)),
        }
    }
    Ok(())
}

fn access(args: &ServeArgs) -> Access {
    if args.no_keys { Access::Anybody } else { Access::Keys }
}

/// Listens on every address of the arguments.
async fn listeners(
    args: &ServeArgs,
    certificate: Option<&Arc<Certificate>>,
    context: &Context,
) -> Result<Vec<BoundListener>, Failure> {
    let addresses = if args.listen.is_empty() { vec![ADDRESS.to_owned()] } else { args.listen.clone() };
    let mut listeners = Vec::new();
    for address in &addresses {
        listeners.push(BoundListener::open(address, access(args), certificate, context).await?);
    }
    Ok(listeners)
}

/// Makes the API that is served on all `listeners` listeners.
async fn api(args: &ServeArgs, listeners: usize, context: &Context) -> Result<Api, Failure> {
    let engine = if args.no_keys { context.engine_without_keys().await? } else { context.engine().await? };
    let config = context.config.clone();
    let usual = usual_quotas(args, context)?;
    let mut api = Api::new(engine, access(args), move |name: SandboxName| {
        let mut template = SandboxSpec::default();
        config.defaults.fill(&mut template, SetFields::default());
        config.served_pool(name, template, &usual)
    });
    if args.allow_private_networks {
        api = api.opening_private_networks();
    }
    if args.allow_host_networks {
        api = api.using_host_networks();
    }
    // After the provider: what sandboxes inherit is the limit as it was.
    let wanted = args.limits.limits();
    let limits = OpenFiles::raise()?.share(wanted.clone(), listeners)?;
    if limits != wanted {
        let (connections, requests) = (limits.max_connections, limits.max_requests_per_key);
        context.output.note(&format!(
            "the limit of open files leaves {connections} connections for each listener, and {requests} requests of one \
             key at once; `ulimit -n` raises it"
        ));
    }
    let api = api.limited(limits);
    let api = api.showing_metrics_to(args.metrics_key.clone()).changing_images_by(args.image_key.clone());
    if !args.no_keys {
        note_missing_keys(args, &api.keys().list().await?, context);
    }
    Ok(api)
}

/// Notes that nobody gets in yet, or that an option names a key that there is not.
fn note_missing_keys(args: &ServeArgs, keys: &[KeyRow], context: &Context) {
    let is_there = |name: &SandboxName| keys.iter().any(|key| key.revoked_ms.is_none() && key.name == *name);
    if keys.iter().all(|key| key.revoked_ms.is_some()) {
        context.output.note("there is no key yet, so nobody gets in: eyot keys create NAME");
    }
    for (option, names) in [("--metrics-key", &args.metrics_key), ("--image-key", &args.image_key)] {
        for name in names.iter().filter(|name| !is_there(name)) {
            let note = format!("there is no key `{name}`, which {option} names: eyot keys create {name}");
            context.output.note(&note);
        }
    }
}

/// Returns the folder that a client made for the socket of this server.
fn client_folder(addresses: &[String]) -> Option<ClientFolder> {
    let socket = addresses.iter().find_map(|address| address.strip_prefix("unix:"))?;
    ClientFolder::of(Path::new(socket))
}

/// Returns the quotas of pools without a configuration.
fn usual_quotas(args: &ServeArgs, context: &Context) -> Result<UsualQuotas, Failure> {
    if args.no_keys { Ok(UsualQuotas::without_keys()) } else { UsualQuotas::for_this_host(context) }
}

/// Reads the certificate of all TCP ports, if there is one.
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

/// Waits until a signal tells the server to stop. With a certificate, SIGHUP only reads that again.
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

/// Waits until the process of `--parent-pid` has ended. Without one it waits for ever.
async fn ended(parent: Option<&Parent>) -> Result<(), Failure> {
    match parent {
        Some(parent) => parent.ended().await,
        None => std::future::pending().await,
    }
}

/// A listener of the server.
struct BoundListener {
    listener: Option<Listener>,
    url: String,
    /// The socket's file, which is removed with the listener.
    _socket: Option<Socket>,
}

impl BoundListener {
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
    let listener = listen(&found, address, "--listen").await?;
    let bound = listener.local_addr().map_err(|error| Failure::host("find our address", error))?;
    Ok((listener, bound))
}

/// The file of a unix socket. Dropping it removes the file.
struct Socket(std::path::PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "the socket's file stays");
        }
    }
}

/// Listens on a unix socket. A file that is left of an earlier server is replaced.
fn socket(path: &Path) -> Result<(Listener, Socket), Failure> {
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => Some("name a path in a folder that you may write to"),
            io::ErrorKind::NotFound => Some("make its folder first"),
            _ => None,
        };
        let failure = Failure::host(format!("listen on `unix:{}`", path.display()), error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    };
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
            return Err(Error::new(ErrorKind::Conflict, message).with_hint("choose another path").into());
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// Returns the reason that the server gives when one of its two parts ends so.
    async fn reason(part: impl Future<Output = eyot::Result<()>> + Send + 'static) -> String {
        let mut serving = JoinSet::new();
        serving.spawn(pending());
        serving.spawn(part);
        let Err(Failure::Error { error, .. }) = supervise(&mut serving, pending()).await else {
            panic!("it goes on without a part");
        };
        assert_eq!(error.hint(), Some("start it again; what sandboxes do goes on meanwhile"));
        error.to_string()
    }

    #[tokio::test]
    async fn a_part_of_the_server_that_ends_ends_the_server_with_its_reason() {
        let deaf = Error::new(ErrorKind::Unavailable, "accept a connection: the socket is gone");
        assert_eq!(reason(ready(Err(deaf))).await, "serve: accept a connection: the socket is gone");
        assert_eq!(reason(ready(Ok(()))).await, "serve: a listener has ended");
        let panicked = reason(async { panic!("a part panics on purpose") }).await;
        assert_eq!(panicked, "serve: a part of the server has failed");
    }

    #[tokio::test]
    async fn a_server_that_is_told_to_end_has_no_reason() {
        let mut serving = JoinSet::new();
        serving.spawn(pending());
        assert!(supervise(&mut serving, ready(Ok(()))).await.is_ok());
    }
}
