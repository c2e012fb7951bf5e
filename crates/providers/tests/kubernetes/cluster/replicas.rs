//! Two servers in Pods that share a database and a signing key: what one makes, the other has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use reqwest::Method;
use serde_json::{Value, json};

use super::Cluster;
use super::admin::kubectl;
use super::refusals::trials_of;
use super::scale::median;
use super::servers::{CallAnswer, Replica, Servers};
use super::streamed::StreamedLines;
use crate::tried::{Tried, ensure, within};

/// The creates of one name at the same time, over both servers.
const CREATES: usize = 1_000;
const COMMANDS: usize = 200;
/// The lines of a streamed command, which take some five seconds.
const LINES: usize = 200;
/// The lines that are read before something happens to it.
const READ_BEFORE: usize = 20;
/// The time within which all servers know of a revoked key, in seconds.
const REVOKED_S: u64 = 5;
/// The time within which a stream ends, or a database that is back is used, in seconds.
const PATIENCE_S: u64 = 60;
/// The pause before something is asked again.
const PAUSE: Duration = Duration::from_millis(50);

pub fn trials(cluster: &Arc<Cluster>) -> Vec<Trial> {
    trials_of(
        cluster,
        [
            ("two_servers_share_keys_and_sandboxes", |cluster| Servers::with(cluster, shared)),
            ("a_thousand_creates_over_two_servers_make_one_pod", |cluster| Servers::with(cluster, one_name)),
            ("a_stream_of_a_killed_server_goes_on_at_the_other", |cluster| Servers::with(cluster, killed)),
            ("a_restarted_database_is_used_again_and_streams_go_on", |cluster| {
                Servers::with(cluster, database)
            }),
            ("a_command_by_a_server_in_a_pod_is_measured", |cluster| Servers::with(cluster, measured)),
        ],
    )
}

/// Makes the sandbox `dev` at the first server.
async fn make_dev(servers: &Servers, key: &str) -> Result<Value, Failed> {
    let spec = json!({ "spec": { "name": "dev" } });
    servers.replicas[0].expect(201, key, Method::POST, "sandboxes", &spec).await
}

