//! The page at `/`: its files, its session, and requests that must not use that session.

use eyot_server::api::ServeLimits;
use futures_util::{SinkExt, StreamExt};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, kind, value};

/// A browser that shows the page of this server.
struct Browser<'a> {
    ground: &'a Ground,
    cookie: String,
    proof: String,
}

impl<'a> Browser<'a> {
    async fn signed_in(ground: &'a Ground) -> Self {
        let answer = sign_in(ground, &ground.ours, &[("eyot-page", "1")]).await;
        assert_eq!(answer.status(), 200);
        let set = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
        let answer = value(answer).await;
        let cookie = set.split(';').next().unwrap().to_owned();
        Self { ground, cookie, proof: answer["proof"].as_str().unwrap().to_owned() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).header("eyot-page", &self.proof)
    }

    /// Makes a request with the cookie, which browsers send for every page, and without the proof.
    fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.ground.bare(method, path).header("cookie", &self.cookie)
    }
}

async fn sign_in(ground: &Ground, key: &str, headers: &[(&str, &str)]) -> Response {
    let body = serde_json::to_vec(&json!({ "key": key })).unwrap();
    let request = ground.bare(Method::POST, "/v1/session").header("content-type", "application/json");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(body).send().await.unwrap()
}

fn own(ground: &Ground) -> String {
    format!("http://{}", ground.address)
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_at_the_page_are_told_to_wait_and_the_right_one_is_let_in() {
    let limits = ServeLimits { wrong_keys_per_second: 1, wrong_key_burst: 3, ..ServeLimits::default() };
    let ground = Ground::limited(limits).await;
    let mut statuses = Vec::new();
    while !statuses.contains(&429) {
        statuses.push(sign_in(&ground, "eyot_wrong", &[("eyot-page", "1")]).await.status().as_u16());
    }
    assert!(statuses.len() > 3 && statuses[..3] == [401, 401, 401], "{statuses:?}");
    assert_eq!(sign_in(&ground, &ground.ours, &[("eyot-page", "1")]).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_needs_no_key_and_no_other_server_and_nobody_frames_it() {
    let ground = Ground::new().await;
    let page = ground.bare(Method::GET, "/").send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    for (name, said) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(page.headers()[name], said);
    }
    let tag = page.headers()["etag"].clone();
    let again = ground.bare(Method::GET, "/").header("if-none-match", tag).send().await.unwrap();
    assert_eq!(again.status(), 304);
    let packed =
        ground.bare(Method::GET, "/").header("accept-encoding", "br, gzip;q=0.5").send().await.unwrap();
    assert_eq!(
        (&packed.headers()["content-encoding"], &packed.headers()["vary"]),
        (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    assert_eq!(packed.bytes().await.unwrap()[..2], [0x1f, 0x8b]);
    let text = page.text().await.unwrap();
    assert!(!text.contains("://") && !text.contains("<style") && !text.contains("onload"), "{text}");
    let files = text.split('"').filter(|part| part.starts_with("/assets/"));
    let mut count = 0;
    for file in files {
        let asset = ground.bare(Method::GET, file).send().await.unwrap();
        assert_eq!(asset.status(), 200, "{file}");
        assert_eq!(asset.headers()["x-content-type-options"], "nosniff", "{file}");
        // Browsers say so of the page's own scripts.
        let named = ground.bare(Method::GET, file).header("origin", own(&ground)).send().await.unwrap();
        assert_eq!(named.status(), 200, "{file}");
        let rebound = ground.bare(Method::GET, file).header("host", "evil.example").send().await.unwrap();
        assert_eq!(rebound.status(), 403, "{file}");
        count += 1;
    }
    assert!(count >= 3, "{text}");
    assert_eq!(
        kind(ground.bare(Method::GET, "/assets/..%2findex.html").send().await.unwrap()).await,
        "not_found"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_a_sessions_cookie_is_worth_nothing_to_anybody_but_the_page() {
    let ground = Ground::new().await;
    let browser = Browser::signed_in(&ground).await;
    let own = own(&ground);
    let list = |headers: &[(&str, &str)]| {
        let request = browser.bare(Method::GET, "/v1/sandboxes");
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send()
    };
    let proof = ("eyot-page", browser.proof.as_str());
    assert_eq!(list(&[proof]).await.unwrap().status(), 200);
    assert_eq!(
        list(&[proof, ("origin", &own), ("sec-fetch-site", "same-origin")]).await.unwrap().status(),
        200
    );
    // A form, a link, an image: the cookie comes along, and nothing else.
    assert_eq!(list(&[]).await.unwrap().status(), 403);
    assert_eq!(list(&[("sec-fetch-site", "same-origin")]).await.unwrap().status(), 403);
    // Pages of other sites, of the same site, of other ports, and those that are shown apart.
    for site in ["same-site", "cross-site", "none"] {
        assert_eq!(list(&[proof, ("sec-fetch-site", site)]).await.unwrap().status(), 403, "{site}");
    }
    for origin in ["null", "https://evil.example", "http://127.0.0.1:1", "http://localhost"] {
        assert_eq!(list(&[proof, ("origin", origin)]).await.unwrap().status(), 403, "{origin}");
    }
    // Who has seen the cookie, as every port of the host does, and not the proof.
    assert_eq!(list(&[("eyot-page", "1")]).await.unwrap().status(), 401);
    let other = Browser::signed_in(&ground).await;
    assert_eq!(list(&[("eyot-page", &other.proof)]).await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_nobody_is_signed_in_or_out_by_another_page() {
    let ground = Ground::new().await;
    for headers in [
        &[][..],
        &[("origin", "https://evil.example"), ("eyot-page", "1")],
        &[("origin", "null"), ("eyot-page", "1")],
        &[("sec-fetch-site", "cross-site"), ("eyot-page", "1")],
    ] {
        let answer = sign_in(&ground, &ground.ours, headers).await;
        assert_eq!(answer.status(), 403, "{headers:?}");
        assert!(!answer.headers().contains_key("set-cookie"));
    }
    let browser = Browser::signed_in(&ground).await;
    assert_eq!(browser.bare(Method::DELETE, "/v1/session").send().await.unwrap().status(), 403);
    assert_eq!(browser.request(Method::GET, "/v1/sandboxes").send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_a_session_is_its_keys_and_ends_with_it() {
    let ground = Ground::new().await;
    let wrong = sign_in(&ground, "eyot_wrong", &[("eyot-page", "1")]).await;
    assert_eq!(wrong.status(), 401);
    assert!(!wrong.headers().contains_key("set-cookie"));
    let answer = sign_in(&ground, &ground.ours, &[("eyot-page", "1")]).await;
    let set = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains(&ground.ours) && !set.contains("Domain"), "{set}");
    let browser = Browser::signed_in(&ground).await;
    let who = value(browser.request(Method::GET, "/v1/session").send().await.unwrap()).await;
    assert_eq!(who, json!({ "needs_key": true, "signed_in": true, "name": "ours", "pools": ["ours"] }));
    // Not without the proof; and whoever has a key is told the same.
    let bare = value(browser.bare(Method::GET, "/v1/session").send().await.unwrap()).await;
    assert_eq!(bare["signed_in"], false);
    let by_key = value(ground.request(Method::GET, "/v1/session").send().await.unwrap()).await;
    assert_eq!(by_key, who);
    let named = browser.request(Method::GET, "/v1/sandboxes?pool=theirs").send().await.unwrap();
    assert_eq!(named.status(), 404);
    let leaver = Browser::signed_in(&ground).await;
    let mut seen = leaver.request(Method::GET, "/v1/events?follow=true").send().await.unwrap();
    assert_eq!(seen.status(), 200);
    assert_eq!(leaver.request(Method::DELETE, "/v1/session").send().await.unwrap().status(), 204);
    assert_eq!(leaver.request(Method::GET, "/v1/sandboxes").send().await.unwrap().status(), 401);
    // What the page followed is over with the session.
    while seen.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
    assert_eq!(browser.request(Method::GET, "/v1/sandboxes").send().await.unwrap().status(), 200);
    ground.api.keys().revoke("ours").await.unwrap();
    assert_eq!(browser.request(Method::GET, "/v1/sandboxes").send().await.unwrap().status(), 401);
    let who = value(browser.request(Method::GET, "/v1/session").send().await.unwrap()).await;
    assert_eq!(who["signed_in"], false);
}

/// A terminal's WebSocket.
type Line = tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>;

async fn line(browser: &Browser<'_>, path: &str, origin: &str, protocol: &str) -> Result<Line, u16> {
    use tokio_tungstenite::tungstenite::Error;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let mut request = format!("ws://{}{path}", browser.ground.address).into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("cookie", browser.cookie.parse().unwrap());
    headers.insert("origin", origin.parse().unwrap());
    headers.insert("sec-websocket-protocol", protocol.parse().unwrap());
    let stream = tokio::net::TcpStream::connect(browser.ground.address).await.unwrap();
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((line, _)) => Ok(line),
        Err(Error::Http(refused)) => Err(refused.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// Reads until the text has come.
async fn read_until(line: &mut Line, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        let message = line.next().await.expect("it ended before").unwrap();
        seen.push_str(&String::from_utf8_lossy(&message.into_data()));
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_found_again_as_it_was_by_the_page_and_by_no_other() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let browser = Browser::signed_in(&ground).await;
    let path = format!("/v1/sandboxes/{id}/terminals");
    let body = serde_json::to_vec(&json!({ "size": { "rows": 10, "cols": 60 } })).unwrap();
    let opened = browser.request(Method::POST, &path).body(body).send().await.unwrap();
    assert_eq!(opened.status(), 201);
    let terminal: Value = value(opened).await;
    let socket = format!("{path}/{}/socket", terminal["id"].as_str().unwrap());
    let (own, protocol) = (own(&ground), format!("eyot-page, eyot-page.{}", browser.proof));
    for origin in ["null", "https://evil.example", "http://127.0.0.1:1"] {
        assert_eq!(line(&browser, &socket, origin, &protocol).await.unwrap_err(), 403, "{origin}");
    }
    assert_eq!(line(&browser, &socket, &own, "eyot-page").await.unwrap_err(), 401);

    let mut first = line(&browser, &socket, &own, &protocol).await.unwrap();
    first.send("stty -echo; name=kept; echo begun-$((1+1))\n".as_bytes().to_vec().into()).await.unwrap();
    read_until(&mut first, "begun-2").await;
    drop(first);
    let mut again = line(&browser, &socket, &own, &protocol).await.unwrap();
    // What was there before, and then what comes.
    let before = read_until(&mut again, "\"started\"").await;
    assert!(before.contains("begun-2"), "{before}");
    again.send("echo is-$name; stty size\n".as_bytes().to_vec().into()).await.unwrap();
    assert!(read_until(&mut again, "10 60").await.contains("is-kept"));
    // Who connects takes the place of who was connected.
    let mut other = line(&browser, &socket, &own, &protocol).await.unwrap();
    read_until(&mut other, "\"started\"").await;
    while let Some(Ok(_)) = again.next().await {}
    other.send("exit 3\n".as_bytes().to_vec().into()).await.unwrap();
    assert!(read_until(&mut other, "\"end\"").await.contains("\"exit_code\":3"));
    while let Some(Ok(_)) = other.next().await {}
    let left = value(browser.request(Method::GET, &path).send().await.unwrap()).await;
    assert_eq!(left, json!({ "terminals": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_a_terminal_is_nobodys_but_its_pools() {
    let ground = Ground::new().await;
    let (id, theirs) = (ground.sandbox("dev").await, "/v1/sandboxes/dev/terminals");
    let size = json!({ "size": { "rows": 1, "cols": 1 } });
    let opened = ground.post(&format!("/v1/sandboxes/{id}/terminals"), size).await;
    let terminal = value(opened).await["id"].as_str().unwrap().to_owned();
    for (method, path) in [
        (Method::GET, format!("/v1/sandboxes/{id}/terminals")),
        (Method::DELETE, format!("/v1/sandboxes/{id}/terminals/{terminal}")),
        (Method::DELETE, format!("{theirs}/{terminal}")),
    ] {
        let refused = ground.as_whom(&ground.theirs, method, &path).send().await.unwrap();
        assert_eq!(refused.status(), 404, "{path}");
    }
    let end = ground.request(Method::DELETE, &format!("/v1/sandboxes/{id}/terminals/{terminal}"));
    assert_eq!(end.send().await.unwrap().status(), 204);
}
