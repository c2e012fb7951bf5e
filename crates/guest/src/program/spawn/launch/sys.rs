//! Owns what a reaper and its child read, at fixed addresses, until both are done with it.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use super::super::reaper::{self, Candidate, ReaperPlan, ReaperSeat};
use super::super::setuid_filter;
use super::super::stacks::Stacks;
use crate::program::reap::ChildExit;
use crate::program::sys;

/// The ingredients of a command.
pub struct Recipe {
    /// The command's number, for the records.
    pub command: u32,
    /// The descriptor to which records are written.
    pub status_fd: RawFd,
    /// Standard input, output and error.
    pub fds: [RawFd; 3],
    /// The one of `fds` that the reaper closes once the command has its own.
    pub handed_over: Option<OwnedFd>,
    /// Those of `fds` that stay open here until [`LaunchedCommand::close_outputs`].
    pub outputs: Vec<OwnedFd>,
    /// Standard input becomes the controlling terminal.
    pub terminal: bool,
    /// User, group and capabilities to change to.
    pub become_user: Option<(u32, u32, u64)>,
    /// The process that may raise the out-of-memory score of the child.
    pub oom_score_writer: OomScoreWriter,
    /// The working directory; relative to `beneath` if that is given.
    pub cwd: CString,
    /// The directory that `cwd` must not leave.
    pub beneath: Option<CString>,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub open_files: [u64; 2],
    /// `RLIMIT_NPROC`.
    pub max_processes: Option<u64>,
    /// The command may not set setuid bits.
    pub forbid_setuid: bool,
    /// The files to try, in order, each with the index of its arguments in `arguments`.
    pub candidates: Vec<(CString, usize)>,
    /// Argument vectors.
    pub arguments: Vec<Vec<CString>>,
    /// The shell's arguments for a file that is no program; the second is replaced by the file.
    pub script_arguments: Option<Vec<CString>>,
    /// The environment.
    pub env: Vec<CString>,
}

/// The process that may raise the out-of-memory score of a child before that runs its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OomScoreWriter {
    /// The child.
    Child,
    /// The child, as root.
    Root,
    /// No process in the sandbox.
    Nobody,
}

const OOM_PATH: &CStr = c"/proc/self/oom_score_adj";

struct OwnedPlan {
    plan: ReaperPlan,
    _recipe: Recipe,
    _candidates: Vec<Candidate>,
    _vectors: Vec<Vec<*const c_char>>,
    _filter: Box<libc::sock_fprog>,
}

struct OwnedSeat {
    seat: ReaperSeat,
    stacks: Stacks,
}

/// A reaper, from the guest's side. If it is dropped without [`Reaper::release`] its memory stays.
pub struct Reaper {
    owned: NonNull<OwnedSeat>,
    pid: i32,
}

/// A command's two processes, from the guest's side. If it is dropped without
/// [`LaunchedCommand::release`] or [`LaunchedCommand::into_reaper`] its memory stays.
pub struct LaunchedCommand {
    owned: NonNull<OwnedPlan>,
    reaper: Reaper,
    outputs: Vec<OwnedFd>,
    /// The reaper had another command before.
    is_reused: bool,
}

impl Reaper {
    /// Starts one on a plan that was leaked, and that is freed only once the reaper is done with it.
    fn start(plan: NonNull<OwnedPlan>, stacks: Stacks) -> io::Result<Self> {
        let seat = ReaperSeat {
            state: AtomicU32::new(reaper::SEAT_BUSY),
            // SAFETY: the plan is valid; this only computes the address of a part of it.
            plan: AtomicPtr::new(unsafe { &raw mut (*plan.as_ptr()).plan }),
            child_stack: stacks.child_top(),
        };
        let reaper_stack = stacks.reaper_top();
        let owned = NonNull::from(Box::leak(Box::new(OwnedSeat { seat, stacks })));
        // SAFETY: `owned` is freed only here, when nothing started, or by `release`, when
        // everything has ended. The caller vouches for the plan.
        match unsafe { reaper::start(&raw mut (*owned.as_ptr()).seat, reaper_stack) } {
            Ok(pid) => Ok(Self { owned, pid }),
            Err(error) => {
                // SAFETY: no process was made, so nobody else uses it.
                drop(unsafe { Box::from_raw(owned.as_ptr()) });
                Err(error)
            }
        }
    }

    /// Returns the reaper's process number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Gives a free reaper its next plan. `false`: it has left, and nobody looks at the plan.
    fn hand_over(&self, plan: NonNull<OwnedPlan>) -> bool {
        // SAFETY: the plan is valid; this only computes the address of a part of it.
        self.seat().plan.store(unsafe { &raw mut (*plan.as_ptr()).plan }, Ordering::Release);
        let is_taken = self.call(reaper::SEAT_BUSY);
        if is_taken {
            // The workload may have stopped it, where it runs as the same user. One that was killed
            // is noticed when it is waited for.
            drop(sys::kill(self.pid, libc::SIGCONT));
        }
        is_taken
    }

