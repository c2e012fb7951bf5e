//! `eyot create`: creates a sandbox that stays.

use eyot::{
    Capability, DiskEnforcement, Enforcement, Error, ErrorKind, LimitsEnforced, Mount, NetworkMode, Sandbox,
};

use crate::args::{CreateArgs, SpecArgs};
use crate::context::Context;
use crate::differences::differences;
use crate::errors::Failure;
use crate::provider::is_known_to_doctor;
use crate::redaction;

/// The note that a person reads when a create takes long.
pub const WAIT: &str = "making the sandbox; the first one of an image takes longer";

pub async fn run(args: CreateArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_if_it_ends_with_us("create")?;
    context.refuse_docker_flags(&args.spec)?;
    let asked = SpecArgs { name: args.name.or(args.spec.name.clone()), ..args.spec };
    let spec = asked.to_spec(&context.config.defaults)?;
    if args.get_or_create && spec.name.is_none() && spec.id.is_none() {
        return Err(Failure::usage("--get-or-create needs a name").hint("eyot create NAME --get-or-create"));
    }
    let provider = context.provider_of_new(asked.pool(), spec.name.as_ref()).await?;
    let sandbox = if args.get_or_create {
        let making = Sandbox::get_or_create(provider.as_ref(), spec);
        let (sandbox, is_new) = context.output.explain_a_wait(WAIT, making).await?;
        if !is_new {
            context.output.note(&existing(&asked, &sandbox));
        }
        sandbox
    } else {
        let making = Sandbox::create(provider.as_ref(), spec);
        context.output.explain_a_wait(WAIT, making).await.map_err(with_existing_hint)?
    };
    note_unheld(&asked, &sandbox, context);
    note_unusable_mounts(&sandbox.info().spec.mounts, context);
    if context.output.json {
        let mut facts = redaction::live_facts(&sandbox, false)?;
        context.add_pool(&mut facts, sandbox.id())?;
        context.output.value(&facts)?
    } else {
        context.output.text(&format!("{}\n", asked.shown_name(&sandbox)))?
    }
    Ok(0)
}

/// Says which of the limits that were asked for do not hold here, and that no rules hold where it may connect to.
pub fn note_unheld(asked: &SpecArgs, sandbox: &Sandbox, context: &Context) {
    let LimitsEnforced { memory, cpus, pids, disk } = sandbox.isolation().limits;
    let limits = [
        ("memory", asked.memory_mib().is_some() && memory == Enforcement::None),
        ("cpus", asked.cpus.is_some() && cpus == Enforcement::None),
        ("pids", asked.pids.is_some() && pids == Enforcement::None),
        ("disk", asked.disk_mib().is_some() && disk == DiskEnforcement::None),
    ];
    for (limit, _) in limits.iter().filter(|(_, is_unheld)| *is_unheld) {
        let here = if is_known_to_doctor(sandbox.info()) {
            let where_said = if context.names_a_server() { " on the server's host" } else { "" };
            format!("here: `eyot doctor`{where_said} says how it can be")
        } else {
            format!("by {}", sandbox.info().provider)
        };
        context.output.note(&format!(
            "the limit --{limit} is not enforced {here}; with --require {limit} the create fails instead"
        ));
    }
    note_network_without_rules(sandbox, context);
}

fn note_network_without_rules(sandbox: &Sandbox, context: &Context) {
    if sandbox.info().spec.network == NetworkMode::Egress
        && !sandbox.capabilities().has(Capability::NetworkEgress)
    {
        let provider = &sandbox.info().provider;
        context.output.note(&format!(
            "{provider} has no rules for networks: with `egress` it reaches all that its host's network reaches, private \
             addresses too"
        ));
    }
}

/// Says what a sandbox can't read or write of what it mounts from this host, and why.
pub fn note_unusable_mounts(mounts: &[Mount], context: &Context) {
    for what in mounts.iter().filter_map(|mount| context.why_not_usable(mount)) {
        context.output.note(&what);
    }
}

fn with_existing_hint(error: Error) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists if error.hint().is_none() => {
            error.with_hint("use another name, or --get-or-create if the one that is there will do")
        }
        _ => error,
    }
}

/// Returns the note that a sandbox was there, with what it has otherwise than was asked for.
fn existing(asked: &SpecArgs, sandbox: &Sandbox) -> String {
    let differs = differences(asked, &sandbox.info().spec);
    if differs.is_empty() {
        return format!("{} was there already", sandbox.name());
    }
    format!("{} was there already, with another {}", sandbox.name(), differs.join(", "))
}
