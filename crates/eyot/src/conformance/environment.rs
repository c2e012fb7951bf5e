//! A command's variables: the sandbox's own, the spec's, the manifest's and the call's, one over the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Fixture;
use super::check::{Check, Failure, cases, ensure, ensure_eq, ensure_fails, output, sh, with_spec};
use super::create::named;
use crate::error::ErrorKind;
use crate::exec::{Command, ExecOptions};
use crate::sandbox::Sandbox;
use crate::spec::SandboxName;

cases! {
    a_sandbox_is_called_by_its_name_inside_unless_the_spec_says_otherwise(fixture) needs [Shell];
    a_calls_variables_arrive_verbatim(workspace) needs [Argv];
    a_calls_variables_do_not_stick(workspace) needs [Shell];
    the_call_wins_over_the_manifest_and_the_manifest_over_the_spec(fixture) needs [Shell];
    a_call_can_replace_a_basic_variable(workspace) needs [Shell];
    a_variable_that_no_process_can_have_is_invalid(workspace) needs [Shell];
    nothing_of_the_hosts_environment_is_inside(workspace) needs [Argv];
    home_is_a_directory_that_the_user_can_write_to(workspace) needs [Shell];
    programs_that_the_user_installs_are_found_first(workspace) needs [Shell];
    variables_for_the_dynamic_loader_reach_the_command_and_nobody_else(workspace) needs [Shell];
}

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn with(pairs: &[(&str, &str)]) -> ExecOptions {
    ExecOptions { env: variables(pairs), ..ExecOptions::default() }
}

async fn a_sandbox_is_called_by_its_name_inside_unless_the_spec_says_otherwise(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let (spec, name) = named(&*fixture);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        ensure_eq!(output(&sandbox, "uname -n").await?, name.as_str());
        Ok(())
    })
    .await?;
    let (mut spec, _) = named(&*fixture);
    spec.hostname = Some(SandboxName::parse("another")?);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        ensure_eq!(output(&sandbox, "uname -n; cat /etc/hostname").await?, "another\nanother");
        Ok(())
    })
    .await
}

async fn a_calls_variables_arrive_verbatim(sandbox: Sandbox) -> Check {
    let looked_for = sandbox.exec(Command::argv(["printenv"]), ExecOptions::default()).await;
    if looked_for.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Err(Failure::NotHere("there is no `printenv` in the sandbox".to_owned()));
    }
    let values = ["", "a b", "'single' \"double\"", "two\nlines\n", "$HOME `id` \\", "a=b", "ü😀", " lead"];
    for value in values {
        let result = sandbox.exec(Command::argv(["printenv", "VALUE"]), with(&[("VALUE", value)])).await?;
        ensure_eq!(result.stdout_text(), format!("{value}\n"));
    }
    let odd = sandbox.exec(Command::argv(["printenv", "a.b-c"]), with(&[("a.b-c", "x")])).await?;
    ensure_eq!(odd.stdout_text(), "x\n");
    Ok(())
}

async fn a_calls_variables_do_not_stick(sandbox: Sandbox) -> Check {
    sandbox.exec("true", with(&[("STICKY", "yes")])).await?;
    output(&sandbox, "export STICKY=yes").await?;
    ensure_eq!(output(&sandbox, "echo ${STICKY-unset}").await?, "unset");
    Ok(())
}

async fn the_call_wins_over_the_manifest_and_the_manifest_over_the_spec(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = fixture.spec();
    spec.env.extend(variables(&[("A", "spec"), ("B", "spec"), ("C", "spec")]));
    spec.manifest.env.extend(variables(&[("B", "manifest"), ("C", "manifest")]));
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let result = sandbox.exec("echo $A $B $C", with(&[("C", "call")])).await?;
        ensure_eq!(result.stdout_text(), "spec manifest call\n");
        ensure_eq!(output(&sandbox, "echo $A $B $C").await?, "spec manifest manifest");
        Ok(())
    })
    .await
}

async fn a_call_can_replace_a_basic_variable(sandbox: Sandbox) -> Check {
    let result = sandbox.exec("echo $HOME", with(&[("HOME", "/tmp")])).await?;
    ensure_eq!(result.stdout_text(), "/tmp\n");
    Ok(())
}

async fn a_variable_that_no_process_can_have_is_invalid(sandbox: Sandbox) -> Check {
    let long = "x".repeat(200 * 1024);
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0B", "x"), ("A", "x\0y"), ("A", &long)] {
        ensure_fails!(sandbox.exec("touch made", with(&[(name, value)])).await, Invalid | TooLarge);
    }
    ensure!(!sandbox.exists("made").await?, "a command ran all the same");
    Ok(())
}

async fn nothing_of_the_hosts_environment_is_inside(sandbox: Sandbox) -> Check {
    let result = sandbox.exec(Command::argv(["env"]), ExecOptions::default()).await?;
    let inside = result.stdout_text();
    for (name, value) in std::env::vars().filter(|(_, value)| value.len() > 8) {
        let line = format!("{name}={value}");
        let own = ["PATH", "LANG", "HOSTNAME", "PWD", "LC_ALL", "SHELL"].contains(&name.as_str());
        ensure!(own || !inside.lines().any(|known| known == line), "`{name}` of the host is inside");
    }
    Ok(())
}

async fn home_is_a_directory_that_the_user_can_write_to(sandbox: Sandbox) -> Check {
    ensure_eq!(output(&sandbox, "cd && echo kept > ~/note && cat \"$HOME/note\"").await?, "kept");
    ensure!(!output(&sandbox, "echo $PATH").await?.is_empty(), "there is no PATH");
    Ok(())
}

async fn programs_that_the_user_installs_are_found_first(sandbox: Sandbox) -> Check {
    // A shell may have programs of its own, which it prefers: this one none has.
    let install = "mkdir -p ~/.local/bin && cd ~/.local/bin && printf '#!/bin/sh\\necho mine\\n' > my-own && chmod 755 my-own";
    output(&sandbox, install).await?;
    ensure_eq!(output(&sandbox, "my-own").await?, "mine");
    ensure_eq!(output(&sandbox, "echo ${PATH%%:*}").await?, output(&sandbox, "echo ~/.local/bin").await?);
    Ok(())
}

async fn variables_for_the_dynamic_loader_reach_the_command_and_nobody_else(sandbox: Sandbox) -> Check {
    let loader =
        [("LD_PRELOAD", "/no/such/library.so"), ("LD_LIBRARY_PATH", "/no/such"), ("BASH_ENV", "/no/such")];
    let result = sandbox.exec("echo $LD_PRELOAD", with(&loader)).await?;
    ensure_eq!(result.stdout_text(), "/no/such/library.so\n");
    sandbox.write("note", "still here").await?;
    ensure_eq!(sh(&sandbox, "cat note; echo ${LD_PRELOAD-unset}").await?.stdout_text(), "still hereunset\n");
    Ok(())
}
