//! `eyot browse`: serves a port of a sandbox as web pages on this host's loopback, for clients with
//! the address, until it is stopped.

use std::sync::Arc;

use eyot::{Capability, Error, ErrorKind, Sandbox, SandboxProvider};
use eyot_engine::{PoolCreate, SandboxPool};
use eyot_server::Browse;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::args::BrowseArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::Output;
use crate::pools::Pool;
use crate::port_note::note_if_nothing_listens;
use crate::signals::Signals;

pub async fn run(args: &BrowseArgs, context: &Context) -> Result<u8, Failure> {
    let (place, name) = match &args.pool {
        Some(pool) => match Pool::of(pool.clone(), context).await? {
            Pool::Local(pool) => (BrowseSource::Pool(pool), args.name.clone()),
            Pool::Remote { server, name, provider } => {
                // A pool makes what there is not.
                server.make(&name, &args.name, PoolCreate::default()).await?;
                (BrowseSource::State(provider), args.name.clone())
            }
        },
        None => {
            let (provider, name) = context.find(&args.name).await?;
            (BrowseSource::State(provider), name)
        }
    };
    // Whether there is such a sandbox is said before anything is opened.
    let sandbox = place.awake(&name).await.map_err(|error| context.explained(error, &args.name))?;
    sandbox.capabilities().require(Capability::Dial, &sandbox.info().provider, "browse", &[])?;
    let mut signals = Signals::listen()?;
    let (gone, mut is_gone) = mpsc::unbounded_channel();
    let browse = Browse::bind(sandbox.id().clone(), args.port, opener(place, name, gone)).await?;
    print(&browse, context.output)?;
    note_if_nothing_listens(&sandbox, &args.name, args.port, context.output).await;
    tokio::select! {
        () = browse.serve() => Ok(0),
        Some(error) = is_gone.recv() => Err(Failure::from(error)),
        signal = signals.end() => match signal {
            // Ctrl-C is how it is meant to end.
            2 => Ok(0),
            signal => Err(Failure::Interrupted(signal)),
        },
    }
}

fn print(browse: &Browse, output: Output) -> Result<(), Failure> {
    let address = browse.address();
    if output.json { output.value(address) } else { output.text(&format!("{}\n", address.url)) }
}

/// The source of the sandbox.
#[derive(Clone)]
enum BrowseSource {
    /// The sandboxes of the state folder.
    State(Arc<dyn SandboxProvider>),
    /// A pool, which creates a sandbox that does not exist.
    Pool(SandboxPool),
}

impl BrowseSource {
    async fn awake(&self, name: &str) -> Result<Sandbox, Error> {
        match self {
            Self::State(provider) => Sandbox::wake(provider.as_ref(), name).await,
            Self::Pool(pool) => pool.get(name).await,
        }
    }
}

/// Returns a function that finds the sandbox anew for each request, since it may sleep between
/// them. It reports on `gone` when there is no such sandbox any more.
fn opener(
    place: BrowseSource,
    name: String,
    gone: mpsc::UnboundedSender<Error>,
) -> impl Fn() -> BoxFuture<'static, Result<Sandbox, Error>> + Send + Sync + 'static {
    move || {
        let (place, name, gone) = (place.clone(), name.clone(), gone.clone());
        Box::pin(async move {
            let found = place.awake(&name).await;
            if let Err(error) = &found
                && matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::NotFound)
            {
                // Nobody listens any more only when we are about to end.
                drop(gone.send(Error::new(error.kind(), error.to_string())));
            }
            found
        })
    }
}