    /// Lets a free reaper end.
    pub fn dismiss(&self) {
        self.call(reaper::SEAT_LEFT);
    }

    fn call(&self, state: u32) -> bool {
        let word = &self.seat().state;
        let (free, order) = (reaper::SEAT_FREE, (Ordering::AcqRel, Ordering::Acquire));
        let is_called = word.compare_exchange(free, state, order.0, order.1).is_ok();
        if is_called {
            sys::wake_one(word);
        }
        is_called
    }

    /// Frees what only the reaper needed, now that it has ended, and gives the stacks back.
    pub fn release(self, reaped: &ChildExit) -> Stacks {
        assert_eq!(reaped.pid(), self.pid, "another process's end");
        // SAFETY: the reaper has ended. A free one has no child.
        unsafe { self.free() }
    }

    /// # Safety
    /// Neither the reaper nor a child of it runs on the stacks any more.
    unsafe fn free(self) -> Stacks {
        // SAFETY: it was leaked by `start`, and this takes the only owner.
        unsafe { Box::from_raw(self.owned.as_ptr()) }.stacks
    }

    fn seat(&self) -> &ReaperSeat {
        // SAFETY: it is valid until `free`, which consumes `self`; what changes in it is atomic.
        unsafe { &(*self.owned.as_ptr()).seat }
    }
}

impl LaunchedCommand {
    /// Has a reaper make the child: one of `free`, which is then taken out, or a new one.
    /// `report_start`: a record says when the command runs. All signals must be blocked in this
    /// thread, but those that only end the new process.
    pub fn start(
        mut recipe: Recipe,
        free: &mut Vec<Reaper>,
        stacks: impl FnOnce() -> io::Result<Stacks>,
        report_start: bool,
    ) -> io::Result<Self> {
        let handed_over = recipe.handed_over.take();
        let outputs = std::mem::take(&mut recipe.outputs);
        let owned = NonNull::from(Box::leak(own(recipe, handed_over.as_ref(), report_start)));
        let found = free.iter().rposition(|reaper| reaper.hand_over(owned));
        let is_reused = found.is_some();
        let started = match found {
            Some(index) => Ok(free.remove(index)),
            None => stacks().and_then(|stacks| Reaper::start(owned, stacks)),
        };
        match started {
            Ok(reaper) => {
                if let Some(fd) = handed_over {
                    std::mem::forget(fd);
                }
                Ok(Self { owned, reaper, outputs, is_reused })
            }
            Err(error) => {
                // SAFETY: it was leaked just now, and no process got it.
                drop(unsafe { Box::from_raw(owned.as_ptr()) });
                Err(error)
            }
        }
    }

    /// Starts it once more with a new reaper, if the one that had been free was killed before it
    /// did anything: whoever could kill that must not have the next command.
    pub fn start_again(&mut self, reaped: &ChildExit, stacks: impl FnOnce() -> io::Result<Stacks>) -> bool {
        assert_eq!(reaped.pid(), self.reaper.pid, "another process's end");
        let is_untouched = self.is_reused && self.is_starting() && self.pid().is_none();
        let Some(Ok(reaper)) = is_untouched.then(|| Reaper::start(self.owned, stacks()?)) else {
            return false;
        };
        let ended = std::mem::replace(&mut self.reaper, reaper);
        self.is_reused = false;
        // SAFETY: the reaper has ended, and it made no child, whose number would be known.
        drop(unsafe { ended.free() });
        true
    }

    /// The reaper's process number.
    pub fn reaper(&self) -> i32 {
        self.reaper.pid
    }

    /// The command's process number, once it has one.
    pub fn pid(&self) -> Option<i32> {
        let pid = self.plan().pid.load(Ordering::Acquire);
        (pid > 0).then_some(pid)
    }

    /// Tells whether the child is still on its way. Until it has come to the command it may hold a
    /// copy of any descriptor of the guest.
    pub fn is_starting(&self) -> bool {
        self.plan().state.load(Ordering::Acquire) != reaper::STATE_STARTED
    }

    /// Tells whether the command runs. If it does not yet, a record will say so.
    pub fn has_started(&self) -> bool {
        let plan = self.plan();
        let wanted = (reaper::STATE_PENDING, reaper::STATE_WANTED);
        let order = (Ordering::AcqRel, Ordering::Acquire);
        match plan.state.compare_exchange(wanted.0, wanted.1, order.0, order.1) {
            Err(reaper::STATE_STARTED) => plan.failed_step.load(Ordering::Acquire) == 0,
            _ => false,
        }
    }

