//! Every test target with its tier: the manifest of the tests. `cargo xtask check` compares it with
//! what cargo knows, and with the table in docs/testing.md.

use std::fs;

use serde_json::Value;

use crate::process::{cargo, output, root};

/// The times at which a target is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// `cargo xtask test quick`, and every later tier. It makes no sandboxes.
    Quick,
    /// `cargo xtask test`.
    Ci,
    /// `cargo xtask soak` alone.
    Soak,
}

/// The tests of a target that an ordinary user runs, too. Half of the native provider (the single
/// map of ids, the masks) exists only there.
#[derive(Debug, Clone, Copy)]
pub enum User {
    /// All of them.
    All,
    /// Those with one of these in their names.
    Some(&'static [&'static str]),
    /// None, and why.
    None(&'static str),
}

/// A target that cargo knows as `[[test]]`.
#[derive(Debug)]
pub struct Target {
    /// The folder of its package below `crates`.
    pub package: &'static str,
    /// The target's name.
    pub name: &'static str,
    /// The tier.
    pub tier: Tier,
    /// The part that an ordinary user runs, too.
    pub user: User,
    /// Tells whether it works on the Docker Engine. One such target runs at a time.
    pub on_engine: bool,
    /// Tells whether root's pass writes to the disk and not to memory: what sandboxes live on is
    /// tried there.
    pub on_disk: bool,
    /// The number of its tests that run side by side.
    pub threads: usize,
}

const ANYBODY: User = User::None("the same for everybody: it makes no sandboxes");
const ROOT_ONLY: User = User::None("it makes networks, which root does");
const ENGINE_ONLY: User = User::None("an ordinary user may not ask the Engine");
const ABOVE: User = User::None("it is above the provider, which the other targets try as an ordinary user");

/// Of the command line: where it meets the user's ids, files and limits. Its arguments, pages and
/// HTTP do not depend on the user.
const CLI_OF_USER: &[&str] = &[
    "backup::",
    "copying::",
    "habits::",
    "images::",
    "parent::",
    "quotas::",
    "running::",
    "sandboxes::",
    "scarce::",
    "terminals::",
    "top::",
    "verify::",
];

/// The targets. Those that take longest come first, so that no long one is left for the end.
pub const TARGETS: &[Target] = &[
    Target { threads: 4, ..on_engine("providers", "docker") },
    Target { user: User::All, ..on_engine("cli", "tasks") },
    on_engine("cli", "on_docker"),
    on_engine("cli", "registry"),
    ci("cli", "cli", User::Some(CLI_OF_USER)),
    ci("cli", "mcp_clients", ABOVE),
    ci("agent", "mcp_everything", ABOVE),
    ci("agent", "vendors", ANYBODY),
    ci("agent", "flue", ANYBODY),
    ci("probes", "threats", User::All),
    Target { threads: 6, ..ci("providers", "remote", ABOVE) },
    Target { threads: 8, ..ci("providers", "e2b", ABOVE) },
    Target { threads: 8, ..ci("providers", "cloudflare", ABOVE) },
    ci("providers", "cloudflare_bridge", ABOVE),
    Target { threads: 8, ..ci("providers", "modal", ABOVE) },
    ci("providers", "modal_sdk", ABOVE),
    Target { threads: 8, ..ci("providers", "daytona", ABOVE) },
    ci("providers", "daytona_sdks", ABOVE),
    Target {
        threads: 6,
        ..ci("providers", "kubernetes", User::None("its Pods are namespaces that only root makes"))
    },
    ci("server", "e2b_sdks", ABOVE),
    ci("server", "e2b", ABOVE),
    Target { threads: 8, ..ci("providers", "memory", ANYBODY) },
    ci("native", "conformance", User::All),
    ci("native", "slots", User::None("only root has slots")),
    ci("native", "pooled", ABOVE),
    Target { on_disk: true, ..ci("native", "lifecycle", User::All) },
    ci("native", "toolsets", ABOVE),
    ci("native", "egress", ROOT_ONLY),
    ci("native", "pool", User::All),
    ci("native", "tools", ABOVE),
    ci("agent", "workflow", ABOVE),
    ci("native", "real_programs", User::All),
    ci("server", "api", ABOVE),
    ci("server", "mcp", ABOVE),
    ci("server", "preview", ABOVE),
    ci("cli", "host", User::All),
    ci("cli", "by_root", User::None("every test needs root")),
    ci("image", "images", User::All),
    ci("engine", "shared", User::All),
    quick("eyot", "handle"),
    quick("engine", "events"),
    quick("engine", "processes"),
    quick("engine", "store"),
    quick("tools", "tools"),
    quick("agent", "runtime"),
    quick("agent", "router"),
    quick("agent", "telemetry"),
    quick("agent", "durable"),
    quick("agent", "mcp"),
    quick("agent", "models"),
    quick("providers", "scripts"),
    Target { threads: 1, ..quick("providers", "runaway") },
    quick("providers", "stuck"),
    quick("guest", "client_connection"),
    quick("guest", "client_descriptors"),
    quick("guest", "client_malice"),
    quick("guest", "client_program"),
    quick("guest", "program_exec"),
    quick("guest", "program_hold"),
    quick("guest", "program_init"),
    quick("guest", "program_last_words"),
    quick("guest", "program_life"),
    quick("guest", "program_patterns"),
    quick("guest", "program_trees"),
    quick("fuzz", "corpus"),
    quick("fuzz", "frames_random"),
    Target { tier: Tier::Soak, ..ci("cli", "load", ABOVE) },
];

