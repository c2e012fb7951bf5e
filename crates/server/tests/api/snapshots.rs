//! Snapshots over HTTP: take, list, look up and remove them; fork, roll back and compare.

use eyot_image::testing::TestLayer;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, kind, name, value};

async fn write(ground: &Ground, sandbox: &str, path: &str, text: &str) {
    let path = format!("/v1/sandboxes/{sandbox}/files?path={path}");
    let sent = ground.request(Method::PUT, &path).body(text.to_owned()).send().await.unwrap();
    assert_eq!(sent.status(), 200);
}

async fn read(ground: &Ground, sandbox: &str, path: &str) -> String {
    let read = ground.get(&format!("/v1/sandboxes/{sandbox}/files?path={path}")).await;
    assert_eq!(read.status(), 200);
    read.text().await.unwrap()
}

async fn take(ground: &Ground, sandbox: &str, body: Value) -> Response {
    ground.post(&format!("/v1/sandboxes/{sandbox}/snapshots"), body).await
}

/// Returns the changes that a comparison finds below the workspace, such as `added /workspace/a`.
async fn diff(ground: &Ground, query: &str) -> Vec<String> {
    let found = value(ground.get(&format!("/v1/diff?path=/workspace&{query}")).await).await;
    let changes = found["changes"].as_array().unwrap_or_else(|| panic!("{found}")).iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    changes.map(|change| format!("{} {}", text(&change["change"]), text(&change["path"]))).collect()
}

