//! `eyot --provider cloudflare` against a stand-in of the bridge, whose containers are native sandboxes.

use std::process::Command;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::Case;
use crate::cloudflare_stand_in::Containers;
use crate::cloudflare_stand_in::bridge::{StandInBridge, routes};
use crate::left::remove_left;
use crate::machine::{Machine, Ran};
use crate::vendor_rules::{a_file_goes_in_and_out, a_tree_goes_there_and_back, are_refused, ask, names};

pub fn trials() -> Vec<Case> {
    vec![
        (
            "a_sandbox_of_cloudflare_is_made_used_found_by_later_commands_and_removed",
            a_sandbox_of_cloudflare_is_made_used_found_by_later_commands_and_removed,
        ),
        (
            "what_cloudflare_does_not_have_is_refused_with_the_reason",
            what_cloudflare_does_not_have_is_refused_with_the_reason,
        ),
        (
            "without_an_address_the_error_says_where_it_belongs",
            without_an_address_the_error_says_where_it_belongs,
        ),
        (
            "a_sandbox_of_cloudflare_is_adopted_by_its_id_and_its_removal_leaves_it",
            a_sandbox_of_cloudflare_is_adopted_by_its_id_and_its_removal_leaves_it,
        ),
        ("a_tree_goes_from_native_to_cloudflare_and_back", a_tree_goes_from_native_to_cloudflare_and_back),
    ]
}

const KEY: &str = "cf_fedcba9876543210fedcba9876543210";
/// The most containers at once.
const MOST: usize = 20;

/// A machine, and the vendor elsewhere.
struct Vendor {
    machine: Machine,
    url: String,
    bridge: Arc<StandInBridge>,
    runtime: Runtime,
}

impl Vendor {
    fn new() -> Self {
        let machine = Machine::new();
        let containers = Containers::new(&machine.path("vendor"), MOST);
        let bridge = Arc::new(StandInBridge { containers, key: KEY.to_owned() });
        let (runtime, router) = (Runtime::new().unwrap(), routes(Arc::clone(&bridge)));
        let url = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(async move { axum::serve(listener, router).await });
            url
        });
        Self { machine, url, bridge, runtime }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command(&[&["--provider", "cloudflare"], arguments].concat());
        command.env("CLOUDFLARE_SANDBOX_API_KEY", KEY).env("CLOUDFLARE_SANDBOX_WORKER_URL", &self.url);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Returns the names of the sandboxes that `eyot ls` shows.
    fn names(&self) -> Vec<String> {
        names(|arguments| self.run(arguments))
    }

    /// Returns the bridge's ids of the containers that run.
    fn containers(&self) -> Vec<String> {
        self.runtime.block_on(self.bridge.containers.ids())
    }

    /// Asks the bridge itself.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        ask(&format!("Authorization: Bearer {KEY}"), method, &format!("{}{path}", self.url), body)
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.runtime.block_on(async {
            let native = &self.bridge.containers.native;
            remove_left(&**native).await;
        });
    }
}

fn a_sandbox_of_cloudflare_is_made_used_found_by_later_commands_and_removed() {
    let vendor = Vendor::new();
    assert_eq!(vendor.run(&["create", "--name", "job", "-e", "WORD=kept"]).success(), "job\n");
    let ran = vendor.run(&["exec", "job", "--", "sh", "-c", "echo $WORD; pwd; exit 3"]);
    assert_eq!((ran.code, &ran.stdout[..]), (Some(3), &b"kept\n/workspace\n"[..]), "{ran:?}");
    a_file_goes_in_and_out(&vendor.machine, |arguments| vendor.run(arguments));
    assert!(vendor.run(&["grep", "job", "here"]).success().contains("in/f"));
    assert_eq!(vendor.names(), ["job"]);
    let shown = vendor.run(&["inspect", "job"]).success();
    assert!(shown.contains("cloudflare") && !shown.contains(KEY), "{shown}");
    vendor.run(&["rm", "job"]).success();
    assert!(vendor.names().is_empty() && vendor.containers().is_empty());
    assert!(vendor.run(&["exec", "job", "true"]).failure(125).contains("job"));
}

fn what_cloudflare_does_not_have_is_refused_with_the_reason() {
    let vendor = Vendor::new();
    vendor.run(&["create", "--name", "job"]).success();
    let refused = [
        (&["create", "--ttl", "1h"][..], "with --ttl"),
        (&["create", "--net", "host"], "--net"),
        (&["create", "--image", "node:22"], "--image"),
        (&["create", "--user", "root"], "--user"),
        (&["create", "--require", "memory", "--memory", "1g"], "require"),
        (&["sleep", "job"], "cloudflare does not support sleep"),
    ];
    are_refused(&refused, |arguments| vendor.run(arguments));
    assert_eq!((vendor.names().len(), vendor.containers().len()), (1, 1));
}

fn without_an_address_the_error_says_where_it_belongs() {
    let vendor = Vendor::new();
    let mut command = vendor.command(&["create"]);
    let ran = Ran::from(command.env_remove("CLOUDFLARE_SANDBOX_WORKER_URL").output().unwrap());
    assert!(ran.stderr.contains("set CLOUDFLARE_SANDBOX_WORKER_URL"), "{ran:?}");
    let wrong = vendor.command(&["create"]).env("CLOUDFLARE_SANDBOX_API_KEY", "cf_wrong").output().unwrap();
    let wrong = Ran::from(wrong);
    assert!(
        wrong.stderr.contains("the bridge refused the key") && !wrong.stderr.contains("cf_wrong"),
        "{wrong:?}"
    );
}

fn a_sandbox_of_cloudflare_is_adopted_by_its_id_and_its_removal_leaves_it() {
    let vendor = Vendor::new();
    let id = "abcdefgh234567";
    let wrote = vendor.ask("PUT", &format!("/v1/sandbox/{id}/file/workspace/theirs"), "from there");
    assert!(wrote.contains("true"), "{wrote}");
    vendor.run(&["adopt", id]).success();
    let own = vendor.run(&["ls", "-q"]).success().trim().to_owned();
    assert_eq!(vendor.run(&["exec", &own, "--", "cat", "theirs"]).success(), "from there");
    vendor.run(&["rm", &own]).success();
    assert_eq!(vendor.run(&["ls", "-q"]).stdout, b"");
    assert_eq!(vendor.containers(), [id]);
    assert_eq!(vendor.ask("GET", &format!("/v1/sandbox/{id}/file/workspace/theirs"), ""), "from there");
    let wrong = vendor.run(&["adopt", "../x"]);
    assert!(wrong.stderr.contains("must be the bridge's id"), "{wrong:?}");
}

fn a_tree_goes_from_native_to_cloudflare_and_back() {
    let vendor = Vendor::new();
    a_tree_goes_there_and_back(&vendor.machine, "cloudflare", |arguments| vendor.run(arguments));
}
