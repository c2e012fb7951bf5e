//! Paths as the handle takes them: relative to the working directory or absolute, normalised, nowhere confined;
//! and the sentence that an error makes of them.

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output};
use crate::exec::{Command, ExecOptions};
use crate::files::CreateDirOptions;
use crate::sandbox::Sandbox;

cases! {
    the_working_directory_is_the_one_that_was_asked_for_and_is_there(workspace) needs [];
    a_command_without_a_directory_starts_in_the_working_directory(workspace) needs [Shell];
    a_command_s_directory_is_resolved_as_a_file_s_path_is(workspace) needs [Shell];
    a_handle_with_another_working_directory_starts_there_and_leaves_the_others_alone(workspace) needs [Shell];
    a_relative_and_an_absolute_path_name_the_same_file(workspace) needs [];
    dots_double_slashes_and_a_final_slash_do_not_matter(workspace) needs [];
    two_spellings_of_one_path_resolve_to_one_string(workspace) needs [];
    two_dots_stop_at_the_root(workspace) needs [];
    resolving_a_path_looks_at_no_file(workspace) needs [];
    an_absolute_path_is_not_confined_to_the_working_directory(workspace) needs [];
    a_file_s_error_says_once_what_failed_where_and_why(workspace) needs [];
    a_command_s_error_says_once_what_failed_where_and_why(workspace) needs [Argv];
}

async fn the_working_directory_is_the_one_that_was_asked_for_and_is_there(sandbox: Sandbox) -> Check {
    let asked = sandbox.info().spec.workdir.clone();
    ensure_eq!(Some(sandbox.cwd()), asked.as_ref());
    ensure!(sandbox.stat(".").await?.is_directory, "the working directory is none");
    Ok(())
}

async fn a_command_without_a_directory_starts_in_the_working_directory(sandbox: Sandbox) -> Check {
    ensure_eq!(output(&sandbox, "pwd").await?, sandbox.cwd().as_str());
    Ok(())
}

async fn a_command_s_directory_is_resolved_as_a_file_s_path_is(sandbox: Sandbox) -> Check {
    sandbox.create_dir("data/deep", CreateDirOptions { recursive: true }).await?;
    for cwd in ["data", "./data/", "data/deep/..", "..", "/", ""] {
        let options = ExecOptions { cwd: Some(cwd.to_owned()), ..ExecOptions::default() };
        let expected = match cwd {
            "" => sandbox.cwd().clone(),
            cwd => sandbox.resolve_path(cwd)?,
        };
        let printed = sandbox.exec("pwd", options).await?.stdout_text();
        ensure_eq!(printed.trim_end(), expected.as_str());
    }
    Ok(())
}

async fn a_handle_with_another_working_directory_starts_there_and_leaves_the_others_alone(
    sandbox: Sandbox,
) -> Check {
    sandbox.create_dir("project/deep", CreateDirOptions { recursive: true }).await?;
    let project = sandbox.with_cwd("project")?;
    project.write("here", "1").await?;
    ensure_eq!(sandbox.read_text("project/here").await?, "1");
    ensure_eq!(output(&project, "pwd").await?, format!("{}/project", sandbox.cwd()));
    ensure_eq!(output(&project.with_cwd("deep/..")?, "pwd").await?, project.cwd().as_str());
    ensure_eq!(output(&sandbox, "pwd").await?, sandbox.cwd().as_str());
    Ok(())
}

async fn a_relative_and_an_absolute_path_name_the_same_file(sandbox: Sandbox) -> Check {
    sandbox.write("relative", "1").await?;
    let absolute = format!("{}/relative", sandbox.cwd());
    ensure_eq!(sandbox.read_text(&absolute).await?, "1");
    sandbox.write(&absolute, "2").await?;
    ensure_eq!(sandbox.read_text("relative").await?, "2");
    Ok(())
}

