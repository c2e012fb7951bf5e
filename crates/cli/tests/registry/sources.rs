//! Images that a create names and that the store lacks: their sources, and who may use them.

use eyot_image::testing::{TestImage, TestLayer};
use serde_json::json;

use crate::Case;
use crate::damage::kind;
use crate::machine::Machine;
use crate::pulling::{blobs, image};
use crate::registry::Registry;
use crate::server::Server;

pub fn trials() -> Vec<Case> {
    vec![
        ("an_image_that_is_missing_is_pulled_for_a_create_as_the_policy_has_it", policies),
        ("what_a_model_names_is_fetched_only_if_the_configuration_names_it", models),
        ("a_server_without_keys_fetches_an_image_that_is_missing", without_keys),
        ("a_key_has_only_images_fetched_that_the_configuration_allows", with_keys),
        ("a_create_whose_image_can_not_be_had_says_who_was_asked_and_leaves_nothing", nowhere),
    ]
}

/// Makes an image with this text in `/etc/release`.
pub fn released(text: &str) -> TestImage {
    TestImage::new(&[TestLayer::default().file("bin/sh", "#!").file("etc/release", text)])
}

fn policies() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&released("first"), "app:1");
    let name = registry.name("app:1");
    let never = machine.run(&["--json", "create", "--image", &name, "--pull", "never"]);
    assert_eq!(kind(&never), "not_found");
    assert!(never.stderr.contains("eyot image pull"), "{never:?}");
    machine.write("home/.config/eyot/config.toml", "[defaults]\npull = \"never\"\n");
    assert_eq!(kind(&machine.run(&["--json", "create", "--image", &name])), "not_found");
    machine.assert_empty();

    let made = |sandbox: &str, policy: &str| {
        machine.run(&["create", "--name", sandbox, "--image", &name, "--pull", policy]).success();
        machine.run(&["read", sandbox, "/etc/release"]).success()
    };
    assert_eq!(made("one", "missing"), "first");
    registry.push(&released("second"), "app:1");
    assert_eq!((made("two", "missing").as_str(), made("three", "never").as_str()), ("first", "first"));
    assert_eq!(made("four", "always"), "second");
    assert_eq!(machine.run(&["read", "one", "/etc/release"]).success(), "first");
    // What is no image of a registry is not looked for there, whatever the policy.
    machine.run(&["create", "--image", "host", "--pull", "always"]).success();
}

fn models() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "app:1");
    let name = registry.name("app:1");
    let create = |sandbox: &str, image: &str| {
        let arguments = json!({ "sandbox": sandbox, "image": image }).to_string();
        machine.run(&["call", "pool", "sandbox_create", &arguments])
    };
    let refused = create("web", &name);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(format!("{refused:?}{}", refused.text()).contains("there is no image"), "{refused:?}");
    assert_eq!(registry.answers(&blobs(&image)[0]), Vec::<u16>::new());
    machine.write("home/.config/eyot/config.toml", format!("[images]\n\"app\" = \"{name}\"\n"));
    let made = create("web", "app");
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), format!("{name}\n"));
}

/// Returns the status and the body of a create of this image.
fn created(server: &Server, image: &str) -> (u16, String) {
    server.ask("POST", "/v1/sandboxes", &json!({ "spec": { "image": image } }).to_string())
}

fn without_keys() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "app:1");
    let server = Server::start(&machine, &[], &["--no-keys"], &[]);
    let name = registry.name("app:1");
    let (status, body) = created(&server, &name);
    assert_eq!(status, 201, "{body}");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), format!("{name}\n"));
    let never = json!({ "spec": { "image": registry.name("app:2"), "container": { "pull": "never" } } });
    let (status, body) = server.ask("POST", "/v1/sandboxes", &never.to_string());
    assert_eq!(status, 404, "{body}");
}

fn with_keys() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "team/app:1");
    registry.push(&released("other"), "other/app:1");
    let pattern = registry.name("team/*");
    machine.write("home/.config/eyot/config.toml", format!("[registries]\nallow = [\"{pattern}\"]\n"));
    let server = Server::start(&machine, &[], &[], &[]);
    let (status, body) = created(&server, &registry.name("team/app:1"));
    assert_eq!(status, 201, "{body}");
    let (status, body) = created(&server, &registry.name("other/app:1"));
    assert!(status == 404 && body.contains("`allow`"), "{status} {body}");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), format!("{}\n", registry.name("team/app:1")));
}

fn nowhere() {
    let (registry, machine) = (Registry::new(), Machine::new());
    let absent = machine.run(&["--json", "create", "--image", &registry.name("app:1")]);
    assert_eq!(kind(&absent), "not_found");
    assert!(
        absent.stderr.contains("create sandbox: pull image") && absent.stderr.contains("has none"),
        "{absent:?}"
    );
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = machine.run(&["--json", "run", "--image", &format!("{closed}/app:1"), "--", "true"]);
    assert_eq!(kind(&unreachable), "unavailable");
    assert!(unreachable.stderr.contains("can't be reached"), "{unreachable:?}");
    machine.assert_empty();
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
}
