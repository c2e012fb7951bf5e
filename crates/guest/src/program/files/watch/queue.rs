//! The kernel's events that wait to be processed, in their order. A rename has two halves, one for
//! each directory, which a cookie pairs. They need not be neighbours, nor come in one read. A first
//! half whose second has not come yet holds up the events after it, for a moment.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use rustix::fs::inotify::{ReadFlags, Reader};
use rustix::io::Errno;

/// The time that the second half of a rename may take. The kernel reports both within one call,
/// whose thread may be interrupted in between.
const PATIENCE: Duration = Duration::from_millis(100);
/// With so many events waiting, no half is waited for any more.
const MOST_WAITING: usize = 4096;
const BUFFER_BYTES: usize = 32 * 1024;

/// One event as the kernel says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelEvent {
    /// The watch.
    pub watch: i32,
    /// The flags of the event.
    pub flags: ReadFlags,
    /// The cookie that pairs the halves of a rename.
    pub cookie: u32,
    /// The name in the directory that is watched; empty for what is watched itself.
    pub name: Vec<u8>,
}

/// The next event to process.
#[derive(Debug, PartialEq, Eq)]
pub enum NextEvent {
    /// This event alone.
    One(KernelEvent),
    /// A rename: from where, to where.
    Pair(KernelEvent, KernelEvent),
    /// Nothing before this moment, unless more is said.
    Wait(Instant),
    /// Nothing.
    Empty,
}

/// The events that wait, oldest first.
#[derive(Debug, Default)]
pub struct EventQueue(VecDeque<(Instant, KernelEvent)>);

impl EventQueue {
    /// Takes in what the kernel has said, up to a buffer of it; whether there was anything.
    pub fn read(&mut self, inotify: BorrowedFd<'_>) -> Result<bool, Errno> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(inotify, &mut buffer);
        let now = Instant::now();
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes().to_vec()).unwrap_or_default();
                    let (watch, flags, cookie) = (event.wd(), event.events(), event.cookie());
                    self.0.push_back((now, KernelEvent { watch, flags, cookie, name }));
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            }
            if reader.is_buffer_empty() {
                return Ok(true);
            }
        }
    }

    /// Tells whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether so much waits that no more should be read.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_WAITING
    }

    /// Takes out what is to be looked at next.
    pub fn next(&mut self, now: Instant) -> NextEvent {
        let Some((at, first)) = self.0.front() else {
            return NextEvent::Empty;
        };
        if !first.flags.contains(ReadFlags::MOVED_FROM) {
            return self.pop().map_or(NextEvent::Empty, NextEvent::One);
        }
        let is_second =
            |raw: &KernelEvent| raw.flags.contains(ReadFlags::MOVED_TO) && raw.cookie == first.cookie;
        let second = self.0.iter().position(|(_, raw)| is_second(raw));
        // Whatever was lost, its second half may be among it.
        let is_over = |raw: &KernelEvent| raw.flags.contains(ReadFlags::QUEUE_OVERFLOW);
        let give_up = *at + PATIENCE;
        match second.and_then(|index| self.0.remove(index)) {
            Some((_, second)) => self.pop().map_or(NextEvent::Empty, |first| NextEvent::Pair(first, second)),
            None if now < give_up && !self.is_full() && !self.0.iter().any(|(_, raw)| is_over(raw)) => {
                NextEvent::Wait(give_up)
            }
            None => self.pop().map_or(NextEvent::Empty, NextEvent::One),
        }
    }

    fn pop(&mut self) -> Option<KernelEvent> {
        self.0.pop_front().map(|(_, raw)| raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(flags: ReadFlags, cookie: u32, name: &str) -> KernelEvent {
        KernelEvent { watch: 1, flags, cookie, name: name.into() }
    }

    fn queue(events: &[KernelEvent]) -> (EventQueue, Instant) {
        let now = Instant::now();
        (EventQueue(events.iter().cloned().map(|event| (now, event)).collect()), now)
    }

    #[test]
    fn the_halves_of_a_rename_are_paired_over_what_lies_between() {
        let (from, to) = (raw(ReadFlags::MOVED_FROM, 7, "a"), raw(ReadFlags::MOVED_TO, 7, "b"));
        let between = raw(ReadFlags::CREATE, 0, "a");
        let (mut queue, now) = queue(&[from.clone(), between.clone(), to.clone()]);
        assert_eq!(queue.next(now), NextEvent::Pair(from, to));
        assert_eq!((queue.next(now), queue.next(now)), (NextEvent::One(between), NextEvent::Empty));
    }

    #[test]
    fn a_first_half_holds_up_the_rest_for_a_moment_and_then_stands_alone() {
        let (from, after) = (raw(ReadFlags::MOVED_FROM, 7, "a"), raw(ReadFlags::CREATE, 0, "c"));
        let (mut queue, now) = queue(&[from.clone(), after.clone()]);
        assert_eq!(queue.next(now), NextEvent::Wait(now + PATIENCE));
        assert_eq!(queue.next(now + PATIENCE), NextEvent::One(from));
        assert_eq!(queue.next(now), NextEvent::One(after));
    }

    #[test]
    fn a_second_half_alone_an_overflow_and_a_full_queue_wait_for_nobody() {
        let (from, to) = (raw(ReadFlags::MOVED_FROM, 7, "a"), raw(ReadFlags::MOVED_TO, 8, "b"));
        let (mut one, now) = queue(std::slice::from_ref(&to));
        assert_eq!(one.next(now), NextEvent::One(to.clone()));
        let (mut lost, now) = queue(&[from.clone(), raw(ReadFlags::QUEUE_OVERFLOW, 0, "")]);
        assert_eq!(lost.next(now), NextEvent::One(from.clone()));
        let (mut full, now) = queue(&vec![from.clone(); MOST_WAITING]);
        assert_eq!(full.next(now), NextEvent::One(from));
    }
}
