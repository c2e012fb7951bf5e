//! `workspace`: Anvia's tools over a real sandbox.

use std::io::{Read, Write};

use eyot_tools::{WorkspaceTool, WorkspaceToolsOptions};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::computer::Computer;
use crate::{ensure, same, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("workspace_exec_command_says_code_and_output_part_by_part", exec),
        trial("workspace_a_deadline_keeps_the_output_and_says_so", deadline),
        trial("workspace_a_program_that_is_missing_is_an_answer", missing),
        trial("workspace_long_output_keeps_both_ends_and_says_how_to_read_the_rest", long),
        trial("workspace_files_are_written_read_by_pages_and_listed", files),
        trial("workspace_a_path_that_leads_out_is_refused_links_too", out),
        trial("workspace_a_name_with_a_line_feed_forges_no_entry", forged),
        trial("workspace_policies_hold", policies),
        trial("workspace_a_policy_is_checked_on_what_will_run", what_will_run),
        trial("workspace_a_process_is_started_listed_read_and_stopped", process),
        trial("workspace_no_more_processes_run_than_may_even_side_by_side", limit),
        trial("workspace_a_process_that_could_not_start_takes_no_place", failed_start),
        trial("workspace_a_stubborn_process_is_killed_after_its_grace", stubborn),
        trial("workspace_a_port_is_listed_waited_for_and_reached_from_the_host", port),
        trial("workspace_ports_are_listed_in_the_order_of_the_options", ports),
        trial("workspace_a_process_that_was_asked_to_end_takes_its_children_along", grandchildren),
        trial("workspace_processes_that_ended_take_no_place", ended),
    ]
}

fn with(options: Value) -> Result<Computer, Failed> {
    let mut options: WorkspaceToolsOptions = serde_json::from_value(options)?;
    options.allow = Some(WorkspaceTool::ALL.to_vec());
    Computer::of_workspace(options)
}

fn all() -> Result<Computer, Failed> {
    with(json!({}))
}

async fn exec() -> Result<(), Failed> {
    let computer = Computer::new("workspace")?;
    let script = "cat; echo \"$V $PWD\" >&2; exit 3";
    let input = json!({
        "command": "sh", "args": ["-c", script], "cwd": "a b", "env": { "V": "v" }, "input": "in\n\n",
    });
    computer.ok("write_file", json!({ "path": "a b/f", "content": "" })).await?;
    let answer = computer.ok("exec_command", input).await?;
    same(answer, "exit_code: 3\n\nstdout:\nin\n\nstderr:\nv /home/user/a b")?;
    same(computer.ok("exec_command", json!({ "command": "true" })).await?, "exit_code: 0")?;
    // Nothing to read: end of file, at once.
    same(computer.ok("exec_command", json!({ "command": "cat" })).await?, "exit_code: 0")
}

async fn deadline() -> Result<(), Failed> {
    let computer = Computer::new("workspace")?;
    let input = json!({ "command": "sh", "args": ["-c", "echo begun; sleep 1000"], "timeoutMs": 500 });
    let answer = computer.ok("exec_command", input).await?;
    ensure(answer.starts_with("exit_code: 124\n\ntimed_out: true\n\nstdout:\nbegun"), answer)
}

async fn missing() -> Result<(), Failed> {
    let computer = Computer::new("workspace")?;
    let answer = computer.ok("exec_command", json!({ "command": "nowhere-to-be-found" })).await?;
    ensure(answer.starts_with("exit_code: 127\n\nstderr:\n"), answer)
}

async fn long() -> Result<(), Failed> {
    let computer = Computer::new("workspace")?;
    let answer = computer.ok("exec_command", json!({ "command": "seq", "args": ["1", "1000000"] })).await?;
    ensure(answer.len() < 80_000, format!("{} bytes", answer.len()))?;
    ensure(answer.starts_with("exit_code: 0\n\nstdout:\n1\n2\n"), &answer[..40])?;
    ensure(answer.ends_with("\n1000000\n\noutput_truncated: true"), &answer[answer.len() - 60..])?;
    ensure(answer.contains("bytes are left out here; run it again with its output in a file"), "no note")
}

