//! `eyot browse`: a port of a sandbox on this host's loopback, until somebody ends it.

use std::sync::Arc;

use eyot::{Error, ErrorKind, PoolCreate, PortForward, Sandbox, SandboxPool, SandboxProvider};
use serde_json::json;

use crate::args::BrowseArgs;
use crate::context::{Context, with_list_hint};
use crate::errors::Failure;
use crate::output::Output;
use crate::pools::Pool;
use crate::signals::Signals;

pub async fn run(args: &BrowseArgs, context: &Context) -> Result<u8, Failure> {
    let place = match &args.pool {
        Some(pool) => match Pool::of(pool.clone(), context).await? {
            Pool::Here(pool) => Place::Pool(pool),
            Pool::There { server, name, provider } => {
                // A pool makes what there is not.
                server.make(&name, &args.name, PoolCreate::default()).await?;
                Place::State(provider)
            }
        },
        None => Place::State(context.provider().await?),
    };
    // Whether there is such a sandbox is said before anything is opened.
    place.awake(&args.name).await.map_err(with_list_hint)?;
    let mut signals = Signals::listen()?;
    let forward = PortForward::bind().await?;
    let url = forward.url().to_owned();
    match context.output.json {
        true => context.output.value(&json!({ "url": url }))?,
        false => context.output.text(&format!("{url}\n"))?,
    }
    tokio::select! {
        failed = serve(forward, place, args, context.output) => Err(failed),
        signal = signals.end() => match signal {
            // Ctrl-C is how it is meant to end.
            2 => Ok(0),
            signal => Err(Failure::Interrupted(signal)),
        },
    }
}

/// Where a name is looked up.
#[derive(Clone)]
enum Place {
    /// Among the sandboxes of the state folder.
    State(Arc<dyn SandboxProvider>),
    /// In a pool, which makes what there is not.
    Pool(SandboxPool),
}

impl Place {
    async fn awake(&self, name: &str) -> Result<Sandbox, Error> {
        match self {
            Self::State(provider) => Sandbox::wake(provider.as_ref(), name).await,
            Self::Pool(pool) => pool.get(name).await,
        }
    }
}

/// Serves until the sandbox is gone. It is found anew for each connection: it may sleep, and any use wakes it.
async fn serve(forward: PortForward, place: Place, args: &BrowseArgs, output: Output) -> Failure {
    let (gone, mut is_gone) = tokio::sync::mpsc::unbounded_channel();
    let (name, port) = (args.name.clone(), args.port);
    let dial = move || {
        let (place, name) = (place.clone(), name.clone());
        async move { place.awake(&name).await?.dial(port).await }
    };
    let failed = move |error: Error| match error.kind() {
        // Nobody listens any more only when we are about to end.
        ErrorKind::Destroyed | ErrorKind::NotFound => drop(gone.send(error)),
        _ => output.complain(&error),
    };
    tokio::select! {
        never = forward.serve(dial, failed) => match never {},
        Some(error) = is_gone.recv() => Failure::from(error),
    }
}
