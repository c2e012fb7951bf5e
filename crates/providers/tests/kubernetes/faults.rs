//! Faults of a cluster: it refuses, loses answers, forgets what it told, restarts, and loses a Pod under a command.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ed25519_dalek::{Signer, SigningKey};
use eyot::{
    Error, ErrorKind, ExecEvent, ExecOptions, ExecStream, Sandbox, SandboxId, SandboxProvider, SandboxSpec,
};
use eyot_guest::protocol::container::RELAY_TO_GUEST;
use eyot_guest::protocol::pod::{GUEST_PORT, HELLO_BYTES, TOKEN_REFUSED, TokenUse, hello, signed_bytes};
use eyot_providers::kubernetes::{KubernetesOptions, KubernetesProvider, PodReach};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::stand_in::StandIn;
use crate::tried::{Tried, ensure, failed};
use crate::vendor::block_on;

/// A case.
type NamedCase = (&'static str, fn() -> Tried);

fn count(cluster: &StandIn, plural: &str) -> usize {
    cluster.cluster.store.list(plural).0.len()
}

fn address(cluster: &StandIn) -> Result<String, Failed> {
    let pods = cluster.cluster.store.list("pods").0;
    let address = pods.first().and_then(|pod| pod["status"]["podIP"].as_str());
    address.map(str::to_owned).ok_or_else(|| "there is no Pod with an address".into())
}

/// Runs a line of a shell, and returns what it says.
pub async fn output(sandbox: &Sandbox, line: &str) -> eyot::Result<String> {
    let done = sandbox.exec(line, ExecOptions::default()).await?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Reads a command's events until an error ends them, and returns it.
pub async fn error_of(running: &mut ExecStream) -> Result<Error, Failed> {
    loop {
        match running.next().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Ok(error),
            None => return Err("the command is told to have ended".into()),
        }
    }
}

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 20] = [
        ("a_quota_is_told_in_the_clusters_words_and_leaves_nothing", quota),
        ("a_missing_right_is_told_in_the_clusters_words_and_leaves_nothing", right),
        ("a_limit_range_is_told_in_the_clusters_words", limit_range),
        ("an_image_that_can_not_be_fetched_is_told_in_the_clusters_words", missing_image),
        ("a_create_whose_answer_is_lost_makes_one_pod", lost_answer),
        ("a_create_that_meets_a_change_of_the_quota_is_made_again", quota_conflict),
        ("a_failed_create_is_removed_also_when_its_caller_gives_up_meanwhile", given_up_undo),
        ("a_sandbox_whose_record_can_not_be_read_keeps_its_name", unread_record),
        ("a_name_that_ends_with_a_dash_makes_a_sandbox", dash),
        ("of_many_creates_of_one_name_through_two_replicas_one_makes_a_pod", one_name),
        ("a_server_that_forgets_what_it_told_loses_no_create", compacted),
        ("a_server_that_restarts_loses_no_command_and_no_create", restarted),
        ("a_server_that_never_answered_is_named_and_not_waited_for", silent),
        ("a_pod_that_dies_under_a_command_ends_it_with_the_reason", dies),
        ("every_delete_names_the_uid_and_the_version_and_harms_nothing_that_came_after", preconditions),
        ("a_destroy_ends_the_guest_first_and_leaves_nothing_to_wait_for", no_grace),
        ("a_guest_that_does_not_say_that_it_ended_is_left_to_its_node", frozen),
        ("the_port_of_a_pod_opens_for_its_own_token_alone", tokens),
        ("port_forward_carries_commands_and_files", forwarded),
        ("the_rights_that_are_missing_are_listed", rights),
    ];
    cases.into_iter().map(|(name, case)| Trial::test(format!("faults::{name}"), case)).collect()
}

fn quota() -> Tried {
    let cluster = StandIn::new();
    cluster.cluster.policy().quota = Some(1);
    block_on(async {
        let provider = cluster.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let error = failed(Sandbox::create(&*provider, SandboxSpec::default()).await)?;
        ensure(error.kind() == ErrorKind::Quota, format!("{error:?}"))?;
        let words = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
        ensure(error.to_string().contains(words), error.to_string())?;
        ensure((count(&cluster, "pods"), count(&cluster, "leases")) == (1, 1), "something was left")?;
        Ok(sandbox.destroy().await?)
    })
}

fn right() -> Tried {
    let cluster = StandIn::new();
    cluster.cluster.policy().denied.insert("create pods".to_owned());
    block_on(async {
        let error = failed(Sandbox::create(&*cluster.provider(), SandboxSpec::default()).await)?;
        ensure(error.kind() == ErrorKind::Permission, format!("{error:?}"))?;
        ensure(error.to_string().contains("cannot create resource \"pods\""), error.to_string())?;
        ensure(count(&cluster, "leases") == 0, "the name stays reserved")
    })
}

