//! Whole process trees: what survives a command, and what does not survive its kill.
#![cfg(feature = "program")]
#![allow(clippy::unwrap_used)]

mod program_client;

use std::time::{Duration, Instant};

use eyot_guest::protocol::*;
use program_client::*;

/// Leaves a child that ignores SIGTERM, one in a session of its own, and one that was forked twice;
/// each writes its number to the file `pids`.
const SCATTER: &str = "
    spawn() { sh -c 'trap \"\" TERM HUP INT; echo $$ >>pids; while :; do sleep 1; done'; }
    spawn & setsid sh -c 'echo $$ >>pids; exec sleep 600' &
    (setsid sh -c '(echo $$; exec sleep 600) >>pids & sh -c \"echo \\$\\$ >>pids; exec sleep 600\" &' &)
    echo $$ >>pids; wait; sleep 600";

fn scattered(guest: &mut Guest) -> (u32, Vec<u32>) {
    let exec = guest.exec(SCATTER);
    let call = guest.client.begin(&Request::Exec(exec));
    (call, pids_in(&guest.path("pids"), 5))
}

fn assert_all_dead(pids: &[u32]) {
    for pid in pids {
        assert!(!is_alive(*pid), "{pid} of {pids:?} lives");
    }
}

#[test]
fn k13_a_kill_reaches_the_whole_tree_before_the_answer() {
    let mut guest = Guest::start();
    let (call, pids) = scattered(&mut guest);
    guest.client.control(call, Control::Kill);
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    assert_all_dead(&pids);
}

#[test]
fn k13_a_cancelled_command_is_answered_for_when_its_tree_is_dead() {
    let mut guest = Guest::start();
    let (call, pids) = scattered(&mut guest);
    guest.client.send(Kind::Cancel, call, 0, &[]);
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    assert_all_dead(&pids);
}

#[test]
fn k13_a_lost_connection_kills_its_commands_and_no_others() {
    let mut guest = Guest::start();
    let exec = guest.exec("echo $$ >>pids; (setsid sleep 600 & echo $! >>pids); sleep 600");
    let mut second = guest.connect();
    second.begin(&Request::Exec(exec));
    let pids = pids_in(&guest.path("pids"), 2);
    let started = second.start(guest.exec("exec sleep 600"));
    drop(second);
    wait_until("the tree is dead", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
    assert!(is_alive(started.pid));
    assert_eq!(guest.run("echo fine").stdout, "fine\n");
}

#[test]
fn k13_a_background_child_that_holds_the_pipes_delays_nothing_and_survives() {
    let mut guest = Guest::start();
    let begun = Instant::now();
    let outcome = guest.run("(while :; do echo more; sleep 0.01; done) & echo $!; exit 5");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(outcome.status, Status::Exited(5));
    let child: u32 = outcome.stdout.lines().find_map(|line| line.parse().ok()).unwrap();
    // It writes on without a reader, and neither blocks nor dies of it: 64 KiB take it a while, so
    // it writes more.
    assert_eq!(guest.run("sleep 0.3").status, Status::Exited(0));
    assert!(is_alive(child));
    let flood = guest.run("(yes | head -c 10000000; echo done >flooded) & true");
    assert_eq!(flood.status, Status::Exited(0));
    wait_until("the flood has passed", || std::fs::read(guest.path("flooded")).ok());
}

#[test]
fn k13_a_fork_bomb_dies() {
    let mut guest = Guest::start();
    let bomb = "bomb() { sleep 600 & [ $1 -gt 0 ] && { bomb $(($1 - 1)) & bomb $(($1 - 1)) & }; wait; }; \
                echo up >>up; bomb 5";
    let exec = guest.exec(bomb);
    let call = guest.client.begin(&Request::Exec(exec));
    wait_until("it goes off", || std::fs::read(guest.path("up")).ok());
    guest.client.control(call, Control::Kill);
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    assert_eq!(usage(&mut guest).processes, 0);
}

#[test]
fn k13_a_reaper_that_is_killed_from_inside_saves_nobody() {
    let mut guest = Guest::start();
    // The shell's parent is the reaper. Whoever kills it dies with all that it left.
    let exec = guest.exec(
        "echo $$ >>pids; setsid sh -c 'echo $$ >>pids; exec sleep 600' & \
         while [ $(wc -l <pids) -lt 2 ]; do sleep 0.01; done; kill -KILL $PPID; sleep 600",
    );
    let call = guest.client.begin(&Request::Exec(exec));
    let pids = pids_in(&guest.path("pids"), 2);
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    assert_all_dead(&pids);
    assert_eq!(guest.run("echo fine").stdout, "fine\n");
}

#[test]
fn k13_reapers_that_are_killed_at_any_moment_leave_no_call_unanswered() {
    let mut guest = Guest::start();
    guest.run("true");
    let before = settled_descriptors(&mut guest);
    let children = format!("/proc/{0}/task/{0}/children", guest.process.id());
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Until the other end is dropped.
            while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                let found = std::fs::read_to_string(&children).unwrap_or_default();
                let pids = found.split_ascii_whitespace();
                // It fails when they are gone already.
                let kill = std::process::Command::new("kill").arg("-9").args(pids).output();
                kill.unwrap();
            }
        });
        let over = over;
        let calls: Vec<u32> = (0..300)
            .map(|_| {
                let exec = guest.exec("sleep 0.02; echo survived");
                guest.client.begin(&Request::Exec(exec))
            })
            .collect();
        for call in calls {
            match guest.client.collect(call) {
                Ok(Outcome { status: Status::Exited(0), stdout, .. }) => assert_eq!(stdout, "survived\n"),
                Ok(outcome) => assert_eq!(outcome.status, Status::Signaled(9)),
                Err(failure) => assert_eq!(failure.kind, "unavailable"),
            }
        }
        drop(over);
    });
    wait_until("no descriptor is left", || (settled_descriptors(&mut guest) <= before).then_some(()));
    assert_eq!(guest.run("echo fine").stdout, "fine\n");
}

