//! `eyot create`: creates a sandbox that stays.

use eyot::Sandbox;

use crate::args::CreateArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::redaction;

/// The note that a person reads when a create takes long.
pub const WAIT: &str = "making the sandbox; the first one of an image takes longer";

pub async fn run(args: CreateArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_docker_flags(&args.spec)?;
    let spec = args.spec.to_spec(&context.config.defaults)?;
    let provider = context.provider().await?;
    let making = Sandbox::create(provider.as_ref(), spec);
    let sandbox = context.output.explain_a_wait(WAIT, making).await?;
    if context.output.json {
        context.output.value(&redaction::live_facts(&sandbox, false)?)?
    } else {
        context.output.text(&format!("{}\n", sandbox.name()))?
    }
    Ok(0)
}