async fn files() -> Result<(), Failed> {
    let computer = Computer::new("workspace")?;
    let lines: String = (1..=700).map(|line| format!("{line}\n")).collect();
    same(computer.ok("write_file", json!({ "path": "d/f.txt", "content": lines })).await?, "Wrote d/f.txt")?;
    let page: Value = serde_json::from_str(&computer.ok("read_file", json!({ "path": "d/f.txt" })).await?)?;
    ensure(
        page["nextStartLine"] == 501 && page["endLine"] == 500 && page["truncatedBy"] == "lines",
        page.to_string(),
    )?;
    let rest =
        computer.ok("read_file", json!({ "path": "d/f.txt", "startLine": 699, "lineCount": 9 })).await?;
    let expected = json!({
        "content": "699\n700\n", "startLine": 699, "endLine": 700, "nextStartLine": null, "truncated": false,
        "truncatedBy": null,
    });
    same(rest, expected.to_string())?;
    same(computer.ok("list_files", json!({ "path": "d" })).await?, "file 2692b\td/f.txt")?;
    let root = computer.ok("list_files", json!({})).await?;
    ensure(root.lines().any(|line| line.starts_with("directory ") && line.ends_with("b\td")), root)?;
    same(computer.ok("list_files", json!({ "path": "d/f.txt" })).await?, "No files found.")
}

async fn out() -> Result<(), Failed> {
    let computer = Computer::new("workspace")?;
    computer.ok("exec_command", json!({ "command": "ln", "args": ["-s", "/etc", "etc"] })).await?;
    for (tool, input) in [
        ("read_file", json!({ "path": "etc/passwd" })),
        ("write_file", json!({ "path": "etc/x", "content": "" })),
        ("list_files", json!({ "path": "etc/" })),
        ("exec_command", json!({ "command": "pwd", "cwd": "etc" })),
        ("read_file", json!({ "path": "/etc/passwd" })),
        ("write_file", json!({ "path": "../x", "content": "" })),
        ("exec_command", json!({ "command": "pwd", "cwd": "a/../.." })),
    ] {
        let error = computer.error(tool, input.clone()).await?;
        ensure(!error.contains("root:"), format!("{tool} {input}: {error}"))?;
    }
    let error = computer.error("read_file", json!({ "path": "../x" })).await?;
    same(error, "sandbox path cannot leave the workspace: ../x")
}

async fn forged() -> Result<(), Failed> {
    let computer = Computer::new("workspace")?;
    computer.ok("write_file", json!({ "path": "d/x\nfile 1b\there", "content": "" })).await?;
    same(computer.ok("list_files", json!({ "path": "d" })).await?, "file 0b\t$'d/x\\nfile 1b\\there'")
}

async fn policies() -> Result<(), Failed> {
    let computer = with(json!({
        "exec": { "allowedCommands": ["node"], "maxTimeoutMs": 1000 },
        "readFile": { "defaultLineCount": 2, "maxLineCount": 3, "maxBytes": 4 },
        "writeFile": { "maxBytes": 4 },
        "process": { "maxLogBytes": 8, "defaultWaitTimeoutMs": 5, "maxWaitTimeoutMs": 10 },
    }))?;
    for (tool, input, expected) in [
        (
            "exec_command",
            json!({ "command": "python" }),
            "Command is not allowed by sandbox tool policy: python",
        ),
        (
            "start_process",
            json!({ "command": "python" }),
            "Command is not allowed by sandbox tool policy: python",
        ),
        (
            "exec_command",
            json!({ "command": "node", "timeoutMs": 2000 }),
            "Command timeout exceeds sandbox tool policy (2000 > 1000).",
        ),
        ("write_file", json!({ "path": "a", "content": "äöü" }), "File content exceeds sandbox tool policy."),
        (
            "read_file",
            json!({ "path": "a", "lineCount": 4 }),
            "File read line count exceeds sandbox tool policy (4 > 3).",
        ),
        (
            "read_process_logs",
            json!({ "processId": "p1", "tailBytes": 9 }),
            "Process log request exceeds sandbox tool policy (9 > 8).",
        ),
        (
            "wait_for_port",
            json!({ "containerPort": 80, "timeoutMs": 11 }),
            "Port wait timeout exceeds sandbox tool policy (11 > 10).",
        ),
    ] {
        same(computer.error(tool, input).await?, expected)?;
    }
    computer.ok("write_file", json!({ "path": "a", "content": "äö" })).await?;
    computer.sandbox().await?.write("b", "äöü\n").await?;
    let page: Value = serde_json::from_str(&computer.ok("read_file", json!({ "path": "b" })).await?)?;
    ensure(page["content"] == "äö" && page["truncatedBy"] == "bytes", page.to_string())
}

