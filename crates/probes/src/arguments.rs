//! E4: command lines and environments that are too large or not quite sane.

use std::collections::BTreeMap;

use eyot::{Command, ErrorKind, ExecOptions, ExecResult, Result};

use crate::check::{Check, Failure, cases, ensure, ensure_eq, ensure_fails, promptly};
use crate::world::Stage;

cases! {
    e04_a_command_of_2_mib_works_or_is_a_typed_error(stage);
    e04_100_000_arguments_work_or_are_a_typed_error(stage);
    e04_an_environment_of_1_mib_works_or_is_a_typed_error(stage);
    e04_odd_variables_arrive_as_they_are_or_are_refused(stage);
    e04_variables_that_steer_the_loader_do_not_touch_the_guest(stage);
    e04_arguments_arrive_byte_for_byte(stage);
}

/// It ran, or a typed error says why not; and the guest does not mind.
async fn works_or_typed(stage: &Stage, what: &str, result: Result<ExecResult>) -> Check<Option<ExecResult>> {
    stage.still_works().await?;
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if [ErrorKind::Invalid, ErrorKind::TooLarge].contains(&error.kind()) => Ok(None),
        Err(error) => Err(Failure::Broken(format!("{what}: {} {error}", error.kind()))),
    }
}

async fn e04_a_command_of_2_mib_works_or_is_a_typed_error(stage: Stage) -> Check {
    let line = format!("echo end #{}", "x".repeat(2 << 20));
    let result = promptly("the call", stage.sandbox.exec(line, ExecOptions::default())).await?;
    if let Some(result) = works_or_typed(&stage, "2 MiB of shell", result).await? {
        ensure_eq!(result.stdout_text(), "end\n");
    }
    let argument = "x".repeat(2 << 20);
    let result =
        promptly("the call", stage.sandbox.exec(Command::argv(["echo", &argument]), ExecOptions::default()))
            .await?;
    if let Some(result) = works_or_typed(&stage, "an argument of 2 MiB", result).await? {
        ensure_eq!(result.stdout_bytes, (2 << 20) + 1);
    }
    Ok(())
}

async fn e04_100_000_arguments_work_or_are_a_typed_error(stage: Stage) -> Check {
    let arguments = (0..100_000).map(|number: u32| number.to_string());
    let argv = ["sh", "-c", "echo $#", "sh"].into_iter().map(str::to_owned).chain(arguments);
    let result =
        promptly("the call", stage.sandbox.exec(Command::argv(argv), ExecOptions::default())).await?;
    if let Some(result) = works_or_typed(&stage, "100,000 arguments", result).await? {
        ensure_eq!(result.stdout_text(), "100000\n");
    }
    Ok(())
}

async fn e04_an_environment_of_1_mib_works_or_is_a_typed_error(stage: Stage) -> Check {
    let env = |count: usize, bytes: usize| -> BTreeMap<String, String> {
        (0..count).map(|number| (format!("V{number}"), "x".repeat(bytes))).collect()
    };
    for (count, bytes) in [(16, 64 << 10), (10_000, 100), (1, (128 << 10) - 10), (40, 100 << 10)] {
        let options = ExecOptions { env: env(count, bytes), ..ExecOptions::default() };
        let work = stage.sandbox.exec("env | grep -c '^V[0-9]*='", options);
        let result = promptly("the call", work).await?;
        if let Some(result) = works_or_typed(&stage, "a large environment", result).await? {
            ensure_eq!(result.stdout_text(), format!("{count}\n"));
        }
    }
    let options = ExecOptions { env: env(1, 200 << 10), ..ExecOptions::default() };
    ensure_fails!(stage.sandbox.exec("true", options).await, Invalid);
    Ok(())
}

async fn e04_odd_variables_arrive_as_they_are_or_are_refused(stage: Stage) -> Check {
    let values = ["a=b=c", "line\nline", "$(reboot)", "'\"`\\", "", " ", "\u{1b}[31m", "é"];
    for value in values {
        let env = BTreeMap::from([("ODD".to_owned(), value.to_owned())]);
        let options = ExecOptions { env, ..ExecOptions::default() };
        let result = stage.sandbox.exec("printf '%s' \"$ODD\"", options).await?;
        ensure_eq!(result.stdout_text(), value);
    }
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0y"), ("=", "x")] {
        let env = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        ensure_fails!(
            stage.sandbox.exec("true", ExecOptions { env, ..ExecOptions::default() }).await,
            Invalid
        );
    }
    Ok(())
}

async fn e04_variables_that_steer_the_loader_do_not_touch_the_guest(stage: Stage) -> Check {
    let names = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "LD_DEBUG",
        "GCONV_PATH",
        "MALLOC_TRACE",
        "GLIBC_TUNABLES",
        "BASH_ENV",
        "ENV",
        "IFS",
        "PATH",
        "HOME",
        "SHELLOPTS",
        "PS4",
        "PYTHONSTARTUP",
        "PERL5OPT",
    ];
    for name in names {
        let env = BTreeMap::from([(name.to_owned(), "/workspace/evil".to_owned())]);
        let options = ExecOptions { env, ..ExecOptions::default() };
        match promptly(name, stage.sandbox.exec("true", options)).await? {
            Ok(_) => {}
            Err(error) => ensure!(error.kind() != ErrorKind::Internal, "{name}: {error}"),
        }
        // Nothing sticks, neither to the guest nor to the next command.
        stage.still_works().await?;
        let listed = stage.output("env").await?;
        ensure!(!listed.contains("/workspace/evil"), "{name} stuck: {listed}");
    }
    Ok(())
}

async fn e04_arguments_arrive_byte_for_byte(stage: Stage) -> Check {
    let odd = ["", " ", "a b", "'", "\"", "\\", "$HOME", "`id`", "*", "-n", "\n", "é", "\u{1b}", ";", "|"];
    let argv = ["printf", "%s\\036"].into_iter().chain(odd);
    let result = stage.sandbox.exec(Command::argv(argv), ExecOptions::default()).await?;
    let expected: String = odd.iter().map(|argument| format!("{argument}\u{1e}")).collect();
    ensure_eq!(result.stdout_text(), expected);
    Ok(())
}
