//! `eyot adopt`: takes over containers and volumes that Eyot made but that this state folder does
//! not know.

use crate::args::{AdoptArgs, ProviderArg};
use crate::context::Context;
use crate::errors::Failure;
use crate::provider::docker_provider;

pub async fn run(args: &AdoptArgs, context: &Context) -> Result<u8, Failure> {
    if context.provider_settings.kind != ProviderArg::Docker {
        return Err(Failure::usage("only containers and volumes of Docker can be adopted")
            .hint(format!("eyot --provider docker adopt {}", args.name)));
    }
    let adopted = docker_provider(&context.provider_settings).adopt(&args.name).await?;
    if let Some(volume) = &adopted.foreign_volume {
        context.output.note(&format!(
            "its workspace is the volume `{volume}`, which is not of this state folder and stays when the \
             sandbox ends; to have it too: eyot --provider docker adopt {volume}"
        ));
    }
    if context.output.json {
        context.output.value(&adopted)?
    } else {
        context.output.text(&format!("{}\n", adopted.name))?
    }
    Ok(0)
}
