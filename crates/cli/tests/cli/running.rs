//! `run` and `exec` without a terminal: bytes, exit codes, variables, mounts.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::machine::Machine;

#[test]
fn a_command_runs_in_a_throw_away_sandbox_and_its_exit_code_is_ours() {
    let machine = Machine::new();
    let ran = machine.run(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((ran.code, ran.text().as_str(), ran.stderr.as_str()), (Some(3), "out\n", "err\n"));
    machine.assert_empty();
}

#[test]
fn bytes_are_passed_on_untouched_both_ways() {
    let machine = Machine::new();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|index| (index * 7 % 256) as u8).collect();
    let ran = machine.run_with_input(&["run", "--", "cat"], &bytes);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout == bytes, "{} of {} bytes", ran.stdout.len(), bytes.len());
}

#[test]
fn output_arrives_while_the_command_still_runs() {
    let machine = Machine::new();
    let mut command = machine.command(&["run", "--", "sh", "-c", "echo first; read line; echo got $line"]);
    let mut child = machine.spawn(command.stdin(Stdio::piped()));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    child.stdin.take().unwrap().write_all(b"second\n").unwrap();
    line.clear();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "got second\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_deadline_exits_with_124_and_says_so() {
    let machine = Machine::new();
    let ran = machine.run(&["run", "--timeout", "200ms", "--", "sleep", "100"]);
    assert_eq!(ran.code, Some(124));
    assert!(ran.stderr.contains("timed out after 200 milliseconds"), "{ran:?}");
    machine.assert_empty();
}

#[test]
fn a_signal_exits_with_128_and_its_number_and_says_so() {
    let machine = Machine::with_sandbox();
    let line = ["--", "sh", "-c", "kill -9 $$"];
    for command in [&["run"][..], &["exec", "box"], &["-q", "exec", "box"]] {
        let ran = machine.run(&[command, &line].concat());
        assert_eq!(ran.code, Some(137), "{ran:?}");
        assert_eq!(ran.stderr, "[eyot] Command was ended by signal 9 (SIGKILL).\n");
    }
    let told = machine.run(&[&["--json", "exec", "box"], &line[..]].concat());
    assert_eq!((told.code, told.stderr.as_str()), (Some(137), ""));
    // A code of its own is no signal.
    let exited = machine.run(&["exec", "box", "--", "sh", "-c", "exit 137"]);
    assert_eq!((exited.code, exited.stderr.as_str()), (Some(137), ""));
}

#[test]
fn a_missing_program_exits_with_127_and_one_that_may_not_run_with_126() {
    let machine = Machine::new();
    machine.run(&["run", "--", "no-such-program"]).failure(127);
    machine.run(&["run", "--", "/etc/passwd"]).failure(126);
    machine.assert_empty();
}

#[test]
fn one_word_with_spaces_is_a_program_and_not_a_shell_line() {
    let machine = Machine::new();
    machine.run(&["run", "echo hi"]).failure(127);
}

#[test]
fn what_is_wrong_with_the_arguments_exits_with_2_and_makes_nothing() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["run"]).code, Some(2));
    assert_eq!(machine.run(&["run", "--imagine", "--", "true"]).code, Some(2));
    machine.run(&["run", "--memory-mib", "1", "--", "true"]).failure(2);
    assert!(!machine.state().exists());
}

#[test]
fn nothing_of_our_environment_is_inside_unless_it_is_named() {
    let machine = Machine::new();
    let mut command = machine.command(&["run", "-e", "GIVEN", "-e", "SET=a=b", "--", "env"]);
    let output = command.env("GIVEN", "yes").env("SECRET", "hunter2").output().unwrap();
    let env = String::from_utf8(output.stdout).unwrap();
    assert!(env.contains("GIVEN=yes\n") && env.contains("SET=a=b\n"), "{env}");
    assert!(!env.contains("hunter2"), "{env}");
}

#[test]
fn a_mount_is_read_only_unless_it_says_rw() {
    let machine = Machine::new();
    machine.write("shared/file", "content");
    let shared = machine.path_text("shared");
    let line = "cat /mnt/in/file && echo new > /mnt/in/new";
    let read_only = machine.run(&["run", "--mount", &format!("{shared}:/mnt/in"), "--", "sh", "-c", line]);
    assert_eq!(read_only.text(), "content");
    assert_ne!(read_only.code, Some(0));
    assert!(!machine.path("shared/new").exists());
}

