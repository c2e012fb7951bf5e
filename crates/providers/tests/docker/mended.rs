//! Bugs of Anvia's Docker sandbox (F1 to F12 in the list of its rules), each with the correct
//! behaviour.

use std::time::Duration;

use eyot::{
    CancellationToken, ErrorKind, ExecOptions, Outcome, PullPolicy, Sandbox, SandboxId, SandboxSpec,
    StartOptions,
};

use crate::check::{Check, docker, ensure, ensure_eq, output, refused, until, with_sandbox};
use crate::engine::{BUSYBOX, DEBIAN, TestEngine, spec, tests};

tests! {
    a_link_to_a_path_of_the_host_never_yields_the_hosts_file(DEBIAN);
    a_deadline_kills_the_tree_in_the_container(DEBIAN);
    an_abort_kills_the_tree_in_the_container(DEBIAN);
    an_id_in_use_is_refused_and_the_others_session_is_left_alone(DEBIAN);
    an_image_that_is_not_there_is_never_fetched_where_that_was_said(BUSYBOX);
    an_image_that_can_not_be_fetched_is_a_typed_error_and_leaves_nothing(BUSYBOX);
    a_user_who_is_not_root_can_write_the_workspace(DEBIAN);
    names_with_line_ends_and_tabs_are_listed_as_they_are(BUSYBOX);
    a_folder_is_listed_without_gnu_find(BUSYBOX);
    a_process_that_could_not_start_takes_no_place(BUSYBOX);
    a_background_child_delays_nothing(BUSYBOX);
    a_write_keeps_the_executable_bit_and_its_owner(DEBIAN);
}

async fn a_link_to_a_path_of_the_host_never_yields_the_hosts_file(engine: TestEngine) -> Check {
    let host = tempfile::NamedTempFile::new()?;
    std::fs::write(host.path(), "canary of the host")?;
    let path = host.path().display().to_string();
    with_sandbox(&engine, spec(DEBIAN), async |sandbox| {
        output(sandbox, &format!("ln -s {path} leak && ln -s /etc/debian_version inside")).await?;
        let workspace = sandbox.workspace();
        refused!(sandbox.read("leak").await, NotFound);
        ensure!(workspace.read_file("leak").await.is_err(), "a workspace's read followed the link");
        // What is there inside is the sandbox's own, and the workspace's view does not leave the workspace.
        ensure!(!sandbox.read("inside").await?.is_empty(), "the link inside leads nowhere");
        refused!(workspace.read_file("inside").await, Permission);
        Ok(())
    })
    .await
}

async fn alive(sandbox: &Sandbox, mark: &str) -> Check<bool> {
    let listed = sandbox.live_processes().await?;
    Ok(listed.processes.iter().any(|process| process.command.contains(mark)))
}

async fn a_deadline_kills_the_tree_in_the_container(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(DEBIAN), async |sandbox| {
        let line = "setsid sleep 86401 & (trap '' TERM; sleep 86402 & wait) & echo begun; sleep 86403";
        let options = ExecOptions { timeout_ms: Some(1_500), ..ExecOptions::default() };
        let result = sandbox.exec(line, options).await?;
        ensure_eq!((result.outcome, result.stdout_text().as_str()), (Outcome::TimedOut, "begun\n"));
        ensure!(!alive(sandbox, "sleep 8640").await?, "something outlived the deadline");
        Ok(())
    })
    .await
}

async fn an_abort_kills_the_tree_in_the_container(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(DEBIAN), async |sandbox| {
        let cancel = CancellationToken::new();
        let options = ExecOptions { cancel: Some(cancel.clone()), ..ExecOptions::default() };
        let running = sandbox.exec("setsid sleep 86404 & sleep 86405", options);
        let stopping = async {
            until("the start of both", async || alive(sandbox, "sleep 86405").await).await?;
            cancel.cancel();
            Check::Ok(())
        };
        let (result, stopped) = tokio::join!(running, stopping);
        stopped?;
        ensure_eq!(result?.outcome, Outcome::Cancelled);
        ensure!(!alive(sandbox, "sleep 8640").await?, "something outlived the abort");
        Ok(())
    })
    .await
}

async fn an_id_in_use_is_refused_and_the_others_session_is_left_alone(engine: TestEngine) -> Check {
    let first = SandboxSpec { id: Some(SandboxId::generate()), ..spec(DEBIAN) };
    let second = SandboxSpec { id: first.id.clone(), ..spec(DEBIAN) };
    with_sandbox(&engine, first, async |sandbox| {
        sandbox.write("note", "mine").await?;
        refused!(Sandbox::create(&*engine.provider, second).await, AlreadyExists);
        ensure_eq!(sandbox.read_text("note").await?, "mine");
        ensure_eq!(output(sandbox, "echo alive").await?, "alive");
        let label = format!("label=dev.eyot.id={}", sandbox.id());
        ensure_eq!(docker(&["ps", "-aq", "--filter", &label])?.lines().count(), 1);
        Ok(())
    })
    .await
}

