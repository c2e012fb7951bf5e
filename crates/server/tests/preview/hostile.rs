//! Requests that try to leave their preview.

use eyot_server::api::{Access, AllowedOrigin, ServeOptions};
use serde_json::json;

use crate::ground::{Ground, PORT, request};

#[tokio::test(flavor = "multi_thread")]
async fn n2_dots_and_doubled_slashes_lead_nowhere_but_to_the_port() {
    let ground = Ground::new().await;
    let (one, other) = (ground.serving("one").await, ground.serving("other").await);
    let preview = ground.preview(&one, PORT, json!({})).await;
    let (host, header) = (preview.host(), preview.header());
    for path in ["/../../etc/passwd", "//evil.example/x", "/%2e%2e/x", "/..%2f..", "/preview/x/1/"] {
        let seen = ground.get(&host, path, &[&header]).await;
        assert!(seen.body().starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{path}: {}", seen.text);
    }
    for up in ["..", "%2e%2e", "%2E.", "a/../.."] {
        let path = format!("/preview/{one}/{PORT}/{up}/../../{other}/{PORT}/");
        assert_eq!(ground.get("localhost", &path, &[&header]).await.status(), 400, "{path}");
    }
    let redirected = ground.get(&host, "//evil.example/?eyot_token=x", &[&header]).await;
    assert_eq!((redirected.status(), redirected.header("location")), (303, Some("/evil.example/")));
    assert!(ground.requests(&other).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_an_absolute_form_address_is_the_host_s_own_or_refused() {
    let ground = Ground::new().await;
    let (one, other) = (ground.serving("one").await, ground.serving("other").await);
    let preview = ground.preview(&one, PORT, json!({})).await;
    let (host, header) = (preview.host(), preview.header());
    let own = ground.get(&host, &format!("http://{host}/x"), &[&header]).await;
    assert!(own.body().starts_with("GET /x HTTP/1.1\r\n"), "{}", own.text);
    let others_host = host.replace(&one.replace('_', "-"), &other.replace('_', "-"));
    for elsewhere in [others_host.as_str(), "evil.example", "localhost", "127.0.0.1:8000"] {
        let refused = ground.get(&host, &format!("http://{elsewhere}/x"), &[&header]).await;
        assert_eq!(refused.status(), 400, "{elsewhere}");
        let connect =
            request("CONNECT", &host, &format!("{}:80", elsewhere.split(':').next().unwrap()), &[&header]);
        assert_eq!(ground.raw(connect).await.status(), 400, "{elsewhere}");
    }
    assert!(ground.requests(&other).await.is_empty());
    assert_eq!(ground.requests(&one).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_one_request_is_one_request_however_its_end_is_told() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let start = format!("POST /first HTTP/1.1\r\nHost: {}\r\n{}\r\n", preview.host(), preview.header());
    let second =
        format!("GET /smuggled HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n", preview.host(), preview.header());
    let length = format!("Content-Length: {}\r\n", 5 + second.len());
    let chunked = "Transfer-Encoding: chunked\r\n";
    for framing in [format!("{length}{chunked}"), format!("{chunked}{length}")] {
        // By its chunks it ends before the second; by its length it does not.
        let answer = ground.raw(format!("{start}{framing}\r\n0\r\n\r\n{second}")).await;
        let lower = answer.text.to_lowercase();
        assert_eq!(lower.matches("http/1.1 200").count(), 1, "{}", answer.text);
        assert!(!answer.body().to_lowercase().contains("content-length"), "{}", answer.text);
    }
    for broken in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: 1\n\tTransfer-Encoding: chunked\r\n",
    ] {
        assert_eq!(
            ground.raw(format!("{start}{broken}\r\n0\r\n\r\n{second}")).await.status(),
            400,
            "{broken}"
        );
    }
    assert_eq!(ground.requests(&id).await, ["POST /first HTTP/1.1", "POST /first HTTP/1.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_a_forged_host_reaches_no_preview_and_a_preview_s_host_no_api() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({ "public": true })).await;
    let label = preview.host().split('.').next().unwrap().to_owned();
    for host in ["evil.example", "localhost.evil.example", "x.localhost", "10.0.0.1"] {
        assert_eq!(ground.get(&format!("{label}.{host}"), "/", &[]).await.status(), 403, "{host}");
        assert_eq!(ground.get(host, &format!("/preview/{id}/{PORT}/"), &[]).await.status(), 403, "{host}");
    }
    let two = request("GET", &preview.host(), "/", &["Host: localhost"]);
    assert_eq!(ground.raw(two).await.status(), 403);
    let forwarded =
        [format!("X-Forwarded-Host: {}", preview.host()), format!("Forwarded: host={}", preview.host())];
    let lines: Vec<&str> = forwarded.iter().map(String::as_str).collect();
    assert_eq!(ground.get("localhost", "/x", &lines).await.status(), 404);
    // The same paths on a preview's host are the guest's, key or not.
    let key = format!("Authorization: Bearer {}", ground.ours);
    for path in ["/v1/sandboxes", "/v1/health", &format!("/preview/{id}/{PORT}/")] {
        let seen = ground.get(&preview.host(), path, &[&key]).await;
        assert!(seen.body().starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{}", seen.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_a_previews_page_is_a_stranger_to_the_api_and_to_other_previews() {
    let listed: AllowedOrigin = "https://app.example".parse().unwrap();
    let options = ServeOptions { allowed_origins: vec![listed], ..ServeOptions::default() };
    let ground = Ground::with(options).await;
    let id = ground.serving("dev").await;
    let (one, other) =
        (ground.preview(&id, PORT, json!({})).await, ground.preview(&id, PORT + 1, json!({})).await);
    let key = format!("Authorization: Bearer {}", ground.ours);
    let origin = |host: &str| format!("Origin: http://{host}");
    let api = ground.get("localhost", "/v1/sandboxes", &[&key, &origin(&one.host())]).await;
    assert_eq!(api.status(), 403);
    let cookie = ground.visit(&one.url, &[]).await.cookie();
    let asked = async |lines: &[&str]| {
        let lines: Vec<&str> = std::iter::once(cookie.as_str()).chain(lines.iter().copied()).collect();
        ground.get(&one.host(), "/", &lines).await.status()
    };
    assert_eq!(asked(&[&origin(&one.host())]).await, 200);
    for stranger in [origin(&other.host()), "Origin: https://app.example".into(), "Origin: null".into()] {
        assert_eq!(asked(&[&stranger]).await, 403, "{stranger}");
    }
    assert_eq!(asked(&["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"]).await, 403);
    assert_eq!(asked(&["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]).await, 200);
    let socket = request(
        "GET",
        &one.host(),
        "/socket",
        &[
            &cookie,
            &origin(&other.host()),
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ],
    );
    assert_eq!(ground.raw(socket).await.status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_a_preview_s_page_below_a_path_gets_nothing_of_a_server_without_keys() {
    let ground = Ground::of(ServeOptions::default(), Access::Anybody).await;
    let asked = async |path: &str, lines: &[&str]| ground.get("localhost", path, lines).await.status();
    assert_eq!(asked("/v1/sandboxes", &[]).await, 200);
    assert_eq!(asked("/v1/sandboxes", &["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"]).await, 200);
    for site in ["same-origin", "same-site", "cross-site"] {
        let site = format!("Sec-Fetch-Site: {site}");
        for mode in ["cors", "no-cors", "navigate"] {
            let mode = format!("Sec-Fetch-Mode: {mode}");
            assert_eq!(asked("/v1/sandboxes", &[&site, &mode]).await, 403, "{site} {mode}");
        }
        assert_eq!(asked("/v1/health", &[&site]).await, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_a_preview_s_page_below_a_path_is_not_of_the_pages_origin() {
    let policies = async |options: ServeOptions| {
        let ground = Ground::with(options).await;
        let id = ground.serving("dev").await;
        let preview = ground.preview(&id, PORT, json!({})).await;
        let path = format!("/preview/{id}/{PORT}/");
        let by_path = ground.get("localhost", &path, &[&preview.header()]).await;
        let by_host = ground.get(&preview.host(), "/", &[&preview.header()]).await;
        assert_eq!((by_path.status(), by_host.status()), (200, 200));
        [by_path, by_host].map(|seen| seen.header("content-security-policy").map(str::to_owned))
    };
    let [by_path, by_host] = policies(ServeOptions::default()).await;
    let by_path = by_path.unwrap();
    assert!(by_path.starts_with("sandbox ") && !by_path.contains("allow-same-origin"), "{by_path}");
    assert!(!by_path.contains("escape") && !by_path.contains("navigation"), "{by_path}");
    assert_eq!(by_host, None);
    // Without a page there is nothing that it could use.
    assert_eq!(policies(ServeOptions { page: false, ..ServeOptions::default() }).await, [None, None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_a_server_without_keys_is_used_by_its_own_page_and_only_where_it_has_one() {
    for (page, status) in [(true, 200), (false, 403)] {
        let ground = Ground::of(ServeOptions { page, ..ServeOptions::default() }, Access::Anybody).await;
        let asked = async |lines: &[&str]| ground.get("localhost", "/v1/sandboxes", lines).await.status();
        let own = ["Eyot-Page: 1", "Sec-Fetch-Site: same-origin"];
        assert_eq!(asked(&own).await, status);
        assert_eq!(asked(&[own[0], own[1], "Origin: http://localhost"]).await, status);
        for stranger in ["Origin: null", "Origin: http://localhost:1", "Origin: https://evil.example"] {
            assert_eq!(asked(&[own[0], own[1], stranger]).await, 403, "{stranger}");
        }
        assert_eq!(asked(&[own[0], "Sec-Fetch-Site: cross-site"]).await, 403);
        let socket = ["Upgrade: websocket", "Connection: Upgrade", "Sec-Fetch-Site: same-origin"];
        assert_eq!(asked(&socket).await, 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_the_page_s_session_never_reaches_a_guest_by_host_or_by_path() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let cookie = "Cookie: own=1; eyot_session=canary; __Host-eyot_session=canary; EYOT_session=canary";
    let (header, proof) = (preview.header(), "Eyot-Page: canary");
    for (host, path) in
        [(preview.host(), "/".to_owned()), ("localhost".to_owned(), format!("/preview/{id}/{PORT}/"))]
    {
        let seen = ground.get(&host, &path, &[&header, cookie, proof]).await;
        assert!(seen.status() == 200 && seen.body().contains("own=1"), "{}", seen.text);
        assert!(!seen.body().contains("canary"), "{}", seen.text);
    }
}