async fn names(ground: &Ground) -> Vec<Value> {
    let listed = value(ground.get("/v1/snapshots").await).await;
    listed["snapshots"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_goes_back_to_a_snapshot_and_others_begin_with_it() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    write(&ground, "dev", "a", "one").await;
    assert_eq!(diff(&ground, "from=dev").await, ["added /workspace/a"]);
    let taken = take(&ground, "dev", json!({ "name": "good", "labels": { "step": "1" } })).await;
    assert_eq!(taken.status(), 201);
    let taken = value(taken).await;
    assert_eq!(
        (&taken["name"], &taken["pool"], &taken["stopped"]),
        (&json!("good"), &json!("ours"), &json!([]))
    );
    write(&ground, "dev", "a", "two").await;
    write(&ground, "dev", "b", "new").await;
    let changed = ["changed /workspace/a", "added /workspace/b"];
    for query in ["from=dev", "from=good&to=dev", "from=base:dev&to=dev", "from=ours/good&to=ours/dev"] {
        assert_eq!(diff(&ground, query).await, changed, "{query}");
    }
    let texts = value(ground.get("/v1/diff?from=dev&text=true&path=/workspace/a").await).await;
    let text = texts["changes"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("--- a/workspace/a\n+++ b/workspace/a\n@@ -1,1 +1,1 @@\n-one\n"), "{text}");
    let forked = ground.post("/v1/fork", json!({ "from": "good", "count": 2 })).await;
    assert_eq!(forked.status(), 201);
    assert_eq!(value(forked).await, json!({ "names": ["dev-1", "dev-2"], "stopped": [] }));
    assert_eq!(read(&ground, "dev-2", "a").await, "one");
    let back = ground.post("/v1/sandboxes/dev/rollback", json!({ "snapshot": "good" })).await;
    assert_eq!(value(back).await, json!({ "stopped": [] }));
    assert_eq!(read(&ground, "dev", "a").await, "one");
    assert_eq!(diff(&ground, "from=good&to=dev").await, Vec::<String>::new());

    let id = taken["id"].as_str().unwrap();
    for named in ["good", "ours%2Fgood", id] {
        let found = value(ground.get(&format!("/v1/snapshots/{named}")).await).await;
        assert_eq!((&found["id"], &found["labels"]["step"]), (&taken["id"], &json!("1")), "{named}");
    }
    let sizes = value(ground.get("/v1/snapshots?sizes=true").await).await;
    assert!(sizes["snapshots"][0]["own_bytes"].as_u64().unwrap() > 0, "{sizes}");
    let gone = ground.request(Method::DELETE, "/v1/snapshots/good").send().await.unwrap();
    assert_eq!((gone.status().as_u16(), names(&ground).await), (204, vec![]));
    assert_eq!(read(&ground, "dev-1", "a").await, "one");
    let events = ground.get("/v1/events").await.text().await.unwrap();
    for what in ["snapshot_taken", "rolled_back", "snapshot_removed"] {
        assert!(events.contains(&format!("\"kind\":\"{what}\",\"snapshot\":\"{id}\"")), "{what}: {events}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_the_snapshots_of_other_keys_are_not_there() {
    let ground = Ground::new().await;
    let dev = ground.sandbox("dev").await;
    write(&ground, "dev", "a", "secret").await;
    let id = value(take(&ground, "dev", json!({ "name": "good" })).await).await["id"].clone();
    let id = id.as_str().unwrap();
    let theirs = async |method: Method, path: &str, body: Value| {
        let request = ground.as_whom(&ground.theirs, method, path).header("content-type", "application/json");
        request.body(body.to_string()).send().await.unwrap()
    };
    let spec = json!({ "spec": { "name": "own" } });
    assert_eq!(theirs(Method::POST, "/v1/sandboxes", spec).await.status(), 201);
    for named in ["good", id, "ours%2Fgood"] {
        for method in [Method::GET, Method::DELETE] {
            let refused = theirs(method, &format!("/v1/snapshots/{named}"), json!({})).await;
            assert_eq!(kind(refused).await, "not_found", "{named}");
        }
        let plain = named.replace("%2F", "/");
        for (path, body) in [
            ("/v1/fork", json!({ "from": plain })),
            ("/v1/sandboxes/own/rollback", json!({ "snapshot": plain })),
            ("/v1/sandboxes", json!({ "spec": { "name": "new", "snapshot": id } })),
        ] {
            let refused = theirs(Method::POST, path, body).await;
            assert_eq!(kind(refused).await, "not_found", "{path}: {named}");
        }
        for query in [format!("from={plain}&to=own"), format!("from={dev}")] {
            let refused = theirs(Method::GET, &format!("/v1/diff?{query}"), json!({})).await;
            assert_eq!(kind(refused).await, "not_found", "{query}");
        }
    }
    let refused = theirs(Method::POST, &format!("/v1/sandboxes/{dev}/snapshots"), json!({})).await;
    assert_eq!(kind(refused).await, "not_found");
    // An id can't be taken from its owner either.
    let refused = theirs(Method::POST, "/v1/sandboxes/own/snapshots", json!({ "id": id })).await;
    assert_eq!(kind(refused).await, "already_exists");
    let listed = value(theirs(Method::GET, "/v1/snapshots", json!({})).await).await;
    assert_eq!(listed, json!({ "snapshots": [] }));
    assert_eq!(kind(theirs(Method::GET, "/v1/snapshots?pool=ours", json!({})).await).await, "not_found");
    assert_eq!(
        (names(&ground).await, read(&ground, "dev", "a").await),
        (vec![json!("good")], "secret".to_owned())
    );
    for path in ["/v1/snapshots", "/v1/snapshots/good", "/v1/diff?from=dev"] {
        assert_eq!(ground.bare(Method::GET, path).send().await.unwrap().status(), 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_values_of_variables_are_told_to_those_who_ask() {
    let ground = Ground::new().await;
    let spec = json!({ "name": "dev", "env": { "TOKEN": "hidden-value" } });
    assert_eq!(ground.post("/v1/sandboxes", json!({ "spec": spec })).await.status(), 201);
    let taken = take(&ground, "dev", json!({ "name": "good" })).await.text().await.unwrap();
    let listed = ground.get("/v1/snapshots").await.text().await.unwrap();
    let found = ground.get("/v1/snapshots/good").await.text().await.unwrap();
    for told in [taken, listed, found] {
        assert!(told.contains("good") && !told.contains("hidden-value"), "{told}");
    }
    let asked = value(ground.get("/v1/snapshots/good?show_env=true").await).await;
    assert_eq!(asked["spec"]["env"]["TOKEN"], "hidden-value");
    assert_eq!(ground.post("/v1/fork", json!({ "from": "good", "name": "fork" })).await.status(), 201);
    let ran = ground.post("/v1/sandboxes/fork/exec", json!({ "command": "echo $TOKEN" })).await;
    assert_eq!(value(ran).await["stdout"], "hidden-value\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_works_is_refused_unless_what_runs_may_be_stopped() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    assert_eq!(
        ground.post("/v1/sandboxes/dev/processes", json!({ "argv": ["sleep", "1000"] })).await.status(),
        201
    );
    let refused = value(take(&ground, "dev", json!({ "name": "good" })).await).await;
    assert_eq!((&refused["kind"], &refused["status"]), (&json!("conflict"), &json!(409)));
    assert!(refused["detail"].as_str().unwrap().contains("`sleep 1000` runs"), "{refused}");
    let forked = ground.post("/v1/fork", json!({ "from": "dev" })).await;
    assert_eq!(kind(forked).await, "conflict");
    let taken = value(take(&ground, "dev", json!({ "name": "good", "stop": true })).await).await;
    assert_eq!(taken["stopped"], json!(["sleep 1000"]));
    let asleep_only = take(&ground, "dev", json!({ "asleep_only": true })).await;
    assert_eq!(kind(asleep_only).await, "conflict");
    assert_eq!(ground.post("/v1/sandboxes/dev/sleep", json!({})).await.status(), 204);
    assert_eq!(take(&ground, "dev", json!({ "asleep_only": true })).await.status(), 201);
    let found = value(ground.get("/v1/sandboxes/dev").await).await;
    assert_eq!(found["status"], "sleeping", "it was woken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_refused_what_its_maker_could_not_ask_for() {
    let ground = Ground::new().await;
    let folder = tempfile::tempdir().unwrap();
    let pool = ground.api.sandbox_pool(&name("ours")).unwrap();
    let mount = json!({ "source": folder.path(), "target": "/mnt", "writable": false });
    let spec = json!({ "name": "hosts", "mounts": [mount] });
    pool.as_provider().make(serde_json::from_value(spec).unwrap()).await.unwrap();
    assert_eq!(take(&ground, "hosts", json!({ "name": "good" })).await.status(), 201);
    for from in ["hosts", "good"] {
        let refused = ground.post("/v1/fork", json!({ "from": from })).await;
        assert_eq!(kind(refused).await, "permission", "{from}");
    }
    assert_eq!(names(&ground).await, [json!("good")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_a_request_is_said_and_changes_nothing() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    assert_eq!(take(&ground, "dev", json!({ "name": "good" })).await.status(), 201);
    for (path, body, expected) in [
        ("/v1/sandboxes/dev/snapshots", json!({ "name": "good" }), "already_exists"),
        ("/v1/sandboxes/dev/snapshots", json!({ "name": "dev" }), "already_exists"),
        ("/v1/sandboxes/dev/snapshots", json!({ "name": "Not A Name" }), "invalid"),
        ("/v1/sandboxes/dev/snapshots", json!({ "nam": "x" }), "invalid"),
        ("/v1/sandboxes/nobody/snapshots", json!({}), "not_found"),
        ("/v1/sandboxes/dev/rollback", json!({ "snapshot": "nothing" }), "not_found"),
        ("/v1/sandboxes/dev/rollback", json!({}), "invalid"),
        ("/v1/fork", json!({ "from": "nothing" }), "not_found"),
        ("/v1/fork", json!({ "from": "good", "count": 65 }), "invalid"),
        ("/v1/fork", json!({ "from": "good", "count": 0 }), "invalid"),
    ] {
        assert_eq!(kind(ground.post(path, body.clone()).await).await, expected, "{path} {body}");
    }
    for (query, expected) in [
        ("from=nothing", "not_found"),
        ("from=base:dev", "invalid"),
        ("from=base:&to=dev", "invalid"),
        ("to=dev", "invalid"),
        ("from=dev&path=up/..", "invalid"),
    ] {
        assert_eq!(kind(ground.get(&format!("/v1/diff?{query}")).await).await, expected, "{query}");
    }
    assert_eq!(kind(ground.get("/v1/snapshots/nothing").await).await, "not_found");
    assert_eq!(names(&ground).await, [json!("good")]);
    let listed = value(ground.get("/v1/sandboxes").await).await;
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_an_image_for_others_and_needs_a_key_that_may_change_images() {
    let ground = Ground::new().await;
    let key = ground.api.keys().create(name("images"), vec![name("images")]).await.unwrap().secret;
    let sent = async |key: &str, path: &str, body: Value| {
        let request = ground.as_whom(key, Method::POST, path).header("content-type", "application/json");
        request.body(body.to_string()).send().await.unwrap()
    };
    let root = TestLayer::default().file("bin/sh", "#!").bytes();
    let import = ground.as_whom(&key, Method::POST, "/v1/images/import?name=base:1").body(root);
    assert_eq!(import.send().await.unwrap().status(), 200);
    let spec = |name: &str, image: &str| json!({ "spec": { "name": name, "image": image } });
    assert_eq!(sent(&key, "/v1/sandboxes", spec("dev", "base:1")).await.status(), 201);
    let file = "/v1/sandboxes/dev/files?path=a";
    assert_eq!(ground.as_whom(&key, Method::PUT, file).body("one").send().await.unwrap().status(), 200);

    let wrong = sent(&key, "/v1/commit", json!({ "from": "dev", "reference": "Not A Name" })).await;
    assert_eq!((wrong.status().as_u16(), kind(wrong).await.as_str()), (400, "invalid"));
    let made = sent(&key, "/v1/commit", json!({ "from": "dev", "reference": "app:1" })).await;
    assert_eq!(made.status(), 201);
    let made = value(made).await;
    assert_eq!((&made["name"], &made["layers"], &made["stopped"]), (&json!("app:1"), &json!(2), &json!([])));
    let listed = value(ground.as_whom(&key, Method::GET, "/v1/snapshots").send().await.unwrap()).await;
    assert_eq!(listed["snapshots"], json!([]));
    // Every key may make sandboxes of it.
    assert_eq!(ground.post("/v1/sandboxes", spec("next", "app:1")).await.status(), 201);
    assert_eq!(read(&ground, "next", "a").await, "one");

    let refused = ground.post("/v1/commit", json!({ "from": "next", "reference": "app:1" })).await;
    assert_eq!(refused.status(), 403);
    assert!(value(refused).await["hint"].as_str().unwrap().contains("--image-key"));
    assert_eq!(sent(&key, "/v1/sandboxes", json!({ "spec": { "name": "plain" } })).await.status(), 201);
    let plain = sent(&key, "/v1/commit", json!({ "from": "plain", "reference": "app:2" })).await;
    assert_eq!(plain.status(), 422);
    assert!(value(plain).await["hint"].as_str().unwrap().contains("--image NAME"));
    let missing = sent(&key, "/v1/commit", json!({ "from": "ours/next", "reference": "app:2" })).await;
    assert!(missing.status().is_client_error());
    let images = value(ground.get("/v1/images").await).await;
    let names: Vec<&Value> = images["images"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!("app:1"), &json!("base:1")]);
}