async fn an_image_that_is_not_there_is_never_fetched_where_that_was_said(engine: TestEngine) -> Check {
    let spec = spec("eyot-test-nobody-made-this:1");
    let name = spec.clone().validate()?.name().clone();
    let error = refused!(Sandbox::create(&*engine.provider, spec).await, NotFound);
    ensure!(error.to_string().contains("eyot-test-nobody-made-this:1"), "{error}");
    ensure!(error.hint().is_some_and(|hint| hint.contains("docker pull")), "no hint: {:?}", error.hint());
    ensure!(
        docker(&["ps", "-aq", "--filter", &format!("name=eyot-{name}")])?.is_empty(),
        "a container is left"
    );
    Ok(())
}

async fn an_image_that_can_not_be_fetched_is_a_typed_error_and_leaves_nothing(engine: TestEngine) -> Check {
    // Nobody listens on that port: no network is asked for anything.
    for policy in [PullPolicy::Missing, PullPolicy::Always] {
        let mut wanted = spec("127.0.0.1:9/eyot/none:1");
        wanted.container.pull = policy;
        let error = refused!(Sandbox::create(&*engine.provider, wanted).await, Unavailable);
        ensure!(
            error.hint().is_some_and(|hint| hint.contains("registry")),
            "no hint: {error}: {:?}",
            error.hint()
        );
    }
    Ok(())
}

async fn a_user_who_is_not_root_can_write_the_workspace(engine: TestEngine) -> Check {
    let persistent = eyot::WorkspaceSpec::Persistent {
        id: format!("eyot-test-{}", std::process::id()),
        destroy_on_session_destroy: true,
    };
    for workspace in [eyot::WorkspaceSpec::Ephemeral, persistent] {
        let wanted = SandboxSpec { user: Some("1000:1000".to_owned()), workspace, ..spec(DEBIAN) };
        with_sandbox(&engine, wanted, async |sandbox| {
            sandbox.write("sub/x", "by the guest").await?;
            ensure_eq!(
                output(sandbox, "echo more >> sub/x && stat -c %u:%g . sub/x").await?,
                "1000:1000\n1000:1000"
            );
            ensure_eq!(output(sandbox, "echo kept > ~/note && cat ~/note").await?, "kept");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn names_with_line_ends_and_tabs_are_listed_as_they_are(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let names = ["two\nlines", "a\ttab", "f\t9999", "-rf", " blank ", "ü😀"];
        for name in names {
            sandbox.write(&format!("d/{name}"), "x").await?;
        }
        let mut listed: Vec<String> = sandbox.list("d").await?.into_iter().map(|entry| entry.name).collect();
        listed.sort();
        let mut wanted = names.map(str::to_owned).to_vec();
        wanted.sort();
        ensure_eq!(listed, wanted);
        Ok(())
    })
    .await
}

async fn a_folder_is_listed_without_gnu_find(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        output(sandbox, "mkdir -p a/b && echo hi > a/f && ln -s f a/l && mkfifo a/p").await?;
        let entries = sandbox.workspace().list_files("a").await?;
        let mut seen: Vec<String> =
            entries.iter().map(|entry| format!("{} {:?}", entry.path, entry.file_type)).collect();
        seen.sort();
        ensure_eq!(seen, ["a/b Directory", "a/f File", "a/l Symlink", "a/p Other"]);
        Ok(())
    })
    .await
}

async fn a_process_that_could_not_start_takes_no_place(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        for _ in 0..3 {
            let nowhere = StartOptions { cwd: Some("not-there".to_owned()), ..StartOptions::default() };
            refused!(sandbox.start("sleep 86406", nowhere).await, NotFound);
        }
        ensure!(sandbox.processes().await?.is_empty(), "a process that never ran is listed");
        sandbox.start("sleep 86406", StartOptions::default()).await?;
        ensure_eq!(sandbox.processes().await?.len(), 1);
        Ok(())
    })
    .await
}

async fn a_background_child_delays_nothing(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let result = tokio::time::timeout(
            Duration::from_secs(60),
            sandbox.exec("sleep 86407 & echo begun", ExecOptions::default()),
        );
        ensure_eq!(result.await.map_err(|_| "the child delayed the result")??.stdout_text(), "begun\n");
        ensure!(alive(sandbox, "sleep 86407").await?, "the child was killed");
        Ok(())
    })
    .await
}

async fn a_write_keeps_the_executable_bit_and_its_owner(engine: TestEngine) -> Check {
    let wanted = SandboxSpec { user: Some("1000".to_owned()), ..spec(DEBIAN) };
    with_sandbox(&engine, wanted, async |sandbox| {
        output(sandbox, "printf '#!/bin/sh\\necho one' > tool && chmod 755 tool").await?;
        sandbox.write("tool", "#!/bin/sh\necho two").await?;
        ensure_eq!(output(sandbox, "./tool && stat -c '%a %u' tool").await?, "two\n755 1000");
        let missing = sandbox.read("none").await;
        ensure!(missing.is_err_and(|error| error.kind() == ErrorKind::NotFound), "a missing file");
        Ok(())
    })
    .await
}
