//! Grants to see a port as a preview. They are kept in memory only, as hashes. They last at most a
//! week and no longer than the server; a client with a key gets new ones by one request.
//!
//! A grant is for one port of one sandbox of one pool; its secrets open nothing else. The token of
//! an address can be exchanged for one cookie. A cookie, and the token for a header, are valid
//! until the grant ends.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use eyot::{Result, SandboxId, SandboxName};
use subtle::{Choice, ConstantTimeEq};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::address::PreviewTarget;
use crate::api::keys::hash;
use crate::random_hex::random_hex;

/// The default lifetime of a grant, in milliseconds: 12 hours.
pub(crate) const TTL_MS: u64 = 12 * 3_600_000;
/// The lifetimes that a grant may have, in milliseconds: a second to a week.
pub const TTL_MS_RANGE: RangeInclusive<u64> = 1_000..=7 * 24 * 3_600_000;
/// The time in which the token of an address must be used.
const TICKET_LIFE: Duration = Duration::from_secs(3600);
/// The most grants of one port at once. A new one ends the oldest.
const PER_PORT: usize = 64;
/// The most ports of one sandbox with grants at once. A new one ends the grants of the port whose
/// latest grant is the oldest.
const PORTS: usize = 64;
/// The longest text that is taken for a secret, in bytes. The rest is cut off.
const MAX_BYTES: usize = 128;

type Hash = [u8; 32];

/// The grants to see ports, of all sandboxes.
#[derive(Default)]
pub(crate) struct Grants {
    sandboxes: Mutex<HashMap<SandboxId, BTreeMap<u16, Port>>>,
}

/// The grants of one port. Dropping it cuts the port's connections under way.
struct Port {
    grants: Vec<Grant>,
    revoked: CancellationToken,
    _cut: DropGuard,
}

impl Port {
    fn of(grants: Vec<Grant>) -> Self {
        let revoked = CancellationToken::new();
        Self { grants, _cut: revoked.clone().drop_guard(), revoked }
    }
}

struct Grant {
    pool: SandboxName,
    /// The id of the API key that asked for the grant.
    key: Option<String>,
    made: SystemTime,
    ends: SystemTime,
    proof: Proof,
}

enum Proof {
    Nothing,
    Secrets { token: Hash, addresses: [AddressSecret; 2] },
}

/// The secret of one address: first its one-time token, then the cookie that replaced it.
enum AddressSecret {
    Ticket(Hash),
    Cookie(Hash),
}

/// A request for a grant.
pub(crate) struct GrantRequest<'a> {
    pub target: &'a PreviewTarget,
    pub pool: &'a SandboxName,
    /// The id of the API key that asks.
    pub key: Option<&'a str>,
    pub ttl: Duration,
    /// Set if everybody may see the port.
    pub public: bool,
}

/// The secrets of a new grant. They are kept nowhere else.
pub(crate) struct GrantSecrets {
    /// The token for a header.
    pub token: String,
    /// The one-time tokens for two addresses.
    pub tickets: [String; 2],
}

/// The cookie that a browser gets for a ticket.
pub(super) struct NewCookie {
    pub cookie: String,
    pub lasts: Duration,
}

impl Grants {
    /// Issues a grant and returns its secrets; `None`: the port is public, and no secret is needed.
    pub fn issue(&self, request: GrantRequest<'_>, now: SystemTime) -> Result<Option<GrantSecrets>> {
        let GrantRequest { target, pool, key, ttl, public } = request;
        let issued = if public {
            None
        } else {
            Some(GrantSecrets { token: secret()?, tickets: [secret()?, secret()?] })
        };
        let proof = issued.as_ref().map_or(Proof::Nothing, |issued| {
            let addresses = issued.tickets.each_ref().map(|ticket| AddressSecret::Ticket(hash(ticket)));
            Proof::Secrets { token: hash(&issued.token), addresses }
        });
        let grant =
            Grant { pool: pool.clone(), key: key.map(str::to_owned), made: now, ends: now + ttl, proof };
        let mut sandboxes = self.lock();
        keep(&mut sandboxes, |grant| grant.ends > now);
        add(sandboxes.entry(target.sandbox.clone()).or_default(), target.port, grant);
        Ok(issued)
    }

