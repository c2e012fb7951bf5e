//! The gate: everything that leaves the sandbox goes through [`Gate::connect`], and every name through
//! [`Gate::resolve`]. What is judged is the very address that is dialled; nothing is resolved a second time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::watch;

use super::journal::{About, Journal};
use super::limits;
use super::names::{Family, Found, Names, NotFound};
use super::pass::Pass;
use super::told::Told;
use crate::address::plain;
use crate::decision::{EgressProtocol, EgressVerdict};
use crate::host::{HostName, Target};
use crate::rules::{EgressRules, Refusal};

/// One sandbox's gate.
pub(super) struct Gate {
    pub(super) sandbox: String,
    pub(super) journal: Journal,
    rules: watch::Sender<EgressRules>,
    names: Names,
    told: Mutex<Told>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Failure {
    /// It is not allowed; whole sentences for whoever asked.
    Refused(String),
    /// The name leads nowhere.
    Unresolved(String),
    /// Nobody answers there.
    Unreachable(io::Error),
}

/// What a name lookup comes to.
#[derive(Debug)]
pub(super) enum Resolved {
    /// These addresses, for so many seconds.
    Addresses(Found),
    /// The name may not be resolved, or everything it has may not be told.
    Refused,
    /// There is nothing.
    Nothing(NotFound),
}

impl Gate {
    pub(super) fn new(sandbox: String, rules: EgressRules) -> Self {
        Self {
            sandbox,
            journal: Journal::new(),
            rules: watch::Sender::new(rules),
            names: Names::default(),
            told: Mutex::default(),
        }
    }

    /// The rules that hold.
    pub(super) fn rules(&self) -> EgressRules {
        self.rules.borrow().clone()
    }

    /// These rules hold from now on; what they do not allow is closed.
    pub(super) fn set_rules(&self, rules: EgressRules) {
        self.rules.send_replace(rules);
    }

    /// Connects to a host as a client wrote it, if that is allowed.
    pub(super) async fn connect(
        &self,
        protocol: EgressProtocol,
        host: &str,
        port: u16,
    ) -> Result<(TcpStream, Pass), Failure> {
        let about = About { protocol, host, port: Some(port), address: None };
        let target = match Target::parse(host) {
            Ok(target) => target,
            Err(reason) => return Err(self.refuse(about, format!("`{}` {reason}", host.escape_default()))),
        };
        let passes = self.passes(about, target, port).await?;
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for pass in passes.into_iter().take(limits::ADDRESSES) {
            self.journal.note(pass.about(host), EgressVerdict::Allowed, "allowed");
            match dial(SocketAddr::new(pass.address, port)).await {
                Ok(stream) => return Ok((stream, pass)),
                Err(error) => failure = error,
            }
        }
        Err(Failure::Unreachable(failure))
    }

    /// Every address of the target that may be dialled; at least one.
    async fn passes(&self, about: About<'_>, target: Target, port: u16) -> Result<Vec<Pass>, Failure> {
        let (names, addresses) = match &target {
            Target::Address(address) => (self.told().names(plain(*address)), vec![*address]),
            Target::Name(name) => {
                let judged = self.rules.borrow().judge_name(name, Some(port));
                judged.map_err(|refusal| self.refuse_by(about, &refusal))?;
                let found = self.names.lookup_all(name).await;
                (vec![name.clone()], found.map_err(|error| Failure::Unresolved(unresolved(name, &error)))?)
            }
        };
        let own = own_addresses().map_err(Failure::Unreachable)?;
        let mut passes = Vec::new();
        let mut first = None;
        for address in addresses.into_iter().map(plain) {
            let own = own.contains(&address);
            let (target, names) = (target.clone(), names.clone());
            let pass = Pass { protocol: about.protocol, target, names, address, port, own };
            let judged = pass.judge(&self.rules.borrow());
            match judged {
                Ok(()) => passes.push(pass),
                Err(refusal) => first = first.or(Some((address, refusal))),
            }
        }
        match first {
            Some((address, refusal)) if passes.is_empty() => {
                Err(self.refuse_by(About { address: Some(address), ..about }, &refusal))
            }
            _ => Ok(passes),
        }
    }

