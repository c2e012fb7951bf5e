//! The guest as PID 1 of a namespace, and the guest that changes users.
#![allow(clippy::unwrap_used)]

mod program_client;

use std::os::unix::fs::{MetadataExt, chown};

use eyot_guest::protocol::*;
use libtest_mimic::{Arguments, Trial};
use program_client::*;

/// A case's name, and what it is.
type Case = (&'static str, fn());

/// The guest as PID 1, in a namespace that `unshare` makes.
const AS_INIT: [Case; 5] = [
    ("k7_nothing_inside_can_end_or_stop_the_guest", k7_nothing_inside_can_end_or_stop_the_guest),
    (
        "k13_whoever_kills_everything_kills_the_reapers_too_and_nothing_escapes",
        k13_whoever_kills_everything_kills_the_reapers_too_and_nothing_escapes,
    ),
    (
        "k11_signals_that_are_sent_to_the_guest_do_not_pile_up",
        k11_signals_that_are_sent_to_the_guest_do_not_pile_up,
    ),
    ("a_process_inside_is_no_client", a_process_inside_is_no_client),
    ("shutdown_ends_the_whole_namespace", shutdown_ends_the_whole_namespace),
];

/// The guest that changes users, which takes root.
const SWITCHING: [Case; 4] = [
    (
        "commands_and_their_pipes_and_terminals_belong_to_the_user",
        commands_and_their_pipes_and_terminals_belong_to_the_user,
    ),
    (
        "another_user_keeps_the_capabilities_that_it_was_given_and_no_more",
        another_user_keeps_the_capabilities_that_it_was_given_and_no_more,
    ),
    (
        "files_belong_to_the_user_and_what_is_not_the_users_is_refused",
        files_belong_to_the_user_and_what_is_not_the_users_is_refused,
    ),
    ("k11_the_limit_of_processes_holds_and_is_named", k11_the_limit_of_processes_holds_and_is_named),
];

fn main() {
    let trial = |(name, case): Case| {
        Trial::test(name, move || {
            case();
            Ok(())
        })
    };
    let is_root =
        tempfile::tempdir().is_ok_and(|own| std::fs::metadata(own.path()).is_ok_and(|of| of.uid() == 0));
    let switching = |case: Case| {
        if is_root {
            trial(case)
        } else {
            trial(case).with_kind("only root can change users").with_ignored_flag(true)
        }
    };
    let trials = AS_INIT.into_iter().map(trial).chain(SWITCHING.into_iter().map(switching)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn k7_nothing_inside_can_end_or_stop_the_guest() {
    let mut guest = Guest::start_as_init();
    let outcome = guest
        .run("cat /proc/1/comm; for signal in KILL STOP TERM SEGV 33 64; do kill -$signal 1; done; echo $?");
    assert_eq!(outcome.stdout, "eyot-guest\n0\n");
    assert_eq!(guest.run("echo alive").stdout, "alive\n");
}

fn k13_whoever_kills_everything_kills_the_reapers_too_and_nothing_escapes() {
    let mut guest = Guest::start_as_init();
    let other = guest.client.begin(&Request::Exec(guest.exec("sleep 600")));
    let exec = guest.exec("(setsid sleep 600 &); kill -KILL -1; sleep 600");
    let call = guest.client.begin(&Request::Exec(exec));
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    assert_eq!(guest.client.collect(other).unwrap().status, Status::Signaled(9));
    let outcome = guest.run("set -- /proc/[0-9]*; echo $#");
    // The guest, the reaper and the shell.
    assert_eq!(outcome.stdout, "3\n");
}

fn k11_signals_that_are_sent_to_the_guest_do_not_pile_up() {
    let mut guest = Guest::start_as_init();
    let outcome = guest.run(
        "i=0; while [ $i -lt 2000 ]; do kill -40 1; i=$((i+1)); done; grep SigQ /proc/1/status; ulimit -i; \
         ulimit -Hi; kill -40 $PPID; kill -40 $PPID; grep SigPnd /proc/1/status /proc/$PPID/status",
    );
    // The reaper is nothing special to the kernel, and must survive.
    let expected = "SigQ:\t0/1024\n1024\n1024\n/proc/1/status:SigPnd:\t0000000000000000\n";
    assert!(outcome.stdout.starts_with(expected), "{outcome:?}");
    assert_eq!(guest.run("echo alive").stdout, "alive\n");
}

fn a_process_inside_is_no_client() {
    let mut guest = Guest::start_as_init();
    let script = "use IO::Socket::UNIX; my $socket = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die $!; \
                  my $count = sysread($socket, my $bytes, 1); print defined $count ? \"read $count\" : $!";
    let argv = ["perl", "-e", script, &guest.path("guest.sock")].map(str::to_owned).to_vec();
    let exec = Exec { command: CommandSpec::Argv(argv), ..guest.exec("") };
    assert_eq!(guest.client.run(exec).stdout, "read 0");
    assert_eq!(guest.connect().call(&Request::Ping), Ok(Reply::Done));
}

fn shutdown_ends_the_whole_namespace() {
    let mut guest = Guest::start_as_init();
    let exec =
        guest.exec("(setsid sh -c 'trap \"\" TERM; echo up >>up; while :; do sleep 1; done' &); sleep 600");
    guest.client.begin(&Request::Exec(exec));
    wait_until("it runs", || std::fs::read(guest.path("up")).ok());
    assert_eq!(guest.client.call(&Request::Shutdown), Ok(Reply::Done));
    assert!(guest.wait_for_end().success());
}

/// A guest that is root and runs everything as somebody else.
fn guest_that_switches_users() -> Guest {
    let guest = Guest::start_with(|config| {
        config.switch_user = true;
        config.users = vec![Identity { name: "root".into(), capabilities: 1, ..config.user.clone() }];
        config.user = Identity { uid: 1000, gid: 1000, ..config.user.clone() };
    });
    chown(guest.directory.path(), Some(1000), Some(1000)).unwrap();
    guest
}

fn commands_and_their_pipes_and_terminals_belong_to_the_user() {
    let mut guest = guest_that_switches_users();
    let script = "id -u; id -g; id -G; grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | sort -u -k2 | cut -f2; \
                  stat -L -c %u /proc/self/fd/1; echo again >/dev/stderr";
    let outcome = guest.run(script);
    assert_eq!(outcome.stdout, "1000\n1000\n1000\n0000000000000000\n1000\n");
    assert_eq!(outcome.stderr, "again\n");
    let terminal = Some(Terminal { rows: 24, cols: 80 });
    let exec = Exec {
        terminal,
        ..guest.exec("stat -L -c %u /proc/self/fd/0; tty >/dev/null && echo yes >/dev/tty")
    };
    assert_eq!(guest.client.run(exec).stdout, "1000\r\nyes\r\n");
}

fn another_user_keeps_the_capabilities_that_it_was_given_and_no_more() {
    let mut guest = guest_that_switches_users();
    let script = "id -u; grep CapEff /proc/self/status; echo $USER";
    let exec = Exec { user: Some("root".into()), ..guest.exec(script) };
    let outcome = guest.client.run(exec);
    assert!(outcome.stdout.starts_with("0\n") && outcome.stdout.ends_with("root\n"), "{outcome:?}");
    let exec = Exec { user: Some("nobody".into()), ..guest.exec("id") };
    assert_eq!(guest.client.try_run(exec).unwrap_err().kind, "not_found");
}

fn files_belong_to_the_user_and_what_is_not_the_users_is_refused() {
    let mut guest = guest_that_switches_users();
    let file = Location { path: guest.path("mine"), beneath: None };
    let how = WriteParameters { mode: 0, permissions: None, max_bytes: None };
    let call = guest.client.begin(&Request::Write(file, how));
    guest.client.send(Kind::End, call, CHANNEL_MAIN, &[]);
    assert_eq!(guest.client.finish(call), Ok(Reply::Size(0)));
    assert_eq!(std::fs::metadata(guest.path("mine")).unwrap().uid(), 1000);
    std::fs::create_dir_all(guest.path("closed/below")).unwrap();
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(guest.path("closed"), closed).unwrap();
    // What serves files is the user's equal for files alone: nobody inside may signal it or change
    // its limits.
    let stranger = guest.run(&format!(
        "kill -0 {0}; for t in /proc/{0}/task/*; do kill -0 ${{t##*/}} && echo may; done",
        guest.process.id()
    ));
    assert_eq!(stranger.stdout, "");
    let listed = guest.client.call(&Request::List(Location { path: guest.path("closed"), beneath: None }));
    assert_eq!(listed.unwrap_err().kind, "permission");
    for beneath in [None, Some(guest.path("closed"))] {
        let cwd = Location { path: guest.path("closed/below"), beneath };
        let exec = Exec { cwd, ..guest.exec("pwd") };
        assert_eq!(guest.client.try_run(exec).unwrap_err().kind, "permission");
    }
}

fn k11_the_limit_of_processes_holds_and_is_named() {
    // Nobody else runs as this one, so that the limit counts this sandbox alone.
    let nobodys = 100_000 + std::process::id();
    let mut guest = Guest::start_with(|config| {
        config.switch_user = true;
        config.max_processes = Some(12);
        config.user = Identity { uid: nobodys, gid: nobodys, ..config.user.clone() };
    });
    chown(guest.directory.path(), Some(nobodys), Some(nobodys)).unwrap();
    let starts = (0..20).map(|_| guest.exec("exec sleep 600")).collect::<Vec<_>>();
    let replies: Vec<_> = starts.into_iter().map(|exec| guest.client.call(&Request::Start(exec))).collect();
    let refused = replies.iter().filter_map(|reply| reply.as_ref().err()).collect::<Vec<_>>();
    assert!(
        (7..=8).contains(&refused.len()) && refused.iter().all(|failure| failure.kind == "quota"),
        "{refused:?}"
    );
    let Some(Ok(Reply::Process(first))) = replies.first() else { panic!("{replies:?}") };
    assert_eq!(guest.client.call(&Request::Kill(first.id, None)), Ok(Reply::Done));
    wait_until("there is room again", || guest.client.try_run(guest.exec("true")).ok());
}
