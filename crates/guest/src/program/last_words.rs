//! The time after a command's end in which what it left behind may still say something: the `tee`
//! of `>(tee log)` is often told to end only by the shell's own end, and its last lines are part of
//! the command's output.
//!
//! It is over when the output was silent for a moment while nothing that the command left behind
//! had work to do. Time in which the client takes nothing does not count. What waits for a
//! processor is waited for a little longer: a busy host must cost no output.

use std::time::{Duration, Instant, SystemTime};

/// Silence of this length means that nothing more is expected.
const SILENCE: Duration = Duration::from_millis(5);
/// After this time nothing more is waited for, however much is still being said.
const LONGEST: Duration = Duration::from_millis(50);
/// The same where what still has work to do gets no processor.
const LONGEST_STARVED: Duration = Duration::from_millis(500);
/// A process that has had less processor time than this since it was first seen at work, in
/// nanoseconds, had no chance to say something.
const LITTLE_NS: u64 = 20_000_000;

/// The time to go on reading after a command's end.
#[derive(Debug, Clone)]
pub struct LastWords {
    /// The calendar time of the command's end.
    pub ended_at: SystemTime,
    /// Tells whether the guest's timer is set for it.
    pub has_timer: bool,
    /// The number of the last command that had begun by then.
    pub last_command: u32,
    silent_since: Instant,
    ends_at: Instant,
    ends_at_last: Instant,
    has_looked: bool,
    at_work: Vec<(i32, Option<u64>)>,
    stalled_since: Option<Instant>,
}

impl LastWords {
    /// Begins at the command's end, which is now.
    pub fn begin(last_command: u32) -> Self {
        let now = Instant::now();
        Self {
            ended_at: SystemTime::now(),
            has_timer: false,
            last_command,
            silent_since: now,
            ends_at: now + LONGEST,
            ends_at_last: now + LONGEST_STARVED,
            has_looked: false,
            at_work: Vec::new(),
            stalled_since: None,
        }
    }

    /// Begins the silence anew: something was said, or is about to be.
    pub fn note_output(&mut self, now: Instant) {
        self.silent_since = now;
    }

    /// Stops the clock while the client takes nothing, and lets it go on after that.
    pub fn set_stalled(&mut self, stalled: bool, now: Instant) {
        if stalled {
            self.stalled_since.get_or_insert(now);
        } else if let Some(since) = self.stalled_since.take() {
            let lost = now.saturating_duration_since(since);
            self.silent_since += lost;
            self.ends_at += lost;
            self.ends_at_last += lost;
        }
    }

    /// Returns the time of the next check; `None` while the clock is stopped.
    pub fn due(&self) -> Option<Instant> {
        let silent = self.silent_since + SILENCE;
        self.stalled_since.is_none().then(|| silent.min(self.ends_at))
    }

    /// Tells whether nothing was said for long enough.
    pub fn is_silent(&self, now: Instant) -> bool {
        self.stalled_since.is_none() && now >= self.silent_since + SILENCE
    }

    /// Notes who has work to do, each with the processor time that it has had, in nanoseconds, if
    /// that is known. Tells whether one of them has had next to none since it was first noted. At
    /// the first look nobody has: it comes late when the guest itself got no processor.
    pub fn note(&mut self, at_work: Vec<(i32, Option<u64>)>) -> bool {
        let mut any = !std::mem::replace(&mut self.has_looked, true) && !at_work.is_empty();
        for (pid, time) in at_work {
            match self.at_work.iter().find(|(known, _)| *known == pid) {
                Some((_, first)) => {
                    let had = first.zip(time).map(|(first, time)| time.saturating_sub(first));
                    any |= had.is_some_and(|had| had < LITTLE_NS);
                }
                None => self.at_work.push((pid, time)),
            }
        }
        any
    }

    /// Goes on for another moment. Whether that is allowed.
    pub fn extend(&mut self, now: Instant) -> bool {
        self.ends_at = (now + SILENCE).min(self.ends_at_last);
        now < self.ends_at_last
    }

    /// Tells whether nothing more is waited for.
    pub fn is_over(&self, now: Instant) -> bool {
        self.stalled_since.is_none() && now >= self.ends_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn each_word_begins_the_silence_anew_and_the_longest_time_stays() {
        let mut words = LastWords::begin(0);
        let start = words.silent_since;
        assert_eq!(words.due(), Some(start + ms(5)));
        for said in [4, 8, 47] {
            words.note_output(start + ms(said));
        }
        assert_eq!(words.due(), Some(start + ms(50)));
        assert!(!words.is_over(start + ms(49)) && words.is_over(start + ms(50)));
    }

    #[test]
    fn who_gets_no_processor_is_waited_for_longer_but_not_for_ever() {
        let mut words = LastWords::begin(0);
        let start = words.silent_since;
        words.note(vec![(7, Some(1_000_000)), (8, Some(0)), (5, None)]);
        assert!(!words.note(vec![(6, Some(0))]));
        assert!(words.note(vec![(7, Some(9_000_000)), (9, Some(0))]));
        assert!(!words.note(vec![(7, Some(30_000_000)), (9, Some(20_000_000)), (5, None)]));
        assert!(words.extend(start + ms(50)) && !words.is_over(start + ms(54)));
        assert!(words.is_over(start + ms(55)));
        assert!(words.extend(start + ms(498)) && words.is_over(start + ms(500)));
        assert!(!words.extend(start + ms(500)));
    }

    #[test]
    fn who_is_seen_at_work_when_the_time_is_already_over_is_waited_for() {
        let mut words = LastWords::begin(0);
        assert!(words.note(vec![(7, Some(0))]));
        let mut words = LastWords::begin(0);
        assert!(!words.note(Vec::new()) && !words.note(vec![(7, Some(0))]));
    }

    #[test]
    fn the_clock_stands_while_the_client_takes_nothing() {
        let mut words = LastWords::begin(0);
        let start = words.silent_since;
        words.set_stalled(true, start + ms(2));
        words.set_stalled(true, start + ms(1000));
        assert_eq!((words.due(), words.is_over(start + ms(2000))), (None, false));
        words.set_stalled(false, start + ms(2002));
        assert_eq!(words.due(), Some(start + ms(2005)));
        assert!(!words.is_over(start + ms(2049)) && words.is_over(start + ms(2050)));
    }
}
