//! Running a command: what it exits with is a result, what can't be run is an error; where it runs and as whom.

use super::check::{Check, Failure, cases, ensure, ensure_eq, ensure_fails, need_program, output, sh};
use crate::capabilities::Capability;
use crate::exec::{Command, ExecOptions, ExecResult, Outcome};
use crate::sandbox::Sandbox;

cases! {
    a_non_zero_exit_is_a_result_and_not_an_error(workspace) needs [Shell];
    exit_codes_from_0_to_255_come_back_as_they_were(workspace) needs [Shell];
    death_by_a_signal_is_an_outcome_and_flattens_to_128_plus_its_number(workspace) needs [Shell, Signals];
    a_shell_that_saw_its_child_die_by_a_signal_exits_with_a_code(workspace) needs [Shell];
    a_shell_line_is_bash_source_where_there_is_bash(workspace) needs [Shell];
    a_shell_is_not_a_login_shell(workspace) needs [Shell];
    a_command_that_a_shell_cannot_find_is_the_shells_own_127(workspace) needs [Shell];
    a_command_starts_in_the_sandboxes_own_directory(workspace) needs [Shell];
    a_relative_cwd_is_resolved_against_the_sandboxes_own(workspace) needs [Shell];
    a_cwd_does_not_stick(workspace) needs [Shell];
    a_missing_cwd_is_not_found(workspace) needs [Shell];
    a_cwd_that_is_a_file_is_not_a_directory(workspace) needs [Shell];
    arguments_reach_a_program_as_they_are(workspace) needs [Argv];
    a_program_by_relative_path_is_looked_for_in_the_working_directory(workspace) needs [Shell, Argv];
    a_missing_program_is_not_found(workspace) needs [Argv];
    a_program_that_may_not_be_run_is_refused_with_permission(workspace) needs [Argv];
    an_empty_command_and_a_null_byte_are_invalid(workspace) needs [];
    another_user_runs_the_command_or_is_refused_as_unsupported(workspace) needs [Shell];
    a_user_whom_a_command_made_runs_commands_or_is_refused_as_unsupported(workspace) needs [Shell];
    what_one_command_wrote_the_next_one_reads(workspace) needs [Shell];
    what_a_loop_runs_leaves_the_loop_its_input(workspace) needs [Shell];
}

/// Runs a program without a shell.
async fn argv(sandbox: &Sandbox, argv: &[&str]) -> crate::Result<ExecResult> {
    sandbox.exec(Command::argv(argv.iter().copied()), ExecOptions::default()).await
}

fn in_directory(cwd: &str) -> ExecOptions {
    ExecOptions { cwd: Some(cwd.to_owned()), ..ExecOptions::default() }
}

async fn pwd(sandbox: &Sandbox, cwd: &str) -> Check<String> {
    let result = sandbox.exec("pwd", in_directory(cwd)).await?;
    Ok(result.stdout_text().trim_end().to_owned())
}

async fn a_non_zero_exit_is_a_result_and_not_an_error(sandbox: Sandbox) -> Check {
    let result = sh(&sandbox, "echo out; echo err >&2; exit 3").await?;
    ensure_eq!(result.outcome, Outcome::Exited(3));
    ensure_eq!(&result.stdout[..], b"out\n");
    ensure_eq!(&result.stderr[..], b"err\n");
    ensure!(!result.may_still_be_running, "a command that exited may still be running");
    ensure_eq!(result.timeout_ms, None);
    Ok(())
}

async fn exit_codes_from_0_to_255_come_back_as_they_were(sandbox: Sandbox) -> Check {
    for code in [0, 1, 2, 124, 125, 126, 127, 128, 130, 137, 255] {
        let result = sh(&sandbox, &format!("exit {code}")).await?;
        ensure_eq!(result.outcome, Outcome::Exited(code));
        ensure_eq!(result.flatten().exit_code, code);
        ensure!(!result.flatten().timed_out, "exit {code} was taken for a deadline");
    }
    Ok(())
}

async fn death_by_a_signal_is_an_outcome_and_flattens_to_128_plus_its_number(sandbox: Sandbox) -> Check {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("HUP", 1), ("USR1", 10)] {
        let result = sh(&sandbox, &format!("kill -{name} $$; sleep 5")).await?;
        ensure_eq!(result.outcome, Outcome::Signaled(number));
        ensure_eq!(result.flatten().exit_code, 128 + number);
    }
    Ok(())
}

async fn a_shell_that_saw_its_child_die_by_a_signal_exits_with_a_code(sandbox: Sandbox) -> Check {
    let result = sh(&sandbox, "sh -c 'kill -KILL $$'; exit $?").await?;
    ensure_eq!(result.outcome, Outcome::Exited(137));
    Ok(())
}

