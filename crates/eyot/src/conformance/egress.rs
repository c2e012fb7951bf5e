//! The network `egress` as far as it can be tried without anything outside: what programs find, what stays closed, and
//! that the rules are kept and the decisions told.

use std::net::TcpListener;
use std::sync::Arc;

use async_trait::async_trait;
use eyot_egress::{EgressRules, EgressVerdict};
use futures_util::StreamExt;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::Fixture;
use super::check::{
    Check, cases, ensure, ensure_eq, ensure_fails, need_program, output, promptly, sh, with_spec,
};
use crate::observer::{EgressDecisionEvent, Observer};
use crate::sandbox::Sandbox;
use crate::spec::{NetworkMode, SandboxSpec};

cases! {
    with_egress_the_usual_proxy_variables_are_set_and_the_specs_own_win(fixture) needs [Shell, NetworkEgress];
    with_egress_nothing_is_reached_without_the_proxy(fixture) needs [Shell, NetworkEgress];
    with_egress_the_proxy_refuses_the_hosts_loopback_and_says_why(fixture) needs [Shell, NetworkEgress];
    egress_rules_hold_at_once_and_for_everybody(fixture) needs [Shell, NetworkEgress, Reopen];
    an_observer_hears_of_egress_decisions(fixture) needs [Shell, NetworkEgress];
    another_network_has_no_egress_rules(sandbox) needs [NetworkEgress];
    egress_rules_of_another_network_are_invalid_before_anything_exists(fixture) needs [NetworkEgress];
}

fn spec(fixture: &dyn Fixture) -> SandboxSpec {
    SandboxSpec { network: NetworkMode::Egress, ..fixture.spec() }
}

pub(super) fn rules(allow: &[&str]) -> EgressRules {
    let allow = allow.iter().filter_map(|rule| rule.parse().ok()).collect();
    EgressRules { allow, ..EgressRules::default() }
}

/// Asks the proxy for an address and prints the status alone.
async fn status(sandbox: &Sandbox, url: &str) -> Check<String> {
    output(sandbox, &format!("curl -s -m 20 -o /dev/null -w '%{{http_code}}' {url} || true")).await
}

async fn with_egress_the_usual_proxy_variables_are_set_and_the_specs_own_win(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let mut spec = spec(&*fixture);
    spec.env.insert("https_proxy".to_owned(), "http://mine:1".to_owned());
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        for name in ["http_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY"] {
            ensure!(!output(&sandbox, &format!("printenv {name}")).await?.is_empty(), "{name} is empty");
        }
        ensure_eq!(output(&sandbox, "printenv https_proxy").await?, "http://mine:1");
        Ok(())
    })
    .await
}

async fn with_egress_nothing_is_reached_without_the_proxy(fixture: Arc<dyn Fixture>) -> Check {
    with_spec(&*fixture, spec(&*fixture), async |sandbox: Sandbox| {
        need_program(&sandbox, "curl").await?;
        for host in ["1.1.1.1", "[2606:4700:4700::1111]", "169.254.169.254"] {
            let line = format!("curl -s -m 5 --noproxy '*' http://{host}/");
            ensure!(!sh(&sandbox, &line).await?.success(), "{host} was reached");
        }
        Ok(())
    })
    .await
}

async fn with_egress_the_proxy_refuses_the_hosts_loopback_and_says_why(fixture: Arc<dyn Fixture>) -> Check {
    let Ok(canary) = TcpListener::bind("127.0.0.1:0") else {
        return Err(super::check::Failure::NotHere("the host lets nobody listen on its loopback".to_owned()));
    };
    let port = canary.local_addr().map(|address| address.port()).unwrap_or_default();
    let listening = canary.set_nonblocking(true);
    ensure!(listening.is_ok(), "the canary does not listen");
    with_spec(&*fixture, spec(&*fixture), async |sandbox: Sandbox| {
        need_program(&sandbox, "curl").await?;
        for host in ["127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"] {
            let asked = format!("curl -s -m 20 --noproxy '' http://{host}:{port}/");
            let answer = output(&sandbox, &asked).await?;
            ensure!(answer.contains("may not connect"), "{host}: {answer}");
        }
        let decisions: Vec<_> = sandbox.egress_decisions(100, false).await?.collect().await;
        for decision in decisions {
            let decision = decision?;
            ensure!(decision.verdict == EgressVerdict::Refused, "{decision:?}");
        }
        Ok(())
    })
    .await?;
    ensure!(canary.accept().is_err(), "somebody connected to the host's loopback");
    Ok(())
}

