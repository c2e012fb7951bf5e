//! Real terminals: `sh` and `exec -it` on a pseudo-terminal whose other end the test holds.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::machine::Machine;

/// The program on a terminal.
struct Terminal {
    ours: File,
    theirs: OwnedFd,
    child: Child,
    seen: String,
}

impl Terminal {
    fn open(machine: &Machine, arguments: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        let theirs = open();
        tcsetwinsize(&theirs, Winsize { ws_row: 33, ws_col: 77, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = machine.command(arguments);
        command.env("TERM", "xterm-256color");
        command.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.spawn().unwrap();
        Self { ours: ours.into(), theirs: theirs.into(), child, seen: String::new() }
    }

    fn send(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until the screen has shown `text` since the last time.
    fn expect(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.read_more(), "the terminal showed {:?} and not {text:?}", self.seen);
        }
        let end = self.seen.find(text).unwrap() + text.len();
        self.seen.drain(..end);
    }

    /// Reads more of the screen. Returns `false` if nothing appeared before the deadline.
    fn read_more(&mut self) -> bool {
        let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
        let mut asked = [PollFd::new(&self.ours, PollFlags::IN)];
        if poll(&mut asked, Some(&patience)).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        let count = self.ours.read(&mut buffer).unwrap_or_default();
        self.seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        count > 0
    }

    /// Returns the program's exit code.
    fn code(&mut self) -> Option<i32> {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the program does not end; the terminal showed {:?}", self.seen);
    }

    fn is_cooked(&self) -> bool {
        tcgetattr(&self.theirs).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed would leave it waiting for keys.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The end of the shell's prompt.
const PROMPT: &str = "$ ";

#[test]
fn a_shell_on_a_terminal_has_its_size_its_kind_and_its_exit_code() {
    let machine = Machine::with_sandbox();
    let mut terminal = Terminal::open(&machine, &["sh", "box"]);
    terminal.send("echo $((6 * 7))-$TERM; stty size; tty\r");
    terminal.expect("42-xterm-256color");
    terminal.expect("33 77");
    terminal.expect("/dev/pts/");
    assert!(!terminal.is_cooked());
    terminal.send("exit 5\r");
    assert_eq!(terminal.code(), Some(5));
    assert!(terminal.is_cooked());
}

#[test]
fn ctrl_c_goes_to_what_runs_in_the_shell_and_jobs_can_be_stopped_and_resumed() {
    let machine = Machine::with_sandbox();
    let mut terminal = Terminal::open(&machine, &["sh", "box"]);
    // One process says the word and waits: a key that meets dash while it forks is lost, on any terminal.
    terminal.send("python3 -c 'import time; print(\"be\" + \"gin\", flush=True); time.sleep(100)'\r");
    terminal.expect("begin");
    terminal.send("\x03");
    // What is typed before the shell has its terminal back may be thrown away with the key.
    terminal.expect(PROMPT);
    terminal.send("echo code-$?\r");
    terminal.expect("code-130");
    let line = "trap 'echo res\"\"umed' CONT; echo ag\"\"ain; while :; do sleep 0.1; done";
    terminal.send(&format!("bash -c {line:?}\r"));
    terminal.expect("again");
    terminal.send("\x1a");
    terminal.expect("Stopped");
    terminal.expect(PROMPT);
    terminal.send("fg\r");
    terminal.expect("resumed");
    terminal.send("\x03");
    terminal.expect(PROMPT);
    terminal.send("exit 0\r");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn a_new_size_of_our_terminal_reaches_the_one_inside() {
    let machine = Machine::with_sandbox();
    let mut terminal = Terminal::open(&machine, &["sh", "box"]);
    terminal.send("trap 'stty size' WINCH; echo re''ady\r");
    terminal.expect("ready");
    tcsetwinsize(&terminal.theirs, Winsize { ws_row: 20, ws_col: 111, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    // A session leader would be told by the kernel; the test is not one.
    kill_process(Pid::from_child(&terminal.child), Signal::WINCH).unwrap();
    // The shell runs the trap at its next key, and no key waits for the new size to arrive.
    while !terminal.seen.contains("20 111") {
        terminal.send("\r");
        assert!(terminal.read_more() && terminal.seen.len() < 1 << 20, "it showed {:?}", terminal.seen);
    }
    terminal.send("exit\r");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn the_terminal_is_restored_when_a_signal_ends_us() {
    let machine = Machine::with_sandbox();
    let mut terminal =
        Terminal::open(&machine, &["exec", "-it", "box", "--", "sh", "-c", "echo re''ady; sleep 100"]);
    terminal.expect("ready");
    assert!(!terminal.is_cooked());
    kill_process(Pid::from_child(&terminal.child), Signal::TERM).unwrap();
    assert_eq!(terminal.code(), Some(143));
    assert!(terminal.is_cooked());
}

#[test]
fn without_t_a_terminal_is_left_alone_and_not_read() {
    let machine = Machine::with_sandbox();
    let mut terminal =
        Terminal::open(&machine, &["exec", "box", "--", "sh", "-c", "cat; test -t 1 || echo no-tty"]);
    terminal.expect("no-tty");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn a_shell_that_is_not_given_the_terminal_says_how_it_is() {
    let machine = Machine::with_sandbox();
    for (arguments, hint) in [
        (&["exec", "box", "bash"][..], "for a terminal: eyot exec -it box bash"),
        (&["run", "/usr/bin/python3"], "for a terminal: eyot run -it /usr/bin/python3"),
    ] {
        let mut terminal = Terminal::open(&machine, arguments);
        terminal.expect(hint);
        assert_eq!(terminal.code(), Some(0));
    }
    let mut quiet = Terminal::open(&machine, &["-q", "exec", "box", "bash"]);
    assert_eq!((quiet.code(), quiet.seen.as_str()), (Some(0), ""));
    assert_eq!(machine.run(&["exec", "box", "bash"]).stderr, "");
}

#[test]
fn a_shell_without_a_terminal_runs_a_script_from_stdin() {
    let machine = Machine::with_sandbox();
    let ran = machine.run_with_input(&["sh", "box"], b"echo $((1 + 1))\nexit 3\n");
    assert_eq!((ran.code, ran.text().as_str()), (Some(3), "2\n"));
}

#[test]
fn a_person_is_asked_before_a_whole_pool_or_everything_is_destroyed() {
    let machine = Machine::with_sandbox();
    for (arguments, question) in [
        (&["pool", "rm", "default"][..], "destroy the pool `default` with its 1 sandbox: box? [y/N] "),
        (&["rm", "--all"], "destroy all that `eyot ls` lists, 1 sandbox? [y/N] "),
    ] {
        for answer in ["\r", "n\r"] {
            let mut terminal = Terminal::open(&machine, arguments);
            terminal.expect(question);
            terminal.send(answer);
            terminal.expect("nothing was removed");
            assert_eq!(terminal.code(), Some(1));
        }
        assert_eq!(machine.run(&["exec", "box", "--", "echo", "alive"]).success(), "alive\n");
        let mut terminal = Terminal::open(&machine, arguments);
        terminal.expect(question);
        terminal.send("y\r");
        assert_eq!(terminal.code(), Some(0));
        machine.assert_empty();
        machine.create("box");
    }
    let mut terminal = Terminal::open(&machine, &["pool", "rm", "-f", "default"]);
    assert_eq!(terminal.code(), Some(0));
    machine.create("box");
    machine.run(&["pool", "rm", "default"]).success();
    machine.assert_empty();
}

#[test]
fn init_asks_into_which_of_two_source_folders() {
    for (answer, expected) in [("src\r", "project/src"), ("\r", "project/.flue")] {
        let machine = Machine::new();
        machine.write("project/package.json", "{}");
        for folder in ["project/src", "project/.flue"] {
            std::fs::create_dir(machine.path(folder)).unwrap();
        }
        let mut terminal = Terminal::open(&machine, &["init", "flue", &machine.path_text("project")]);
        terminal.expect("[.flue] ");
        terminal.send(answer);
        terminal.expect("sandboxes/eyot.ts");
        assert_eq!(terminal.code(), Some(0));
        assert!(machine.path(expected).join("sandboxes/eyot.ts").exists(), "{answer:?}");
    }
}

#[test]
fn q_ends_top_and_leaves_the_terminal_as_it_was() {
    let machine = Machine::with_sandbox();
    let mut terminal = Terminal::open(&machine, &["top"]);
    terminal.expect("box");
    terminal.send("x");
    terminal.send("q");
    assert_eq!(terminal.code(), Some(0));
    assert!(terminal.is_cooked());
}
