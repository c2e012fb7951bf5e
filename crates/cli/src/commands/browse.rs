//! `eyot browse`: a port of a sandbox on this host's loopback, until somebody ends it.

use std::net::Ipv4Addr;
use std::sync::Arc;

use eyot::{Error, ErrorKind, Sandbox, SandboxProvider};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::args::BrowseArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::Output;
use crate::signals::Signals;

pub async fn run(args: &BrowseArgs, context: &Context) -> Result<u8, Failure> {
    // Whether there is such a sandbox is said before anything is opened.
    context.sandbox(&args.name).await?;
    let mut signals = Signals::listen()?;
    let cannot = |error| Failure::host("open a port on 127.0.0.1", error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
    let url = format!("http://{}", listener.local_addr().map_err(cannot)?);
    match context.output.json {
        true => context.output.value(&json!({ "url": url }))?,
        false => context.output.text(&format!("{url}\n"))?,
    }
    let target = Target { provider: context.provider()?, name: args.name.clone(), port: args.port };
    tokio::select! {
        failed = serve(listener, Arc::new(target), context.output) => Err(failed),
        signal = signals.end() => match signal {
            // Ctrl-C is how it is meant to end.
            2 => Ok(0),
            signal => Err(Failure::Interrupted(signal)),
        },
    }
}

struct Target {
    provider: Arc<dyn SandboxProvider>,
    name: String,
    port: u16,
}

/// Accepts until the sandbox is gone.
async fn serve(listener: TcpListener, target: Arc<Target>, output: Output) -> Failure {
    let (gone, mut is_gone) = tokio::sync::mpsc::unbounded_channel();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(error) = is_gone.recv() => return Failure::from(error),
        };
        let client = match accepted {
            Ok((client, _)) => client,
            Err(error) => return Failure::host("accept a connection", error),
        };
        let (target, gone) = (Arc::clone(&target), gone.clone());
        tokio::spawn(async move {
            let Err(error) = connect(&target, client).await else { return };
            match error.kind() {
                // Nobody listens any more only when we are about to end.
                ErrorKind::Destroyed | ErrorKind::NotFound => drop(gone.send(error)),
                _ => output.complain(&error),
            }
        });
    }
}

/// The sandbox is found anew for each connection: it may have slept, or have another process to talk to.
async fn connect(target: &Target, mut client: TcpStream) -> Result<(), Error> {
    let sandbox = Sandbox::open(target.provider.as_ref(), &target.name).await?;
    let mut server = sandbox.dial(target.port).await?;
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut server).await {
        tracing::debug!(%error, "a connection to a sandbox's port ended");
    }
    Ok(())
}
