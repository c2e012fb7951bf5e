//! The condition of a sandbox, read off its directory, because no daemon watches it. Each reading
//! holds for one moment.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, IdleAction, SandboxStatus};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::ready::ReadyMark;
use crate::record::{Record, SOCKET, boot_id, socket_path};

/// The condition of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The sandbox was never completed: a process is making it, or was killed while doing so.
    Making,
    /// The guest is alive.
    Running,
    /// A call or the idle timeout has put it to sleep. It can be woken.
    Sleeping,
    /// A deadline ended it.
    Expired,
    /// The guest ended unexpectedly: it was killed from outside, or the host restarted. The sandbox
    /// can be woken.
    Dead,
    /// The record or the mark can't be read. The sandbox can only be removed.
    Damaged,
}

impl Condition {
    /// Returns the status that callers see.
    pub(crate) fn status(self) -> SandboxStatus {
        match self {
            Self::Making => SandboxStatus::Creating,
            Self::Running => SandboxStatus::Running,
            Self::Sleeping => SandboxStatus::Sleeping,
            Self::Expired | Self::Dead => SandboxStatus::Dead,
            Self::Damaged => SandboxStatus::Damaged,
        }
    }

    /// Returns the error for whoever needs the sandbox to run.
    pub(crate) fn refusal(self, id_or_name: &str) -> Error {
        match self {
            Self::Sleeping => Error::sleeping(id_or_name),
            Self::Expired => Error::past_deadline(id_or_name),
            Self::Dead => Error::dead(id_or_name),
            Self::Damaged => {
                let message = format!("sandbox `{id_or_name}` is damaged: its record can't be read");
                Error::new(ErrorKind::Conflict, message).with_hint(format!("remove it: eyot rm {id_or_name}"))
            }
            Self::Making | Self::Running => {
                let message = format!("sandbox `{id_or_name}` is still being made");
                Error::new(ErrorKind::Unavailable, message)
            }
        }
    }

    /// Reads the condition of the sandbox in this directory, and its record if that can be read.
    pub(crate) fn of(directory: &Path) -> (Option<Record>, Self) {
        ConditionReader::default().read(directory)
    }
}

/// Reads the conditions of many sandboxes with one socket and one buffer.
#[derive(Debug, Default)]
pub(crate) struct ConditionReader {
    socket: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl ConditionReader {
    /// Reads a condition as [`Condition::of`] does. A sleep that begins during the reading is not
    /// taken for a death, because the sleep is noted before the guest ends.
    pub(crate) fn read(&mut self, directory: &Path) -> (Option<Record>, Condition) {
        loop {
            let ready = ReadyMark::read(directory);
            let record = Record::read_with(directory, &mut self.bytes);
            if is_damage(&ready) || is_damage(&record) {
                return (None, Condition::Damaged);
            }
            let Ok(Some(ready)) = ready else {
                return (record.ok(), Condition::Making);
            };
            if is_missing(&record) {
                // A sandbox that is destroyed between two looks has no mark in the next one.
                if ReadyMark::read(directory).is_ok_and(|now| now.is_some()) {
                    return (None, Condition::Damaged);
                }
                continue;
            }
            let record = record.ok();
            let is_asleep = ready.is_asleep(directory);
            if !is_asleep && self.is_alive(directory) {
                return (record, Condition::Running);
            }
            if !is_asleep && ReadyMark::read(directory).ok().flatten() != Some(ready) {
                continue;
            }
            let condition = record.as_ref().map_or(Condition::Dead, |record| record.without_guest(ready));
            return (record, condition);
        }
    }

    /// Tells whether a sandbox's guest is alive: it has its socket open, which the kernel closes with
    /// the process. This neither connects to the guest nor wakes it.
    fn is_alive(&mut self, directory: &Path) -> bool {
        match self.look_for_socket(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Ok(Err(Errno::CONNREFUSED | Errno::NOENT)) => false,
            // What can't be found out now, for want of descriptors say, is no death: the dead are cleared away.
            _ => true,
        }
    }

    /// Tries to connect a datagram socket to the guest's stream socket. The kernel looks for an open
    /// socket at the path first (`ECONNREFUSED` if there is none), and then refuses one of another
    /// type (`EPROTOTYPE`), before its owner could notice. Unlike a process number, a socket is found
    /// from every process namespace, and is never somebody else's. A socket that was refused is as
    /// good as new.
    fn look_for_socket(&mut self, directory: &Path) -> io::Result<Result<(), Errno>> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?
            }
        };
        let looked = match SocketAddrUnix::new(directory.join(SOCKET)) {
            Ok(short) => rustix::net::connect(&socket, &short),
            Err(_) => {
                let (_open, path) = socket_path(directory)?;
                rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
            }
        };
        if looked.is_err() {
            self.socket = Some(socket);
        }
        Ok(looked)
    }
}

