//! `eyot preview`: opens a port of a server's sandbox as an address for others.

use eyot::Sandbox;
use eyot::wire::PreviewBody;

use crate::args::PreviewArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::printable;
use crate::port_note::note_if_nothing_listens;

pub async fn run(args: &PreviewArgs, context: &Context) -> Result<u8, Failure> {
    let server = context.server()?.ok_or_else(|| {
        let hint = "name one with `--server URL` (EYOT_SERVER); without one, `eyot browse` opens a port on this host";
        Failure::usage("previews need a server").hint(hint)
    })?;
    let who = PreviewBody { public: args.public, ttl_ms: args.ttl };
    let provider = server.provider(None).await?;
    let preview = provider.preview(&args.name, args.port, &who).await;
    let preview = preview.map_err(|error| context.explained(error, &args.name))?;
    if context.output.json {
        context.output.value(&preview)?
    } else {
        let url = if args.path { &preview.path_url } else { &preview.url };
        context.output.text(&format!("{}\n", printable(url)))?;
    }
    // A server that is asked over a unix socket knows no port of its own, unless it has a domain for previews.
    if context.is_server_on_socket() && preview.url.contains(".localhost/") {
        context.output.note(&format!(
            "the address has no port, since the server was asked over a unix socket: ask it by TCP, or open the port here: eyot \
             browse {} {}",
            args.name, args.port
        ));
    }
    if args.public && !context.output.json {
        context.output.note("anyone with the address can open it until it expires or the server stops; after a restart, ask for a new one");
    }
    // One that sleeps wakes when somebody opens the address, and its services start then.
    if let Ok(sandbox) = Sandbox::open(provider.as_ref(), &args.name).await {
        note_if_nothing_listens(&sandbox, &args.name, args.port, context.output).await;
    }
    Ok(0)
}
