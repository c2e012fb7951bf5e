//! TLS, with a certificate authority for each test.

use std::path::Path;
use std::sync::Arc;

use eyot_server::api::{Certificate, Listener, ServeLimits};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::authority::{Authority, put};
use crate::ground::{Ground, value};

/// A server with a certificate of an authority.
struct Scene {
    ground: Ground,
    authority: Authority,
    certificate: Arc<Certificate>,
    files: tempfile::TempDir,
}

fn load(folder: &Path) -> eyot::Result<Arc<Certificate>> {
    Certificate::load(&folder.join("cert.pem"), &folder.join("key.pem"))
}

/// A client that trusts this authority and keeps no connection.
fn client(authority: &Authority) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(authority.pem.as_bytes()).unwrap();
    let builder = reqwest::Client::builder().no_proxy().tls_certs_only([root]);
    builder.pool_max_idle_per_host(0).build().unwrap()
}

impl Scene {
    async fn new() -> Self {
        Self::limited(ServeLimits::default()).await
    }

    async fn limited(limits: ServeLimits) -> Self {
        let (files, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        authority.issue_into(files.path());
        let certificate = load(files.path()).unwrap();
        let served = Arc::clone(&certificate);
        let ground = Ground::listening(limits, |tcp| Listener::Tls(tcp, served)).await;
        Self { ground, authority, certificate, files }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.ground.address.port())
    }