impl Record {
    /// Returns the condition of a sandbox that has no guest.
    pub(crate) fn without_guest(&self, ready: ReadyMark) -> Condition {
        match () {
            () if self.ttl_has_passed() => Condition::Expired,
            () if ready.asleep || self.may_have_been_put_to_sleep(ready) => Condition::Sleeping,
            () if self.may_have_been_idle(ready) => Condition::Expired,
            () => Condition::Dead,
        }
    }

    /// Tells whether the idle timeout may have put it to sleep. One that would sleep sleeps after a restart of the host, too.
    fn may_have_been_put_to_sleep(&self, ready: ReadyMark) -> bool {
        let lifecycle = &self.info.spec.lifecycle;
        let has_lived = || lifecycle.idle_timeout_ms.is_some_and(|idle_ms| has_lived(ready, idle_ms));
        lifecycle.on_idle == IdleAction::Sleep && (!self.is_of_this_boot() || has_lived())
    }

    /// Tells whether the guest may have ended by its idle timeout: it lived at least that long. A
    /// guest that ended sooner was killed.
    fn may_have_been_idle(&self, ready: ReadyMark) -> bool {
        let lifecycle = &self.info.spec.lifecycle;
        let idle_ms = lifecycle.idle_timeout_ms.filter(|_| lifecycle.auto_destroy);
        idle_ms.is_some_and(|idle_ms| self.is_of_this_boot() && has_lived(ready, idle_ms))
    }

    fn is_of_this_boot(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot_id)
    }

    /// Tells whether the time to live is over.
    pub(crate) fn ttl_has_passed(&self) -> bool {
        self.ttl_left_ms() == Some(0)
    }

    /// Returns the rest of the time to live by the wall clock, in milliseconds; `None` without a
    /// time to live.
    pub(crate) fn ttl_left_ms(&self) -> Option<u64> {
        let lifecycle = &self.info.spec.lifecycle;
        let ttl = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy)?;
        let lived = now_ms().saturating_sub(self.info.created_ms);
        Some(ttl.saturating_sub(u64::try_from(lived).unwrap_or(0)))
    }
}

/// Tells whether a guest has lived at least this long. That is not known of one whose process was not noted.
fn has_lived(ready: ReadyMark, ms: u64) -> bool {
    ready.guest.is_none_or(|guest| guest.started_ms_ago() >= ms)
}

/// Tells whether a file holds something else than it should. A file that can't be read now, for
/// want of descriptors say, is not damaged.
fn is_damage<T>(read: &io::Result<T>) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    read.as_ref().is_err_and(|error| matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof))
}