async fn what_will_run() -> Result<(), Failed> {
    let computer = with(json!({ "exec": { "blockedCommands": ["rm"] } }))?;
    for command in ["rm", "/bin/rm", "/usr/bin/../bin/rm"] {
        let error = computer.error("exec_command", json!({ "command": command, "args": ["-h"] })).await?;
        same(error, format!("Command is blocked by sandbox tool policy: {command}"))?;
    }
    let computer = with(json!({ "exec": { "allowedCommands": ["echo", "./run"] } }))?;
    let sandbox = computer.sandbox().await?;
    for path in ["echo", "run", "sub/run"] {
        sandbox.write(path, "#!/bin/sh\necho evil\n").await?;
        let mode = eyot::ExecOptions::default();
        ensure(sandbox.exec(format!("chmod 755 {path}"), mode).await?.success(), path)?;
    }
    let redirected = json!({ "command": "echo", "args": ["x"], "env": { "PATH": "/home/user" } });
    let error = computer.error("exec_command", redirected).await?;
    same(error, "Environment variable is not allowed by sandbox tool policy: PATH")?;
    let elsewhere = json!({ "command": "./run", "cwd": "sub" });
    let error = computer.error("exec_command", elsewhere).await?;
    same(error, "Command is not allowed by sandbox tool policy: ./run")?;
    let answer = computer.ok("exec_command", json!({ "command": "./run" })).await?;
    same(answer, "exit_code: 0\n\nstdout:\nevil")
}

async fn process() -> Result<(), Failed> {
    let computer = all()?;
    same(computer.ok("list_processes", json!({})).await?, "No managed processes.")?;
    let script = "echo out; echo err >&2; exec sleep 1000";
    let started = computer.ok("start_process", json!({ "command": "sh", "args": ["-c", script] })).await?;
    same(&started, format!("process_id: p1\nstatus: running\ncommand: sh -c {script}"))?;
    computer.sandbox().await?.wait_for_line("p1".parse()?, "err", 60_000).await?;
    let logs = computer.ok("read_process_logs", json!({ "processId": "p1" })).await?;
    same(logs, "stdout:\nout\n\nstderr:\nerr")?;
    let cut = computer.ok("read_process_logs", json!({ "processId": "p1", "tailBytes": 2 })).await?;
    same(cut, "stdout:\nt\n\nstderr:\nr\n\noutput_truncated: true")?;
    let none = computer.ok("read_process_logs", json!({ "processId": "p1", "tailBytes": 0 })).await?;
    same(none, "output_truncated: true")?;
    let stopped = computer.ok("stop_process", json!({ "processId": "p1" })).await?;
    ensure(stopped.contains("status: stopped") && stopped.ends_with("exit_code: 143"), &stopped)?;
    same(computer.ok("list_processes", json!({})).await?, &stopped)?;
    same(computer.ok("stop_process", json!({ "processId": "p1" })).await?, stopped)?;
    for (tool, id) in [("stop_process", "p9"), ("read_process_logs", "nonsense")] {
        let error = computer.error(tool, json!({ "processId": id })).await?;
        ensure(error.starts_with(&format!("Unknown sandbox process: {id}\n")), error)?;
    }
    Ok(())
}

async fn limit() -> Result<(), Failed> {
    let computer = std::sync::Arc::new(all()?);
    let starts = (0..12).map(|_| {
        let computer = computer.clone();
        let input = json!({ "command": "sleep", "args": ["1000"] });
        tokio::spawn(async move { computer.call("start_process", input).await })
    });
    let (mut started, mut refused) = (0, 0);
    for start in starts.collect::<Vec<_>>() {
        let answer = start.await?;
        if answer.is_error {
            ensure(
                answer.as_text().starts_with("Sandbox process limit reached (4 >= 4)."),
                answer.as_text(),
            )?;
            refused += 1;
        } else {
            started += 1
        }
    }
    ensure((started, refused) == (4, 8), format!("{started} started, {refused} refused"))?;
    computer.ok("stop_process", json!({ "processId": "p1" })).await?;
    computer.ok("start_process", json!({ "command": "sleep", "args": ["1000"] })).await?;
    Ok(())
}

