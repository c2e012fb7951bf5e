//! N3 and N4: a request needs a key, and reaches only the pools of that key.

use eyot_engine::store::Store;
use reqwest::{Method, Response};
use serde_json::json;

use crate::ground::{Ground, kind, name, value};

#[tokio::test(flavor = "multi_thread")]
async fn n4_nobody_gets_in_without_a_key_or_with_a_wrong_or_a_revoked_one() {
    let ground = Ground::new().await;
    let list = |key: &str| ground.as_whom(key, Method::GET, "/v1/sandboxes").send();
    assert_eq!(ground.bare(Method::GET, "/v1/sandboxes").send().await.unwrap().status(), 401);
    for wrong in ["", "eyot_", "Bearer", &ground.ours[..40]] {
        let refused = list(wrong).await.unwrap();
        assert_eq!(refused.status(), 401, "{wrong}");
        assert!(refused.headers().contains_key("www-authenticate"));
    }
    assert_eq!(list(&ground.ours).await.unwrap().status(), 200);
    ground.api.keys().revoke("ours").await.unwrap();
    assert_eq!(list(&ground.ours).await.unwrap().status(), 401);
    assert_eq!(list(&ground.theirs).await.unwrap().status(), 200);
    assert_eq!(ground.bare(Method::GET, "/v1/health").send().await.unwrap().status(), 200);
}

