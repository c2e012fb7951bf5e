//! The beginning of calls.

use std::sync::Arc;

use super::call_handle::GuestCall;
use super::connection::{Call, Connection};
use super::dial::Dial;
use super::failure::failure;
use super::file_call::{ActivityKind, FileCall, WorkerIo};
use super::files;
use super::guest::{Guest, GuestEnd};
use super::live_processes;
use super::processes::Finished;
use super::usage;
use crate::protocol::{Failure, LogRequest, ProcessTerms, Reply, Request};

/// The most paths that are watched at once: a third of the inotify instances that a sandbox may
/// have.
const MOST_WATCHES: usize = 16;

impl Guest {
    /// Begins a call. Whatever it is, it is answered once, now or later.
    pub(super) fn begin(&mut self, handle: GuestCall, request: Request) {
        match request {
            Request::Ping => handle.answer(&Ok(Reply::Done)),
            Request::Adopt => handle.answer(&self.adopt(&handle)),
            Request::Shutdown => self.ending = Some(GuestEnd::Asked(handle)),
            Request::Exec(exec) => self.begin_exec(handle, exec),
            Request::Start(exec) => self.begin_start(handle, exec, ProcessTerms::default()),
            Request::StartOn(exec, terms) => self.begin_start(handle, exec, terms),
            Request::ProcessInput(process, bytes, ends) => {
                handle.answer(&self.give_input(process, &bytes, ends));
            }
            Request::Processes => handle.answer(&Ok(Reply::Processes(self.processes.records()))),
            Request::Wait(process, is_look) => self.begin_wait(handle, process, is_look == Some(true)),
            Request::Logs(request) => self.begin_logs(handle, &request),
            Request::SetDeadlines(left_ms, idle_timeout_ms) => {
                handle.answer(&self.set_deadlines(left_ms, idle_timeout_ms));
            }
            Request::Kill(process, Some(signal)) => handle.answer(&self.signal_process(process, signal)),
            Request::Kill(process, None) => self.kill_process(handle, process),
            Request::Dial(port) => self.begin_dial(handle, port),
            Request::Keep(exec, terms) => self.begin_keep(handle, exec, terms),
            Request::Attach(id, from) => self.begin_attach(handle, &id, from),
            Request::KeptInput(id) => self.begin_kept_input(handle, &id),
            Request::KeptControl(id, control) => handle.answer(&self.control_kept(&id, control)),
            Request::Forget(id) => handle.answer(&self.forget_by_id(&id)),
            Request::KeptEnd(id) => self.begin_kept_wait(handle, &id),
            Request::KeptCommands => handle.answer(&Ok(Reply::KeptList(self.kept.records()))),
            Request::Usage => self.begin_usage(handle),
            Request::LiveProcesses => self.begin_live_processes(handle),
            Request::Read(..)
            | Request::ReadPassed(..)
            | Request::WritePassed(..)
            | Request::Write(..)
            | Request::Stat(_)
            | Request::List(_)
            | Request::Exists(_)
            | Request::CreateDir(..)
            | Request::Remove(..)
            | Request::Rename(..)
            | Request::Glob(..)
            | Request::Grep { .. }
            | Request::TarOut(_)
            | Request::TarIn(..) => {
                self.begin_work(handle, ActivityKind::Active, move |io| files::serve(request, io));
            }
            Request::Watch(..) => self.begin_watch(handle, request),
            Request::Hold => self.begin_hold(handle),
        }
    }

    fn set_deadlines(
        &mut self,
        left_ms: Option<u64>,
        idle_timeout_ms: Option<u64>,
    ) -> Result<Reply, Failure> {
        let set = self.deadlines.change(left_ms, idle_timeout_ms);
        set.map_err(|error| failure("internal", format!("set the timer: {error}"))).map(|()| Reply::Done)
    }