async fn failed_start() -> Result<(), Failed> {
    let computer = with(json!({ "process": { "maxProcesses": 1 } }))?;
    computer.error("start_process", json!({ "command": "sleep", "args": ["1"], "cwd": "nowhere" })).await?;
    computer.error("start_process", json!({ "command": "nowhere-to-be-found" })).await?;
    computer.error("start_process", json!({ "command": "  " })).await?;
    computer.ok("start_process", json!({ "command": "sleep", "args": ["1000"] })).await?;
    Ok(())
}

async fn stubborn() -> Result<(), Failed> {
    let computer = with(json!({ "process": { "stopGracePeriodMs": 200 } }))?;
    let script = "trap '' TERM; echo deaf; while :; do sleep 1; done";
    computer.ok("start_process", json!({ "command": "sh", "args": ["-c", script] })).await?;
    computer.sandbox().await?.wait_for_line("p1".parse()?, "deaf", 60_000).await?;
    let stopped = computer.ok("stop_process", json!({ "processId": "p1" })).await?;
    ensure(stopped.contains("status: stopped") && stopped.ends_with("exit_code: 137"), stopped)
}

async fn port() -> Result<(), Failed> {
    same(all()?.ok("list_ports", json!({})).await?, "No sandbox ports are published.")?;
    let computer = with(json!({ "ports": [3000] }))?;
    let ports = computer.ok("list_ports", json!({})).await?;
    let address = ports.strip_prefix("3000/tcp\t").ok_or("no port")?.to_owned();
    let error = computer.error("wait_for_port", json!({ "containerPort": 80 })).await?;
    ensure(error.starts_with("Sandbox port is not published: 80/tcp"), error)?;
    computer.error("wait_for_port", json!({ "containerPort": 3000, "timeoutMs": 50 })).await?;
    // On loopback alone: what is previewed is dialled from inside.
    let args = ["-m", "http.server", "3000", "--bind", "127.0.0.1"];
    computer.ok("write_file", json!({ "path": "hello", "content": "from inside" })).await?;
    computer.ok("start_process", json!({ "command": "python3", "args": args })).await?;
    let ready = computer.ok("wait_for_port", json!({ "containerPort": 3000 })).await?;
    same(ready, format!("ready: 3000/tcp -> {address}"))?;
    let page = tokio::task::spawn_blocking(move || -> std::io::Result<String> {
        let mut stream = std::net::TcpStream::connect(address)?;
        stream.write_all(b"GET /hello HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    });
    let page = page.await??;
    ensure(page.ends_with("from inside"), page)
}

async fn ports() -> Result<(), Failed> {
    let computer = with(json!({ "ports": [3001, 80, 3000] }))?;
    let listed = computer.ok("list_ports", json!({})).await?;
    let names: Vec<_> = listed.lines().filter_map(|line| line.split_once("\t127.0.0.1:")).collect();
    let order: Vec<_> = names.iter().map(|(name, _)| *name).collect();
    ensure(order == ["3001/tcp", "80/tcp", "3000/tcp"], &listed)?;
    // They stay where they are.
    same(computer.ok("list_ports", json!({})).await?, listed)
}

async fn grandchildren() -> Result<(), Failed> {
    let computer = all()?;
    let script = "sh -c 'sleep 86471 & sleep 86471' & setsid sleep 86471 & echo up; wait";
    computer.ok("start_process", json!({ "command": "sh", "args": ["-c", script] })).await?;
    computer.sandbox().await?.wait_for_line("p1".parse()?, "up", 60_000).await?;
    computer.ok("stop_process", json!({ "processId": "p1" })).await?;
    let left =
        computer.ok("exec_command", json!({ "command": "pgrep", "args": ["-f", "sleep 86471"] })).await?;
    same(left, "exit_code: 1")
}

async fn ended() -> Result<(), Failed> {
    let computer = with(json!({ "process": { "maxProcesses": 1 } }))?;
    for number in 1..=3 {
        let input = json!({ "command": "sh", "args": ["-c", format!("exit {number}")] });
        computer.ok("start_process", input).await?;
        computer.sandbox().await?.wait(format!("p{number}").parse()?).await?;
    }
    let listed = computer.ok("list_processes", json!({})).await?;
    let codes: Vec<_> = listed.lines().filter(|line| line.starts_with("exit_code: ")).collect();
    ensure(codes == ["exit_code: 1", "exit_code: 2", "exit_code: 3"], &listed)?;
    ensure(listed.matches("status: exited").count() == 3, listed)
}
