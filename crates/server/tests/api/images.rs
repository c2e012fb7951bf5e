//! Images over HTTP: list, import and remove them. Pulls are in the command line's tests, which
//! have a registry.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use eyot_image::testing::{TestImage, TestLayer};
use eyot_server::api::ServeLimits;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, kind, name, value};

/// A bound for waits: an event that has not come by then never comes.
const HANG: Duration = Duration::from_secs(20);

/// Returns what `docker save` writes of an image of these names.
fn archive(names: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("archive.tar");
    let layer = TestLayer::default().file("bin/sh", "#!").file("noise", vec![7; 100_000]);
    TestImage::new(&[layer]).write_docker_archive(&file, names).unwrap();
    std::fs::read(file).unwrap()
}

/// Returns a key that may change the images.
async fn operator(ground: &Ground) -> String {
    ground.api.keys().create(name("images"), vec![name("images")]).await.unwrap().secret
}

async fn import(ground: &Ground, key: &str, query: &str, archive: Vec<u8>) -> Response {
    let path = format!("/v1/images/import{query}");
    ground.as_whom(key, Method::POST, &path).body(archive).send().await.unwrap()
}

async fn remove(ground: &Ground, key: &str, query: &str) -> Response {
    ground.as_whom(key, Method::DELETE, &format!("/v1/images{query}")).send().await.unwrap()
}

/// Returns the names of the images, as any key sees them.
async fn names(ground: &Ground) -> Vec<Value> {
    let listed = value(ground.get("/v1/images").await).await;
    listed["images"].as_array().unwrap().iter().map(|image| image["name"].clone()).collect()
}

fn incoming(ground: &Ground) -> usize {
    std::fs::read_dir(ground.state().join("images/incoming")).map_or(0, Iterator::count)
}

async fn until(mut is_so: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < HANG, "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_imported_listed_used_and_removed() {
    let ground = Ground::new().await;
    let key = operator(&ground).await;
    assert_eq!(names(&ground).await, Vec::<Value>::new());
    let imported = import(&ground, &key, "", archive(&["team/app:1"])).await;
    assert_eq!(imported.status(), 200);
    let imported = value(imported).await;
    assert_eq!(imported["images"][0]["name"], "team/app:1");
    assert_eq!(imported, value(ground.get("/v1/images").await).await);
    assert!(imported["images"][0]["size_bytes"].as_u64().unwrap() > 100_000, "{imported}");
    let renamed = import(&ground, &key, "?name=other:2", archive(&["team/app:1"])).await;
    assert_eq!(value(renamed).await["images"][0]["name"], "other:2");
    assert_eq!(value(remove(&ground, &key, "?name=other:2").await).await["images"], json!(["other:2"]));

    let made =
        ground.post("/v1/sandboxes", json!({ "spec": { "name": "dev", "image": "team/app:1" } })).await;
    assert_eq!(made.status(), 201);
    let refused = remove(&ground, &key, "?name=team/app:1").await;
    assert_eq!(refused.status(), 409);
    let problem = value(refused).await;
    assert!(problem["detail"].as_str().unwrap().ends_with("made over it: ours/dev"), "{problem}");
    let removed = remove(&ground, &key, "?name=team/app:1&force=true").await;
    assert_eq!(value(removed).await["images"], json!(["team/app:1"]));
    assert_eq!(names(&ground).await, Vec::<Value>::new());
    assert_eq!(kind(remove(&ground, &key, "?name=team/app:1").await).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_a_key_that_only_opens_pools_changes_no_image() {
    let ground = Ground::new().await;
    import(&ground, &operator(&ground).await, "", archive(&["app:1"])).await;
    for refused in [
        import(&ground, &ground.ours, "?name=app:1", archive(&["app:1"])).await,
        remove(&ground, &ground.ours, "?name=app:1&force=true").await,
    ] {
        assert_eq!(refused.status(), 403);
        let problem = value(refused).await;
        assert!(problem["hint"].as_str().unwrap().contains("--image-key"), "{problem}");
    }
    assert_eq!(names(&ground).await, [json!("app:1")]);
    for (method, path) in [(Method::GET, ""), (Method::POST, "/import"), (Method::POST, "/pull?name=app:1")] {
        let path = format!("/v1/images{path}");
        assert_eq!(ground.bare(method, &path).send().await.unwrap().status(), 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_is_too_large_or_breaks_off_leaves_nothing() {
    let ground = Ground::limited(ServeLimits { max_image_bytes: 90_000, ..ServeLimits::default() }).await;
    let key = operator(&ground).await;
    let refused = import(&ground, &key, "", archive(&["app:1"])).await;
    assert_eq!(refused.status(), 413);
    assert!(value(refused).await["detail"].as_str().unwrap().contains("90000 bytes"));

    let mut client = TcpStream::connect(ground.address).unwrap();
    let head =
        format!("POST /v1/images/import HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n");
    client.write_all(format!("{head}Content-Length: 90000\r\n\r\n").as_bytes()).unwrap();
    client.write_all(&archive(&["app:1"])[..80_000]).unwrap();
    until(|| incoming(&ground) > 0, "the archive is not written to the disk as it comes").await;
    drop(client);
    until(|| incoming(&ground) == 0, "the file of a client that has gone stays").await;
    assert_eq!(names(&ground).await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_file_system_needs_a_name_and_what_is_no_archive_is_refused() {
    let ground = Ground::new().await;
    let key = operator(&ground).await;
    let root = TestLayer::default().file("bin/sh", "#!").bytes();
    let nameless = import(&ground, &key, "", root.clone()).await;
    assert_eq!(kind(nameless).await, "invalid");
    assert_eq!(import(&ground, &key, "?name=base:12", root).await.status(), 200);
    assert_eq!(names(&ground).await, [json!("base:12")]);
    let refused = import(&ground, &key, "?name=x:1", b"no archive".to_vec()).await;
    assert_eq!(refused.status(), 400);
    let problem = value(refused).await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(!detail.contains(ground.state().to_str().unwrap()), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_can_not_begin_is_refused_by_its_status() {
    let ground = Ground::new().await;
    let pull = async |name: &str| ground.post(&format!("/v1/images/pull?name={name}"), json!({})).await;
    assert_eq!(kind(pull("host").await).await, "invalid");
    assert_eq!(kind(pull("No%20Name").await).await, "invalid");
    // This server has no registry.
    assert_eq!(kind(pull("app:1").await).await, "unsupported");
}
