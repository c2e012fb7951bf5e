//! Rules, changes of them on a live sandbox, and the report of decisions.

use eyot::{EgressProtocol, EgressVerdict, Sandbox, StartOptions};
use futures_util::StreamExt;

use crate::internet::NAME_SERVER;
use crate::world::{Check, World, cases, ensure, rules, said, until_there};

cases! {
    n01_rules_of_names_wildcards_ports_and_networks_hold;
    n01_a_network_rule_opens_what_is_private_and_nothing_of_the_host;
    n01_what_a_refusal_says_to_type_opens_the_address_and_closes_nothing;
    n01_a_change_of_rules_holds_at_once_and_closes_what_it_forbids;
    n01_decisions_are_told_to_another_process_with_their_reasons;
    n01_a_host_without_an_address_is_a_decision_that_says_so;
}

/// Returns the HTTP status that the proxy answers for a URL.
async fn status(sandbox: &Sandbox, url: &str) -> Check<String> {
    said(sandbox, &format!("curl -s -m 30 -o /dev/null -w '%{{http_code}}' {url}")).await
}

async fn ensure_statuses(sandbox: &Sandbox, expected: &[(&str, &str)]) -> Check {
    for (url, code) in expected {
        let found = status(sandbox, url).await?;
        ensure!(found == *code, "{url}: {found}");
    }
    Ok(())
}

async fn n01_rules_of_names_wildcards_ports_and_networks_hold(world: World) -> Check {
    let sandbox = world.sandbox(&["*.pub.test", "other.test:8080", "2606:2800:220::/48"]).await?;
    let expected = [
        ("http://a.pub.test/hello", "200"),
        ("http://a.b.pub.test:8080/hello", "200"),
        ("http://pub.test/hello", "403"),
        ("http://other.test:8080/hello", "200"),
        ("http://other.test/hello", "403"),
        ("http://[2606:2800:220:1::34]/hello", "200"),
        ("http://six.test/hello", "403"),
        ("http://93.184.216.35:8081/hello", "403"),
    ];
    ensure_statuses(&sandbox, &expected).await?;
    sandbox.set_egress_rules(&rules(&["*:80"], &["other.test", "93.184.216.34/31"])?).await?;
    let expected = [
        ("http://pub.test/hello", "200"),
        ("http://pub.test:8080/hello", "403"),
        ("http://other.test/hello", "403"),
        ("http://93.184.216.34/hello", "403"),
        ("http://six.test/hello", "200"),
    ];
    ensure_statuses(&sandbox, &expected).await?;
    let said = said(&sandbox, "curl -sS -m 30 http://other.test/hello").await?;
    ensure!(said.contains("the rule `deny other.test` is about it") && said.contains("eyot net"), "{said}");
    Ok(sandbox.destroy().await?)
}

async fn n01_a_network_rule_opens_what_is_private_and_nothing_of_the_host(world: World) -> Check {
    let sandbox =
        world.sandbox(&["10.0.0.0/8", "169.254.0.0/16", "ten.test", "own.test", "fd00::/8"]).await?;
    let port = world.canary_port()?;
    let own = format!("http://own.test:{port}/hello");
    let own_address = format!("http://10.200.0.1:{port}/hello");
    let expected = [
        ("http://10.200.0.2/opened", "404"),
        ("http://ten.test/opened", "404"),
        ("http://[fd00:200::2]/opened", "404"),
        ("http://192.168.7.7/opened", "403"),
        ("http://169.254.169.254/opened", "403"),
        (own.as_str(), "403"),
        (own_address.as_str(), "403"),
        ("http://93.184.216.34/opened", "403"),
    ];
    ensure_statuses(&sandbox, &expected).await?;
    world.ensure_canary_lives()?;
    ensure!(!world.hits(&format!("{NAME_SERVER} GET /opened"))?.is_empty(), "the rule opened nothing");
    sandbox.set_egress_rules(&rules(&["169.254.169.254:80"], &[])?).await?;
    ensure_statuses(&sandbox, &[("http://169.254.169.254/opened", "404")]).await?;
    Ok(sandbox.destroy().await?)
}