    /// Tells whether the port is public.
    pub(super) fn is_public(&self, target: &PreviewTarget, pool: &SandboxName, now: SystemTime) -> bool {
        self.any(target, pool, now, |proof| Choice::from(u8::from(matches!(proof, Proof::Nothing))))
    }

    /// Tells whether this token opens the port.
    pub(super) fn opens_by_token(
        &self,
        target: &PreviewTarget,
        pool: &SandboxName,
        shown: &str,
        now: SystemTime,
    ) -> bool {
        let shown = shown_hash(shown);
        self.any(target, pool, now, |proof| match proof {
            Proof::Secrets { token, .. } => token.ct_eq(&shown),
            Proof::Nothing => Choice::from(0),
        })
    }

    /// Tells whether this cookie opens the port.
    pub(super) fn opens_by_cookie(
        &self,
        target: &PreviewTarget,
        pool: &SandboxName,
        shown: &str,
        now: SystemTime,
    ) -> bool {
        let shown = shown_hash(shown);
        let opens = |address: &AddressSecret| match address {
            AddressSecret::Cookie(cookie) => cookie.ct_eq(&shown),
            AddressSecret::Ticket(_) => Choice::from(0),
        };
        self.any(target, pool, now, |proof| match proof {
            Proof::Secrets { addresses: [one, other], .. } => opens(one) | opens(other),
            Proof::Nothing => Choice::from(0),
        })
    }

    /// Tells whether a valid grant of the port has a matching proof. This takes the same time for
    /// wrong and right secrets.
    fn any(
        &self,
        target: &PreviewTarget,
        pool: &SandboxName,
        now: SystemTime,
        opens: impl Fn(&Proof) -> Choice,
    ) -> bool {
        let sandboxes = self.lock();
        let port = sandboxes.get(&target.sandbox).and_then(|ports| ports.get(&target.port));
        let lasting = port
            .into_iter()
            .flat_map(|port| &port.grants)
            .filter(|grant| grant.pool == *pool && grant.ends > now);
        lasting.fold(Choice::from(0), |found, grant| found | opens(&grant.proof)).into()
    }

    /// Exchanges the one-time token of an address for a cookie; `None`: the token is wrong, used or
    /// expired.
    pub(super) fn exchange(
        &self,
        target: &PreviewTarget,
        pool: &SandboxName,
        ticket: &str,
        now: SystemTime,
    ) -> Result<Option<NewCookie>> {
        let (shown, cookie) = (shown_hash(ticket), secret()?);
        let mut sandboxes = self.lock();
        let port = sandboxes.get_mut(&target.sandbox).and_then(|ports| ports.get_mut(&target.port));
        let mut exchanged = None;
        for grant in port.into_iter().flat_map(|port| &mut port.grants) {
            let is_good = grant.pool == *pool && grant.ends > now && now < grant.made + TICKET_LIFE;
            let Proof::Secrets { addresses, .. } = &mut grant.proof else { continue };
            for address in addresses {
                if is_good
                    && matches!(address, AddressSecret::Ticket(ticket) if bool::from(ticket.ct_eq(&shown)))
                {
                    *address = AddressSecret::Cookie(hash(&cookie));
                    exchanged = Some(grant.ends.duration_since(now).unwrap_or_default());
                }
            }
        }
        Ok(exchanged.map(|lasts| NewCookie { cookie, lasts }))
    }

    /// Returns the token that is cancelled when the grants of a port are revoked. Connections under
    /// way then end.
    pub(super) fn revoked(&self, target: &PreviewTarget) -> CancellationToken {
        let sandboxes = self.lock();
        let port = sandboxes.get(&target.sandbox).and_then(|ports| ports.get(&target.port));
        port.map_or_else(
            || {
                let revoked = CancellationToken::new();
                revoked.cancel();
                revoked
            },
            |port| port.revoked.clone(),
        )
    }

    /// Revokes all grants of a port.
    pub fn revoke(&self, target: &PreviewTarget) {
        if let Some(ports) = self.lock().get_mut(&target.sandbox) {
            ports.remove(&target.port);
        }
    }

