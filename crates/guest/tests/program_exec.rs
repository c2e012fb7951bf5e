//! Commands: outcomes, streams, input, terminals, and what can't be run.
#![cfg(feature = "program")]
#![allow(clippy::unwrap_used)]

mod program_client;

use eyot_guest::protocol::*;
use program_client::*;

#[test]
fn outcome_and_streams_are_the_commands_own() {
    let mut guest = Guest::start();
    let outcome = guest.run("printf out; printf err >&2; exit 3");
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Status::Exited(3), "out"));
    assert!(outcome.stderr == "err" && outcome.pid > 0);
    assert_eq!(guest.run("kill -TERM $$").status, Status::Signaled(15));
    assert_eq!(guest.run("true").status, Status::Exited(0));
}

#[test]
fn a_command_starts_with_nothing_of_the_guests() {
    let mut guest = Guest::start();
    let script = "ls -1 /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; ulimit -n; cat";
    let outcome = guest.run(script);
    let limit = std::process::Command::new("sh").args(["-c", "ulimit -n"]).output().unwrap();
    let limit = String::from_utf8(limit.stdout).unwrap();
    let expected = format!("0\n1\n2\n3\nSigBlk:\t{0}\nSigIgn:\t{0}\n0022\n{limit}", "0".repeat(16));
    assert_eq!(outcome.stdout, expected);
}