    /// Tells whether a client that trusts this authority gets an answer.
    async fn is_trusted_by(&self, authority: &Authority) -> bool {
        match client(authority).get(self.url("/v1/health")).send().await {
            Ok(answer) => answer.status() == 200,
            Err(error) => {
                assert!(format!("{error:?}").contains("UnknownIssuer"), "{error:?}");
                false
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_tls_are_answered_and_previews_are_https() {
    let scene = Scene::new().await;
    let client = client(&scene.authority);
    let ask = |method: Method, path: &str, body: &serde_json::Value| {
        let body = serde_json::to_vec(body).unwrap();
        let request = client.request(method, scene.url(path)).bearer_auth(&scene.ground.ours);
        request.header("content-type", "application/json").body(body).send()
    };
    let made = ask(Method::POST, "/v1/sandboxes", &json!({ "spec": { "name": "dev" } })).await.unwrap();
    let id = value(made).await["id"].as_str().unwrap().to_owned();
    let ran = ask(Method::POST, &format!("/v1/sandboxes/{id}/exec"), &json!({ "command": "echo over TLS" }));
    assert_eq!(value(ran.await.unwrap()).await["stdout"], "over TLS\n");
    let preview = ask(Method::POST, &format!("/v1/sandboxes/{id}/ports/8000/preview"), &json!({}));
    let preview = value(preview.await.unwrap()).await;
    for url in ["url", "path_url"] {
        assert!(preview[url].as_str().unwrap().starts_with("https://"), "{preview}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_from_the_next_connection_on_and_older_connections_stay() {
    let scene = Scene::new().await;
    let root = reqwest::Certificate::from_pem(scene.authority.pem.as_bytes()).unwrap();
    let kept = reqwest::Client::builder().no_proxy().tls_certs_only([root]).build().unwrap();
    let port_of = async || {
        let answer = kept.get(scene.url("/v1/health")).send().await.unwrap();
        answer.bytes().await.unwrap();
    };
    port_of().await;
    let other = Authority::new();
    assert!(!scene.is_trusted_by(&other).await);
    other.issue_into(scene.files.path());
    assert!(scene.is_trusted_by(&other).await);
    assert!(!scene.is_trusted_by(&scene.authority).await);
    // On the connection that it has: a new one it would not trust.
    port_of().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_that_can_not_be_used_keeps_the_old_one_until_it_can() {
    let scene = Scene::new().await;
    let other = Authority::new();
    let (certificate, key) = other.issue();
    for broken in ["", "no PEM at all", &certificate] {
        // The key is still the old one's.
        put(scene.files.path(), "cert.pem", broken);
        assert!(scene.is_trusted_by(&scene.authority).await, "{broken}");
        assert!(scene.certificate.reload().is_err(), "{broken}");
        assert!(scene.is_trusted_by(&scene.authority).await, "{broken}");
    }
    std::fs::remove_file(scene.files.path().join("cert.pem")).unwrap();
    assert!(scene.is_trusted_by(&scene.authority).await);
    put(scene.files.path(), "cert.pem", &certificate);
    put(scene.files.path(), "key.pem", &key);
    assert!(scene.is_trusted_by(&other).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_while_the_certificate_is_renewed_again_and_again() {
    let scene = Scene::new().await;
    let done = tokio_util::sync::CancellationToken::new();
    let asking = (0..4).map(|_| {
        let (client, url, done) = (client(&scene.authority), scene.url("/v1/health"), done.clone());
        tokio::spawn(async move {
            let mut answered = 0;
            while !done.is_cancelled() || answered == 0 {
                assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
                answered += 1;
            }
            answered
        })
    });
    let asking: Vec<_> = asking.collect();
    for _ in 0..20 {
        // The key a moment after its certificate: in between they do not fit.
        scene.authority.issue_into(scene.files.path());
        assert!(scene.is_trusted_by(&scene.authority).await);
    }
    done.cancel();
    for answered in asking {
        assert!(answered.await.unwrap() > 0);
    }
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let files = tempfile::tempdir().unwrap();
    let refusal = || load(files.path()).unwrap_err();
    assert!(refusal().to_string().contains("No such file"), "{}", refusal());
    let (certificate, key) = Authority::new().issue();
    put(files.path(), "cert.pem", &key);
    put(files.path(), "key.pem", &key);
    assert!(refusal().to_string().ends_with("it has no `-----BEGIN CERTIFICATE-----`"), "{}", refusal());
    put(files.path(), "cert.pem", &certificate);
    put(files.path(), "key.pem", &certificate);
    assert!(refusal().to_string().ends_with("it has no `-----BEGIN PRIVATE KEY-----`"), "{}", refusal());
    put(files.path(), "key.pem", &Authority::new().issue().1);
    assert!(refusal().to_string().contains("is not that of the certificate"), "{}", refusal());
    assert!(refusal().hint().is_some());
}

#[test]
fn a_key_that_others_can_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let files = tempfile::tempdir().unwrap();
    Authority::new().issue_into(files.path());
    let certificate = load(files.path()).unwrap();
    let objection = |mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(files.path().join("key.pem"), permissions).unwrap();
        certificate.objection()
    };
    assert!(objection(0o644).unwrap().contains("chmod 600"));
    // A group of those who may use it is how a package gives a key to a service.
    assert_eq!((objection(0o640), objection(0o600)), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_on_the_port_is_told_to_use_https() {
    let scene = Scene::new().await;
    let mut plain = TcpStream::connect(scene.ground.address).await.unwrap();
    let request = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    plain.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("use https://"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_handshake_that_never_ends_is_closed() {
    let limits = ServeLimits { tls_handshake_timeout_ms: 2_000, ..ServeLimits::default() };
    let scene = Scene::limited(limits).await;
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        let mut slow = TcpStream::connect(scene.ground.address).await.unwrap();
        slow.write_all(begun).await.unwrap();
        assert!(scene.is_trusted_by(&scene.authority).await);
        assert_eq!(slow.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_connections_that_shake_no_hands_give_their_places_to_others() {
    let limits =
        ServeLimits { max_connections: 4, tls_handshake_timeout_ms: 3_600_000, ..ServeLimits::default() };
    let scene = Scene::limited(limits).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(scene.ground.address).await.unwrap());
    }
    assert!(scene.is_trusted_by(&scene.authority).await);
}
