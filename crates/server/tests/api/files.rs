//! Files by plain requests.

use reqwest::Method;
use serde_json::json;

use crate::ground::{Ground, kind, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_in_and_out_as_it_is_and_in_parts() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let path = format!("/v1/sandboxes/{id}/files?path=deep/down/f");
    let put = ground.request(Method::PUT, &path).body(bytes.clone()).send().await.unwrap();
    assert_eq!(value(put).await, json!({ "size": 200_000 }));
    assert_eq!(ground.get(&path).await.bytes().await.unwrap(), bytes);
    let part = ground.request(Method::GET, &path).header("range", "bytes=1000-1999").send().await.unwrap();
    assert_eq!(
        (part.status().as_u16(), &part.headers()["content-range"]),
        (206, &"bytes 1000-1999/200000".parse().unwrap())
    );
    assert_eq!(part.bytes().await.unwrap(), bytes[1000..2000]);
    let beyond = ground.request(Method::GET, &path).header("range", "bytes=200000-").send().await.unwrap();
    assert_eq!(
        (beyond.status().as_u16(), &beyond.headers()["content-range"]),
        (416, &"bytes */200000".parse().unwrap())
    );
    let again = format!("{path}&mode=create_new");
    assert_eq!(
        kind(ground.request(Method::PUT, &again).body("x").send().await.unwrap()).await,
        "already_exists"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_goes_from_one_sandbox_to_another() {
    let ground = Ground::new().await;
    let (one, other) = (ground.sandbox("one").await, ground.sandbox("other").await);
    let make = json!({ "command": "mkdir -p t/d && echo a > t/d/f && ln -s d/f t/link" });
    ground.post(&format!("/v1/sandboxes/{one}/exec"), make).await;
    let tar = ground.get(&format!("/v1/sandboxes/{one}/tree?path=t")).await.bytes().await.unwrap();
    let put = format!("/v1/sandboxes/{other}/tree?path=/tmp");
    let unpacked = ground.request(Method::PUT, &put).body(tar).send().await.unwrap();
    assert_eq!(value(unpacked).await, json!({ "entries": 4 }));
    let read = json!({ "command": "cat /tmp/t/link" });
    let seen = value(ground.post(&format!("/v1/sandboxes/{other}/exec"), read).await).await;
    assert_eq!(seen["stdout"], "a\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_can_be_held_beneath_a_directory() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let make = json!({ "command": "mkdir held && echo in > held/f && ln -s /etc/passwd held/out" });
    ground.post(&format!("/v1/sandboxes/{id}/exec"), make).await;
    let read =
        async |path: &str| ground.get(&format!("/v1/sandboxes/{id}/files?beneath=held&path={path}")).await;
    assert_eq!(read("held/f").await.text().await.unwrap(), "in\n");
    for path in ["held/out", "/etc/passwd", "held/../../etc/passwd"] {
        assert_eq!(kind(read(path).await).await, "permission", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_is_sorted_or_in_the_directorys_own_order() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let make = json!({ "command": "mkdir many && cd many && for n in $(seq 200); do : > $n; done && ls -U" });
    let made = value(ground.post(&format!("/v1/sandboxes/{id}/exec"), make).await).await;
    let own: Vec<String> = made["stdout"].as_str().unwrap().lines().map(str::to_owned).collect();
    let listed = async |order: &str| {
        let listed = value(ground.get(&format!("/v1/sandboxes/{id}/list?path=many{order}")).await).await;
        let entries = listed["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("&order=directory").await, own);
    let mut sorted = own;
    sorted.sort();
    assert_eq!((listed("").await, listed("&order=name").await), (sorted.clone(), sorted));
    let wrong = ground.get(&format!("/v1/sandboxes/{id}/list?path=many&order=size")).await;
    assert_eq!(kind(wrong).await, "invalid");
}