/// Follows the events of one key's pools from now on.
async fn followed(ground: &Ground, key: &str) -> Response {
    let path = "/v1/events?follow=true";
    let followed = ground.as_whom(key, Method::GET, path).send().await.unwrap();
    assert_eq!(followed.status(), 200);
    followed
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_what_is_under_way_for_a_key_ends_when_it_is_revoked_by_whichever_process() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let (mut ours, mut theirs) =
        (followed(&ground, &ground.ours).await, followed(&ground, &ground.theirs).await);
    let command = json!({ "command": "echo begun > begun; sleep 1000" });
    let body = serde_json::to_vec(&command).unwrap();
    let run = ground.request(Method::POST, &format!("/v1/sandboxes/{id}/exec"));
    let run = tokio::spawn(run.header("content-type", "application/json").body(body).send());
    let begun = format!("/v1/sandboxes/{id}/files?path=begun");
    while ground.get(&begun).await.status() != 200 {
        tokio::task::yield_now().await;
    }
    // As `eyot keys revoke` does it.
    let store = Store::open(ground.state().join("eyot.db")).unwrap();
    tokio::task::spawn_blocking(move || store.revoke_key("ours")).await.unwrap().unwrap();
    let mut told = Vec::new();
    while let Some(piece) = ours.chunk().await.unwrap() {
        told.extend_from_slice(&piece);
    }
    let told = String::from_utf8(told).unwrap();
    let last = told.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("event: problem\n") && last.contains("the key was revoked"), "{last}");
    assert_eq!(run.await.unwrap().unwrap().status(), 401);
    let made = ground.as_whom(&ground.theirs, Method::POST, "/v1/sandboxes").send().await.unwrap();
    assert_eq!(made.status(), 201);
    assert!(theirs.chunk().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_another_tenants_sandbox_is_not_there_by_id_or_name_and_says_the_same_as_none() {
    let ground = Ground::new().await;
    let id = ground.sandbox("secret-project").await;
    let none = "sb_00000000000000000000000000000000";
    let ask = async |key: &str, method: &Method, sandbox: &str, rest: &str| {
        let path = format!("/v1/sandboxes/{sandbox}{rest}");
        let answer = ground.as_whom(key, method.clone(), &path).send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, text.replace(sandbox, "X"))
    };
    let routes = [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::POST, "/open"),
        (Method::POST, "/sleep"),
        (Method::POST, "/wake"),
        (Method::GET, "/usage"),
        (Method::GET, "/files?path=/etc/passwd"),
        (Method::GET, "/list?path=/"),
        (Method::GET, "/processes"),
        (Method::GET, "/ports"),
    ];
    for (method, rest) in &routes {
        let absent = ask(&ground.theirs, method, none, rest).await;
        assert_eq!(absent.0, 404, "{method} {rest}: {}", absent.1);
        assert_eq!(ask(&ground.theirs, method, &id, rest).await, absent, "{method} {rest}");
        assert_eq!(ask(&ground.theirs, method, "secret-project", rest).await.0, 404, "{method} {rest}");
        let named = format!("{rest}{}pool=ours", if rest.contains('?') { "&" } else { "?" });
        let (status, text) = ask(&ground.theirs, method, "secret-project", &named).await;
        let has_way = text.contains("this key opens `theirs`");
        assert!(status == 404 && text.contains("no pool") && has_way, "{method} {named}: {status} {text}");
    }
    assert_eq!(ground.get(&format!("/v1/sandboxes/{id}")).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_names_belong_to_a_pool_and_a_key_may_open_several() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    let both =
        ground.api.keys().create(name("both"), vec![name("theirs"), name("ours")]).await.unwrap().secret;
    let body = serde_json::to_vec(&json!({ "spec": { "name": "dev" } })).unwrap();
    let make = |key: &str| ground.as_whom(key, Method::POST, "/v1/sandboxes").body(body.clone()).send();
    assert_eq!(make(&ground.theirs).await.unwrap().status(), 201);
    assert_eq!(kind(make(&ground.theirs).await.unwrap()).await, "already_exists");
    let list = async |pool: &str| {
        let path = format!("/v1/sandboxes?pool={pool}");
        value(ground.as_whom(&both, Method::GET, &path).send().await.unwrap()).await
    };
    let (ours, theirs) = (list("ours").await, list("theirs").await);
    assert_ne!(ours["sandboxes"][0]["id"], theirs["sandboxes"][0]["id"]);
    assert_eq!(
        (&ours["sandboxes"][0]["name"], &theirs["sandboxes"][0]["pool"]),
        (&json!("dev"), &json!("theirs"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_a_web_page_and_a_rebound_name_are_refused_whatever_they_show() {
    let ground = Ground::new().await;
    for (header, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("host", "evil.example:7070")]
    {
        let asked = ground.request(Method::GET, "/v1/sandboxes").header(header, value).send().await.unwrap();
        assert_eq!(asked.status(), 403, "{header}: {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_reach_the_servers_host_is_refused() {
    let ground = Ground::new().await;
    for spec in [
        json!({ "mounts": [{ "source": "/etc", "target": "/mnt/x" }] }),
        json!({ "network": "host" }),
        json!({ "image": "/" }),
        json!({ "image": "./rootfs" }),
        json!({ "image": "src/../../../etc" }),
        json!({ "image": "~/rootfs" }),
        json!({ "image": "src//lib" }),
        json!({ "image": "file:///etc" }),
        json!({ "network": "bridge", "container": { "network": "host" } }),
        json!({ "container": { "runtime": "runc" } }),
        json!({ "network": "egress", "egress": { "allow": ["169.254.169.254:80"] } }),
        json!({ "network": "egress", "egress": { "allow": ["example.com", "10.0.0.0/8"] } }),
        json!({ "network": "egress", "egress": { "allow": ["0.0.0.0/0"] } }),
    ] {
        let refused = ground.post("/v1/sandboxes", json!({ "spec": spec })).await;
        assert_eq!(refused.status(), 403, "{spec}");
        let problem = value(refused).await;
        assert_eq!(problem["kind"], "permission");
        assert!(
            problem["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
            "{spec} has no way on: {problem}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_open_what_is_not_public_are_refused_at_every_door_and_change_nothing() {
    let ground = Ground::new().await;
    let spec =
        json!({ "name": "dev", "network": "egress", "egress": { "allow": ["example.com", "1.1.1.0/24"] } });
    assert_eq!(ground.post("/v1/sandboxes", json!({ "spec": spec })).await.status(), 201);
    let private = json!({ "allow": ["169.254.169.254"] });
    let send = |method: Method, path: &str, body: serde_json::Value| {
        ground.request(method, path).body(serde_json::to_vec(&body).unwrap()).send()
    };
    let put = send(Method::PUT, "/v1/sandboxes/dev/egress", private.clone()).await.unwrap();
    assert_eq!(kind(put).await, "permission");
    let patched = send(Method::PATCH, "/v1/sandboxes/dev", json!({ "egress": private })).await.unwrap();
    assert_eq!(kind(patched).await, "permission");
    let rules = value(ground.get("/v1/sandboxes/dev/egress").await).await;
    assert_eq!(rules["allow"], json!(["example.com", "1.1.1.0/24"]));
}

/// Creates a sandbox with this image in each way that a tenant has, and returns the answers without
/// the image's name.
async fn answers_to_image(ground: &Ground, image: &str) -> Vec<(u16, String)> {
    let body = |body: serde_json::Value| serde_json::to_vec(&body).unwrap();
    let made = ground.post("/v1/sandboxes", json!({ "spec": { "image": image } })).await;
    let path = "/v1/pools/ours/sandboxes/new";
    let put = ground.request(Method::PUT, path).body(body(json!({ "image": image })));
    let arguments = json!({ "sandbox": "new", "image": image });
    let called = ground.request(Method::POST, "/v1/toolsets/pool/sandbox_create").body(body(arguments));
    let mut answers = Vec::new();
    for answer in [made, put.send().await.unwrap(), called.send().await.unwrap()] {
        let status = answer.status().as_u16();
        answers.push((status, answer.text().await.unwrap().replace(image, "IMAGE")));
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_an_images_name_is_answered_alike_whatever_is_on_the_hosts_disk() {
    let ground = Ground::new().await;
    // What lies in the folder in which the server, which is this test, was started: a file or a folder of any name.
    let names =
        std::fs::read_dir(".").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| !name.starts_with('.')).take(4).collect();
    assert!(!names.is_empty());
    for there in &names {
        let absent = format!("{there}z");
        assert!(!std::path::Path::new(&absent).exists());
        let answers = answers_to_image(&ground, there).await;
        assert_eq!(answers, answers_to_image(&ground, &absent).await, "{there}");
        assert!(answers[0].0 == 404 && answers[0].1.contains("no image `IMAGE`"), "{answers:?}");
    }
    // The same for what has the form of a path.
    for (there, absent) in [("/etc/shadow", "/etc/shadov"), ("./src", "./srd"), ("../server", "../servez")] {
        let answers = answers_to_image(&ground, there).await;
        assert_eq!(answers, answers_to_image(&ground, absent).await, "{there}");
        assert_eq!(answers[0].0, 403, "{answers:?}");
    }
}