#[test]
fn the_environment_is_the_sandboxs_the_users_and_the_calls() {
    let mut guest = Guest::start();
    let mut exec = guest.exec("env | sort");
    exec.env = vec![("MINE".into(), "a=b $c".into()), ("USER".into(), "other".into())];
    let outcome = guest.client.run(exec);
    let home = guest.path("").trim_end_matches('/').to_owned();
    for line in ["MINE=a=b $c", "USER=other", "LOGNAME=user", &format!("HOME={home}"), &format!("PWD={home}")]
    {
        assert!(outcome.stdout.lines().any(|found| found == line), "{line} in {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("CARGO") && !outcome.stdout.contains("TERM="));
    let mut exec = guest.exec("true");
    exec.env = vec![("A=B".into(), String::new())];
    assert_eq!(guest.client.try_run(exec).unwrap_err().kind, "invalid");
}

#[test]
fn what_can_not_be_run_says_why() {
    let mut guest = Guest::start();
    std::fs::write(guest.path("text"), "echo from text").unwrap();
    let argv = |parts: &[&str]| CommandSpec::Argv(parts.iter().map(|part| (*part).to_owned()).collect());
    let long = "x".repeat(131_072);
    let cases = [
        (argv(&["no-such-program"]), "not_found", "command not found"),
        (argv(&["/etc/passwd"]), "permission", "permission denied"),
        (argv(&["/tmp"]), "permission", "permission denied"),
        (argv(&["./text"]), "permission", "permission denied"),
        (argv(&["echo", &long]), "too_large", "131071"),
        (argv(&[]), "invalid", "no program"),
        (argv(&["a\0b"]), "invalid", "null byte"),
    ];
    for (command, kind, message) in cases {
        let exec = Exec { command, ..guest.exec("") };
        let failure = guest.client.try_run(exec).unwrap_err();
        assert!(failure.kind == kind && failure.message.contains(message), "{failure:?}");
    }
    let exec = Exec { command: argv(&["echo", &long[1..]]), ..guest.exec("") };
    assert_eq!(guest.client.run(exec).stdout.len(), 131_072);
}

#[test]
fn a_file_that_is_no_program_is_run_by_the_shell() {
    let mut guest = Guest::start();
    std::fs::write(guest.path("script"), "echo $0 $1").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(guest.path("script"), mode).unwrap();
    let command = CommandSpec::Argv(vec!["./script".into(), "one".into()]);
    let exec = Exec { command, ..guest.exec("") };
    assert_eq!(guest.client.run(exec).stdout, "./script one\n");
}

#[test]
fn the_working_directory_is_where_it_should_be_or_says_why_not() {
    let mut guest = Guest::start();
    std::fs::create_dir(guest.path("in")).unwrap();
    std::os::unix::fs::symlink("/", guest.path("in/out")).unwrap();
    std::os::unix::fs::symlink("in", guest.path("also")).unwrap();
    std::fs::write(guest.path("file"), "").unwrap();
    let top = guest.path("");
    let top = top.trim_end_matches('/');
    let cases = [
        ("in", None, Ok("in")),
        ("in", Some(""), Ok("in")),
        ("also", Some(""), Ok("in")),
        ("in/out", None, Ok("/")),
        ("in/out", Some(""), Err(("permission", "held beneath"))),
        ("nowhere", None, Err(("not_found", "not found"))),
        ("nowhere", Some(""), Err(("not_found", "not found"))),
        ("file", None, Err(("not_directory", "is not a directory"))),
        ("file", Some(""), Err(("not_directory", "is not a directory"))),
        ("", Some("/in"), Err(("permission", "is not below"))),
    ];
    for (path, beneath, expected) in cases {
        let cwd = Location {
            path: format!("{top}/{path}").trim_end_matches('/').to_owned(),
            beneath: beneath.map(|beneath| format!("{top}{beneath}")),
        };
        let exec = Exec { cwd, command: CommandSpec::Shell("pwd -P".into()), ..guest.exec("") };
        match (guest.client.try_run(exec), expected) {
            (Ok(outcome), Ok("/")) => assert_eq!(outcome.stdout, "/\n"),
            (Ok(outcome), Ok(end)) => assert_eq!(outcome.stdout, format!("{top}/{end}\n")),
            (Err(failure), Err((kind, message))) => {
                assert!(failure.kind == kind && failure.message.contains(message), "{path}: {failure:?}");
            }
            (result, _) => panic!("{path} below {beneath:?}: {result:?}"),
        }
    }
}

#[test]
fn another_user_is_refused_where_users_can_not_be_changed() {
    let mut guest = Guest::start();
    let exec = Exec { user: Some("root".into()), ..guest.exec("id") };
    assert_eq!(guest.client.try_run(exec).unwrap_err().kind, "unsupported");
    let exec = Exec { user: Some("user".into()), ..guest.exec("true") };
    assert_eq!(guest.client.run(exec).status, Status::Exited(0));
}

#[test]
fn input_reaches_the_command_and_ends() {
    let mut guest = Guest::start();
    let exec = Exec { stdin: true, ..guest.exec("tr a-z A-Z; echo end") };
    let call = guest.client.begin(&Request::Exec(exec));
    guest.client.send(Kind::Data, call, CHANNEL_MAIN, b"some ");
    guest.client.send(Kind::Data, call, CHANNEL_MAIN, b"words\n");
    guest.client.send(Kind::End, call, CHANNEL_MAIN, &[]);
    assert_eq!(guest.client.collect(call).unwrap().stdout, "SOME WORDS\nend\n");
    assert_eq!(guest.run("cat; echo end").stdout, "end\n");
}

#[test]
fn input_that_nobody_reads_does_not_hold_the_command() {
    let mut guest = Guest::start();
    let exec = Exec { stdin: true, ..guest.exec("exec <&-; echo closed; sleep 0.1") };
    let call = guest.client.begin(&Request::Exec(exec));
    for _ in 0..4 {
        guest.client.send(Kind::Data, call, CHANNEL_MAIN, &[b'x'; 60_000]);
    }
    assert_eq!(guest.client.collect_ignoring_credit(call), Status::Exited(0));
}

#[test]
fn more_input_than_was_granted_breaks_the_connection() {
    let guest = Guest::start();
    let mut client = guest.connect();
    let exec = Exec { stdin: true, ..guest.exec("sleep 60") };
    let call = client.begin(&Request::Exec(exec));
    for _ in 0..5 {
        client.send(Kind::Data, call, CHANNEL_MAIN, &[0; 60_000]);
    }
    let refusal = loop {
        let frame = client.next_of_any().expect("a refusal");
        if frame.header.call == 0 {
            break frame;
        }
    };
    assert_eq!(refusal.header.kind, Kind::Failure);
    assert!(decode::<Failure>(&refusal.payload).unwrap().message.contains("beyond what was granted"));
    assert_eq!(client.next_of_any(), None);
}

#[test]
fn e1_a_reader_who_stops_stops_that_command_and_nothing_else() {
    a_reader_who_stops(64);
}

mod soak {
    #[test]
    #[ignore = "cargo xtask soak floods"]
    fn e1_a_reader_who_stops_a_gigabyte_stops_that_command_and_nothing_else() {
        super::a_reader_who_stops(1024);
    }
}

fn a_reader_who_stops(megabytes: usize) {
    let mut guest = Guest::start();
    let exec = guest.exec(&format!("head -c {megabytes}M /dev/zero; head -c {megabytes}M /dev/zero >&2"));
    let flood = guest.client.begin(&Request::Exec(exec));
    // Nothing is granted: the window fills, and the command waits.
    let mut received = 0;
    while received < WINDOW as usize {
        let frame = guest.client.next_of(flood);
        if frame.header.kind == Kind::Data {
            received += frame.payload.len();
        }
    }
    assert_eq!(received, WINDOW as usize);
    assert_eq!(guest.run("echo still here").stdout, "still here\n");
    assert_eq!(guest.client.call(&Request::Ping), Ok(Reply::Done));
    guest.client.send(Kind::Credit, flood, CHANNEL_STDOUT, &WINDOW.to_le_bytes());
    let reply = guest.client.finish_with(flood, |frame| received += frame.payload.len());
    assert_eq!(reply, Ok(Reply::Exited(Status::Exited(0), None)));
    assert_eq!(received, (2 * megabytes) << 20);
    let status = std::fs::read_to_string(format!("/proc/{}/status", guest.process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 32 * 1024, "the guest's memory grew to {peak} KiB");
}

#[test]
fn e1_the_bytes_arrive_untouched() {
    let mut guest = Guest::start();
    let exec = guest.exec(r"printf 'a\000\377\nb'");
    let call = guest.client.begin(&Request::Exec(exec));
    let mut bytes = Vec::new();
    let reply = guest.client.finish_with(call, |frame| {
        if frame.header.kind == Kind::Data {
            bytes.extend_from_slice(&frame.payload);
        }
    });
    assert_eq!((reply, bytes), (Ok(Reply::Exited(Status::Exited(0), None)), b"a\0\xff\nb".to_vec()));
}

#[test]
fn what_was_written_last_waits_for_the_reader_and_the_answer_comes_after_it() {
    let mut guest = Guest::start();
    // 64 KiB more than the window: they stay in the pipe when the command ends.
    let bytes = WINDOW + 65_536;
    let exec = guest.exec(&format!("head -c {bytes} /dev/zero"));
    let call = guest.client.begin(&Request::Exec(exec));
    let mut received = 0;
    while received < WINDOW as usize {
        received += guest.client.next_data_of(call).payload.len();
    }
    // The command has ended by now or will soon; a ping is answered, the call is not.
    assert_eq!(guest.client.call(&Request::Ping), Ok(Reply::Done));
    guest.client.send(Kind::Credit, call, CHANNEL_STDOUT, &10_u32.to_le_bytes());
    assert_eq!(guest.client.next_data_of(call).payload.len(), 10);
    guest.client.send(Kind::Credit, call, CHANNEL_STDOUT, &WINDOW.to_le_bytes());
    let mut rest = 0;
    let reply = guest.client.finish_with(call, |frame| rest += frame.payload.len());
    assert_eq!((reply, rest), (Ok(Reply::Exited(Status::Exited(0), None)), 65_526));
}

#[test]
fn e6_two_hundred_commands_at_once_are_independent() {
    let mut guest = Guest::start();
    let calls: Vec<u32> = (0..200)
        .map(|index| {
            let exec =
                guest.exec(&format!("echo {index}; echo e{index} >&2; sleep 0.05; exit {}", index % 100));
            guest.client.begin(&Request::Exec(exec))
        })
        .collect();
    for (index, call) in calls.into_iter().enumerate() {
        let outcome = guest.client.collect(call).unwrap();
        assert_eq!(outcome.status, Status::Exited(index as i32 % 100));
        assert_eq!((outcome.stdout, outcome.stderr), (format!("{index}\n"), format!("e{index}\n")));
    }
}

#[test]
fn a_terminal_echoes_resizes_and_ends() {
    let mut guest = Guest::start();
    let script = "tty >/dev/null && echo $TERM; trap 'stty size; exit 0' WINCH; echo ready; while read -r line; \
                  do echo got $line; done; stty size; exit 7";
    let terminal = Some(Terminal { rows: 24, cols: 80 });
    let exec = Exec { stdin: true, terminal, ..guest.exec(script) };
    let call = guest.client.begin(&Request::Exec(exec));
    guest.client.read_until(call, "ready\r\n");
    guest.client.send(Kind::Data, call, CHANNEL_MAIN, b"hello\n");
    guest.client.read_until(call, "hello\r\ngot hello\r\n");
    guest.client.control(call, Control::Resize(Terminal { rows: 30, cols: 100 }));
    guest.client.send(Kind::End, call, CHANNEL_MAIN, &[]);
    let outcome = guest.client.collect(call).unwrap();
    assert!(outcome.stdout.contains("30 100\r\n"), "{outcome:?}");
}

#[test]
fn a_signal_goes_to_the_terminals_foreground_group() {
    let mut guest = Guest::start();
    let terminal = Some(Terminal { rows: 24, cols: 80 });
    let exec = Exec {
        stdin: true,
        terminal,
        ..guest.exec("trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done")
    };
    let call = guest.client.begin(&Request::Exec(exec));
    guest.client.read_until(call, "ready\r\n");
    guest.client.control(call, Control::Signal(2));
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Exited(9));
}

#[test]
fn everything_that_a_terminal_said_arrives_before_the_answer() {
    let mut guest = Guest::start();
    for _ in 0..20 {
        let terminal = Some(Terminal { rows: 24, cols: 80 });
        let exec = Exec { terminal, ..guest.exec("seq 1 500") };
        let outcome = guest.client.run(exec);
        assert!(outcome.stdout.ends_with("500\r\n"), "{outcome:?}");
    }
}

#[test]
fn a_signal_goes_to_the_commands_group() {
    let mut guest = Guest::start();
    let exec = guest.exec("trap 'echo caught; exit 4' USR1; echo ready; while :; do sleep 0.01; done");
    let call = guest.client.begin(&Request::Exec(exec));
    guest.client.read_until(call, "ready\n");
    guest.client.control(call, Control::Signal(10));
    let outcome = guest.client.collect(call).unwrap();
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Status::Exited(4), "caught\n"));
}