const fn quick(package: &'static str, name: &'static str) -> Target {
    Target { package, name, tier: Tier::Quick, user: ANYBODY, on_engine: false, on_disk: false, threads: 3 }
}

const fn ci(package: &'static str, name: &'static str, user: User) -> Target {
    Target { package, name, tier: Tier::Ci, user, on_engine: false, on_disk: false, threads: 3 }
}

const fn on_engine(package: &'static str, name: &'static str) -> Target {
    Target { on_engine: true, ..ci(package, name, ENGINE_ONLY) }
}

impl Target {
    /// Returns its name with its package's, which is its own: two packages have a target `tools`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.package, self.name)
    }
}

/// Says what is wrong with the manifest.
pub fn check() -> Result<Vec<String>, String> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let known = tests_of(&metadata);
    let listed: Vec<String> = TARGETS.iter().map(Target::id).collect();
    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| format!("read {PAGE}: {error}"))?;
    let mut wrong = differences(&known, &listed);
    wrong.extend(
        (!page.contains(&table()))
            .then(|| format!("{PAGE}: the table of the test targets is not this one:\n{}", table())),
    );
    Ok(wrong)
}

const PAGE: &str = "docs/testing.md";

/// The ids of all test targets that cargo knows.
fn tests_of(metadata: &Value) -> Vec<String> {
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut ids = Vec::new();
    for package in list(metadata, "packages") {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let folder = manifest.trim_end_matches("/Cargo.toml").rsplit('/').next().unwrap_or_default();
        let tests = list(&package, "targets").into_iter().filter(|target| target["kind"][0] == "test");
        ids.extend(tests.map(|target| format!("{folder}/{}", target["name"].as_str().unwrap_or_default())));
    }
    ids
}

fn differences(known: &[String], listed: &[String]) -> Vec<String> {
    let missing = known.iter().filter(|id| !listed.contains(id));
    let missing = missing.map(|id| format!("xtask/src/targets.rs: the test target `{id}` is in no tier"));
    let gone = listed.iter().filter(|id| !known.contains(id));
    let gone = gone.map(|id| format!("xtask/src/targets.rs: the test target `{id}` is nowhere"));
    missing.chain(gone).collect()
}

/// Says which tests are `#[ignore]`d and belong to no tier: every such test is one of the soak's,
/// in a module `soak`.
pub fn ignored_without_a_tier(name: &str, text: &str) -> Vec<String> {
    let ignored = text.lines().filter(|line| line.trim_start().starts_with("#[ignore"));
    let is_lost = |line: &&str| !line.contains("cargo xtask soak") && !line.contains("by hand: ");
    let lost = ignored.filter(is_lost);
    lost.map(|line| {
        let line = line.trim();
        format!("{name}: `{line}` names no tier: \"cargo xtask soak PART\", or \"by hand: \" and how")
    })
    .collect()
}

/// The table for docs/testing.md.
fn table() -> String {
    let row = |target: &Target| {
        let tier = match target.tier {
            Tier::Quick => "quick",
            Tier::Ci => "ci",
            Tier::Soak => "soak",
        };
        let user = match target.user {
            User::All => "all".to_owned(),
            User::Some(parts) => parts
                .iter()
                .map(|part| format!("`{}`", part.trim_end_matches("::")))
                .collect::<Vec<_>>()
                .join(", "),
            User::None(reason) => format!("none: {reason}"),
        };
        format!("| `{}` | {tier} | {user} |\n", target.id())
    };
    let rows: String = TARGETS.iter().map(row).collect();
    format!("| target | tier | as an ordinary user |\n|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_target_in_no_tier_and_a_tier_without_its_target_are_errors() {
        let wrong = differences(&ids(&["a/one", "b/two"]), &ids(&["b/two", "c/three"]));
        assert!(wrong.len() == 2 && wrong[0].contains("`a/one` is in no tier"), "{wrong:?}");
        assert!(wrong[1].contains("`c/three` is nowhere"), "{wrong:?}");
        assert!(differences(&ids(&["a/one"]), &ids(&["a/one"])).is_empty());
    }

    #[test]
    fn targets_are_told_by_the_folder_of_their_package() {
        let metadata = serde_json::json!({ "packages": [{
            "manifest_path": "/r/crates/native/Cargo.toml",
            "targets": [{ "kind": ["lib"], "name": "eyot_native" }, { "kind": ["test"], "name": "tools" }],
        }] });
        assert_eq!(tests_of(&metadata), ["native/tools"]);
    }

    #[test]
    fn an_ignored_test_names_its_tier() {
        assert_eq!(ignored_without_a_tier("f.rs", "    #[ignore]\n    #[ignore = \"slow\"]\n").len(), 2);
        let named =
            "#[ignore = \"cargo xtask soak floods\"]\n#[ignore = \"by hand: with TMPDIR on a tmpfs\"]\n";
        assert!(ignored_without_a_tier("f.rs", named).is_empty());
    }
}
