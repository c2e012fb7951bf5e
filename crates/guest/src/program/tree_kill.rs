//! Kills a command with everything it left behind, `setsid` and double-forked children included,
//! without cgroups.
//!
//! All descendants of its reaper are stopped, round after round until no new one appears, and then
//! killed together: a fork bomb that is killed one by one wins. The main thread does this in small
//! steps between its other work, and again until the reaper has ended, which it does when it has no
//! child left.
//!
//! A traced process ends for its parent only when its tracer says so, and the tracer may be any
//! process in the sandbox, one of another command too. So whoever holds on to what was killed is
//! killed as well.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{proc_table, sys};

/// The number of processes that are checked in one step.
const STEP_PROCESSES: usize = 32;
/// The most rounds before the processes found so far are killed, even if new ones still appear.
/// Then it begins again.
const MOST_ROUNDS: u32 = 16;
/// The number of looks after which killed processes that are still there are taken from their
/// tracers. Before that, a debugger may let them go.
const LOOKS_BEFORE_TRACERS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(256);

/// The root of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// Everything below this reaper, but not itself.
    Reaper(i32),
    /// Everything below the guest, but not its reapers and what is below them: what escaped when
    /// its reaper was killed.
    Escaped,
}

/// A tree that is being killed.
#[derive(Debug)]
pub struct TreeKill {
    root: Root,
    unseen: Vec<i32>,
    found: HashSet<i32>,
    killed: HashSet<i32>,
    found_more: bool,
    rounds: u32,
    looks: u32,
    pause: Duration,
    next_step: Instant,
}

impl TreeKill {
    /// Begins at once.
    pub fn new(root: Root) -> Self {
        let (unseen, found) = (vec![start_of(root)], HashSet::new());
        Self {
            root,
            unseen,
            found,
            killed: HashSet::new(),
            found_more: false,
            rounds: 0,
            looks: 0,
            pause: FIRST_PAUSE,
            next_step: Instant::now(),
        }
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> Root {
        self.root
    }

    /// Returns the time of the next step.
    pub fn next_step(&self) -> Instant {
        self.next_step
    }

    /// Does one step. `spare` names the reapers. Returns whether a whole look found no process at
    /// all.
    pub fn step(&mut self, spare: impl Fn(i32) -> bool) -> bool {
        for _ in 0..STEP_PROCESSES {
            let Some(parent) = self.unseen.pop() else { break };
            for pid in proc_table::children(parent) {
                self.stop(pid, parent, &spare);
            }
        }
        if !self.unseen.is_empty() {
            return false;
        }
        if self.found_more && self.rounds < MOST_ROUNDS {
            self.look_again();
            return false;
        }
        self.kill_found()
    }

    fn stop(&mut self, pid: i32, parent: i32, spare: &impl Fn(i32) -> bool) {
        let spared = self.root == Root::Escaped && parent == start_of(self.root) && spare(pid);
        if !spared && self.found.insert(pid) {
            signal(pid, libc::SIGSTOP);
            self.unseen.push(pid);
            self.found_more = true;
        }
    }

    fn look_again(&mut self) {
        self.rounds += 1;
        self.found_more = false;
        self.unseen.push(start_of(self.root));
        self.unseen.extend(&self.found);
    }

    fn kill_found(&mut self) -> bool {
        let nobody = self.found.is_empty();
        self.found.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
        self.kill_tracers();
        self.killed = std::mem::take(&mut self.found);
        if let Root::Reaper(reaper) = self.root {
            // The workload may have stopped it, where it runs as the same user; it has to reap.
            signal(reaper, libc::SIGCONT);
        }
        (self.rounds, self.found_more) = (0, false);
        self.unseen.push(start_of(self.root));
        self.next_step = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        nobody
    }

    /// Kills who traces what is still there after it was killed.
    fn kill_tracers(&mut self) {
        self.looks += 1;
        if self.looks < LOOKS_BEFORE_TRACERS {
            return;
        }
        let mut tracers = HashSet::new();
        for survivor in self.found.intersection(&self.killed) {
            collect_tracers(*survivor, &mut tracers);
        }
        // One outside of the sandbox, which a debugger of the whole guest is, is not the
        // workload's.
        let is_inside = |pid: &&i32| proc_table::descends_from(**pid, start_of(Root::Escaped));
        tracers.iter().filter(is_inside).for_each(|pid| signal(*pid, libc::SIGKILL));
    }
}

/// Adds who traces a process, who traces those, and so on: each may be held by the next.
fn collect_tracers(pid: i32, tracers: &mut HashSet<i32>) {
    for tracer in proc_table::tracers(pid) {
        if tracers.insert(tracer) {
            collect_tracers(tracer, tracers);
        }
    }
}

/// Kills every descendant of the guest and waits for all of them, at most `patience`. `children` is
/// readable when a child has ended. Blocks: for the guest's end only.
pub fn kill_all(patience: Duration, children: BorrowedFd<'_>) {
    let give_up = Instant::now() + patience;
    let mut kill = TreeKill::new(Root::Escaped);
    while Instant::now() <= give_up {
        kill.step(|_| false);
        if reap_until(kill.next_step(), children) {
            return;
        }
    }
}

/// Takes the ends of children until a moment, or until no child is left, which it tells.
fn reap_until(moment: Instant, children: BorrowedFd<'_>) -> bool {
    loop {
        loop {
            match sys::reap() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // No child is left.
                Err(_) => return true,
            }
        }
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        wait_for_a_child(children, left);
    }
}

/// Waits until a child has ended, at most for so long.
fn wait_for_a_child(children: BorrowedFd<'_>, most: Duration) {
    let timeout = Timespec::try_from(most).ok();
    if poll(&mut [PollFd::from_borrowed_fd(children, PollFlags::IN)], timeout.as_ref()).is_err() {
        std::thread::sleep(most);
    }
    // One signal may stand for many children.
    drop(sys::read(children, &mut [0; 1024]));
}

fn start_of(root: Root) -> i32 {
    match root {
        Root::Reaper(pid) => pid,
        Root::Escaped => std::process::id() as i32,
    }
}

/// A process that is gone already is as good as signalled; one that may not be signalled turns up
/// again in the next round.
fn signal(pid: i32, signal: i32) {
    drop(sys::kill(pid, signal));
}
