//! Children of a program that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::children::{CallerInput, Child, ChildEnd, ChildInput, RunningChild};
use super::run::{Ending, ProgramRun};
use super::streams::{ProgramInput, ProgramOutput};

impl ProgramRun<'_> {
    /// A child of this program, in the same place.
    pub(super) fn child(&self, argv: Vec<String>, input: ChildInput) -> Child {
        let (env, cwd) = (self.env.clone(), self.cwd.to_owned());
        Child { argv, env, cwd, input, limit: None, without: None, rewording: None, encodes_names: false }
    }

    /// Runs a child to its end. Its output is passed on as it comes.
    ///
    /// # Errors
    /// There are too many children, or the shell ends this program.
    pub(super) async fn run_child(&self, child: Child) -> Result<ChildEnd, Ending> {
        self.run_child_into(child, [&self.stdout, &self.stderr]).await
    }

    /// Runs a child with its own standard output and standard error.
    pub(super) async fn run_child_into(
        &self,
        child: Child,
        outputs: [&ProgramOutput; 2],
    ) -> Result<ChildEnd, Ending> {
        let too_many = || Ending::refused("fork system call failed: Resource temporarily unavailable");
        let (nested, share) = self.children.nested(child.limit).ok_or_else(too_many)?;
        let caller = match child.input {
            ChildInput::Caller => input_of(&self.stdin).await?,
            _ => None,
        };
        let deadline = child.limit.and(nested.deadline);
        let running = RunningChild::new(nested, share, child, caller, outputs);
        let _flag = SetOnDrop(running.flag.clone());
        // A task has a stack of its own, however deep its caller is. It ends when this is dropped.
        let mut tasks = JoinSet::new();
        tasks.spawn(running.run());
        let late = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now));
        let ended = tokio::select! {
            ended = tasks.join_next() => ended,
            () = late, if deadline.is_some() => return Ok(ChildEnd::TimedOut),
        };
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(ChildEnd::TimedOut);
        }
        match ended {
            Some(Ok(status)) => Ok(ChildEnd::Exited(status)),
            _ => Err(Ending::refused("a child failed unexpectedly")),
        }
    }
}

/// The rest of a standard input. `None`: nothing is there to be read.
async fn input_of(input: &ProgramInput) -> Result<Option<CallerInput>, Ending> {
    match input.read_chunk().now_or_never().transpose()? {
        Some(None) => Ok(None),
        Some(first) => Ok(Some(CallerInput { first, rest: input.clone() })),
        None => Ok(Some(CallerInput { first: None, rest: input.clone() })),
    }
}

/// Sets the flag that ends an interpreter once nobody waits for it.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
