//! `eyot --provider e2b` against a server of this repository that speaks E2B's API, with native sandboxes.

use std::process::Command;
use std::sync::Arc;

use eyot_native::{NativeOptions, NativeProvider};
use eyot_server::e2b::{E2bApi, E2bServerOptions};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::Case;
use crate::left::remove_left;
use crate::machine::{Machine, Ran};
use crate::vendor_rules::{
    a_file_goes_in_and_out, a_tree_goes_there_and_back, adopted, are_refused, ask, names,
};

pub fn trials() -> Vec<Case> {
    vec![
        (
            "a_sandbox_of_e2b_is_made_used_found_by_later_commands_and_removed",
            a_sandbox_of_e2b_is_made_used_found_by_later_commands_and_removed,
        ),
        (
            "what_e2b_does_not_have_is_refused_with_the_reason",
            what_e2b_does_not_have_is_refused_with_the_reason,
        ),
        ("without_a_key_the_error_says_where_it_belongs", without_a_key_the_error_says_where_it_belongs),
        (
            "a_sandbox_of_somebody_else_is_adopted_and_its_removal_leaves_it",
            a_sandbox_of_somebody_else_is_adopted_and_its_removal_leaves_it,
        ),
        ("a_tree_goes_from_native_to_e2b_and_back", a_tree_goes_from_native_to_e2b_and_back),
    ]
}

const KEY: &str = "e2b_fedcba9876543210fedcba9876543210fedcba98";

/// A machine, and the vendor elsewhere.
struct Vendor {
    machine: Machine,
    url: String,
    api: E2bApi,
    native: Arc<NativeProvider>,
    runtime: Runtime,
}

impl Vendor {
    /// E2B's sandboxes have a root, and native ones only where root makes them.
    fn new() -> Self {
        let machine = Machine::new();
        let state = machine.path("vendor");
        let native = NativeProvider::new(NativeOptions { state, ..NativeOptions::default() }).unwrap();
        let (api_key, domain) = (KEY.to_owned(), "e2b.test".to_owned());
        let api = E2bApi::new(native.clone(), E2bServerOptions { api_key, domain, clock_skew_s: 0 });
        let (runtime, served) = (Runtime::new().unwrap(), api.clone());
        let url = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(async move { served.serve(listener).await });
            url
        });
        Self { machine, url, api, native, runtime }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command(&[&["--provider", "e2b"], arguments].concat());
        command.env("E2B_API_KEY", KEY).env("E2B_API_URL", &self.url).env("E2B_SANDBOX_URL", &self.url);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Returns the names of the sandboxes that `eyot ls` shows.
    fn names(&self) -> Vec<String> {
        names(|arguments| self.run(arguments))
    }

    /// Asks the vendor itself, as its own SDK does.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        ask(&format!("X-API-Key: {KEY}"), method, &format!("{}{path}", self.url), body)
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.runtime.block_on(async {
            self.api.end().await.unwrap();
            remove_left(&*self.native).await;
        });
    }
}

fn a_sandbox_of_e2b_is_made_used_found_by_later_commands_and_removed() {
    let vendor = Vendor::new();
    assert_eq!(vendor.run(&["create", "--name", "job", "-e", "WORD=kept"]).success(), "job\n");
    let ran = vendor.run(&["exec", "job", "--", "sh", "-c", "echo $WORD; pwd; id -un; exit 3"]);
    assert_eq!((ran.code, &ran.stdout[..]), (Some(3), &b"kept\n/workspace\nuser\n"[..]), "{ran:?}");
    a_file_goes_in_and_out(&vendor.machine, |arguments| vendor.run(arguments));
    assert_eq!(vendor.names(), ["job"]);
    vendor.run(&["sleep", "job"]).success();
    assert_eq!(vendor.run(&["exec", "job", "--", "cat", "in/f"]).success(), "from here\n");
    let shown = vendor.run(&["inspect", "job"]).success();
    assert!(shown.contains("e2b"), "{shown}");
    vendor.run(&["rm", "job"]).success();
    assert!(vendor.names().is_empty());
    assert!(vendor.run(&["exec", "job", "true"]).failure(125).contains("job"));
}

fn what_e2b_does_not_have_is_refused_with_the_reason() {
    let vendor = Vendor::new();
    vendor.run(&["create", "--name", "job"]).success();
    let refused = [
        (&["create", "--ttl", "1h"][..], "with --ttl"),
        (&["create", "--net", "host"], "--net"),
        (&["create", "--user", "root"], "--user"),
        (&["create", "--require", "memory", "--memory", "1g"], "require"),
        (&["dial", "job", "80"], "e2b does not support dial"),
        (&["grep", "job", "x"], "e2b does not support grep"),
    ];
    are_refused(&refused, |arguments| vendor.run(arguments));
    assert_eq!(vendor.names(), ["job"]);
}

fn without_a_key_the_error_says_where_it_belongs() {
    let vendor = Vendor::new();
    let ran = Ran::from(vendor.command(&["ls"]).env_remove("E2B_API_KEY").output().unwrap());
    assert!(ran.stderr.contains("E2B needs a key") && ran.stderr.contains("set E2B_API_KEY"), "{ran:?}");
    let wrong = Ran::from(vendor.command(&["ls"]).env("E2B_API_KEY", "e2b_wrong").output().unwrap());
    assert!(wrong.stderr.contains("E2B refused the key") && !wrong.stderr.contains("e2b_wrong"), "{wrong:?}");
}

fn a_sandbox_of_somebody_else_is_adopted_and_its_removal_leaves_it() {
    let vendor = Vendor::new();
    let made = vendor.ask("POST", "/v2/sandboxes", r#"{"templateID":"base"}"#);
    let id =
        serde_json::from_str::<serde_json::Value>(&made).unwrap()["sandboxID"].as_str().unwrap().to_owned();
    let own = adopted(&id, |arguments| vendor.run(arguments));
    assert_eq!(
        vendor.run(&["exec", &own, "--", "sh", "-c", "echo here; pwd"]).success(),
        "here\n/home/user\n"
    );
    assert!(vendor.run(&["sleep", &own]).stderr.contains("e2b does not support sleep with"));
    vendor.run(&["rm", &own]).success();
    assert_eq!(vendor.run(&["ls", "-q"]).stdout, b"");
    assert!(vendor.ask("GET", &format!("/sandboxes/{id}"), "").contains("running"));
    let unknown = vendor.run(&["adopt", "i0"]);
    assert!(unknown.stderr.contains("E2B has no sandbox `i0`"), "{unknown:?}");
}

fn a_tree_goes_from_native_to_e2b_and_back() {
    let vendor = Vendor::new();
    a_tree_goes_there_and_back(&vendor.machine, "e2b", |arguments| vendor.run(arguments));
}
