//! The gate. All connections out of the sandbox go through [`Gate::connect`], and every name
//! through [`Gate::resolve`]. The address that is judged is the very address that is dialled:
//! nothing is resolved a second time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::watch;

use super::allowed_connection::AllowedConnection;
use super::dns_cache::DnsCache;
use super::journal::{AccessAttempt, Journal};
use super::limits;
use super::resolver::{Family, HostResolver, LookupError, ResolvedAddresses};
use crate::address::unmapped;
use crate::decision::{EgressProtocol, EgressVerdict};
use crate::host::{Destination, HostName};
use crate::rules::{EgressRules, Refusal};

/// The gate of one sandbox.
pub(super) struct Gate {
    pub(super) sandbox: String,
    pub(super) journal: Journal,
    rules: watch::Sender<EgressRules>,
    names: HostResolver,
    dns_cache: Mutex<DnsCache>,
}

/// The reason why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// It is not allowed. The text holds whole sentences for the client.
    Refused(String),
    /// The name has no address.
    Unresolved(String),
    /// The host does not answer.
    Unreachable(io::Error),
}

/// The result of a name lookup.
#[derive(Debug)]
pub(super) enum Resolution {
    /// These addresses, with their time to live.
    Addresses(ResolvedAddresses),
    /// The name may not be resolved, or none of its addresses may be told.
    Refused,
    /// There is no address.
    Nothing(LookupError),
}

impl Gate {
    pub(super) fn new(sandbox: String, rules: EgressRules) -> Self {
        Self {
            sandbox,
            journal: Journal::new(),
            rules: watch::Sender::new(rules),
            names: HostResolver::default(),
            dns_cache: Mutex::default(),
        }
    }

    /// Returns the rules that apply.
    pub(super) fn rules(&self) -> EgressRules {
        self.rules.borrow().clone()
    }

    /// Replaces the rules. Connections that the new rules do not allow are closed.
    pub(super) fn set_rules(&self, rules: EgressRules) {
        self.rules.send_replace(rules);
    }

    /// Connects to a host as a client wrote it, if the rules allow that.
    pub(super) async fn connect(
        &self,
        protocol: EgressProtocol,
        host: &str,
        port: u16,
    ) -> Result<(TcpStream, AllowedConnection), ConnectError> {
        let attempt = AccessAttempt { protocol, host, port: Some(port), address: None };
        let target = match Destination::parse(host) {
            Ok(target) => target,
            Err(reason) => return Err(self.refuse(attempt, format!("`{}` {reason}", host.escape_default()))),
        };
        let allowed_connections = self.allowed_connections(attempt, target, port).await?;
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for allowed in allowed_connections.into_iter().take(limits::ADDRESSES) {
            self.journal.record(allowed.attempt(host), EgressVerdict::Allowed, "allowed");
            match dial(SocketAddr::new(allowed.address, port)).await {
                Ok(stream) => return Ok((stream, allowed)),
                Err(error) => failure = error,
            }
        }
        Err(ConnectError::Unreachable(failure))
    }

    /// Returns the connections that the rules allow, one for each address of the host; at least
    /// one.
    async fn allowed_connections(
        &self,
        attempt: AccessAttempt<'_>,
        target: Destination,
        port: u16,
    ) -> Result<Vec<AllowedConnection>, ConnectError> {
        let (names, addresses) = match &target {
            Destination::Address(address) => (self.dns_cache().names(unmapped(*address)), vec![*address]),
            Destination::Name(name) => {
                let judged = self.rules.borrow().judge_name(name, Some(port));
                judged.map_err(|refusal| self.refuse_by(attempt, &refusal))?;
                let found = self.names.lookup_all(name).await;
                let found = found.map_err(|error| {
                    self.record_unresolved(attempt, &error);
                    ConnectError::Unresolved(unresolved(name, &error))
                })?;
                (vec![name.clone()], found)
            }
        };
        let own = own_addresses().map_err(ConnectError::Unreachable)?;
        let mut allowed_connections = Vec::new();
        let mut first = None;
        for address in addresses.into_iter().map(unmapped) {
            let own = own.contains(&address);
            let (target, names) = (target.clone(), names.clone());
            let allowed = AllowedConnection { protocol: attempt.protocol, target, names, address, port, own };
            let judged = allowed.judge(&self.rules.borrow());
            match judged {
                Ok(()) => allowed_connections.push(allowed),
                Err(refusal) => first = first.or(Some((address, refusal))),
            }
        }
        match first {
            Some((address, refusal)) if allowed_connections.is_empty() => {
                Err(self.refuse_by(AccessAttempt { address: Some(address), ..attempt }, &refusal))
            }
            _ => Ok(allowed_connections),
        }
    }

