//! `eyot net`: prints and changes a sandbox's egress rules, and prints decisions.

use eyot::{EgressDecision, EgressRule, EgressRules, Sandbox};
use serde::Serialize;

use crate::args::NetArgs;
use crate::context::Context;
use crate::durations::moment;
use crate::errors::Failure;
use crate::output::{Output, json_line, printable};
use crate::stdio::Sink;

pub async fn run(args: &NetArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.sandbox(&args.name).await.map_err(with_hint_if_asleep)?;
    if args.events {
        return print_decisions(args, &sandbox, context.output).await;
    }
    let before = sandbox.egress_rules().await?;
    let rules = changed(args, before.clone())?;
    if rules != before {
        sandbox.set_egress_rules(&rules).await?;
    }
    if context.output.json {
        context.output.value(&rules)?
    } else {
        context.output.text(&page(&rules))?
    }
    Ok(0)
}

fn with_hint_if_asleep(failure: Failure) -> Failure {
    match failure {
        Failure::Error { ref error, .. } if error.is_sleeping() => {
            failure.hint("`eyot wake NAME` wakes it: its rules stay, and what it tries is noted anew")
        }
        other => other,
    }
}

/// Applies the arguments to the rules.
fn changed(args: &NetArgs, mut rules: EgressRules) -> Result<EgressRules, Failure> {
    if args.clear {
        rules = EgressRules::default();
    }
    let was_closed = !rules.allow.is_empty();
    for rule in &args.remove {
        let count = rules.allow.len() + rules.deny.len();
        rules.allow.retain(|known| known != rule);
        rules.deny.retain(|known| known != rule);
        if rules.allow.len() + rules.deny.len() == count {
            return Err(Failure::usage(format!(
                "there is no rule `{rule}`; `eyot net {}` shows those",
                args.name
            )));
        }
    }
    add(&mut rules.allow, &args.allow);
    add(&mut rules.deny, &args.deny);
    if was_closed && rules.allow.is_empty() {
        Err(Failure::usage(
            "without its last allow rule every public address would be allowed; use --clear if that is wanted",
        ))
    } else {
        Ok(rules)
    }
}

fn add(rules: &mut Vec<EgressRule>, more: &[EgressRule]) {
    for rule in more {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
}

fn page(rules: &EgressRules) -> String {
    let mut text = String::new();
    for (word, rules) in [("allow", &rules.allow), ("deny", &rules.deny)] {
        for rule in rules {
            text.push_str(&format!("{word:<6} {rule}\n"));
        }
    }
    if rules.allow.is_empty() { format!("allow  every public address\n{text}") } else { text }
}

async fn print_decisions(args: &NetArgs, sandbox: &Sandbox, output: Output) -> Result<u8, Failure> {
    let mut decisions = sandbox.egress_decisions(args.last.unwrap_or(usize::MAX), args.follow).await?;
    let mut stdout = Sink::stdout()?;
    let mut is_any = false;
    while let Some(decision) = stdout.next_of(&mut decisions).await? {
        let decision = decision?;
        is_any = true;
        if output.json { print_json(&decision, output)? } else { output.text(&line(&decision))? }
    }
    if !is_any && args.last != Some(0) {
        output.note(&format!(
            "`{}` has not tried to connect to anything since it was made or last woken",
            args.name
        ));
    }
    Ok(0)
}

/// Prints one object a line, on a terminal too: decisions are a sequence.
fn print_json(decision: &EgressDecision, output: Output) -> Result<(), Failure> {
    let text = json_line(decision)?;
    output.text(&format!("{text}\n"))
}

fn line(decision: &EgressDecision) -> String {
    let port = decision.port.map(|port| format!(":{port}")).unwrap_or_default();
    let address = decision.address.map(|address| format!(" ({address})")).unwrap_or_default();
    let (verdict, protocol) = (word(&decision.verdict), word(&decision.protocol));
    let text = format!(
        "{}  {verdict:<7}  {protocol:<7}  {}{port}{address}: {}",
        moment(decision.at_ms),
        decision.host,
        decision.reason
    );
    printable(&text) + "\n"
}

fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        net: NetArgs,
    }

    fn after(flags: &[&str], allow: &[&str]) -> Result<EgressRules, Failure> {
        let flags = [&["net", "box"], flags].concat();
        let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        let args = Flags::try_parse_from(flags).expect("arguments that parse").net;
        changed(&args, EgressRules { allow, ..EgressRules::default() })
    }

    #[test]
    fn rules_are_added_once_removed_and_cleared() {
        let rules =
            after(&["--allow", "a.com", "--allow", "A.com", "--deny", "b.com"], &["a.com", "c.com"]).unwrap();
        assert_eq!(page(&rules), "allow  a.com\nallow  c.com\ndeny   b.com\n");
        let rules = after(&["--remove", "a.com"], &["a.com", "c.com"]).unwrap();
        assert_eq!(page(&rules), "allow  c.com\n");
        assert_eq!(page(&after(&["--clear"], &["a.com"]).unwrap()), "allow  every public address\n");
    }

    #[test]
    fn removing_the_last_allow_rule_does_not_open_everything_by_the_way() {
        assert!(after(&["--remove", "a.com"], &["a.com"]).is_err());
        assert!(after(&["--remove", "a.com", "--allow", "b.com"], &["a.com"]).is_ok());
        assert!(after(&["--remove", "nowhere.com"], &["a.com"]).is_err());
    }
}