#[test]
fn a_folder_that_the_sandbox_cannot_read_is_named_with_what_opens_it() {
    let machine = Machine::new();
    let closed = machine.path("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mount = format!("{}:/mnt/in", closed.display());
    let ran = machine.run(&["run", "--mount", &mount, "--", "sh", "-c", "ls /mnt/in 2>/dev/null"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.starts_with("eyot: a sandbox can't read /mnt/in: "), "{ran:?}");
    assert!(ran.stderr.contains("(mode 0)"), "{ran:?}");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = machine.run(&["run", "--mount", &mount, "--", "ls", "/mnt/in"]);
    assert!(ran.code == Some(0) && ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn a_folder_that_the_sandbox_cannot_write_to_is_named_when_it_is_mounted_for_writing() {
    let machine = Machine::new();
    let closed = machine.path("closed");
    std::fs::create_dir(&closed).unwrap();
    let mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let mount = format!("{}:/mnt/in:rw", closed.display());
    let run = ["run", "-v", &mount, "--", "sh", "-c", "touch /mnt/in/new 2>/dev/null"];
    let ran = machine.run(&run);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.starts_with("eyot: a sandbox can't write to /mnt/in: "), "{ran:?}");
    assert!(ran.stderr.contains("(mode 555)") && ran.stderr.contains("chown"), "{ran:?}");
    let ran = machine.run(&["create", "kept", "--json", "-v", &mount]);
    assert!(ran.code == Some(0) && ran.stderr.contains("can't write to /mnt/in"), "{ran:?}");
    machine.run(&["create", "quiet", "-q", "-v", &mount]).success();
    let served = machine.run(&["mcp", "--mount", &mount]);
    assert!(served.code == Some(0) && served.stderr.contains("can't write to /mnt/in"), "{served:?}");
    machine.run(&["create", "reader", "-v", &format!("{}:/mnt/in:ro", closed.display())]).success();
    mode(0o777);
    assert_eq!(machine.run(&run).success(), "");
    assert!(machine.path("closed/new").exists());
}

#[test]
fn json_is_one_object_with_the_flat_result_and_the_sandbox() {
    let machine = Machine::new();
    let ran = machine.run(&["run", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 4"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(4), ""));
    let result = ran.json();
    assert_eq!((result["stdout"].as_str(), result["stderr"].as_str()), (Some("out\n"), Some("err\n")));
    assert_eq!((result["exit_code"].as_i64(), result["timed_out"].as_bool()), (Some(4), Some(false)));
    assert_eq!(
        (result["output_open"].as_bool(), result["may_still_be_running"].as_bool()),
        (Some(false), Some(false))
    );
    assert!(result["sandbox_id"].as_str().unwrap().starts_with("sb_"));
    assert_eq!(result["outcome"], serde_json::json!({ "exited": 4 }));
    let ran = machine.run(&["run", "--json", "--", "sh", "-c", "sleep 60 & echo now"]);
    let result = ran.json();
    assert_eq!((result["stdout"].as_str(), result["output_open"].as_bool()), (Some("now\n"), Some(true)));
}

#[test]
fn an_error_with_json_is_a_line_for_programs_too() {
    let machine = Machine::new();
    let ran = machine.run(&["--json", "exec", "nobody", "--", "true"]);
    assert_eq!(ran.code, Some(125));
    let last: serde_json::Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["kind"], "not_found");
}

#[test]
fn keep_keeps_the_sandbox_and_names_it() {
    let machine = Machine::new();
    let ran = machine.run(&["run", "--keep", "--name", "kept", "--", "true"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("kept"), "{ran:?}");
    assert_eq!(machine.run(&["exec", "kept", "--", "echo", "here"]).success(), "here\n");
}

#[test]
fn exec_runs_in_a_sandbox_that_is_there_with_its_own_directory_variables_and_deadline() {
    let machine = Machine::with_sandbox();
    assert_eq!(machine.run(&["exec", "box", "--", "pwd"]).success(), "/workspace\n");
    assert_eq!(machine.run(&["exec", "--cwd", "/tmp", "box", "--", "pwd"]).success(), "/tmp\n");
    let ran = machine.run(&["exec", "-e", "A=1", "box", "--", "sh", "-c", "echo $A > kept; cat kept"]);
    assert_eq!(ran.success(), "1\n");
    assert_eq!(machine.run(&["exec", "box", "cat", "kept"]).success(), "1\n");
    assert_eq!(machine.run(&["exec", "--timeout", "100ms", "box", "--", "sleep", "9"]).code, Some(124));
}

#[test]
fn a_missing_sandbox_or_working_directory_is_ours_and_a_missing_program_the_commands() {
    let machine = Machine::with_sandbox();
    assert!(machine.run(&["exec", "nobody", "--", "true"]).failure(125).contains("hint: "));
    machine.run(&["exec", "--cwd", "/no/where", "box", "--", "true"]).failure(125);
    machine.run(&["exec", "box", "--", "no-such-program"]).failure(127);
    let nobody = machine.run(&["exec", "-u", "no-such-user", "box", "--", "true"]);
    let said = nobody.failure(125);
    let expected =
        if rustix::process::geteuid().is_root() { "no-such-user" } else { "hint: leave the user out" };
    assert!(said.contains(expected), "{said}");
}

#[test]
fn i_and_t_together_need_a_terminal_and_each_alone_does_not() {
    let machine = Machine::with_sandbox();
    for command in [&["exec", "-it", "box", "--", "cat"][..], &["run", "-it", "--", "cat"]] {
        let refused = machine.run(command);
        assert!(refused.failure(2).contains("the input is not one"), "{refused:?}");
    }
    let on_a_terminal = machine.run(&["exec", "-t", "box", "--", "sh", "-c", "test -t 1 && echo yes"]);
    assert_eq!(on_a_terminal.success(), "yes\r\n");
    assert_eq!(
        machine.run_with_input(&["exec", "-i", "box", "--", "cat"], b"passed on").success(),
        "passed on"
    );
}

#[test]
fn a_background_child_does_not_hold_up_the_end() {
    let machine = Machine::with_sandbox();
    let ran = machine.run(&["exec", "--timeout", "20s", "box", "--", "sh", "-c", "sleep 30 & echo done"]);
    assert_eq!(ran.success(), "done\n");
}

#[test]
fn a_throw_away_sandbox_ends_soon_after_eyot_was_killed_whatever_its_options_say() {
    let machine = Machine::new();
    let options = ["run", "--name", "gone", "--idle-timeout", "1h", "--on-idle", "sleep"];
    let mut command = machine.command(&[&options[..], &["--", "sh", "-c", "echo up; cat"]].concat());
    let mut child = machine.spawn(command.stdin(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let lifecycle = machine.run(&["inspect", "gone", "--json"]).json()["spec"]["lifecycle"].take();
    assert_eq!((&lifecycle["idle_timeout_ms"], &lifecycle["on_idle"]), (&30_000.into(), &"destroy".into()));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    machine.assert_empty();
}
