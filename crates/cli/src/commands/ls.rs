//! `eyot ls`: lists the sandboxes.

use eyot::{SandboxInfo, SandboxStatus};
use serde_json::{Value, json};

use crate::args::LsArgs;
use crate::context::Context;
use crate::durations::{age, moment, since};
use crate::errors::Failure;
use crate::provider::Foreign;
use crate::redaction;
use crate::sandbox_names::SandboxNames;
use crate::table::Table;

/// The status of a container or volume that looks like Eyot's but that this state folder does not
/// know.
const FOREIGN: &str = "foreign";

pub async fn run(args: &LsArgs, context: &Context) -> Result<u8, Failure> {
    let mut sandboxes = context.provider().await?.list().await?;
    let names = context.names()?;
    sandboxes.iter_mut().for_each(|info| names.relabel(info));
    sandboxes.retain(|info| args.label.iter().all(|label| has_label(info, label)));
    let foreign = if args.label.is_empty() { foreign(context).await? } else { Vec::new() };
    match (context.output.json, context.output.quiet) {
        (true, _) => {
            let facts: Result<Vec<_>, _> = sandboxes.iter().map(|info| facts(info, &names)).collect();
            let mut facts = facts?;
            facts.extend(foreign.iter().map(foreign_facts));
            context.output.value(&facts)?;
        }
        (false, true) => context.output.text(&ids(&sandboxes))?,
        (false, false) => context.output.text(&table(&sandboxes, &foreign, &names))?,
    }
    note_foreign(context, &foreign);
    note_no_folder(context, sandboxes.len() + foreign.len());
    if let Some(elsewhere) = names.elsewhere() {
        context.output.note(&elsewhere);
    }
    Ok(0)
}

/// Says that a state folder which was named is not there: its name may be misspelt.
fn note_no_folder(context: &Context, count: usize) {
    let folder = &context.provider_settings.state;
    if count == 0 && context.names_state && !folder.exists() {
        context.output.note(&format!("there is no state folder `{}` yet", folder.display()));
    }
}

/// Says why this state folder does not know some, and what can be done.
fn note_foreign(context: &Context, foreign: &[Foreign]) {
    let [first, ..] = foreign else { return };
    let mut reasons: Vec<&str> = Vec::new();
    for Foreign { name, why, .. } in foreign {
        if !reasons.contains(why) {
            reasons.push(why);
            context.output.note(&format!("`{name}` is foreign: {why}"));
        }
    }
    context.output.note(&format!(
        "foreign ones are neither used nor removed; if Eyot has made one: eyot --provider {} adopt {}",
        context.provider_settings.row.name, first.name
    ));
}

/// Returns the containers and volumes that look like Eyot's but that this state folder does not
/// know, where the provider has such.
async fn foreign(context: &Context) -> Result<Vec<Foreign>, Failure> {
    match context.adopter() {
        Some(adopter) => Ok(adopter.foreign().await?),
        None => Ok(Vec::new()),
    }
}

fn foreign_facts(foreign: &Foreign) -> Value {
    let Foreign { kind, name, why } = foreign;
    json!({ "id": null, "name": name, "status": FOREIGN, "kind": kind, "why": why })
}

fn facts(info: &SandboxInfo, names: &SandboxNames) -> Result<Value, Failure> {
    let mut facts = redaction::facts(info, false)?;
    names.add_pool(&mut facts, &info.id);
    Ok(facts)
}

fn has_label(info: &SandboxInfo, wanted: &str) -> bool {
    let labels = &info.spec.labels;
    match wanted.split_once('=') {
        Some((key, value)) => labels.get(key).is_some_and(|found| found == value),
        None => labels.contains_key(wanted),
    }
}

fn ids(sandboxes: &[SandboxInfo]) -> String {
    sandboxes.iter().map(|info| format!("{}\n", info.id)).collect()
}

fn table(sandboxes: &[SandboxInfo], foreign: &[Foreign], names: &SandboxNames) -> String {
    let mut table = Table::new(["NAME", "ID", "STATUS", "IMAGE", "CREATED", "AGE"]);
    for info in sandboxes {
        table.row([
            names.shown(info),
            info.id.to_string(),
            status(info.status).to_owned(),
            info.spec.image.clone().unwrap_or_else(|| "-".to_owned()),
            moment(info.created_ms),
            age(since(info.created_ms)),
        ]);
    }
    for Foreign { name, .. } in foreign {
        table.row([name, "-", FOREIGN, "-", "-", "-"].map(str::to_owned));
    }
    table.render()
}

/// Returns the status as a word.
pub fn status(status: SandboxStatus) -> &'static str {
    match status {
        SandboxStatus::Creating => "creating",
        SandboxStatus::Running => "running",
        SandboxStatus::Sleeping => "sleeping",
        SandboxStatus::Dead => "dead",
        SandboxStatus::Damaged => "damaged",
    }
}