fn limit_range() -> Tried {
    let cluster = StandIn::new();
    cluster.cluster.policy().most_memory_mib = Some(256);
    block_on(async {
        let mut spec = SandboxSpec::default();
        spec.limits.memory_mib = Some(900);
        let error = failed(Sandbox::create(&*cluster.provider(), spec).await)?;
        ensure(error.kind() == ErrorKind::Invalid, format!("{error:?}"))?;
        let words = "maximum memory usage per Container is 256Mi, but limit is 900Mi";
        ensure(error.to_string().contains(words), error.to_string())
    })
}

fn missing_image() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let spec = SandboxSpec { image: Some("missing:1".to_owned()), ..SandboxSpec::default() };
        let error = failed(Sandbox::create(&*cluster.provider(), spec).await)?;
        ensure(error.kind() == ErrorKind::Setup, format!("{error:?}"))?;
        ensure(error.to_string().contains("ErrImagePull: failed to pull image"), error.to_string())?;
        ensure((count(&cluster, "pods"), count(&cluster, "leases")) == (0, 0), "something was left")
    })
}

fn lost_answer() -> Tried {
    let cluster = StandIn::new();
    cluster.cluster.policy().lost_creates = 1;
    block_on(async {
        let sandbox = Sandbox::create(&*cluster.provider(), SandboxSpec::default()).await?;
        ensure(count(&cluster, "pods") == 1, "not one Pod")?;
        ensure(output(&sandbox, "echo fine").await? == "fine\n", "it does not work")?;
        Ok(sandbox.destroy().await?)
    })
}

fn quota_conflict() -> Tried {
    let cluster = StandIn::new();
    cluster.cluster.policy().quota_conflicts = 2;
    block_on(async {
        let sandbox = Sandbox::create(&*cluster.provider(), SandboxSpec::default()).await?;
        ensure(output(&sandbox, "echo fine").await? == "fine\n", "it does not work")?;
        Ok(sandbox.destroy().await?)
    })
}

fn given_up_undo() -> Tried {
    let cluster = StandIn::new();
    let (go_on, held) = tokio::sync::watch::channel(false);
    cluster.cluster.policy().deletes_may_go_on = Some(held);
    block_on(async {
        let provider = cluster.provider();
        let spec = SandboxSpec { image: Some("missing:1".to_owned()), ..SandboxSpec::default() };
        let create = tokio::spawn(async move { Sandbox::create(&*provider, spec).await.map(drop) });
        cluster.cluster.delete_came.notified().await;
        create.abort();
        ensure(create.await.is_err_and(|error| error.is_cancelled()), "the create had ended before")?;
        go_on.send_replace(true);
        let mut versions = cluster.cluster.store.versions();
        let empty = async {
            while (count(&cluster, "pods"), count(&cluster, "leases")) != (0, 0) {
                drop(versions.changed().await);
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(30), empty).await;
        ended.map_err(|_| "a Pod or a Lease was left".into())
    })
}

fn unread_record() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let provider = cluster.provider();
        let spec: SandboxSpec = serde_json::from_str(r#"{"name":"newer"}"#)?;
        let sandbox = Sandbox::create(&*provider, spec.clone()).await?;
        let pod = cluster.cluster.store.list("pods").0.remove(0);
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        cluster.cluster.store.change("pods", &name, |pod| {
            pod["metadata"]["annotations"]["eyot.dev/record"] = json!(r#"{"of":"a newer version"}"#);
        });
        // As old as a reservation that counts as abandoned.
        let lease = cluster.cluster.store.list("leases").0.remove(0);
        let lease = lease["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        cluster.cluster.store.change("leases", &lease, |lease| {
            lease["metadata"]["annotations"]["eyot.dev/made-ms"] = json!("0");
        });
        ensure(provider.list().await?.is_empty(), "it is listed")?;
        ensure(count(&cluster, "leases") == 1, "its name was freed")?;
        let error = failed(Sandbox::create(&*provider, spec).await)?;
        ensure(error.kind() == ErrorKind::AlreadyExists, format!("{error:?}"))?;
        let error = failed(provider.open("newer").await)?;
        ensure(error.kind() == ErrorKind::Setup, format!("{error:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn dash() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let spec: SandboxSpec = serde_json::from_str(r#"{"name":"dev-"}"#)?;
        let sandbox = Sandbox::create(&*cluster.provider(), spec).await?;
        ensure(output(&sandbox, "echo fine").await? == "fine\n", "it does not work")?;
        Ok(sandbox.destroy().await?)
    })
}

fn one_name() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let replicas = [cluster.provider(), cluster.provider()];
        let spec: SandboxSpec = serde_json::from_str(r#"{"name":"same"}"#)?;
        let creates = (0..20).map(|number| {
            let (provider, spec) = (Arc::clone(&replicas[number % 2]), spec.clone());
            async move { Sandbox::create(&*provider, spec).await }
        });
        let done = futures_util::future::join_all(creates).await;
        let refused = done.iter().filter_map(|made| made.as_ref().err());
        let kinds: Vec<ErrorKind> = refused.map(Error::kind).collect();
        ensure(kinds == [ErrorKind::AlreadyExists; 19], format!("{kinds:?}"))?;
        ensure(count(&cluster, "pods") == 1, "not one Pod")?;
        for sandbox in done.into_iter().flatten() {
            sandbox.destroy().await?;
        }
        Ok(())
    })
}