    /// Revokes all grants of a sandbox.
    pub fn revoke_all(&self, sandbox: &SandboxId) {
        self.lock().remove(sandbox);
    }

    /// Revokes all grants that this key asked for. Connections under way to their ports are cut,
    /// those of other grants too; clients with another grant can connect again.
    pub fn revoke_key(&self, key: &str) {
        let mut sandboxes = self.lock();
        let is_theirs = |grant: &Grant| grant.key.as_deref() == Some(key);
        for port in sandboxes.values_mut().flat_map(BTreeMap::values_mut) {
            if port.grants.iter().any(is_theirs) {
                let grants = std::mem::take(&mut port.grants);
                *port = Port::of(grants.into_iter().filter(|grant| !is_theirs(grant)).collect());
            }
        }
        keep(&mut sandboxes, |_| true);
    }

    /// Locks the grants, even if poisoned: only plain values are moved in and out.
    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, BTreeMap<u16, Port>>> {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps only the grants that satisfy `is_kept`, and only ports that still have some.
fn keep(sandboxes: &mut HashMap<SandboxId, BTreeMap<u16, Port>>, is_kept: impl Fn(&Grant) -> bool) {
    sandboxes.retain(|_, ports| {
        ports.retain(|_, port| {
            port.grants.retain(&is_kept);
            !port.grants.is_empty()
        });
        !ports.is_empty()
    });
}

fn add(ports: &mut BTreeMap<u16, Port>, port: u16, grant: Grant) {
    if !ports.contains_key(&port) && ports.len() >= PORTS {
        let last_made = |port: &Port| port.grants.last().map(|grant| grant.made);
        let oldest = ports.iter().min_by_key(|(_, port)| last_made(port)).map(|(port, _)| *port);
        oldest.and_then(|oldest| ports.remove(&oldest));
    }
    let Port { grants, .. } = ports.entry(port).or_insert_with(|| Port::of(Vec::new()));
    if grants.len() >= PER_PORT {
        grants.remove(0);
    }
    grants.push(grant);
}

/// Returns 256 random bits, in hexadecimal.
fn secret() -> Result<String> {
    random_hex::<32>()
}

fn shown_hash(shown: &str) -> Hash {
    hash(&shown[..shown.floor_char_boundary(MAX_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        grants: Grants,
        target: PreviewTarget,
        pool: SandboxName,
        now: SystemTime,
    }

    impl Scene {
        fn new() -> Self {
            let target = PreviewTarget { sandbox: SandboxId::generate(), port: 80 };
            let pool = SandboxName::parse("p").unwrap();
            Self { grants: Grants::default(), target, pool, now: SystemTime::now() }
        }

        fn request(&self, ttl_ms: u64) -> GrantRequest<'_> {
            let ttl = Duration::from_millis(ttl_ms);
            GrantRequest { target: &self.target, pool: &self.pool, key: None, ttl, public: false }
        }

        fn issue(&self, ttl_ms: u64) -> GrantSecrets {
            self.grants.issue(self.request(ttl_ms), self.now).unwrap().unwrap()
        }

        fn opens(&self, token: &str) -> bool {
            self.grants.opens_by_token(&self.target, &self.pool, token, self.now)
        }

        fn exchange(&self, ticket: &str) -> Option<NewCookie> {
            self.grants.exchange(&self.target, &self.pool, ticket, self.now).unwrap()
        }
    }

    #[test]
    fn a_ticket_is_worth_one_cookie_and_is_no_token_itself() {
        let scene = Scene::new();
        let issued = scene.issue(TTL_MS);
        assert!(issued.token.len() == 64 && issued.tickets[0] != issued.tickets[1]);
        let cookie = scene.exchange(&issued.tickets[0]).unwrap().cookie;
        assert!(scene.exchange(&issued.tickets[0]).is_none() && scene.exchange(&issued.tickets[1]).is_some());
        let by_cookie =
            |text: &str| scene.grants.opens_by_cookie(&scene.target, &scene.pool, text, scene.now);
        assert!(by_cookie(&cookie) && !by_cookie(&issued.tickets[0]) && !by_cookie(&issued.token));
        assert!(scene.opens(&issued.token) && !scene.opens(&cookie) && !scene.opens(&issued.tickets[1]));
        assert!(!scene.opens("") && !scene.opens(&format!("{}x", issued.token)));
    }

    #[test]
    fn what_opens_one_port_of_one_pool_opens_nothing_else() {
        let scene = Scene::new();
        let token = scene.issue(TTL_MS).token;
        let opens = |target: &PreviewTarget, pool: &str| {
            let pool = SandboxName::parse(pool).unwrap();
            scene.grants.opens_by_token(target, &pool, &token, scene.now)
        };
        assert!(opens(&scene.target, "p") && !opens(&scene.target, "q"));
        assert!(!opens(&PreviewTarget { port: 81, ..scene.target.clone() }, "p"));
        assert!(!opens(&PreviewTarget { sandbox: SandboxId::generate(), port: 80 }, "p"));
    }

    #[test]
    fn a_grant_ends_with_its_time_and_an_unused_ticket_after_an_hour() {
        let mut scene = Scene::new();
        let (short, long) = (scene.issue(1_000), scene.issue(TTL_MS));
        scene.now += Duration::from_millis(999);
        assert!(scene.opens(&short.token));
        scene.now += Duration::from_millis(1);
        assert!(!scene.opens(&short.token) && scene.exchange(&short.tickets[0]).is_none());
        scene.now += TICKET_LIFE - Duration::from_millis(1001);
        assert!(scene.exchange(&long.tickets[0]).is_some());
        scene.now += Duration::from_millis(1);
        assert!(scene.exchange(&long.tickets[1]).is_none() && scene.opens(&long.token));
    }

    #[test]
    fn a_public_port_is_public_until_it_is_revoked_and_others_are_not() {
        let scene = Scene::new();
        let is_public = |port| {
            let target = PreviewTarget { port, ..scene.target.clone() };
            scene.grants.is_public(&target, &scene.pool, scene.now)
        };
        let public = GrantRequest { public: true, ..scene.request(TTL_MS) };
        assert!(scene.grants.issue(public, scene.now).unwrap().is_none());
        assert!(is_public(80) && !is_public(81));
        scene.grants.revoke(&scene.target);
        assert!(!is_public(80));
        let token = scene.issue(TTL_MS).token;
        assert!(!is_public(80));
        scene.grants.revoke_all(&scene.target.sandbox);
        assert!(!scene.opens(&token));
    }

    #[test]
    fn the_oldest_of_too_many_makes_room() {
        let mut scene = Scene::new();
        let first = scene.issue(TTL_MS).token;
        let second = scene.issue(TTL_MS).token;
        (2..PER_PORT).for_each(|_| drop(scene.issue(TTL_MS)));
        assert!(scene.opens(&first));
        scene.issue(TTL_MS);
        assert!(!scene.opens(&first) && scene.opens(&second));
        let port = scene.target.port;
        for other in 1..PORTS {
            scene.now += Duration::from_millis(1);
            scene.target.port = 1_000 + u16::try_from(other).unwrap();
            scene.issue(TTL_MS);
        }
        scene.target.port = port;
        assert!(scene.opens(&second));
        scene.target.port = 999;
        scene.issue(TTL_MS);
        scene.target.port = port;
        assert!(!scene.opens(&second));
    }

    #[test]
    fn what_a_key_opened_ends_with_it_and_what_others_opened_does_not() {
        let scene = Scene::new();
        let by = |key| {
            scene
                .grants
                .issue(GrantRequest { key, ..scene.request(TTL_MS) }, scene.now)
                .unwrap()
                .unwrap()
                .token
        };
        let (theirs, others, nobodys) = (by(Some("key_a")), by(Some("key_b")), by(None));
        let under_way = scene.grants.revoked(&scene.target);
        scene.grants.revoke_key("key_c");
        assert!(!under_way.is_cancelled() && scene.opens(&theirs));
        scene.grants.revoke_key("key_a");
        assert!(under_way.is_cancelled() && !scene.grants.revoked(&scene.target).is_cancelled());
        assert!(!scene.opens(&theirs) && scene.opens(&others) && scene.opens(&nobodys));
        scene.grants.revoke_key("key_b");
        assert!(!scene.opens(&others) && scene.opens(&nobodys));
    }
}