async fn shared(servers: &Servers) -> Tried {
    let [one, other] = &servers.replicas;
    let key = servers.make_key("shared", "shared")?;
    let made = make_dev(servers, &key).await?;
    let listed = other.expect(200, &key, Method::GET, "sandboxes", &Value::Null).await?;
    ensure(listed["sandboxes"][0]["id"] == made["id"], format!("{listed}"))?;
    let found = other.expect(200, &key, Method::GET, "sandboxes/dev", &Value::Null).await?;
    ensure(found["id"] == made["id"], format!("{found}"))?;
    let echo = json!({ "command": "echo fine" });
    let ran = other.expect(200, &key, Method::POST, "sandboxes/dev/exec", &echo).await?;
    ensure(ran["stdout"] == "fine\n", format!("{ran}"))?;
    let gone = other.call(&key, Method::DELETE, "sandboxes/dev", &Value::Null).await?;
    ensure(gone.status.is_success(), format!("{gone:?}"))?;
    let missed = one.get(&key, "sandboxes/dev").await?;
    ensure(missed.status == 404, format!("{missed:?}"))?;
    other.run(["eyot", "keys", "revoke", "shared"])?;
    within(REVOKED_S, async {
        for replica in [one, other] {
            while replica.get(&key, "sandboxes").await?.status != 401 {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    })
    .await?
}

/// Sends the same create to both servers many times at once. Each key takes a part, because a server answers 256 requests
/// of one at a time.
async fn create_at_once(servers: &Servers, keys: &[String], body: &Value) -> Result<Vec<CallAnswer>, Failed> {
    let creates = (0..CREATES).map(|number| {
        let key = &keys[number / 2 % keys.len()];
        servers.replicas[number % 2].call(key, Method::POST, "sandboxes", body)
    });
    futures_util::future::join_all(creates).await.into_iter().collect()
}

async fn one_name(servers: &Servers) -> Tried {
    let names = ["many-1", "many-2", "many-3", "many-4"];
    let keys: Vec<String> =
        names.iter().map(|name| servers.make_key(name, "many")).collect::<Result<_, _>>()?;
    let began = Instant::now();
    let answers = create_at_once(servers, &keys, &json!({ "spec": { "name": "same" } })).await?;
    let took = began.elapsed();
    let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    let other = refused.iter().find(|answer| answer.body["kind"] != "already_exists");
    ensure(
        made.len() == 1 && other.is_none(),
        format!("{} were made, and one was refused: {other:?}", made.len()),
    )?;
    let body = json!({ "spec": { "name": "shared" }, "get_or_create": true });
    let answers = create_at_once(servers, &keys, &body).await?;
    let is_first_id = |answer: &&CallAnswer| answer.body["id"] == answers[0].body["id"];
    let other = answers.iter().find(|answer| !answer.status.is_success() || !is_first_id(answer));
    ensure(other.is_none(), format!("not the same one: {other:?}"))?;
    let new = answers.iter().filter(|answer| answer.status == 201).count();
    let pods = kubectl(["get", "pods", "-l", "eyot.dev/id", "-o", "name"])?.lines().count();
    println!("{CREATES} creates of one name over two servers: {took:?}");
    ensure(new == 1 && pods == 2, format!("{new} were new, and there are {pods} Pods for two names"))
}

async fn killed(servers: &Servers) -> Tried {
    let [one, other] = &servers.replicas;
    let key = servers.make_key("killed", "killed")?;
    make_dev(servers, &key).await?;
    let mut command = StreamedLines::start(one, &key, "dev", LINES).await?;
    command.read(READ_BEFORE).await?;
    one.kill(&servers.cluster).await?;
    within(PATIENCE_S, command.read_all()).await??;
    ensure(command.is_cut(), "the command ended before its server was killed")?;
    let came = command.count();
    command.take_up(other, &key).await?;
    within(PATIENCE_S, command.read_all()).await??;
    println!("{came} of {LINES} lines came from the killed server, the others from the other");
    command.check()
}

async fn database(servers: &Servers) -> Tried {
    let [one, other] = &servers.replicas;
    let key = servers.make_key("database", "database")?;
    make_dev(servers, &key).await?;
    let mut command = StreamedLines::start(one, &key, "dev", LINES).await?;
    command.read(READ_BEFORE).await?;
    servers.cluster.order_beside("stop database").await?;
    let came = command.count();
    let away = within(PATIENCE_S, command.read(came + READ_BEFORE)).await;
    servers.cluster.order_beside("start database").await?;
    away??;
    for replica in [one, other] {
        within(PATIENCE_S, used_again(replica, &key)).await??;
    }
    within(PATIENCE_S, command.read_all()).await??;
    command.check()
}

/// Runs a command until the server does so. It may only say that it can't at the moment.
async fn used_again(replica: &Replica, key: &str) -> Tried {
    let echo = json!({ "command": "echo fine" });
    loop {
        let answer = replica.call(key, Method::POST, "sandboxes/dev/exec", &echo).await?;
        if answer.status == 200 {
            return ensure(answer.body["stdout"] == "fine\n", format!("{answer:?}"));
        }
        ensure(answer.body["kind"] == "unavailable", format!("{answer:?}"))?;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Calls a server over one connection, as the clients do, and prints the median in milliseconds.
const CALLS_FROM_A_POD: &str = r#"
import http.client, statistics, sys, time
address, port, host, key, path, count = sys.argv[1:]
server, times = http.client.HTTPConnection(address, int(port)), []
for _ in range(int(count)):
    began = time.monotonic()
    server.request("POST", path, '{"argv":["true"]}', {"Host": host, "Authorization": "Bearer " + key})
    answer = server.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    times.append(time.monotonic() - began)
print(round(statistics.median(times) * 1000, 2))
"#;

/// Has a program in a sandbox, which is a Pod, call a server for commands in another one.
async fn from_a_pod(replica: &Replica, key: &str) -> Result<f64, Failed> {
    let caller = json!({ "spec": { "name": "caller", "network": { "mode": "bridge" } } });
    replica.expect(201, key, Method::POST, "sandboxes", &caller).await?;
    let (address, host) = replica.address();
    let (port, count) = (address.port().to_string(), COMMANDS.to_string());
    let address = address.ip().to_string();
    let path = "/v1/sandboxes/dev/exec";
    let argv = ["python3", "-c", CALLS_FROM_A_POD, &address, &port, host, key, path, &count];
    let ran =
        replica.expect(200, key, Method::POST, "sandboxes/caller/exec", &json!({ "argv": argv })).await?;
    let said = ran["stdout"].as_str().unwrap_or_default().trim().parse();
    said.map_err(|_| format!("the program in the Pod failed: {ran}").into())
}

async fn measured(servers: &Servers) -> Tried {
    let key = servers.make_key("measured", "measured")?;
    make_dev(servers, &key).await?;
    let (body, mut medians) = (json!({ "argv": ["true"] }), Vec::new());
    for replica in &servers.replicas {
        let mut times = Vec::new();
        for _ in 0..COMMANDS {
            let began = Instant::now();
            replica.expect(200, &key, Method::POST, "sandboxes/dev/exec", &body).await?;
            times.push(began.elapsed());
        }
        medians.push(median(times));
    }
    println!("a command over HTTP, by the server that made the sandbox and by the other: {medians:?}");
    let took_ms = from_a_pod(&servers.replicas[0], &key).await?;
    println!("the same, called from a Pod: {took_ms} ms");
    Ok(())
}