async fn egress_rules_hold_at_once_and_for_everybody(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = spec(&*fixture);
    spec.egress = rules(&["example.com"]);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        need_program(&sandbox, "curl").await?;
        ensure_eq!(sandbox.egress_rules().await?, rules(&["example.com"]));
        ensure_eq!(status(&sandbox, "http://192.0.2.1:9/").await?, "403");
        let wanted = rules(&["other.example:443", "10.11.12.0/24"]);
        sandbox.set_egress_rules(&wanted).await?;
        let opened = Sandbox::open(&*fixture.provider(), sandbox.id().as_str()).await?;
        ensure_eq!(opened.egress_rules().await?, wanted);
        ensure_eq!(opened.info().spec.egress, wanted);
        ensure_eq!(status(&sandbox, "http://example.com/").await?, "403");
        let many = rules(&vec!["a.example"; EgressRules::MAX_RULES + 1]);
        ensure_fails!(sandbox.set_egress_rules(&many).await, Invalid);
        ensure_eq!(opened.egress_rules().await?, wanted);
        Ok(())
    })
    .await
}

struct Told(UnboundedSender<EgressDecisionEvent>);

#[async_trait]
impl Observer for Told {
    async fn egress_decided(&self, event: EgressDecisionEvent) {
        // A receiver that is gone has heard enough.
        drop(self.0.send(event));
    }
}

async fn an_observer_hears_of_egress_decisions(fixture: Arc<dyn Fixture>) -> Check {
    let (told, mut heard) = unbounded_channel();
    let made = Sandbox::create_observed(&*fixture.provider(), spec(&*fixture), Arc::new(Told(told))).await?;
    let sandbox = super::check::Disposable(made);
    need_program(&sandbox.0, "curl").await?;
    ensure_eq!(status(&sandbox.0, "http://10.9.8.7:1234/").await?, "403");
    let event = promptly("the event", heard.recv()).await?;
    ensure!(event.is_some(), "the observer was let go");
    if let Some(EgressDecisionEvent { sandbox: subject, decision }) = event {
        ensure_eq!(subject.sandbox_id, sandbox.0.id().to_string());
        ensure_eq!((decision.host.as_str(), decision.port), ("10.9.8.7", Some(1234)));
        ensure_eq!(decision.verdict, EgressVerdict::Refused);
        ensure!(decision.reason.contains("private"), "{}", decision.reason);
    }
    sandbox.0.destroy().await?;
    Ok(())
}

async fn another_network_has_no_egress_rules(sandbox: Sandbox) -> Check {
    ensure_fails!(sandbox.egress_rules().await, Invalid);
    ensure_fails!(sandbox.set_egress_rules(&rules(&["example.com"])).await, Invalid);
    ensure_fails!(sandbox.egress_decisions(1, false).await.map(drop), Invalid);
    Ok(())
}

async fn egress_rules_of_another_network_are_invalid_before_anything_exists(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let spec = SandboxSpec {
        network: NetworkMode::None,
        egress: rules(&["example.com"]),
        name: Some(super::check::unique_name()),
        ..fixture.spec()
    };
    let name = spec.name.as_ref().map(ToString::to_string).unwrap_or_default();
    let provider = fixture.provider();
    ensure_fails!(Sandbox::create(&*provider, spec).await, Invalid);
    ensure_fails!(Sandbox::open(&*provider, &name).await, NotFound);
    Ok(())
}