fn compacted() -> Tried {
    let cluster = StandIn::new();
    *cluster.cluster.kubelet.delay.lock().map_err(|error| error.to_string())? = Duration::from_millis(600);
    block_on(async {
        let provider = cluster.provider();
        let forgetting = async {
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_millis(120)).await;
                cluster.cluster.store.compact();
            }
        };
        let (made, ()) = tokio::join!(Sandbox::create(&*provider, SandboxSpec::default()), forgetting);
        let sandbox = made?;
        ensure(count(&cluster, "pods") == 1, "not one Pod")?;
        Ok(sandbox.destroy().await?)
    })
}

fn restarted() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let provider = cluster.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let line = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done";
        let (counted, made) = tokio::join!(output(&sandbox, line), async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            cluster.stop();
            let restarting = async {
                tokio::time::sleep(Duration::from_millis(400)).await;
                cluster.cluster.policy().unknown_rights = 2;
                cluster.start();
            };
            tokio::join!(Sandbox::create(&*provider, SandboxSpec::default()), restarting).0
        });
        ensure(counted? == "1\n2\n3\n4\n5\n6\n7\n8\n", "output was lost")?;
        let other = made?;
        ensure(count(&cluster, "pods") == 2, "not two Pods")?;
        other.destroy().await?;
        Ok(sandbox.destroy().await?)
    })
}

fn silent() -> Tried {
    let cluster = StandIn::new();
    cluster.stop();
    block_on(async {
        let provider = cluster.provider();
        let asked = Sandbox::create(&*provider, SandboxSpec::default());
        // Less than the pauses of a server that was there take together.
        let answered = tokio::time::timeout(Duration::from_secs(6), asked).await;
        let error = failed(answered.map_err(|_| "it was waited for")?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(error.to_string().contains("the API server http://127.0.0.1:"), error.to_string())?;
        ensure(!cluster.options().state.join("kubernetes").exists(), "a key was made")?;
        cluster.start();
        Ok(Sandbox::create(&*provider, SandboxSpec::default()).await?.destroy().await?)
    })
}

fn dies() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let provider = cluster.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let mut running = sandbox.exec_stream("echo begun; sleep 60", ExecOptions::default()).await?;
        let begun = running.next().await;
        ensure(matches!(begun, Some(Ok(ExecEvent::Stdout(_)))), format!("{begun:?}"))?;
        // The node evicts it.
        let pods = cluster.cluster.store.list("pods").0;
        let name = pods[0]["metadata"]["name"].as_str().unwrap_or_default();
        let asked = Value::Null;
        drop(cluster.cluster.store.delete("pods", name, &asked, false));
        let error = error_of(&mut running).await?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        let error = failed(provider.open(sandbox.name().as_str()).await)?;
        ensure(matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::NotFound), format!("{error:?}"))
    })
}

fn preconditions() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let provider = cluster.provider();
        let id = SandboxId::generate();
        let spec = || SandboxSpec { id: Some(id.clone()), ..SandboxSpec::default() };
        let first = Sandbox::create(&*provider, spec()).await?;
        provider.remove(id.as_str()).await?;
        let second = Sandbox::create(&*provider, spec()).await?;
        drop(first.destroy().await);
        ensure(output(&second, "echo fine").await? == "fine\n", "an old handle has harmed it")?;
        second.destroy().await?;
        let deletes = std::mem::take(&mut cluster.cluster.policy().deletes);
        let names_both = |body: &Value| {
            body["preconditions"]["uid"].is_string() && body["preconditions"]["resourceVersion"].is_string()
        };
        ensure(deletes.len() >= 4 && deletes.iter().all(names_both), format!("{deletes:?}"))
    })
}