    fn adopt(&mut self, handle: &GuestCall) -> Result<Reply, Failure> {
        if !self.connections.get(&handle.connection).is_some_and(|connection| connection.is_makers) {
            return Err(failure("permission", "only whoever made the sandbox can say that it is complete"));
        }
        self.adopted = true;
        Ok(Reply::Done)
    }

    fn begin_wait(&mut self, handle: GuestCall, id: u32, is_look: bool) {
        match self.processes.get(id) {
            Err(failure) => handle.answer(&Err(failure)),
            Ok(process) => match process.wait(handle.clone()) {
                Some((handle, reply)) => handle.answer(&reply),
                None => self.open_call(&handle, Call::Wait { process: id, is_look }),
            },
        }
    }

    fn begin_logs(&mut self, handle: GuestCall, request: &LogRequest) {
        match self.processes.get(request.process) {
            Err(failure) => handle.answer(&Err(failure)),
            Ok(process) => {
                let finished = process.read_log(handle.clone(), request);
                self.open_call(&handle, Call::Logs(request.process));
                self.finish_all(finished);
            }
        }
    }

    fn begin_dial(&mut self, handle: GuestCall, port: u16) {
        let id = self.next_id();
        match Dial::new(handle.clone(), id, port, Arc::clone(&self.poll)) {
            Err(failure) => handle.answer(&Err(failure)),
            Ok(dial) => {
                self.dials.insert(id, dial);
                self.open_call(&handle, Call::Dial(id));
            }
        }
    }

    fn begin_usage(&mut self, handle: GuestCall) {
        let (reapers, activity) = (self.reaper_pids(), Arc::clone(&self.activity));
        let memory = Arc::clone(&self.group_memory);
        self.begin_work(handle, ActivityKind::Silent, move |_| {
            Ok(Reply::Usage(usage::measure(&reapers, &activity, &memory)))
        });
    }

    fn begin_live_processes(&mut self, handle: GuestCall) {
        let reapers = self.reaper_pids();
        let users = self.config.users.iter().chain([&self.config.user]);
        let names = users.map(|identity| (identity.uid, identity.name.clone())).collect();
        self.begin_work(handle, ActivityKind::Silent, move |_| {
            Ok(Reply::LiveProcesses(live_processes::list(&reapers, &names)))
        });
    }

    /// Watches a place, on a worker thread for as long as the watch lasts.
    fn begin_watch(&mut self, handle: GuestCall, request: Request) {
        if self.connections.values().map(Connection::watches).sum::<usize>() >= MOST_WATCHES {
            let message =
                format!("{MOST_WATCHES} places of the sandbox are watched already; end one of these watches");
            return handle.answer(&Err(failure("quota", message)));
        }
        let work = ActivityKind::Watch(Arc::clone(&self.activity));
        self.begin_work(handle, work, move |io| files::serve(request, io));
    }

    /// Serves a call on a worker thread.
    fn begin_work<W>(&mut self, handle: GuestCall, is: ActivityKind, work: W)
    where
        W: FnOnce(&mut WorkerIo<'_>) -> Result<Reply, Failure> + Send + 'static,
    {
        let is_silent = matches!(is, ActivityKind::Silent);
        let call = FileCall::new(Arc::clone(handle.outbox()), handle.call, is);
        let (served, activity) = (Arc::clone(&call), Arc::clone(&self.activity));
        // What was appended for earlier calls leaves before the worker's own frames, or together
        // with them.
        let job = move |ready: Result<(), Failure>| {
            let result = ready.and_then(|()| work(&mut WorkerIo(&served)));
            if !is_silent {
                activity.note();
            }
            served.answer(&result);
        };
        match self.workers.run(Box::new(job)) {
            Ok(()) => self.open_call(&handle, Call::File(call)),
            Err(failure) => handle.answer(&Err(failure)),
        }
    }

    /// Answers and forgets calls that came to their end.
    pub(super) fn finish_all(&mut self, finished: Vec<Finished>) {
        for (handle, result) in finished {
            self.finish(&handle, &result);
        }
    }
}