    /// Closes the guest's copies of the writing ends of the command's output, once the command has
    /// its own. Until then they keep the pipes from ending, so that the end of a command wakes the
    /// guest once, by its record, and not by each of its pipes before that.
    pub fn close_outputs(&mut self) {
        if !self.is_starting() {
            self.outputs.clear();
        }
    }

    /// Takes the reaper of a command of which nothing is left, and frees the rest.
    ///
    /// # Errors
    /// The command itself, if the reaper is not free.
    pub fn into_reaper(self) -> Result<Reaper, Self> {
        if self.reaper.seat().state.load(Ordering::Acquire) == reaper::SEAT_BUSY {
            return Err(self);
        }
        // SAFETY: a reaper that is free, or left after that, does not look at its plan, and its
        // child has ended.
        drop(unsafe { Box::from_raw(self.owned.as_ptr()) });
        Ok(self.reaper)
    }

    /// Frees what only the reaper and its child needed, now that the reaper has ended, and gives
    /// the stacks back. If it was killed while the child was still on its way, the child may still
    /// use them: then they stay for ever.
    pub fn release(self, reaped: &ChildExit) -> Option<Stacks> {
        assert_eq!(reaped.pid(), self.reaper.pid, "another process's end");
        let plan = self.plan();
        let is_done = plan.state.load(Ordering::Acquire) == reaper::STATE_STARTED;
        let fd = plan.owned_fd.swap(-1, Ordering::AcqRel);
        if fd >= 0 {
            // SAFETY: the reaper takes out the one that it closes; it did not, and it has ended.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        if !is_done && reaped.status().is_err() {
            return None;
        }
        // SAFETY: the reaper has ended, and it came back from making the child, which therefore has
        // its own memory.
        unsafe {
            drop(Box::from_raw(self.owned.as_ptr()));
            Some(self.reaper.free())
        }
    }

    fn plan(&self) -> &ReaperPlan {
        // SAFETY: it is valid until `release` or `into_reaper`, which consume `self`; what changes in
        // it is atomic.
        unsafe { &(*self.owned.as_ptr()).plan }
    }
}

fn own(recipe: Recipe, handed_over: Option<&OwnedFd>, report_start: bool) -> Box<OwnedPlan> {
    let mut vectors: Vec<Vec<*const c_char>> = recipe.arguments.iter().map(|list| pointers(list)).collect();
    let mut candidates: Vec<Candidate> = Vec::with_capacity(recipe.candidates.len() + 1);
    for (path, index) in &recipe.candidates {
        candidates.push(Candidate { path: path.as_ptr(), argv: vectors[*index].as_ptr() });
    }
    candidates.push(Candidate { path: ptr::null(), argv: ptr::null() });
    let envp = pointers(&recipe.env);
    let mut script = recipe.script_arguments.as_deref().map(pointers);
    let script_argv = script.as_mut().map_or(ptr::null_mut(), Vec::as_mut_ptr);
    let (uid, gid, capabilities) = recipe.become_user.unwrap_or_default();
    let filter = Box::new(setuid_filter::program());
    let plan = ReaperPlan {
        pid: AtomicI32::new(0),
        state: AtomicU32::new(if report_start { reaper::STATE_WANTED } else { reaper::STATE_PENDING }),
        failed_step: AtomicU32::new(0),
        failed_errno: AtomicI32::new(0),
        command: recipe.command,
        status_fd: recipe.status_fd,
        fds: recipe.fds,
        owned_fd: AtomicI32::new(handed_over.map_or(-1, AsRawFd::as_raw_fd)),
        terminal: recipe.terminal,
        switch_user: recipe.become_user.is_some(),
        uid,
        gid,
        capabilities,
        oom_path: match recipe.oom_score_writer {
            OomScoreWriter::Nobody => ptr::null(),
            OomScoreWriter::Child | OomScoreWriter::Root => OOM_PATH.as_ptr(),
        },
        oom_path_is_roots: recipe.oom_score_writer == OomScoreWriter::Root,
        cwd: recipe.cwd.as_ptr(),
        beneath: recipe.beneath.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
        open_files: recipe.open_files,
        processes: [recipe.max_processes.unwrap_or(u64::MAX); 2],
        candidates: candidates.as_ptr(),
        script_argv,
        envp: envp.as_ptr(),
        filter: if recipe.forbid_setuid { &raw const *filter } else { ptr::null() },
    };
    vectors.push(envp);
    vectors.extend(script);
    Box::new(OwnedPlan { plan, _recipe: recipe, _candidates: candidates, _vectors: vectors, _filter: filter })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}