fn no_grace() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let provider = cluster.provider();
        for by_handle in [true, false] {
            let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
            if by_handle {
                sandbox.destroy().await?;
            } else {
                provider.remove(sandbox.id().as_str()).await?;
            }
        }
        // Of one whose guest never ran, the node has the last word.
        let spec = SandboxSpec { image: Some("missing:1".to_owned()), ..SandboxSpec::default() };
        failed(Sandbox::create(&*provider, spec).await)?;
        let deletes = std::mem::take(&mut cluster.cluster.policy().deletes);
        // Each was asked for a Pod and its name. One that has changed meanwhile is asked for again.
        let without_grace = deletes.iter().filter(|body| body["gracePeriodSeconds"] == 0);
        let uids: BTreeSet<_> = without_grace.map(|body| body["preconditions"]["uid"].to_string()).collect();
        ensure(uids.len() == 2 && deletes.len() >= 6, format!("{deletes:?}"))
    })
}

fn frozen() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let sandbox = Sandbox::create(&*cluster.provider(), SandboxSpec::default()).await?;
        cluster.cluster.kubelet.freeze_last()?;
        sandbox.destroy().await?;
        let deletes = std::mem::take(&mut cluster.cluster.policy().deletes);
        ensure(deletes.iter().all(|body| body["gracePeriodSeconds"].is_null()), format!("{deletes:?}"))?;
        ensure(count(&cluster, "pods") == 0, "its Pod is there")
    })
}

fn answer_at(address: &str, first: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((address, GUEST_PORT))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(first)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fn tokens() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let sandbox = Sandbox::create(&*cluster.provider(), SandboxSpec::default()).await?;
        let address = address(&cluster)?;
        ensure(answer_at(&address, &[0; HELLO_BYTES])? == [TOKEN_REFUSED], "zeroes were let in")?;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let secret: [u8; 32] = std::fs::read(cluster.options().state.join("kubernetes/secret"))?
            .try_into()
            .map_err(|_| "a secret of another size")?;
        let key = SigningKey::from_bytes(&secret);
        let token = |key: &SigningKey, uid: &str, expires_s: u64| {
            let signed = signed_bytes(TokenUse::Connect, uid, expires_s);
            hello(TokenUse::Connect, expires_s, &key.sign(&signed).to_bytes())
        };
        let pods = cluster.cluster.store.list("pods").0;
        let uid = pods[0]["metadata"]["uid"].as_str().unwrap_or_default();
        for (what, refused) in [
            ("no signature", hello(TokenUse::Connect, now_s + 60, &[0; 64])),
            ("another key", token(&SigningKey::from_bytes(&[9; 32]), uid, now_s + 60)),
            ("another Pod", token(&key, "another", now_s + 60)),
            ("an old token", token(&key, uid, now_s - 60)),
            ("a token for hours", token(&key, uid, now_s + 3_600)),
        ] {
            ensure(answer_at(&address, &refused)? == [TOKEN_REFUSED], format!("{what} was let in"))?;
        }
        let mut stream = TcpStream::connect((address.as_str(), GUEST_PORT))?;
        stream.write_all(&token(&key, uid, now_s + 60))?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        ensure(answer == [RELAY_TO_GUEST], "its own token was refused")?;
        // A server with another key finds nothing of ours, and a command inside has no token.
        let elsewhere = tempfile::tempdir()?;
        let options = KubernetesOptions { state: elsewhere.path().to_owned(), ..cluster.options() };
        let error = failed(KubernetesProvider::new(options).open(sandbox.name().as_str()).await)?;
        ensure(error.kind() == ErrorKind::NotFound, format!("{error:?}"))?;
        let line = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{GUEST_PORT}; head -c {HELLO_BYTES} /dev/zero >&3; od -An -c <&3"
        );
        ensure(output(&sandbox, &format!("bash -c '{line}'")).await?.trim() == "x", "a command was let in")?;
        let line = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/1' 2>/dev/null; kill -9 1; kill -TERM 1; cat /proc/1/environ; echo $?";
        ensure(output(&sandbox, line).await? == "1\n", "the guest can be read")?;
        Ok(sandbox.destroy().await?)
    })
}

fn forwarded() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let options = KubernetesOptions { reach: PodReach::PortForward, ..cluster.options() };
        let sandbox = Sandbox::create(&*KubernetesProvider::new(options), SandboxSpec::default()).await?;
        let large = vec![7; 1 << 20];
        sandbox.write("large", large.clone()).await?;
        ensure(sandbox.read("large").await?[..] == large[..], "a file has changed on its way")?;
        ensure(output(&sandbox, "echo fine").await? == "fine\n", "it does not work")?;
        Ok(sandbox.destroy().await?)
    })
}

fn rights() -> Tried {
    let cluster = StandIn::new();
    block_on(async {
        let provider = cluster.provider();
        ensure(provider.missing_rights().await?.is_empty(), "rights are missing")?;
        cluster.cluster.policy().denied.extend(["watch pods", "delete leases"].map(str::to_owned));
        let missing = provider.missing_rights().await?;
        ensure(missing == ["watch pods", "delete leases"], format!("{missing:?}"))?;
        ensure(provider.version().await? == "v1.33.0-stand-in", "another version")
    })
}