#[test]
fn k13_a_reaper_that_is_stopped_from_inside_still_lets_its_tree_be_killed() {
    let mut guest = Guest::start();
    let exec = guest.exec("echo $$ >>pids; kill -STOP $PPID; sleep 600");
    let call = guest.client.begin(&Request::Exec(exec));
    let pids = pids_in(&guest.path("pids"), 1);
    guest.client.control(call, Control::Kill);
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    assert_all_dead(&pids);
}

#[test]
fn k7_neither_the_guest_nor_its_reapers_can_be_read_from_a_command() {
    let mut guest = Guest::start();
    let own = std::fs::metadata(format!("/proc/{}/mem", guest.process.id())).unwrap();
    // Files in /proc of what is not dumpable belong to root whoever runs it.
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&own), 0);
    let outcome = guest.run("cat /proc/$PPID/comm; ls /proc/$PPID/task | wc -l");
    assert_eq!(outcome.stdout, "eyot-reaper\n1\n");
}

/// Returns the number of descriptors of the guest; `None` to everybody but root, who alone may look
/// (it is not dumpable). The other assertions of these tests hold for everybody.
fn descriptors(guest: &Guest) -> Option<usize> {
    let found = std::fs::read_dir(format!("/proc/{}/fd", guest.process.id()));
    found.ok().map(Iterator::count)
}

/// The guest's descriptors when no command runs.
fn settled_descriptors(guest: &mut Guest) -> Option<usize> {
    wait_until("nothing is left", || (usage(guest).processes == 0).then_some(()));
    descriptors(guest)
}

#[test]
fn hundreds_of_commands_leave_nothing_behind_in_the_guest() {
    let mut guest = Guest::start();
    guest.run("true");
    let before = settled_descriptors(&mut guest);
    for _ in 0..300 {
        guest.run("true");
    }
    wait_until("all are gone", || (descriptors(&guest) <= before).then_some(()));
    wait_until("no reaper is left", || reapers(&guest).is_empty().then_some(()));
}

