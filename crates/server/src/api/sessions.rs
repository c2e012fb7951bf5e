//! The sessions of browsers that signed in at the page, with their limits.
//!
//! They are kept in memory only, as hashes and without the key. A restart of the server signs
//! everybody out, and a stolen state folder opens no session. A session has two secrets. The
//! browser sends the cookie to every port of the host's name. The proof stays with the page, where
//! the page of another port cannot read it. Neither is worth anything without the other.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyot::Result;
use subtle::ConstantTimeEq;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::keys::hash;
use super::turns::Right;
use crate::random_hex::random_hex;

/// The lifetime of a session: 12 hours.
pub(super) const LIFE: Duration = Duration::from_secs(12 * 3600);
/// The most sessions of one key. A new one ends the oldest.
const PER_KEY: usize = 32;
/// The most sessions of all keys. A new one ends the oldest.
const MAX: usize = 4096;
/// The longest text that is taken for a secret, in bytes.
const MAX_BYTES: usize = 128;

type Hash = [u8; 32];

/// The sessions of a server.
#[derive(Default)]
pub(super) struct PageSessions {
    all: Mutex<HashMap<Hash, PageSession>>,
}

/// One session. Dropping it cuts its requests under way.
struct PageSession {
    /// The hash of the key that opened it.
    key: Hash,
    proof: Hash,
    opened: Instant,
    ended: CancellationToken,
    _cut: DropGuard,
}

/// The secrets of a newly opened session. They are kept nowhere else.
pub(super) struct NewSession {
    pub cookie: String,
    pub proof: String,
}

impl PageSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Hash, PageSession>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session for the key with this hash. `ended` is cancelled when the key is revoked,
    /// and, from here on, when the session ends.
    pub fn open(&self, key: Hash, ended: CancellationToken, now: Instant) -> Result<NewSession> {
        let opened = NewSession { cookie: random_hex::<32>()?, proof: random_hex::<32>()? };
        let mut all = self.lock();
        all.retain(|_, session| now.duration_since(session.opened) < LIFE);
        make_room(&mut all, PER_KEY, |session| session.key == key);
        make_room(&mut all, MAX, |_| true);
        let (proof, cut) = (hash(&opened.proof), ended.clone().drop_guard());
        all.insert(hash(&opened.cookie), PageSession { key, proof, opened: now, ended, _cut: cut });
        Ok(opened)
    }

    /// Returns the hash of the key that a cookie and its proof stand for, and the session's time
    /// limit.
    pub fn key(&self, cookie: &str, proof: &str, now: Instant) -> Option<(Hash, Right)> {
        if cookie.len() > MAX_BYTES || proof.len() > MAX_BYTES {
            return None;
        }
        let all = self.lock();
        // What is looked up is a hash, which tells nothing of the cookie.
        let session = all.get(&hash(cookie))?;
        let is_it = bool::from(session.proof.ct_eq(&hash(proof)));
        let right = Right { ended: session.ended.clone(), until: Some(session.opened + LIFE) };
        (is_it && now.duration_since(session.opened) < LIFE).then_some((session.key, right))
    }

    /// Ends a session. Succeeds if it has ended already.
    pub fn close(&self, cookie: &str) {
        self.lock().remove(&hash(&cookie[..cookie.floor_char_boundary(MAX_BYTES)]));
    }
}

/// Ends the oldest of these sessions until there is room for one more.
fn make_room(all: &mut HashMap<Hash, PageSession>, most: usize, is_one: impl Fn(&PageSession) -> bool) {
    let mut those: Vec<(Instant, Hash)> = all
        .iter()
        .filter(|(_, session)| is_one(session))
        .map(|(cookie, session)| (session.opened, *cookie))
        .collect();
    if those.len() < most {
        return;
    }
    those.sort_unstable();
    let too_many = those.len() + 1 - most;
    for (_, cookie) in &those[..too_many] {
        all.remove(cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_worth_nothing_without_its_proof_nor_after_its_time() {
        let (sessions, now) = (PageSessions::default(), Instant::now());
        let open = |key| sessions.open(key, CancellationToken::new(), now).unwrap();
        let (one, other) = (open([1; 32]), open([2; 32]));
        let key = |cookie: &str, proof: &str, at| sessions.key(cookie, proof, at).map(|(key, _)| key);
        assert_eq!(key(&one.cookie, &one.proof, now), Some([1; 32]));
        assert_eq!(key(&other.cookie, &other.proof, now + LIFE - Duration::from_millis(1)), Some([2; 32]));
        assert_eq!(key(&one.cookie, &one.proof, now + LIFE), None);
        for (cookie, proof) in [(&one.cookie, &other.proof), (&one.proof, &one.cookie)] {
            assert_eq!(key(cookie, proof, now), None);
        }
        assert_eq!(key(&one.cookie, "", now), None);
        let (_, right) = sessions.key(&one.cookie, &one.proof, now).unwrap();
        assert!(!right.ended.is_cancelled() && right.until == Some(now + LIFE));
        sessions.close(&one.cookie);
        assert!(right.ended.is_cancelled());
        assert_eq!(key(&one.cookie, &one.proof, now), None);
        assert_eq!(key(&other.cookie, &other.proof, now), Some([2; 32]));
    }

    #[test]
    fn a_keys_oldest_session_makes_room_and_another_keys_does_not() {
        let (sessions, begin) = (PageSessions::default(), Instant::now());
        let at = |index: usize| begin + Duration::from_millis(index as u64);
        let open = |key, at| sessions.open(key, CancellationToken::new(), at).unwrap();
        let other = open([2; 32], begin);
        let ours: Vec<NewSession> = (0..=PER_KEY).map(|i| open([1; 32], at(i))).collect();
        let is_open =
            |opened: &NewSession| sessions.key(&opened.cookie, &opened.proof, at(PER_KEY)).is_some();
        assert!(!is_open(&ours[0]) && is_open(&other));
        assert!(ours[1..].iter().all(is_open));
    }
}
