//! N5: a slow, large or numerous client is limited, and others are served meanwhile.

use eyot_server::api::ServeLimits;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ground::{Ground, kind, value};

/// Opens a connection to write by hand.
async fn connection(ground: &Ground) -> TcpStream {
    TcpStream::connect(ground.address).await.unwrap()
}

/// Makes the head of a request with our key.
fn head(ground: &Ground, line: &str, more: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{more}\r\n", ground.ours)
}

/// Reads until the server closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // What was sent and never read resets the connection, after the answer.
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn is_served(ground: &Ground) {
    assert_eq!(ground.get("/v1/sandboxes").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_header_that_never_ends_is_closed_and_others_are_served() {
    let ground = Ground::limited(ServeLimits { header_timeout_ms: 300, ..ServeLimits::default() }).await;
    let mut slow = connection(&ground).await;
    slow.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
    is_served(&ground).await;
    let (mut reader, mut writer) = slow.into_split();
    let drip = async {
        // A byte now and then keeps nobody's connection.
        let mut beat = tokio::time::interval(std::time::Duration::from_millis(20));
        while writer.write_all(b"x").await.is_ok() {
            beat.tick().await;
        }
    };
    let mut said = Vec::new();
    tokio::select! {
        _ = reader.read_to_end(&mut said) => {}
        () = drip => {}
    }
    assert!(!String::from_utf8_lossy(&said).contains("200 OK"));
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_connection_that_asks_for_nothing_is_closed() {
    let ground = Ground::limited(ServeLimits { header_timeout_ms: 200, ..ServeLimits::default() }).await;
    let mut fresh = connection(&ground).await;
    assert_eq!(fresh.read(&mut [0; 8]).await.unwrap(), 0);
    let mut used = connection(&ground).await;
    used.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(rest(used).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_headers_that_are_large_or_many_are_refused_and_those_at_the_edge_are_not() {
    let ground = Ground::new().await;
    let status = async |more: String| {
        let mut stream = connection(&ground).await;
        let close = "Connection: close\r\n";
        let request = head(&ground, "GET /v1/health", &format!("{close}{more}"));
        drop(stream.write_all(request.as_bytes()).await);
        rest(stream).await.split(' ').nth(1).unwrap_or("closed").to_owned()
    };
    let rest = head(&ground, "GET /v1/health", "Connection: close\r\nX-Large: \r\n").len();
    let large = |bytes: usize| format!("X-Large: {}\r\n", "x".repeat(bytes - rest));
    assert_eq!(status(large(64 << 10)).await, "200");
    assert_eq!(status(large((64 << 10) + 1)).await, "431");
    assert_eq!(status(large(10 << 20)).await, "431");
    let many = |count: usize| (0..count).map(|n| format!("X-{n}: x\r\n")).collect::<String>();
    // Three are there already.
    assert_eq!(status(many(97)).await, "200");
    assert_eq!(status(many(98)).await, "431");
    is_served(&ground).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_json_body_at_the_limit_is_read_and_one_byte_more_is_too_large() {
    let limits = ServeLimits { max_json_bytes: 1000, ..ServeLimits::default() };
    let ground = Ground::limited(limits).await;
    let ask = async |bytes: usize| {
        let body = format!("{:>bytes$}", r#"{"spec":{}}"#);
        assert_eq!(body.len(), bytes);
        ground.request(Method::POST, "/v1/sandboxes").body(body).send().await.unwrap()
    };
    assert_eq!(ask(1000).await.status(), 201);
    let refused = ask(1001).await;
    assert_eq!(refused.status(), 413);
    assert_eq!(kind(refused).await, "too_large");
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/files?path=large");
    let file = ground.request(Method::PUT, &path).body(vec![b'x'; 100_000]).send().await.unwrap();
    assert_eq!(value(file).await["size"], 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_json_body_that_says_it_is_endless_is_answered_before_it_ends() {
    let ground = Ground::new().await;
    let (mut reader, mut writer) = connection(&ground).await.into_split();
    let request = head(&ground, "POST /v1/sandboxes", "Content-Length: 1099511627776\r\n");
    writer.write_all(request.as_bytes()).await.unwrap();
    let flood = async {
        let piece = vec![b' '; 1 << 20];
        while writer.write_all(&piece).await.is_ok() {}
        std::future::pending::<()>().await;
    };
    let mut answer = vec![0; 12];
    tokio::select! {
        read = reader.read_exact(&mut answer) => { read.unwrap(); }
        () = flood => {}
    }
    assert_eq!(answer, b"HTTP/1.1 413");
    is_served(&ground).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_only_after_its_whole_body_was_refused_gets_the_answer() {
    let ground = Ground::new().await;
    let mut stream = connection(&ground).await;
    let body = vec![b' '; 64 << 20];
    let length = format!("Content-Length: {}\r\n", body.len());
    stream.write_all(head(&ground, "POST /v1/sandboxes", &length).as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.ends_with('}'), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_body_that_stalls_or_drips_ends_its_request_and_others_are_served() {
    let limits = ServeLimits { json_timeout_ms: 300, body_stall_ms: 200, ..ServeLimits::default() };
    let ground = Ground::limited(limits).await;
    let id = ground.sandbox("dev").await;
    let mut stalled = connection(&ground).await;
    let put = format!("PUT /v1/sandboxes/{id}/files?path=stalled");
    let request = format!("{}half", head(&ground, &put, "Content-Length: 8\r\n"));
    stalled.write_all(request.as_bytes()).await.unwrap();
    is_served(&ground).await;
    let said = rest(stalled).await;
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("did not come whole"), "{said}");
    let mut stalled = connection(&ground).await;
    let request = format!("{}half", head(&ground, &put, "Content-Length: 800000\r\n"));
    stalled.write_all(request.as_bytes()).await.unwrap();
    is_served(&ground).await;
    let said = rest(stalled).await;
    assert!(said.starts_with("HTTP/1.1 409") && said.contains("nothing of it came"), "{said}");
    assert_eq!(ground.get(&format!("/v1/sandboxes/{id}/stat?path=stalled")).await.status(), 404);

    let (mut reader, mut writer) = connection(&ground).await.into_split();
    let request = head(&ground, "POST /v1/sandboxes", "Content-Length: 1000\r\n");
    writer.write_all(request.as_bytes()).await.unwrap();
    let drip = async {
        let mut beat = tokio::time::interval(std::time::Duration::from_millis(20));
        while writer.write_all(b" ").await.is_ok() {
            beat.tick().await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = vec![0; 12];
    tokio::select! {
        read = reader.read_exact(&mut answer) => { read.unwrap(); }
        () = drip => {}
    }
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_body_that_is_packed_is_refused_and_never_unpacked() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let body = json!({ "command": "true" }).to_string();
    for coding in ["gzip", "br", "zstd", "identity, gzip"] {
        for (method, path) in
            [(Method::POST, "exec"), (Method::PUT, "files?path=x"), (Method::PUT, "tree?path=.")]
        {
            let request = ground.request(method, &format!("/v1/sandboxes/{id}/{path}")).body(body.clone());
            let refused = request.header("content-encoding", coding).send().await.unwrap();
            assert_eq!(refused.status(), 415, "{coding} {path}");
            assert_eq!(refused.headers()["connection"], "close", "{path}: what is unread");
            assert_eq!(kind(refused).await, "invalid");
        }
    }
    let plain = ground.request(Method::POST, &format!("/v1/sandboxes/{id}/exec")).body(body);
    assert_eq!(plain.header("content-encoding", "identity").send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_when_connections_are_too_many_the_idle_ones_are_closed_and_others_are_served() {
    let ground = Ground::limited(ServeLimits { max_connections: 16, ..ServeLimits::default() }).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(connection(&ground).await);
        if idle.len() % 50 == 0 {
            is_served(&ground).await;
        }
    }
    let mut half = connection(&ground).await;
    half.write_all(b"GET /v1/heal").await.unwrap();
    is_served(&ground).await;
    // Those that came first are closed.
    assert_eq!(idle[0].read(&mut [0; 8]).await.unwrap_or(0), 0);
    let open = value_of(&metrics(&ground).await, "eyot_http_connections ");
    assert!(open <= 16.0, "{open}");
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_connection_with_a_request_under_way_is_not_closed_for_another() {
    let ground = Ground::limited(ServeLimits { max_connections: 2, ..ServeLimits::default() }).await;
    let id = ground.sandbox("dev").await;
    let mut busy = connection(&ground).await;
    let body = json!({ "command": "until [ -e go ]; do sleep 0.01; done; echo done" }).to_string();
    let more = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
    let request = head(&ground, &format!("POST /v1/sandboxes/{id}/exec"), &more) + &body;
    busy.write_all(request.as_bytes()).await.unwrap();
    for _ in 0..20 {
        let mut other = connection(&ground).await;
        other.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 12];
        other.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 200");
    }
    let go = ground.request(Method::PUT, &format!("/v1/sandboxes/{id}/files?path=go")).body("");
    assert_eq!(go.send().await.unwrap().status(), 200);
    assert!(rest(busy).await.contains("done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_key_with_too_many_requests_under_way_waits_and_others_are_served() {
    let ground = Ground::limited(ServeLimits { max_requests_per_key: 2, ..ServeLimits::default() }).await;
    let id = ground.sandbox("dev").await;
    let watch = format!("/v1/sandboxes/{id}/watch?path=.");
    let first = ground.get(&watch).await;
    let second = ground.get(&watch).await;
    let refused = ground.get("/v1/sandboxes").await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(kind(refused).await, "quota");
    let theirs = ground.as_whom(&ground.theirs, Method::GET, "/v1/sandboxes").send().await.unwrap();
    assert_eq!(theirs.status(), 200);
    assert_eq!(ground.get("/v1/health").await.status(), 200);
    drop((first, second));
    // The server notices by itself that nobody reads any more.
    while ground.get("/v1/sandboxes").await.status() == 429 {
        tokio::task::yield_now().await;
    }
}

async fn metrics(ground: &Ground) -> String {
    let answer = ground.metrics().await;
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap()
}

fn value_of(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name}: {metrics}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_need_a_key_of_their_own_and_name_routes_and_no_sandbox_pool_or_key() {
    let ground = Ground::new().await;
    let id = ground.sandbox("secret-project").await;
    let ran = ground.post(&format!("/v1/sandboxes/{id}/exec"), json!({ "command": "exit 3" })).await;
    assert_eq!(ran.status(), 200);
    assert_eq!(ground.get("/v1/sandboxes/nobody-there").await.status(), 404);
    let odd = Method::from_bytes(b"BREW").unwrap();
    assert_eq!(ground.request(odd, "/v1/sandboxes").send().await.unwrap().status(), 405);
    assert_eq!(ground.bare(Method::GET, "/metrics").send().await.unwrap().status(), 401);
    assert_eq!(ground.bare(Method::POST, "/mcp").send().await.unwrap().status(), 401);

    assert_eq!(ground.get("/metrics").await.status(), 403);
    let answer = ground.metrics().await;
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = answer.text().await.unwrap();
    let requests = |route: &str, method: &str, status: u16| {
        let labels = format!(r#"route="{route}",method="{method}",status="{status}""#);
        value_of(&text, &format!("eyot_http_requests_total{{{labels}}} "))
    };
    assert_eq!(requests("/v1/sandboxes", "POST", 201), 1.0);
    assert_eq!(requests("/v1/sandboxes/{sandbox}/exec", "POST", 200), 1.0);
    assert_eq!(requests("/v1/sandboxes/{sandbox}", "GET", 404), 1.0);
    assert_eq!(requests("/metrics", "GET", 401), 1.0);
    assert_eq!(requests("/mcp", "POST", 401), 1.0);
    assert_eq!(value_of(&text, r#"eyot_execs_total{outcome="exited"} "#), 1.0);
    assert_eq!(value_of(&text, r#"eyot_sandboxes{state="live"} "#), 1.0);
    assert_eq!(value_of(&text, "eyot_http_requests_in_flight "), 1.0);
    for positive in
        ["http_connections", "process_resident_memory_bytes", "process_open_fds", "process_threads"]
    {
        assert!(value_of(&text, &format!("eyot_{positive} ")) > 0.0, "{text}");
    }
    assert!(text.contains(r#"eyot_http_request_duration_seconds_bucket{le="600.0","#), "{text}");
    for private in [&*id, "secret-project", "ours", "theirs", "BREW", &ground.ours] {
        assert!(!text.contains(private), "{private}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_whose_body_comes_late_leaves_the_connection_to_the_next_request() {
    let ground = Ground::new().await;
    let body = r#"{"command":"true"}"#;
    let mut stream = connection(&ground).await;
    let length = format!("Content-Length: {}\r\n", body.len());
    let asked = head(&ground, "POST /v1/sandboxes/none/exec", &length);
    stream.write_all(asked.as_bytes()).await.unwrap();
    // Long enough for an answer to the head alone.
    is_served(&ground).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    let next = head(&ground, "GET /v1/sandboxes", "Connection: close\r\n");
    stream.write_all(next.as_bytes()).await.unwrap();
    let answers = rest(stream).await;
    let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["404", "200"], "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_a_body_that_was_not_read_says_that_the_connection_closes() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let put = format!("/v1/sandboxes/{id}/files?path=");
    let send = |path: &str| {
        ground
            .request(Method::PUT, &format!("{put}{path}"))
            .header("eyot-life", "another")
            .body(vec![7; 1 << 20])
            .send()
    };
    let refused = send("f").await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["connection"]),
        (503, &"close".parse().unwrap())
    );
    let body = vec![7; 1 << 20];
    let taken = ground.request(Method::PUT, &format!("{put}f")).body(body).send().await.unwrap();
    assert!(taken.status().is_success() && !taken.headers().contains_key("connection"), "{taken:?}");
}
