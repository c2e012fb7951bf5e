//! Names for what a transfer needs inside of a sandbox, from which a later transfer can tell if its maker still lives. The
//! sandbox learns nothing from them: the process is in them as a hash with a random part.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyot::{Error, Result};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::store::Owner;

const PREFIX: &str = ".eyot-transfer-";
/// The time for which a directory made by another host is believed to be in use: its processes
/// can't be seen from here.
const OTHER_HOSTS_PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Returns a new name for what this process makes.
pub(super) fn new_name() -> Result<String> {
    let (owner, nonce) = (Owner::this_process()?, Uuid::now_v7());
    Ok(format!(
        "{PREFIX}{}-{}-{}",
        host(&namespace()?, &owner.boot_id, nonce),
        process(&owner, nonce),
        nonce.simple()
    ))
}

/// Tells if a name is of something whose maker has ended.
pub(super) fn is_abandoned(name: &str) -> Result<bool> {
    let Some((of_host, of_process, nonce)) = parsed(name) else { return Ok(false) };
    let this = Owner::this_process()?;
    if of_host != host(&namespace()?, &this.boot_id, nonce) {
        return Ok(is_old(nonce));
    }
    let all = Owner::all().map_err(|error| Error::host("look which processes there are", error))?;
    Ok(!all.iter().any(|owner| of_process == process(owner, nonce)))
}

fn parsed(name: &str) -> Option<(&str, &str, Uuid)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let (host, process, nonce) = (parts.next()?, parts.next()?, parts.next()?);
    Some((host, process, Uuid::try_parse(nonce).ok()?)).filter(|_| parts.next().is_none())
}

fn is_old(nonce: Uuid) -> bool {
    let made = nonce.get_timestamp().map(|stamp| UNIX_EPOCH + Duration::from_secs(stamp.to_unix().0));
    made.and_then(|made| SystemTime::now().duration_since(made).ok())
        .is_some_and(|age| age > OTHER_HOSTS_PATIENCE)
}

/// The processes that this one sees.
fn namespace() -> Result<String> {
    let link = std::fs::read_link("/proc/self/ns/pid");
    let link = link.map_err(|error| Error::host("find out which processes can be seen", error))?;
    Ok(link.to_string_lossy().into_owned())
}

fn host(namespace: &str, boot_id: &str, nonce: Uuid) -> String {
    hash(&[b"host", namespace.as_bytes(), boot_id.as_bytes(), nonce.as_bytes()])
}

fn process(owner: &Owner, nonce: Uuid) -> String {
    let (pid, start) = (owner.pid.to_le_bytes(), owner.start_ticks.to_le_bytes());
    hash(&[b"process", owner.boot_id.as_bytes(), &pid, &start, nonce.as_bytes()])
}

fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    hex::encode(&hasher.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_living_process_made_is_in_use_and_what_a_dead_one_made_is_not() {
        let name = new_name().unwrap();
        assert!(!is_abandoned(&name).unwrap());
        let (nonce, this) = (Uuid::now_v7(), Owner::this_process().unwrap());
        let dead = Owner { start_ticks: this.start_ticks + 1, ..this.clone() };
        let named =
            |host: &str, nonce: Uuid| format!("{PREFIX}{host}-{}-{}", process(&dead, nonce), nonce.simple());
        let here = host(&namespace().unwrap(), &this.boot_id, nonce);
        assert!(is_abandoned(&named(&here, nonce)).unwrap());
        // Another host's: only when it is old.
        assert!(!is_abandoned(&named("0123456789abcdef", nonce)).unwrap());
        let old = Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 1_600_000_000, 0));
        assert!(is_abandoned(&named("0123456789abcdef", old)).unwrap());
    }

    #[test]
    fn other_names_are_nobodys_litter() {
        for name in [
            "",
            "file",
            ".eyot-transfer-",
            ".eyot-transfer-a-b-c",
            ".eyot-transfer-0192f0c1e7d87c3e9a4b5c6d7e8f9a0b",
        ] {
            assert!(!is_abandoned(name).unwrap(), "{name}");
        }
    }
}