/// Returns the reaper of a command that does this: its parent.
fn reaper_of(guest: &mut Guest, line: &str) -> u32 {
    let outcome = guest.run(&format!("echo $PPID; {line}"));
    outcome.stdout.lines().next().unwrap().parse().unwrap()
}

#[test]
fn the_reaper_of_a_command_that_left_nothing_serves_the_next_one_and_then_ends() {
    let mut guest = Guest::start();
    let reaper = reaper_of(&mut guest, "true");
    assert_eq!([reaper_of(&mut guest, "exit 3"), reaper_of(&mut guest, "sh -c true")], [reaper; 2]);
    let calls: Vec<u32> = (0..8)
        .map(|_| {
            let exec = guest.exec("sleep 0.1");
            guest.client.begin(&Request::Exec(exec))
        })
        .collect();
    for call in calls {
        assert_eq!(guest.client.collect(call).unwrap().status, Status::Exited(0));
    }
    wait_until("two are left", || (reapers(&guest).len() <= 2).then_some(()));
    assert_eq!(usage(&mut guest).processes, 0);
    wait_until("none is left", || reapers(&guest).is_empty().then_some(()));
    assert_eq!(guest.run("echo fine").stdout, "fine\n");
}

#[test]
fn a_reaper_that_had_more_than_a_commands_own_end_serves_no_other() {
    let mut guest = Guest::start();
    let left = reaper_of(&mut guest, "sleep 600 >/dev/null 2>&1 &");
    assert_ne!(reaper_of(&mut guest, "true"), left);
    let signalled = reaper_of(&mut guest, "kill -40 $PPID");
    assert_ne!(reaper_of(&mut guest, "true"), signalled);
    let exec = guest.exec("echo $PPID; exec sleep 600");
    let call = guest.client.begin(&Request::Exec(exec));
    let killed: u32 = guest.client.read_until(call, "\n").trim().parse().unwrap();
    guest.client.control(call, Control::Kill);
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    assert_ne!(reaper_of(&mut guest, "true"), killed);
    let refused = guest.exec("true");
    let refused = Exec { command: CommandSpec::Argv(vec!["/nowhere".into()]), ..refused };
    assert_eq!(guest.client.try_run(refused).unwrap_err().kind, "not_found");
    assert_eq!(guest.run("echo fine").stdout, "fine\n");
}

#[test]
fn a_waiting_reaper_that_is_stopped_or_killed_costs_no_command() {
    let mut guest = Guest::start();
    for signal in ["-STOP", "-KILL"].into_iter().cycle().take(100) {
        let reaper = reaper_of(&mut guest, "true").to_string();
        // The next command may come before the guest knows.
        let sent = std::process::Command::new("kill").args([signal, &reaper]).status().unwrap();
        assert!(sent.success(), "{signal}");
        assert_eq!(guest.run("echo fine").stdout, "fine\n", "{signal}");
    }
}

#[test]
fn commands_that_run_on_keep_no_more_descriptors_than_the_ends_that_are_read() {
    let mut guest = Guest::start();
    guest.run("true");
    let before = settled_descriptors(&mut guest);
    for _ in 0..20 {
        guest.client.start(guest.exec("exec sleep 600"));
        let exec = guest.exec("exec sleep 600");
        guest.client.begin(&Request::Exec(exec));
    }
    wait_until("they hold two each", || {
        (descriptors(&guest) <= before.map(|before| before + 80)).then_some(())
    });
}