    /// Resolves a name for the sandbox. The answer contains only addresses that it may connect to
    /// on some port.
    pub(super) async fn resolve(&self, name: &HostName, family: Family) -> Resolution {
        let attempt =
            AccessAttempt { protocol: EgressProtocol::Dns, host: name.as_str(), port: None, address: None };
        let judged = self.rules.borrow().judge_name(name, None);
        if let Err(refusal) = judged {
            self.journal.record(attempt, EgressVerdict::Refused, refusal.to_string());
            return Resolution::Refused;
        }
        let mut found = match self.names.lookup(name, family).await {
            Ok(found) => found,
            Err(error) => {
                self.record_unresolved(attempt, &error);
                return Resolution::Nothing(error);
            }
        };
        let withheld = self.drop_refused(name, &mut found);
        for address in &found.addresses {
            self.dns_cache().remember(unmapped(*address), name);
        }
        match (found.addresses.first(), withheld) {
            (Some(address), _) => {
                let attempt = AccessAttempt { address: Some(*address), ..attempt };
                self.journal.record(attempt, EgressVerdict::Allowed, "allowed");
                Resolution::Addresses(found)
            }
            (None, Some((address, refusal))) => {
                let attempt = AccessAttempt { address: Some(address), ..attempt };
                self.journal.record(attempt, EgressVerdict::Refused, refusal.to_string());
                Resolution::Refused
            }
            (None, None) => {
                let error = LookupError::NoAddress(Some(family));
                self.record_unresolved(attempt, &error);
                Resolution::Nothing(error)
            }
        }
    }

    /// Removes the addresses that may not be told. Returns the first of them with its refusal.
    fn drop_refused(&self, name: &HostName, found: &mut ResolvedAddresses) -> Option<(IpAddr, Refusal)> {
        let Ok(own) = own_addresses() else {
            found.addresses.clear();
            return None;
        };
        let rules = self.rules.borrow();
        let mut withheld = None;
        found.addresses.retain(|address| {
            match rules.judge_dns_answer(name, *address, own.contains(&unmapped(*address))) {
                Ok(()) => true,
                Err(refusal) => {
                    withheld.get_or_insert((*address, refusal));
                    false
                }
            }
        });
        withheld
    }

    /// Returns once the rules no longer allow this connection.
    pub(super) async fn until_forbidden(&self, allowed: &AllowedConnection) {
        let mut rules = self.rules.subscribe();
        loop {
            let judged = allowed.judge(&rules.borrow_and_update());
            if let Err(refusal) = judged {
                let host = allowed.target.to_string();
                let reason = format!("closed after the rules changed: {refusal}");
                self.journal.record(allowed.attempt(&host), EgressVerdict::Refused, reason);
                return;
            }
            if rules.changed().await.is_err() {
                return;
            }
        }
    }

    /// Records that the rules allow a name that has no address.
    fn record_unresolved(&self, attempt: AccessAttempt<'_>, error: &LookupError) {
        self.journal.record(attempt, EgressVerdict::Allowed, format!("allowed, but {error}"));
    }

    fn dns_cache(&self) -> std::sync::MutexGuard<'_, DnsCache> {
        self.dns_cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_by(&self, attempt: AccessAttempt<'_>, refusal: &Refusal) -> ConnectError {
        let failure = self.refuse(attempt, refusal.to_string());
        let ConnectError::Refused(sentence) = failure else { return failure };
        let is_open = self.rules.borrow().allow.is_empty();
        ConnectError::Refused(format!("{sentence}\n{}\n", advice(&self.sandbox, attempt, refusal, is_open)))
    }

    fn refuse(&self, attempt: AccessAttempt<'_>, reason: String) -> ConnectError {
        let (host, port) = (attempt.host.escape_default(), attempt.port.unwrap_or_default());
        let sentence = format!("eyot: sandbox `{}` may not connect to {host}:{port}: {reason}", self.sandbox);
        self.journal.record(attempt, EgressVerdict::Refused, reason);
        ConnectError::Refused(sentence)
    }
}

/// Says what the operator can do about a refusal. `is_open` says that no rule allows anything yet, so
/// that all that is public is allowed: a first rule would close that.
fn advice(sandbox: &str, attempt: AccessAttempt<'_>, refusal: &Refusal, is_open: bool) -> String {
    let port = attempt.port.unwrap_or_default();
    let address = attempt.address.map(|address| match address {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => format!("[{six}]"),
    });
    match (refusal, address) {
        (Refusal::NotAllowed, _) => {
            format!("to allow it, on the host: eyot net {sandbox} --allow {}:{port}", attempt.host)
        }
        (Refusal::Denied(rule), _) => {
            format!("to lift that rule, on the host: eyot net {sandbox} --remove {rule}")
        }
        (Refusal::NotPublic(kind), _) if !kind.can_be_opened() => "no rule can allow it".to_owned(),
        (_, Some(address)) if is_open => format!(
            "to allow it beside all that is public, on the host: eyot net {sandbox} --allow '*' --allow {address}:{port}"
        ),
        (_, Some(address)) => {
            format!("to allow it, on the host: eyot net {sandbox} --allow {address}:{port}")
        }
        (_, None) => "it can be allowed by its address alone".to_owned(),
    }
}

fn unresolved(name: &HostName, error: &LookupError) -> String {
    match error {
        LookupError::NoSuchName => format!("eyot: there is no host `{name}`\n"),
        LookupError::NoAddress(_) => format!("eyot: the host `{name}` has no address\n"),
        LookupError::Failed(reason) => format!("eyot: the host `{name}` can't be resolved: {reason}\n"),
    }
}

async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    match tokio::time::timeout(limits::CONNECT, TcpStream::connect(address)).await {
        Ok(connected) => {
            let stream = connected?;
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Returns the host's own addresses, as they are now.
fn own_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(if_addrs::get_if_addrs()?.iter().map(|interface| interface.ip()).collect())
}