async fn dots_double_slashes_and_a_final_slash_do_not_matter(sandbox: Sandbox) -> Check {
    sandbox.write("a/./b//..///c.txt", "x").await?;
    for spelling in ["a/c.txt", "./a/c.txt/", "missing/../a/c.txt", "a/b/../c.txt/."] {
        ensure_eq!(sandbox.read_text(spelling).await?, "x");
    }
    ensure!(!sandbox.exists("a/b").await?, "a directory was made for a segment that `..` takes back");
    Ok(())
}

async fn two_spellings_of_one_path_resolve_to_one_string(sandbox: Sandbox) -> Check {
    let absolute = format!("{}/a/c", sandbox.cwd());
    for spelling in ["a/c", "./a//c/", "x/../a/c", absolute.as_str()] {
        ensure_eq!(sandbox.resolve_path(spelling)?.as_str(), absolute);
    }
    ensure_eq!(sandbox.resolve_path("/../x/.")?.as_str(), "/x");
    Ok(())
}

async fn two_dots_stop_at_the_root(sandbox: Sandbox) -> Check {
    sandbox.write("f", "x").await?;
    let up = "../".repeat(50);
    ensure_eq!(sandbox.resolve_path(&up)?.as_str(), "/");
    ensure_eq!(sandbox.read_text(&format!("{up}{}/f", sandbox.cwd())).await?, "x");
    Ok(())
}

async fn resolving_a_path_looks_at_no_file(sandbox: Sandbox) -> Check {
    sandbox.write("file", "").await?;
    ensure_eq!(sandbox.resolve_path("file/below/../it")?, sandbox.cwd().resolve("file/it")?);
    ensure_eq!(sandbox.resolve_path("missing/../x")?, sandbox.cwd().resolve("x")?);
    Ok(())
}

async fn an_absolute_path_is_not_confined_to_the_working_directory(sandbox: Sandbox) -> Check {
    sandbox.write("/tmp/elsewhere", "x").await?;
    ensure_eq!(sandbox.read_text("../../../tmp/elsewhere").await?, "x");
    Ok(())
}

async fn a_file_s_error_says_once_what_failed_where_and_why(sandbox: Sandbox) -> Check {
    sandbox.create_dir("taken", CreateDirOptions::default()).await?;
    let place = format!("in sandbox `{}`: ", sandbox.name());
    let taken = sandbox.resolve_path("taken")?;
    let sentences = [
        (format!("read file `missing` {place}"), sandbox.read("missing").await.err()),
        (format!("list directory `missing` {place}"), sandbox.list("missing").await.err()),
        (format!("stat `missing` {place}"), sandbox.stat("missing").await.err()),
        (format!("write file `{taken}` {place}"), sandbox.write("taken", "x").await.err()),
    ];
    for (beginning, error) in sentences {
        let sentence = error.map(|error| error.to_string()).unwrap_or_default();
        let reason = sentence.strip_prefix(&beginning);
        ensure!(
            reason.is_some_and(|reason| !reason.is_empty()),
            "`{sentence}` does not begin with `{beginning}`"
        );
        let repeats = reason.is_some_and(|reason| reason.contains("missing") || reason.contains("taken"));
        ensure!(!repeats, "`{sentence}` says something twice");
    }
    Ok(())
}

async fn a_command_s_error_says_once_what_failed_where_and_why(sandbox: Sandbox) -> Check {
    let command = Command::argv(["no-such-program", "argument"]);
    let ran = sandbox.exec(command, ExecOptions::default()).await;
    let sentence = ran.as_ref().err().map(ToString::to_string).unwrap_or_default();
    ensure_fails!(ran, NotFound);
    let beginning = format!("run `no-such-program argument` in sandbox `{}`: ", sandbox.name());
    ensure!(sentence.starts_with(&beginning), "`{sentence}` does not begin with `{beginning}`");
    ensure_eq!(sentence.matches("no-such-program").count(), 1);
    let next = sandbox.exec(Command::argv(["true"]), ExecOptions::default()).await?;
    ensure!(next.success(), "the sandbox does not work any more");
    Ok(())
}