#[test]
fn no_output_is_called_open_for_what_starts_beside_it() {
    let mut guest = Guest::start();
    let calls: Vec<u32> = (0..120)
        .map(|number| {
            let exec = guest.exec(if number % 2 == 0 { "echo out; echo err >&2" } else { "exec >&- 2>&-" });
            guest.client.begin(&Request::Exec(exec))
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        let outcome = guest.client.collect(call).unwrap();
        let (stdout, stderr) = if number % 2 == 0 { ("out\n", "err\n") } else { ("", "") };
        assert_eq!((&*outcome.stdout, &*outcome.stderr, outcome.output_open), (stdout, stderr, false));
    }
}

/// Traces the process with the number in the file `victim`, tells so in the file `traced`, and
/// never waits for it.
const TRACER: &str = r#"
    use Time::HiRes "sleep";
    sub victim { open(my $file, "<", "victim") or return; my $line = <$file>; $line // "" }
    sleep 0.01 until victim() =~ /^(\d+)\n/;
    my $pid = victim() + 0;
    # PTRACE_SEIZE, with PTRACE_O_TRACEEXIT where the first argument says so.
    my $result = syscall(101, 0x4206, $pid, 0, $ARGV[0] + 0);
    open(my $file, ">", "traced"); print $file "$result $!\n"; close $file;
    sleep 600;
"#;

#[test]
fn k13_a_tracer_in_another_command_does_not_keep_a_killed_one() {
    for options in ["0", "64"] {
        let mut guest = Guest::start();
        let argv = ["perl", "-e", TRACER, options].map(str::to_owned).to_vec();
        let tracer = guest.client.start(Exec { command: CommandSpec::Argv(argv), ..guest.exec("") });
        let exec = guest.exec("echo $$ >victim; exec sleep 600");
        let call = guest.client.begin(&Request::Exec(exec));
        let traced = wait_until("it is traced", || {
            std::fs::read_to_string(guest.path("traced")).ok().filter(|text| text.ends_with('\n'))
        });
        assert!(traced.starts_with("0 "), "{traced}");
        let begun = Instant::now();
        guest.client.control(call, Control::Kill);
        assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert!(!is_alive(tracer.pid));
    }
}

#[test]
fn a_tracer_in_another_command_that_lets_go_lives() {
    let mut guest = Guest::start();
    // PTRACE_SEIZE, then wait4 with __WALL until there is nobody left.
    let script = "syscall(101, 0x4206, $ARGV[0] + 0, 0, 0) == 0 or die $!; print \"traced\\n\"; \
                  1 while syscall(61, -1, 0, 0x40000000, 0) > 0; open(F, '>', 'gone'); close F; sleep 600";
    let exec = guest.exec("echo $$ >>pids; exec sleep 600");
    let call = guest.client.begin(&Request::Exec(exec));
    let pid = pids_in(&guest.path("pids"), 1)[0].to_string();
    let argv = ["perl", "-e", &format!("$| = 1; {script}"), &pid].map(str::to_owned).to_vec();
    let tracer = guest.client.start(Exec { command: CommandSpec::Argv(argv), ..guest.exec("") });
    wait_until("it is traced", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.contains(&format!("TracerPid:\t{}\n", tracer.pid)).then_some(())
    });
    guest.client.control(call, Control::Kill);
    assert_eq!(guest.client.collect(call).unwrap().status, Status::Signaled(9));
    wait_until("the tracer has noticed", || std::fs::metadata(guest.path("gone")).ok());
    assert!(is_alive(tracer.pid));
}

fn usage(guest: &mut Guest) -> UsageRecord {
    match guest.client.call(&Request::Usage) {
        Ok(Reply::Usage(record)) => record,
        other => panic!("{other:?} to usage"),
    }
}

#[test]
fn usage_counts_the_commands_and_not_the_reapers() {
    let mut guest = Guest::start();
    let begun = Instant::now();
    let started = guest.client.start(guest.exec("exec sleep 600"));
    guest.run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    let record = wait_until("one is left", || Some(usage(&mut guest)).filter(|record| record.processes == 1));
    assert!(record.memory_bytes > 0 && record.cpu_ms > 0, "{record:?}");
    assert!(u128::from(record.uptime_ms) <= begun.elapsed().as_millis() + 5000);
    assert_eq!(guest.client.call(&Request::Kill(started.id, None)), Ok(Reply::Done));
}