async fn n01_what_a_refusal_says_to_type_opens_the_address_and_closes_nothing(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let refused = said(&sandbox, "curl -sS -m 30 http://10.200.0.2/opened").await?;
    let typed: Vec<&str> = refused
        .split_once("eyot net ")
        .map(|(_, typed)| typed.split_whitespace().skip(1).map(|word| word.trim_matches('\'')).collect())
        .unwrap_or_default();
    let allowed: Vec<&str> = typed.iter().copied().filter(|word| *word != "--allow").collect();
    ensure!(allowed == ["*", "10.200.0.2:80"], "{refused}");
    sandbox.set_egress_rules(&rules(&allowed, &[])?).await?;
    let expected = [("http://10.200.0.2/opened", "404"), ("http://pub.test/hello", "200")];
    ensure_statuses(&sandbox, &expected).await?;
    Ok(sandbox.destroy().await?)
}

async fn n01_a_change_of_rules_holds_at_once_and_closes_what_it_forbids(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let held = sandbox.start("python3 hold.py", StartOptions::default()).await?;
    until_there(&sandbox, "held").await?;
    let elsewhere = Sandbox::open(&*world.provider, sandbox.id().as_str()).await?;
    elsewhere.set_egress_rules(&rules(&["pub.test"], &[])?).await?;
    ensure_statuses(&sandbox, &[("http://other.test/hello", "403"), ("http://pub.test/hello", "200")])
        .await?;
    let processes = sandbox.processes().await?;
    ensure!(processes.iter().all(|process| process.status == eyot::ProcessStatus::Running), "{processes:?}");
    elsewhere.set_egress_rules(&rules(&["other.test"], &[])?).await?;
    sandbox.wait(held.id).await?;
    ensure_statuses(&sandbox, &[("http://other.test/hello", "200"), ("http://pub.test/hello", "403")])
        .await?;
    Ok(sandbox.destroy().await?)
}

async fn n01_decisions_are_told_to_another_process_with_their_reasons(world: World) -> Check {
    let sandbox = world.sandbox(&["pub.test"]).await?;
    ensure_statuses(&sandbox, &[("http://pub.test/hello", "200")]).await?;
    let elsewhere = Sandbox::open(&*world.provider, sandbox.id().as_str()).await?;
    let mut followed = elsewhere.egress_decisions(0, true).await?;
    ensure_statuses(&sandbox, &[("http://other.test:81/hello", "403")]).await?;
    let refused = followed.next().await.ok_or("the stream ended")??;
    ensure!(refused.verdict == EgressVerdict::Refused && refused.number == 2, "{refused:?}");
    ensure!((refused.host.as_str(), refused.port) == ("other.test", Some(81)), "{refused:?}");
    ensure!(
        refused.protocol == EgressProtocol::Http && refused.reason == "no allow rule matches",
        "{refused:?}"
    );
    let known: Vec<_> = elsewhere.egress_decisions(1000, false).await?.collect().await;
    ensure!(known.len() == 2, "{known:?}");
    let Some(Ok(allowed)) = known.first() else { return Err(format!("{known:?}").into()) };
    ensure!(allowed.verdict == EgressVerdict::Allowed && allowed.address.is_some(), "{allowed:?}");
    sandbox.destroy().await?;
    while let Some(decision) = followed.next().await {
        ensure!(decision.is_ok(), "{decision:?}");
    }
    Ok(())
}

async fn n01_a_host_without_an_address_is_a_decision_that_says_so(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    said(
        &sandbox,
        "PORT=443 python3 try.py missing.test; python3 look_up.py missing.test/1 pub.test/28 six.test/1",
    )
    .await?;
    let decisions: Vec<_> = sandbox.egress_decisions(1000, false).await?.collect().await;
    let mut found = Vec::new();
    for decision in decisions {
        let decision = decision?;
        ensure!(decision.verdict == EgressVerdict::Allowed, "{decision:?}");
        found.push((decision.protocol, decision.host, decision.port, decision.reason));
    }
    let line =
        |protocol, host: &str, port, reason: &str| (protocol, host.to_owned(), port, reason.to_owned());
    let missing = "allowed, but there is no such host";
    let expected = [
        line(EgressProtocol::Connect, "missing.test", Some(443), missing),
        line(EgressProtocol::Http, "missing.test", Some(443), missing),
        line(EgressProtocol::Socks5, "missing.test", Some(443), missing),
        line(EgressProtocol::Dns, "missing.test", None, missing),
        line(EgressProtocol::Dns, "pub.test", None, "allowed"),
        line(EgressProtocol::Dns, "six.test", None, "allowed, but the host has no IPv4 address"),
    ];
    ensure!(found == expected, "{found:?}");
    Ok(sandbox.destroy().await?)
}