async fn a_shell_line_is_bash_source_where_there_is_bash(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "bash").await?;
    let line = "set -o pipefail; words=(one two); [[ ${words[1]} == t* ]] && false | true; echo $?";
    ensure_eq!(output(&sandbox, line).await?, "1");
    Ok(())
}

async fn a_shell_is_not_a_login_shell(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "bash").await?;
    ensure_eq!(output(&sandbox, "shopt -q login_shell && echo login || echo plain").await?, "plain");
    Ok(())
}

async fn a_command_that_a_shell_cannot_find_is_the_shells_own_127(sandbox: Sandbox) -> Check {
    let result = sh(&sandbox, "no-such-program-at-all").await?;
    ensure_eq!(result.outcome, Outcome::Exited(127));
    ensure!(!result.stderr.is_empty(), "the shell did not say what it could not find");
    Ok(())
}

async fn a_command_starts_in_the_sandboxes_own_directory(sandbox: Sandbox) -> Check {
    ensure_eq!(output(&sandbox, "pwd").await?, sandbox.cwd().as_str());
    ensure_eq!(pwd(&sandbox, "").await?, sandbox.cwd().as_str());
    ensure_eq!(pwd(&sandbox, ".").await?, sandbox.cwd().as_str());
    Ok(())
}

async fn a_relative_cwd_is_resolved_against_the_sandboxes_own(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir -p data/deep").await?;
    let deep = sandbox.resolve_path("data/deep")?;
    ensure_eq!(pwd(&sandbox, "data/deep").await?, deep.as_str());
    ensure_eq!(pwd(&sandbox, "./data//x/../deep/").await?, deep.as_str());
    let parent = sandbox.cwd().parent();
    ensure_eq!(pwd(&sandbox, "..").await?, parent.as_str());
    ensure_eq!(pwd(&sandbox, "/").await?, "/");
    Ok(())
}

async fn a_cwd_does_not_stick(sandbox: Sandbox) -> Check {
    pwd(&sandbox, "/").await?;
    output(&sandbox, "cd /").await?;
    ensure_eq!(output(&sandbox, "pwd").await?, sandbox.cwd().as_str());
    Ok(())
}

async fn a_missing_cwd_is_not_found(sandbox: Sandbox) -> Check {
    ensure_fails!(sandbox.exec("touch made", in_directory("not/there")).await, NotFound);
    ensure!(!sandbox.exists("made").await?, "the command ran somewhere else");
    ensure!(!sandbox.exists("not").await?, "the working directory was made");
    Ok(())
}

async fn a_cwd_that_is_a_file_is_not_a_directory(sandbox: Sandbox) -> Check {
    sandbox.write("file", "x").await?;
    ensure_fails!(sandbox.exec("true", in_directory("file")).await, NotDirectory);
    ensure_fails!(sandbox.exec("true", in_directory("file/below")).await, NotDirectory | NotFound);
    Ok(())
}

async fn arguments_reach_a_program_as_they_are(sandbox: Sandbox) -> Check {
    sandbox.write("a.txt", "").await?;
    let arguments = ["*", "$HOME", "a  b", "", "'\"\\", "two\nlines", "`id`", "~", "-n", "ü"];
    let line: Vec<&str> = ["printf", "<%s>"].into_iter().chain(arguments).collect();
    let expected: String = arguments.iter().map(|argument| format!("<{argument}>")).collect();
    ensure_eq!(argv(&sandbox, &line).await?.stdout_text(), expected);
    Ok(())
}

async fn a_program_by_relative_path_is_looked_for_in_the_working_directory(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir bin && printf '#!/bin/sh\\necho \"$0\"\\n' > bin/tool && chmod +x bin/tool")
        .await?;
    ensure_eq!(argv(&sandbox, &["bin/tool"]).await?.stdout_text(), "bin/tool\n");
    let below = sandbox.exec(Command::argv(["./tool"]), in_directory("bin")).await?;
    ensure_eq!(below.stdout_text(), "./tool\n");
    ensure_fails!(argv(&sandbox, &["tool"]).await, NotFound);
    Ok(())
}

async fn a_missing_program_is_not_found(sandbox: Sandbox) -> Check {
    for missing in ["no-such-program-at-all", "/no/such/program", "./none"] {
        ensure_fails!(argv(&sandbox, &[missing]).await, NotFound);
    }
    ensure!(argv(&sandbox, &["true"]).await?.success(), "the sandbox is worse for it");
    Ok(())
}

async fn a_program_that_may_not_be_run_is_refused_with_permission(sandbox: Sandbox) -> Check {
    sandbox.write("plain", "#!/bin/sh\necho run\n").await?;
    ensure_fails!(argv(&sandbox, &["./plain"]).await, Permission);
    ensure_fails!(argv(&sandbox, &["/"]).await, Permission);
    Ok(())
}