#[test]
fn a_port_is_dialled_and_each_half_closes_by_itself() {
    use std::io::{Read, Write};
    let mut guest = Guest::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        stream.read_to_string(&mut request).unwrap();
        stream.write_all(format!("you said {request}").as_bytes()).unwrap();
    });
    let call = guest.client.begin(&Request::Dial(port));
    assert_eq!(guest.client.next_of(call).header.kind, Kind::Event);
    guest.client.send(Kind::Data, call, CHANNEL_MAIN, b"hello");
    guest.client.send(Kind::End, call, CHANNEL_MAIN, &[]);
    let mut answer = Vec::new();
    let reply = guest.client.finish_with(call, |frame| answer.extend_from_slice(&frame.payload));
    assert_eq!((reply, answer), (Ok(Reply::Done), b"you said hello".to_vec()));
    server.join().unwrap();
    let failure = guest.client.call(&Request::Dial(port)).unwrap_err();
    assert_eq!(failure.kind, "unavailable");
    assert_eq!(failure.message, format!("nothing listens on port {port}"));
}

#[test]
fn a_port_on_ipv6_loopback_is_found_too() {
    let listener = std::net::TcpListener::bind("[::1]:0").expect("the host has IPv6 on its loopback");
    let mut guest = Guest::start();
    let call = guest.client.begin(&Request::Dial(listener.local_addr().unwrap().port()));
    let (stream, _) = listener.accept().unwrap();
    drop(stream);
    guest.client.send(Kind::End, call, CHANNEL_MAIN, &[]);
    assert_eq!(guest.client.finish(call), Ok(Reply::Done));
}