fn is_missing<T>(read: &io::Result<T>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn without_guest(change: impl FnOnce(&mut Record), asleep: bool) -> Condition {
        let mut record = record();
        change(&mut record);
        record.without_guest(ReadyMark { asleep, ..ReadyMark::ASLEEP })
    }

    #[test]
    fn a_guest_that_is_gone_means_what_its_deadlines_say() {
        let idle = |record: &mut Record| record.info.spec.lifecycle.idle_timeout_ms = Some(1);
        let other_boot = |record: &mut Record| record.boot_id = "another".into();
        let sleeps = |record: &mut Record| record.info.spec.lifecycle.on_idle = IdleAction::Sleep;
        assert_eq!(without_guest(|_| {}, false), Condition::Dead);
        assert_eq!(without_guest(|_| {}, true), Condition::Sleeping);
        assert_eq!(without_guest(idle, false), Condition::Expired);
        assert_eq!(without_guest(idle, true), Condition::Sleeping);
        let restarted = |record: &mut Record| {
            idle(record);
            other_boot(record);
        };
        assert_eq!(without_guest(restarted, false), Condition::Dead);
        let ttl = |record: &mut Record| record.info.spec.lifecycle.ttl_ms = Some(600_000);
        assert_eq!(without_guest(ttl, false), Condition::Dead);
        let to_sleep = |record: &mut Record| {
            restarted(record);
            sleeps(record);
        };
        assert_eq!(without_guest(to_sleep, false), Condition::Sleeping);
    }

    #[test]
    fn a_guest_that_ended_before_it_can_have_been_idle_for_its_time_was_killed() {
        let mut record = record();
        let guest = crate::record::GuestProcess::of(std::process::id() as i32).unwrap();
        for (idle_ms, on_idle, expected) in [
            (Some(u64::MAX), IdleAction::Destroy, Condition::Dead),
            (Some(0), IdleAction::Destroy, Condition::Expired),
            (Some(u64::MAX), IdleAction::Sleep, Condition::Dead),
            (Some(0), IdleAction::Sleep, Condition::Sleeping),
            (None, IdleAction::Sleep, Condition::Dead),
        ] {
            let lifecycle = &mut record.info.spec.lifecycle;
            (lifecycle.idle_timeout_ms, lifecycle.on_idle) = (idle_ms, on_idle);
            assert_eq!(record.without_guest(ReadyMark::running(guest)), expected, "{idle_ms:?} {on_idle:?}");
        }
    }

    #[test]
    fn a_record_that_is_empty_torn_or_missing_is_damage_and_one_that_is_not_written_yet_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(Condition::of(path).1, Condition::Making);
        let written = |bytes: &[u8]| std::fs::write(path.join("sandbox.json"), bytes).unwrap();
        for torn in ["", "{", "[]", "\0\0\0"] {
            written(torn.as_bytes());
            assert_eq!(Condition::of(path).1, Condition::Damaged, "{torn:?}");
        }
        record().write(path).unwrap();
        assert_eq!(Condition::of(path).1, Condition::Making);
        ReadyMark::ASLEEP.make(path).unwrap();
        assert_eq!(Condition::of(path).1, Condition::Sleeping);
        std::fs::remove_file(path.join("sandbox.json")).unwrap();
        assert_eq!(Condition::of(path).1, Condition::Damaged);
        record().write(path).unwrap();
        std::fs::remove_file(path.join("ready")).unwrap();
        std::os::unix::fs::symlink("nonsense", path.join("ready")).unwrap();
        assert_eq!(Condition::of(path).1, Condition::Damaged);
    }

    fn is_alive(directory: &Path) -> bool {
        ConditionReader::default().is_alive(directory)
    }

    #[test]
    fn one_reader_tells_the_living_from_the_dead_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let directory = |name: &str| folder.path().join(name);
        let mut listeners: Vec<_> = ["one", "two"]
            .into_iter()
            .map(|name| {
                std::fs::create_dir(directory(name)).unwrap();
                std::os::unix::net::UnixListener::bind(directory(name).join(SOCKET)).unwrap()
            })
            .collect();
        drop(listeners.pop());
        let mut reader = ConditionReader::default();
        for (name, expected) in
            [("one", true), ("two", false), ("none", false), ("one", true), ("two", false)]
        {
            assert_eq!(reader.is_alive(&directory(name)), expected, "{name}");
        }
    }

    #[test]
    fn only_a_socket_that_nobody_listens_on_is_a_dead_guest() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_alive(&directory.path().join("none")));
        assert!(!is_alive(directory.path()));
        let socket = directory.path().join(crate::record::SOCKET);
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(is_alive(directory.path()));
        drop(listener);
        assert!(!is_alive(directory.path()));
        std::fs::remove_file(&socket).unwrap();
        // Something that says nothing about a guest.
        std::os::unix::fs::symlink(&socket, &socket).unwrap();
        assert!(is_alive(directory.path()));
    }

    #[test]
    fn a_look_at_a_guest_does_not_reach_it() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join(crate::record::SOCKET);
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(is_alive(directory.path()));
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_ttl_passes_while_a_sandbox_sleeps_and_nothing_passes_that_is_switched_off() {
        let ended = |record: &mut Record| {
            record.info.created_ms = now_ms() - 1000;
            record.info.spec.lifecycle.ttl_ms = Some(1000);
            record.info.spec.lifecycle.on_idle = IdleAction::Sleep;
        };
        assert_eq!(without_guest(ended, true), Condition::Expired);
        assert_eq!(without_guest(ended, false), Condition::Expired);
        let longer = |record: &mut Record| {
            ended(record);
            record.info.spec.lifecycle.ttl_ms = Some(60_000);
        };
        assert_eq!(without_guest(longer, true), Condition::Sleeping);
        let off = |record: &mut Record| {
            ended(record);
            record.info.spec.lifecycle.auto_destroy = false;
        };
        assert_eq!(without_guest(off, true), Condition::Sleeping);
    }
}
