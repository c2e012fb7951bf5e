//! The reports of reapers, and the commands whose reapers are gone.

use std::os::fd::AsFd;
use std::time::Instant;

use super::command::CommandProgress;
use super::guest::Guest;
use super::reap::{ChildExit, next_reaped, status_of};
use super::spawn::{
    RECORD_ENDED, RECORD_ENDED_WHOLE, RECORD_FAILED, RECORD_STARTED, RECORDS_AT_ONCE, refusal,
};
use super::sys;
use super::tree_kill::{Root, TreeKill};
use crate::protocol::Status;

impl Guest {
    /// Reapers reported something.
    pub(super) fn on_records(&mut self) {
        self.make_room_after_kills();
        loop {
            let records = self.spawner.records();
            // A read that was not filled has emptied the pipe.
            let is_empty = records.len() < RECORDS_AT_ONCE;
            for record in records {
                match record.kind {
                    RECORD_STARTED => self.on_started(record.command),
                    RECORD_ENDED => self.on_ended(record.command, status_of(record.value)),
                    RECORD_ENDED_WHOLE => self.on_ended_whole(record.command, status_of(record.value)),
                    RECORD_FAILED => {
                        if let Some(command) = self.commands.get(&record.command) {
                            self.on_refused(record.command, refusal(&command.exec, &record));
                        }
                    }
                    _ => {}
                }
            }
            if is_empty {
                return;
            }
        }
    }

    /// Children of the guest have ended: reapers, or what escaped from one.
    pub(super) fn on_children(&mut self) {
        // One signal may stand for many children. They are found below.
        let mut signals = [0; 1024];
        drop(sys::read(self.children.as_fd(), &mut signals));
        self.make_room_after_kills();
        // The reports of a reaper come before its end.
        self.on_records();
        while let Some(reaped) = next_reaped() {
            match self.reapers.remove(&reaped.pid()) {
                Some(Some(id)) => self.on_reaper_gone(id, &reaped),
                Some(None) => self.on_free_reaper_gone(&reaped),
                None => self.on_orphan_gone(&reaped),
            }
        }
    }

    /// A command ended and left nothing behind. Its reaper is free for another, but for one whose
    /// tree was being killed: whatever was sent to that is meant for the command.
    fn on_ended_whole(&mut self, id: u32, status: Status) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        let must_end = command.being_killed;
        if let Some(launched) = command.take_launched() {
            let reaper = launched.reaper();
            match self.spawner.free_reaper(launched, must_end) {
                Ok(()) => {
                    self.reapers.insert(reaper, None);
                    self.kills.retain(|kill| kill.root() != Root::Reaper(reaper));
                }
                Err(launched) => command.launched = Some(launched),
            }
        }
        self.on_ended(id, status);
        self.forget_if_gone(id);
    }

    fn on_free_reaper_gone(&mut self, reaped: &ChildExit) {
        self.spawner.release_free(reaped);
        self.wake_listener();
    }

    fn on_reaper_gone(&mut self, id: u32, reaped: &ChildExit) {
        self.kills.retain(|kill| kill.root() != Root::Reaper(reaped.pid()));
        let was_killed = reaped.status().is_err();
        if was_killed && self.start_again(id, reaped) {
            return;
        }
        if was_killed && !self.kills.iter().any(|kill| kill.root() == Root::Escaped) {
            self.kills.push(TreeKill::new(Root::Escaped));
        }
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        command.lost_reaper = was_killed;
        if let Some(launched) = command.take_launched() {
            self.spawner.release(launched, reaped);
        }
        self.settle(id);
        self.forget_if_gone(id);
        self.wake_listener();
    }

    /// Starts a command anew whose reaper, free until then, was killed before it did anything.
    fn start_again(&mut self, id: u32, reaped: &ChildExit) -> bool {
        let command = self.commands.get_mut(&id).filter(|command| !command.being_killed);
        let Some(launched) = command.and_then(|command| command.launched.as_mut()) else {
            return false;
        };
        let has_started = self.spawner.start_again(launched, reaped);
        if has_started {
            self.reapers.insert(launched.reaper(), Some(id));
        }
        has_started
    }

    /// A process that outlived its reaper ended.
    fn on_orphan_gone(&mut self, reaped: &ChildExit) {
        let found = self.commands.values_mut().find(|command| command.pid() == Some(reaped.pid()));
        if let Some(command) = found.filter(|command| command.progress == CommandProgress::Running) {
            let status = reaped.status().map_or_else(Status::Signaled, Status::Exited);
            command.progress = CommandProgress::Ended(status);
        }
    }

    /// Goes on killing what is being killed.
    pub(super) fn step_kills(&mut self) {
        let now = Instant::now();
        let (reapers, mut nobody_escaped) = (&self.reapers, false);
        for kill in self.kills.iter_mut().filter(|kill| kill.next_step() <= now) {
            let nobody = kill.step(|pid| reapers.contains_key(&pid));
            nobody_escaped |= nobody && kill.root() == Root::Escaped;
        }
        if nobody_escaped {
            self.kills.retain(|kill| kill.root() != Root::Escaped);
            self.settle_those_without_reapers();
        }
    }

    /// Commands whose reapers were killed: nothing of them is left now. One whose own status went
    /// with its reaper was killed with it.
    fn settle_those_without_reapers(&mut self) {
        let lost = self.commands.values_mut().filter(|command| command.lost_reaper);
        let ids: Vec<u32> = lost
            .map(|command| {
                command.lost_reaper = false;
                if command.progress == CommandProgress::Running {
                    command.progress = CommandProgress::Ended(Status::Signaled(libc::SIGKILL));
                }
                command.id
            })
            .collect();
        for id in ids {
            self.settle(id);
            self.forget_if_gone(id);
        }
    }
}
