//! The headers that are removed from requests for the guest, and from answers for the browser.

use eyot_server::api::ServeOptions;
use serde_json::json;

use crate::ground::{Ground, PORT, parts, request};

#[tokio::test(flavor = "multi_thread")]
async fn n2_what_was_shown_to_get_in_never_reaches_the_guest() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let cookie = ground.visit(&preview.url, &[]).await.cookie();
    let (path_url, header) = (preview.path_url.clone(), preview.header());
    let (_, ticket) = path_url.split_once("eyot_token=").unwrap();
    let key = ground.ours.clone();
    let cookies = format!("{cookie}; theirs=1");
    let lines = [
        cookies.as_str(),
        &header,
        &format!("Authorization: Bearer {key}"),
        &format!("Proxy-Authorization: Basic {key}"),
        "Eyot-Anything: 1",
        "X-Forwarded-For: 1.2.3.4",
        "X-Forwarded-Host: evil.example",
        "Forwarded: host=evil.example",
        &format!("Referer: http://x/?eyot_token={ticket}"),
        "X-Kept: 1",
        "Keep-Alive: 300",
        "TE: trailers",
        "Connection: X-Secret",
        "X-Secret: 1",
    ];
    let query = format!("/a?b=1&eyot_token={ticket}&c");
    for method in ["POST", "HEAD", "DELETE"] {
        let answer = ground.raw(request(method, &preview.host(), &query, &lines)).await;
        assert_eq!(answer.status(), 200, "{method}");
    }
    let seen = ground.raw(request("POST", &preview.host(), &query, &lines)).await;
    let (body, lower) = (seen.body(), seen.body().to_lowercase());
    assert!(body.starts_with("POST /a?b=1&c HTTP/1.1\r\n"), "{body}");
    assert!(lower.contains("cookie: theirs=1\r\n") && lower.contains("x-kept: 1\r\n"), "{body}");
    assert!(lower.contains(&format!("x-forwarded-host: {}\r\n", preview.host())), "{body}");
    let secrets = [key.as_str(), ticket, &preview.token, cookie.split_once('=').unwrap().1];
    for gone in
        secrets.into_iter().chain(["eyot-", "eyot_", "authorization", "1.2.3.4", "evil", "keep-alive"])
    {
        assert!(!lower.contains(gone), "{gone}: {body}");
    }
    assert!(!lower.contains("te: trailers") && !lower.contains("x-secret"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_a_guest_says_nothing_of_what_is_not_its_own_by_host_or_by_path() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({ "public": true })).await;
    let (host, path) = parts(&preview.path_url);
    let by_host = ground.get(&preview.host(), "/sets", &[]).await;
    assert_eq!(by_host.header("set-cookie"), Some("s=1; Path=/"));
    assert_eq!(by_host.header("service-worker-allowed"), Some("/"));
    let by_path = ground.get(&host, &format!("{path}sets"), &[]).await;
    assert_eq!(by_path.header("set-cookie"), Some(format!("s=1; Path={path}").as_str()));
    assert_eq!(by_path.header("service-worker-allowed"), None);
    for answer in [&by_host, &by_path] {
        assert!(!answer.text.contains("evil") && answer.header("alt-svc").is_none());
        assert!(answer.header("x-hop").is_none());
        // The guest's own rules about its own pages hold.
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        for name in ["clear-site-data", "strict-transport-security", "nel", "report-to", "x-accel-redirect"] {
            assert!(answer.header(name).is_none(), "{name}");
        }
    }
    let redirected = ground.get(&host, &format!("{path}elsewhere"), &[]).await;
    assert_eq!(redirected.header("location"), Some(format!("{path}login?a").as_str()));
    let slash = ground.get(&host, path.trim_end_matches('/'), &[]).await;
    assert_eq!((slash.status(), slash.header("location")), (303, Some(path.as_str())));
    let prefix = format!("x-forwarded-prefix: {}\r\n", path.trim_end_matches('/'));
    assert!(ground.get(&host, &path, &[]).await.body().contains(&prefix));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_of_the_server_s_own_has_previews_and_no_api() {
    let options =
        ServeOptions { preview_domains: vec!["p.example:8443".parse().unwrap()], ..ServeOptions::default() };
    let ground = Ground::with(options).await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    assert_eq!(preview.host(), format!("{PORT}-{}.p.example:8443", id.replace('_', "-")));
    let first = ground.visit(&preview.url, &["X-Forwarded-Proto: https"]).await;
    let set = first.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-eyot_preview=") && set.ends_with("; Secure"), "{set}");
    // Over plain HTTP it is not looked at: no browser sends it there.
    assert_eq!(ground.get(&preview.host(), "/", &[&first.cookie()]).await.status(), 401);
    let seen = ground.get(&preview.host(), "/", &[&first.cookie(), "X-Forwarded-Proto: https"]).await;
    assert!(seen.body().contains(&format!("host: {}\r\n", preview.host())), "{}", seen.text);
    assert_eq!(ground.get("p.example:8443", "/v1/health", &[]).await.status(), 403);
}