    /// Resolves a name for the sandbox: only what it may connect to on some port is told.
    pub(super) async fn resolve(&self, name: &HostName, family: Family) -> Resolved {
        let about = About { protocol: EgressProtocol::Dns, host: name.as_str(), port: None, address: None };
        let judged = self.rules.borrow().judge_name(name, None);
        if let Err(refusal) = judged {
            self.journal.note(about, EgressVerdict::Refused, refusal.to_string());
            return Resolved::Refused;
        }
        let mut found = match self.names.lookup(name, family).await {
            Ok(found) => found,
            Err(nothing) => {
                self.journal.note(about, EgressVerdict::Allowed, "allowed");
                return Resolved::Nothing(nothing);
            }
        };
        let withheld = self.withhold(name, &mut found);
        for address in &found.addresses {
            self.told().remember(plain(*address), name);
        }
        match (found.addresses.first(), withheld) {
            (Some(address), _) => {
                let about = About { address: Some(*address), ..about };
                self.journal.note(about, EgressVerdict::Allowed, "allowed");
                Resolved::Addresses(found)
            }
            (None, Some((address, refusal))) => {
                let about = About { address: Some(address), ..about };
                self.journal.note(about, EgressVerdict::Refused, refusal.to_string());
                Resolved::Refused
            }
            (None, None) => Resolved::Nothing(NotFound::NoAddress),
        }
    }

    /// Takes out what may not be told; the answer is the first of it.
    fn withhold(&self, name: &HostName, found: &mut Found) -> Option<(IpAddr, Refusal)> {
        let Ok(own) = own_addresses() else {
            found.addresses.clear();
            return None;
        };
        let rules = self.rules.borrow();
        let mut withheld = None;
        found.addresses.retain(|address| {
            match rules.judge_telling(name, *address, own.contains(&plain(*address))) {
                Ok(()) => true,
                Err(refusal) => {
                    withheld.get_or_insert((*address, refusal));
                    false
                }
            }
        });
        withheld
    }

    /// Returns when the rules no longer allow what this connection was allowed.
    pub(super) async fn until_forbidden(&self, pass: &Pass) {
        let mut rules = self.rules.subscribe();
        loop {
            let judged = pass.judge(&rules.borrow_and_update());
            if let Err(refusal) = judged {
                let host = pass.target.to_string();
                let reason = format!("closed after the rules changed: {refusal}");
                self.journal.note(pass.about(&host), EgressVerdict::Refused, reason);
                return;
            }
            if rules.changed().await.is_err() {
                return;
            }
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_by(&self, about: About<'_>, refusal: &Refusal) -> Failure {
        let failure = self.refuse(about, refusal.to_string());
        let Failure::Refused(sentence) = failure else { return failure };
        Failure::Refused(format!("{sentence}\n{}\n", advice(&self.sandbox, about, refusal)))
    }

    fn refuse(&self, about: About<'_>, reason: String) -> Failure {
        let (host, port) = (about.host.escape_default(), about.port.unwrap_or_default());
        let sentence = format!("eyot: sandbox `{}` may not connect to {host}:{port}: {reason}", self.sandbox);
        self.journal.note(about, EgressVerdict::Refused, reason);
        Failure::Refused(sentence)
    }
}

/// What the operator can do about a refusal.
fn advice(sandbox: &str, about: About<'_>, refusal: &Refusal) -> String {
    let port = about.port.unwrap_or_default();
    let address = about.address.map(|address| match address {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => format!("[{six}]"),
    });
    match (refusal, address) {
        (Refusal::NotAllowed, _) => {
            format!("to allow it, on the host: eyot net {sandbox} --allow {}:{port}", about.host)
        }
        (Refusal::Denied(rule), _) => {
            format!("to lift that rule, on the host: eyot net {sandbox} --remove {rule}")
        }
        (Refusal::NotPublic(kind), _) if !kind.can_be_opened() => "no rule can allow it".to_owned(),
        (_, Some(address)) => {
            format!("to allow it, on the host: eyot net {sandbox} --allow {address}:{port}")
        }
        (_, None) => "it can be allowed by its address alone".to_owned(),
    }
}

fn unresolved(name: &HostName, error: &NotFound) -> String {
    match error {
        NotFound::NoName => format!("eyot: there is no host `{name}`\n"),
        NotFound::NoAddress => format!("eyot: the host `{name}` has no address\n"),
        NotFound::Failed(reason) => format!("eyot: the host `{name}` can't be resolved: {reason}\n"),
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

/// The host's own addresses, as they are now.
fn own_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(if_addrs::get_if_addrs()?.iter().map(|interface| interface.ip()).collect())
}
