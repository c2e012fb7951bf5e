//! Access to a preview: the secrets that open it, and how long they do.

use reqwest::Method;
use serde_json::json;

use crate::ground::{Ground, PORT, parts, value};

#[tokio::test(flavor = "multi_thread")]
async fn n2_the_token_of_an_address_is_gone_by_a_redirect_and_is_worth_one_cookie() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    for url in [&preview.url, &preview.path_url] {
        let (host, path) = parts(url);
        let first = ground.visit(&format!("{url}&a=1&b"), &[]).await;
        assert_eq!(first.status(), 303, "{}", first.text);
        let clean = format!("{}?a=1&b", path.split('?').next().unwrap());
        assert_eq!(first.header("location"), Some(clean.as_str()));
        assert_eq!(first.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(first.header("cache-control"), Some("no-store"));
        let cookie = first.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Lax") && !cookie.contains("Domain"), "{cookie}");
        assert!(cookie.contains(&format!("Path={};", path.split('?').next().unwrap())), "{cookie}");
        let (_, ticket) = url.split_once("eyot_token=").unwrap();
        assert!(!first.text.contains(ticket) && ticket.len() == 64);

        let seen = ground.get(&host, &clean, &[&first.cookie()]).await;
        assert_eq!(seen.status(), 200);
        assert!(seen.body().starts_with("GET /?a=1&b HTTP/1.1\r\n"), "{}", seen.body());
        // Once: the same address opens nothing for somebody else, and takes nobody out who is in.
        assert_eq!(ground.visit(url, &[]).await.status(), 401);
        let again = ground.visit(url, &[&first.cookie()]).await;
        assert_eq!((again.status(), again.header("set-cookie")), (303, None));
        assert_eq!(
            ground.get(&host, &clean, &[&format!("Eyot-Preview-Token: {ticket}")]).await.status(),
            401
        );
        assert_eq!(
            ground.get(&host, &clean, &[&format!("Cookie: eyot_preview={ticket}")]).await.status(),
            401
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_was_used_says_that_it_opens_once_and_what_makes_another() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    assert_eq!(ground.visit(&preview.url, &[]).await.status(), 303);
    for accept in ["Accept: text/html", "Accept: application/json"] {
        let again = ground.visit(&preview.url, &[accept]).await;
        let body = again.body();
        assert_eq!(again.status(), 401);
        for words in ["opens it once", "was used", "`eyot browse NAME PORT`", "`eyot preview NAME PORT`"] {
            assert!(body.contains(words), "{words}: {body}");
        }
        assert!(!body.contains("key"), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_a_link_that_a_program_only_looks_at_keeps_its_token() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let (host, path) = parts(&preview.url);
    for method in ["HEAD", "POST", "OPTIONS"] {
        let answer = ground.raw(crate::ground::request(method, &host, &path, &[])).await;
        assert_eq!(answer.status(), 401, "{method}");
    }
    assert_eq!(ground.visit(&preview.url, &[]).await.status(), 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_what_opens_one_port_of_one_sandbox_opens_no_other() {
    let ground = Ground::new().await;
    let (one, other) = (ground.serving("one").await, ground.serving("other").await);
    let preview = ground.preview(&one, PORT, json!({})).await;
    let elsewhere = [(&one, PORT + 1), (&other, PORT), (&other, PORT + 1)];
    let first = ground.visit(&preview.url, &[]).await;
    let host = preview.host();
    let opens = [preview.header(), first.cookie()];
    for opener in &opens {
        assert_eq!(ground.get(&host, "/", &[opener]).await.status(), 200, "{opener}");
    }
    let (_, path_ticket) = preview.path_url.split_once('?').unwrap();
    for (id, port) in elsewhere {
        let label = format!("{port}-{}", id.replace('_', "-"));
        let (_, domain) = host.split_once('.').unwrap();
        let (host, path) = (format!("{label}.{domain}"), format!("/preview/{id}/{port}/"));
        for opener in &opens {
            assert_eq!(ground.get(&host, "/", &[opener]).await.status(), 401, "{host}");
            assert_eq!(ground.get(domain, &path, &[opener]).await.status(), 401, "{path}");
        }
        assert_eq!(ground.get(domain, &format!("{path}?{path_ticket}"), &[]).await.status(), 401);
    }
    assert!(ground.requests(&other).await.is_empty());
    assert_eq!(ground.visit(&preview.path_url, &[]).await.status(), 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_nothing_wrong_opens_a_private_preview_and_all_of_it_is_told_alike() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let (host, half) = (preview.host(), &preview.token[..32]);
    let bare = ground.get(&host, "/", &[]).await;
    assert_eq!(bare.status(), 401);
    assert!(bare.header("www-authenticate").is_some());
    for wrong in [
        format!("Eyot-Preview-Token: {half}"),
        format!("Eyot-Preview-Token: {}x", preview.token),
        "Eyot-Preview-Token:".to_owned(),
        format!("Authorization: Bearer {}", preview.token),
        format!("Authorization: Bearer {}", ground.ours),
        format!("Cookie: eyot_preview={}", preview.token),
        "Cookie: eyot_preview=".to_owned(),
    ] {
        let answer = ground.get(&host, "/", &[&wrong]).await;
        assert_eq!((answer.status(), answer.body()), (401, bare.body()), "{wrong}");
    }
    assert!(ground.requests(&id).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_a_preview_is_made_only_by_a_key_of_the_sandbox_s_pool() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let none = "sb_00000000000000000000000000000000";
    let ask = async |method: &Method, id: &str| {
        let path = format!("/v1/sandboxes/{id}/ports/{PORT}/preview");
        let answer = ground.api(&ground.theirs, method.clone(), &path, &json!({})).await;
        (answer.status().as_u16(), answer.text().await.unwrap().replace(id, "X"))
    };
    for method in [Method::POST, Method::DELETE] {
        let absent = ask(&method, none).await;
        assert_eq!(absent.0, 404);
        assert_eq!(ask(&method, &id).await, absent);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_preview_needs_nothing_until_it_is_revoked_and_its_neighbour_stays_private() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({ "public": true })).await;
    assert_eq!((&preview.answer["public"], &preview.answer["token"]), (&json!(true), &json!(null)));
    assert!(!preview.url.contains('?'));
    assert_eq!(ground.visit(&preview.url, &[]).await.status(), 200);
    assert_eq!(ground.visit(&preview.path_url, &[]).await.status(), 200);
    let neighbour = preview.url.replacen(&PORT.to_string(), &(PORT + 1).to_string(), 1);
    assert_eq!(ground.visit(&neighbour, &[]).await.status(), 401);
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/preview");
    assert_eq!(ground.api(&ground.ours, Method::DELETE, &path, &json!({})).await.status(), 204);
    assert_eq!(ground.visit(&preview.url, &[]).await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_to_live_is_a_second_to_a_week() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/preview");
    for (ttl_ms, status) in [(999, 400), (1_000, 201), (604_800_000, 201), (604_800_001_u64, 400)] {
        assert_eq!(ground.post(&path, json!({ "ttl_ms": ttl_ms })).await.status(), status, "{ttl_ms}");
    }
    for port in ["0", "65536", "x"] {
        let path = format!("/v1/sandboxes/{id}/ports/{port}/preview");
        let refused = ground.post(&path, json!({})).await;
        assert_eq!((refused.status().as_u16(), &value(refused).await["field"]), (400, &json!("port")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_an_unknown_sandbox_answers_410_and_so_does_one_that_was_destroyed() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let header = preview.header();
    assert_eq!(ground.get(&preview.host(), "/", &[&header]).await.status(), 200);
    let destroyed =
        ground.api(&ground.ours, Method::DELETE, &format!("/v1/sandboxes/{id}"), &json!({})).await;
    assert_eq!(destroyed.status(), 204);
    assert_eq!(ground.get(&preview.host(), "/", &[&header]).await.status(), 410);
    assert_eq!(ground.visit(&preview.path_url, &[]).await.status(), 410);
    // A client may choose an id: what the first has granted opens nothing of the second.
    let again = ground.post("/v1/sandboxes", json!({ "spec": { "id": id, "name": "dev" } })).await;
    assert_eq!(again.status(), 201);
    assert_eq!(ground.get(&preview.host(), "/", &[&header]).await.status(), 401);
    let unknown = format!("{PORT}-sb-{}.localhost", "0".repeat(32));
    let page = ground.get(&unknown, "/", &["Accept: text/html"]).await;
    assert_eq!((page.status(), page.header("content-type")), (410, Some("text/html; charset=utf-8")));
    let problem = ground.get(&unknown, "/", &[]).await;
    assert_eq!((problem.status(), problem.header("content-type")), (410, Some("application/problem+json")));
    assert_eq!(ground.get("localhost", "/preview/none/80/", &[]).await.status(), 410);
}
