//! `eyot providers`: lists the providers of sandboxes, what each can do here, and why not.

use std::collections::BTreeSet;

use eyot::{Capabilities, Capability};
use serde::Serialize;

use crate::context::Context;
use crate::errors::Failure;
use crate::output::printable;
use crate::provider::{OptionSchema, ProviderCheck, ProviderRow, rows};

/// The columns of the text.
const WIDTH: usize = 100;
/// The columns of a line's label.
const LABEL: usize = 9;

/// A provider and what it can do here.
#[derive(Serialize)]
struct ListedProvider {
    name: &'static str,
    summary: &'static str,
    /// The one that commands use here, unless they name another.
    in_use: bool,
    #[serde(flatten)]
    check: ProviderCheck,
    capabilities: Capabilities,
    /// What others can do.
    lacks: Vec<Capability>,
    lives_with_its_process: bool,
    options: &'static [OptionSchema],
}

pub async fn run(context: &Context) -> Result<u8, Failure> {
    let mut listed = Vec::new();
    for row in rows() {
        let settings = context.settings_of(row);
        let checking = settings.check();
        let check = context.output.explain_a_wait("looking whether sandboxes can be made", checking).await;
        listed.push(ListedProvider::new(row, check, context));
    }
    if context.output.json {
        context.output.value(&listed)?
    } else {
        context.output.text(&listed.iter().map(page).collect::<Vec<_>>().join("\n"))?
    }
    Ok(0)
}

impl ListedProvider {
    fn new(row: &'static ProviderRow, check: ProviderCheck, context: &Context) -> Self {
        let capabilities = (row.capabilities)();
        let all: BTreeSet<Capability> =
            rows().iter().flat_map(|row| (row.capabilities)().iter().collect::<Vec<_>>()).collect();
        Self {
            name: row.name,
            summary: row.summary,
            in_use: row == context.provider_settings.row,
            check,
            lacks: all.into_iter().filter(|one| !capabilities.has(*one)).collect(),
            capabilities,
            lives_with_its_process: row.lives_with_its_process,
            options: row.options,
        }
    }
}

/// Renders a provider for people.
fn page(listed: &ListedProvider) -> String {
    let ListedProvider { name, summary, in_use, check, capabilities, lacks, options, .. } = listed;
    let in_use = if *in_use { " (in use)" } else { "" };
    let mut text = format!("{name}: {summary}{in_use}\n");
    let here = if check.usable { "yes" } else { "no" };
    text.push_str(&lines("here", &format!("{here}: {}", check.why)));
    if let Some(fix) = &check.fix {
        text.push_str(&lines("fix", fix));
    }
    for weaker in &check.weaker {
        text.push_str(&lines("weaker", weaker));
    }
    if listed.lives_with_its_process {
        text.push_str(&lines("ends", "with the process that makes it: eyot run, eyot mcp, eyot serve"));
    }
    text.push_str(&lines("can", &words(capabilities.iter())));
    if !lacks.is_empty() {
        text.push_str(&lines("lacks", &words(lacks.iter().copied())));
    }
    for option in *options {
        text.push_str(&lines("option", &option_words(option)));
    }
    text
}

fn words(capabilities: impl Iterator<Item = Capability>) -> String {
    capabilities.map(Capability::words).collect::<Vec<_>>().join(", ")
}

fn option_words(option: &OptionSchema) -> String {
    let OptionSchema { name, kind, default, help } = option;
    let default = default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
    format!("{name}, {}: {help}{default}", kind.words())
}

/// Renders text behind a label, in lines of words.
fn lines(label: &str, text: &str) -> String {
    let (mut all, mut line) = (String::new(), format!("  {label:LABEL$}"));
    let indent = line.len();
    for word in printable(text).split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line.trim_end().len() >= indent {
            all.push_str(line.trim_end());
            all.push('\n');
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    all + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_goes_on_below_its_beginning() {
        let text = lines("can", &"word ".repeat(40));
        let all: Vec<&str> = text.lines().collect();
        assert!(all.len() > 2 && all.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(all[0].starts_with("  can      word") && all[1].starts_with("           word"), "{text}");
    }
}