async fn an_empty_command_and_a_null_byte_are_invalid(sandbox: Sandbox) -> Check {
    for command in [Command::shell(""), Command::shell(" \n"), Command::argv([""]), Command::Argv(Vec::new())]
    {
        ensure_fails!(sandbox.exec(command, ExecOptions::default()).await, Invalid);
    }
    ensure_fails!(sh(&sandbox, "echo a\0b").await, Invalid);
    ensure_fails!(argv(&sandbox, &["echo", "a\0b"]).await, Invalid);
    Ok(())
}

async fn another_user_runs_the_command_or_is_refused_as_unsupported(sandbox: Sandbox) -> Check {
    if !sandbox.capabilities().has(Capability::Users) {
        ensure_fails!(sandbox.exec("touch made", as_user("root")).await, Unsupported);
        ensure!(!sandbox.exists("made").await?, "the command ran as somebody else");
        return Ok(());
    }
    let own = output(&sandbox, "id -u").await?;
    let (other, id) = if own == "0" { ("nobody", "65534\n") } else { ("root", "0\n") };
    if other == "nobody" && !sh(&sandbox, "grep -q ^nobody: /etc/passwd").await?.success() {
        return Err(Failure::NotHere("the image has no other user than root".to_owned()));
    }
    let result = sandbox.exec("id -u", as_user(other)).await?;
    ensure_eq!(result.stdout_text(), id);
    ensure_eq!(output(&sandbox, "id -u").await?, own);
    ensure_fails!(sandbox.exec("true", as_user("nobody-of-that-name")).await, Invalid | NotFound);
    Ok(())
}

fn as_user(user: &str) -> ExecOptions {
    ExecOptions { user: Some(user.to_owned()), ..ExecOptions::default() }
}

async fn a_user_whom_a_command_made_runs_commands_or_is_refused_as_unsupported(sandbox: Sandbox) -> Check {
    if !sandbox.capabilities().has(Capability::Users) {
        ensure_fails!(sandbox.exec("touch made", as_user("later")).await, Unsupported);
        ensure!(!sandbox.exists("made").await?, "the command ran as somebody else");
        return Ok(());
    }
    ensure_fails!(sandbox.exec("true", as_user("later")).await, Invalid | NotFound);
    if !sandbox.exec("[ -w /etc ]", as_user("root")).await?.success() {
        return Err(Failure::NotHere("root can change nothing in /etc".to_owned()));
    }
    // Root need not have the capability to give files away.
    let made = "echo later:x:4321:4322::/home/later:/bin/sh >> /etc/passwd && echo later:x:4322: >> /etc/group \
                && echo pair:x:4323:later >> /etc/group && mkdir -p /home/later && chmod 777 /home/later";
    let made = sandbox.exec(made, as_user("root")).await?;
    ensure!(made.success(), "root can make no user: {}", made.stderr_text());
    let who = "echo $(id -un) $(id -u) $(id -gn) $HOME; touch ~/made-by-me";
    for (user, group) in [("later", "later"), ("4321", "later"), ("later:pair", "pair")] {
        let result = sandbox.exec(who, as_user(user)).await?;
        ensure_eq!(result.stdout_text(), format!("later 4321 {group} /home/later\n"));
        ensure!(result.success(), "no file in its home: {}", result.stderr_text());
    }
    let gone = sandbox.exec("sed -i /^later:/d /etc/passwd", as_user("root")).await?;
    ensure!(gone.success(), "root can remove no user: {}", gone.stderr_text());
    ensure_fails!(sandbox.exec("true", as_user("later")).await, Invalid | NotFound);
    Ok(())
}

async fn what_one_command_wrote_the_next_one_reads(sandbox: Sandbox) -> Check {
    output(&sandbox, "echo hello > note; mkdir -p deep; echo below > deep/note").await?;
    ensure_eq!(output(&sandbox, "cat note deep/note").await?, "hello\nbelow");
    ensure_eq!(sandbox.read_text("note").await?, "hello\n");
    Ok(())
}

/// A loop over a pipe goes round for each line, whatever its body runs.
async fn what_a_loop_runs_leaves_the_loop_its_input(sandbox: Sandbox) -> Check {
    let body = "mkdir d$n; cp f f$n; ls f >/dev/null; wc -l f >/dev/null; rm f$n";
    let line = format!("echo x > f; seq 3 | tr 1-3 a-c | while read n; do {body}; done; ls -d d?");
    ensure_eq!(sh(&sandbox, &line).await?.stdout_text(), "da\ndb\ndc\n");
    Ok(())
}
