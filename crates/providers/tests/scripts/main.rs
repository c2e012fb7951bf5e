//! The scripts that agents write, run in memory. Each prints what it prints on native, or is on the
//! list of those that do not.
//!
//! `EYOT_SCRIPTS_SHOW=1` prints what differs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use eyot::{ExecOptions, ExecResult, Sandbox, SandboxSpec};
use eyot_providers::memory::MemoryProvider;
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

/// A script and what it prints on native.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    name: String,
    source: String,
    script: String,
    stdout: String,
    stderr: String,
    exit_code: i32,
}

#[derive(Deserialize)]
struct Scripts {
    script: Vec<Script>,
}

/// The scripts that may differ, with the reasons.
#[derive(Deserialize)]
struct Differences {
    differs: BTreeMap<String, String>,
}

/// The least percentage of scripts that must print the same. It rises as differences are removed.
const LEAST_ALIKE_PERCENT: usize = 95;
/// The number that must follow published material.
const LEAST_CREDITED: usize = 50;

fn scripts() -> Result<Vec<Script>, Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../native/tests/scripts");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let scripts: Scripts = toml::from_str(&std::fs::read_to_string(&file)?)
            .map_err(|error| Failed::from(format!("{}: {error}", file.display())))?;
        all.extend(scripts.script);
    }
    Ok(all)
}

fn differences() -> Result<BTreeMap<String, String>, Failed> {
    Ok(toml::from_str::<Differences>(include_str!("differences.toml"))?.differs)
}

async fn run(provider: &MemoryProvider, script: &Script) -> eyot::Result<ExecResult> {
    let sandbox = Sandbox::create(provider, SandboxSpec::default()).await?;
    let options = ExecOptions { timeout_ms: Some(20_000), ..ExecOptions::default() };
    let result = sandbox.exec(script.script.clone(), options).await;
    sandbox.destroy().await?;
    result
}

/// Says what differs, if anything does.
fn difference(script: &Script, result: &ExecResult) -> Option<String> {
    let mut said = String::new();
    let mut compare = |what: &str, native: &str, memory: &str| {
        if native != memory {
            said += &format!("\n{what} on native:\n{native}\n{what} in memory:\n{memory}");
        }
    };
    compare("stdout", &script.stdout, &result.stdout_text());
    compare("stderr", &script.stderr, &result.stderr_text());
    let exit_code = result.clone().flatten().exit_code;
    compare("exit code", &script.exit_code.to_string(), &exit_code.to_string());
    (!said.is_empty()).then_some(said)
}

fn tried(script: &Script, reason: Option<&String>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let provider = MemoryProvider::default();
    let result = runtime.block_on(run(&provider, script))?;
    let is_shown = std::env::var_os("EYOT_SCRIPTS_SHOW").is_some();
    match (difference(script, &result), reason) {
        (None, None) => Ok(()),
        (Some(difference), Some(reason)) if !is_shown => {
            let _: (String, &String) = (difference, reason);
            Ok(())
        }
        (Some(difference), _) => Err(format!("{}{difference}", script.script).into()),
        (None, Some(reason)) => {
            Err(format!("it prints the same as on native; take it off the list ({reason})").into())
        }
    }
}

fn the_list_is_short_enough(scripts: &[Script], differences: &BTreeMap<String, String>) -> Trial {
    let all = scripts.len();
    let credited = scripts.iter().filter(|script| script.source != "own").count();
    let unknown: Vec<String> = differences
        .keys()
        .filter(|name| scripts.iter().all(|script| script.name != **name))
        .cloned()
        .collect();
    let alike = (all - differences.len()) * 100 / all;
    Trial::test("no_more_scripts_differ_from_native_than_are_listed", move || {
        if alike < LEAST_ALIKE_PERCENT {
            return Err(format!("{alike} % of {all} scripts are alike").into());
        }
        if credited < LEAST_CREDITED || !unknown.is_empty() {
            return Err(format!("{credited} follow published material; unknown: {unknown:?}").into());
        }
        Ok(())
    })
}

fn trials() -> Result<Vec<Trial>, Failed> {
    let (scripts, differences) = (scripts()?, differences()?);
    let mut trials = vec![the_list_is_short_enough(&scripts, &differences)];
    for script in scripts {
        let reason = differences.get(&script.name).cloned();
        trials.push(Trial::test(script.name.clone(), move || tried(&script, reason.as_ref())));
    }
    Ok(trials)
}

fn main() -> ExitCode {
    match trials() {
        Ok(trials) => libtest_mimic::run(&Arguments::from_args(), trials).exit_code(),
        Err(error) => {
            eprintln!("the scripts can't be read: {}", error.message().unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}
