//! `eyot adopt`: takes over containers and volumes that Eyot made but that this state folder does
//! not know.

use crate::args::AdoptArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::provider;

pub async fn run(args: &AdoptArgs, context: &Context) -> Result<u8, Failure> {
    let Some(adopter) = context.adopter() else {
        let providers = provider::names_where(|row| row.adopter.is_some());
        let ways: Vec<String> = provider::rows()
            .iter()
            .filter(|row| row.adopter.is_some())
            .map(|row| format!("eyot --provider {} adopt {}", row.name, args.name))
            .collect();
        return Err(Failure::usage(format!("only containers and volumes of {providers} can be adopted"))
            .hint(ways.join(", or ")));
    };
    let adopted = adopter.adopt(&args.name).await?;
    if let Some(volume) = &adopted.foreign_volume {
        context.output.note(&format!(
            "its workspace is the volume `{volume}`, which is not of this state folder and stays when the \
             sandbox ends; to have it too: eyot --provider {} adopt {volume}",
            context.provider_settings.row.name
        ));
    }
    if adopted.lacks_variables {
        context.output.note(
            "its variables can't be read, since another state folder has encrypted them; to give some to a command: eyot exec -e",
        );
    }
    if context.output.json {
        context.output.value(&adopted)?
    } else {
        context.output.text(&format!("{}\n", adopted.name))?
    }
    Ok(0)
}
