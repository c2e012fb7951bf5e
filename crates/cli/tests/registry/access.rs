//! Access to a registry: credentials, mirrors, and TLS.

use crate::Case;
use crate::machine::{Machine, Ran};
use crate::pulling::image;
use crate::registry::{Registry, USER};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_registry_for_members_lets_in_those_whom_dockers_configuration_names", members),
        ("mirrors_are_asked_in_their_order_and_the_registry_last", mirrors),
        ("without_plain_http_even_loopback_is_spoken_to_by_tls_only", tls),
    ]
}

fn members() {
    use base64::Engine as _;
    let (registry, machine) = (Registry::for_members(), Machine::new());
    registry.push(&image(), "app:1");
    let name = registry.name("app:1");
    let refused = machine.run(&["image", "pull", &name]);
    let said = refused.failure(125);
    assert!(
        said.contains("credentials") && said.contains(&format!("docker login {}", registry.host)),
        "{said}"
    );

    let configure = |user: &str| {
        let auth = base64::engine::general_purpose::STANDARD.encode(user);
        let config = serde_json::json!({ "auths": { &registry.host: { "auth": auth } } });
        machine.write("home/.docker/config.json", config.to_string());
    };
    configure("eyot:wrong-password");
    let wrong = machine.run(&["--json", "--verbose", "image", "pull", &name]);
    assert_eq!(wrong.code, Some(125));
    assert!(wrong.stderr.contains("credentials") && !wrong.stderr.contains("wrong-password"), "{wrong:?}");
    configure(USER);
    machine.run(&["image", "pull", &name]).success();
}

fn mirrors() {
    let (empty, registry, machine) = (Registry::new(), Registry::new(), Machine::new());
    registry.push(&image(), "library/app:1");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mirrors = format!("[\"{closed}\", \"{}\", \"{}\"]", empty.host, registry.host);
    machine.write(
        "home/.config/eyot/config.toml",
        format!("[registries]\nmirrors = {{ \"docker.io\" = {mirrors} }}\n"),
    );
    assert_eq!(machine.run(&["image", "pull", "app:1"]).success(), "app:1\n");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "app:1\n");
}

fn tls() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "app:1");
    machine.write("home/.config/eyot/config.toml", "[registries]\nplain_http_on_loopback = false\n");
    let ran: Ran = machine.run(&["image", "pull", &registry.name("app:1")]);
    assert!(ran.failure(125).contains("can't be reached"));
}
