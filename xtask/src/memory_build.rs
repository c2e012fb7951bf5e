//! The build of the providers with `memory` alone: it is for every operating system, so nothing in it is of Linux. The
//! trees of dependencies are read for three of them, none of which has to be installed.

use crate::process::{cargo, output};
use crate::source::Source;

/// The systems whose trees are read.
const TARGETS: [&str; 3] = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The packages that must be in none of the trees: those of the workspace that make sandboxes by the kernel or keep
/// their state in its files, and those that are an interface to the kernel.
const FORBIDDEN: [&str; 11] = [
    "bollard",
    "eyot-embed",
    "eyot-engine",
    "eyot-image",
    "eyot-native",
    "inotify",
    "inotify-sys",
    "linux-raw-sys",
    "notify",
    "rusqlite",
    "rustix",
];

/// The folder whose sources know no system.
const FOLDER: &str = "crates/providers/src/memory";

/// Says what of Linux is in the build. `known`: the packages of the workspace, and all that they depend on.
pub fn check(sources: &[Source], known: &[String]) -> Result<Vec<String>, String> {
    let mut wrong = unknown(known);
    for target in TARGETS {
        let mut tree = cargo();
        tree.args(["tree", "-q", "-p", "eyot-providers", "--no-default-features", "--features", "memory"]);
        tree.args(["-e", "normal,build", "--prefix", "none", "--target", target]);
        wrong.extend(forbidden(target, &output(&mut tree)?));
    }
    wrong.extend(sources.iter().filter_map(names_a_system));
    Ok(wrong)
}

/// Says which of the forbidden packages exist nowhere: those forbid nothing.
fn unknown(known: &[String]) -> Vec<String> {
    let missing = FORBIDDEN.iter().filter(|package| !known.iter().any(|name| name == *package));
    missing.map(|package| format!("xtask/src/memory_build.rs: {package} is no package here")).collect()
}

/// Says which forbidden packages are in a tree as `cargo tree` prints it.
fn forbidden(target: &str, tree: &str) -> Vec<String> {
    let has = |package: &&&str| tree.lines().any(|line| line.split(' ').next() == Some(**package));
    let found = FORBIDDEN.iter().filter(has);
    found.map(|package| format!("a build with `memory` alone has {package}, on {target}")).collect()
}

/// Says where a source of the folder is compiled by the name of a system.
fn names_a_system(source: &Source) -> Option<String> {
    let found = source.tokens.iter().find(|token| token.is("target_os") || token.is("linux"))?;
    let is_there = source.path.starts_with(FOLDER);
    is_there.then(|| format!("{}:{}: the files in memory know no system", source.path, found.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_linux_is_told_with_the_system_it_came_on() {
        let tree = "eyot-providers v0.1.0 (/x)\nbashkit v0.20.2\nrustix v1.1.2 (*)\nnixpkgs v1.0.0\n";
        assert_eq!(forbidden("a-b-c", tree), ["a build with `memory` alone has rustix, on a-b-c"]);
        assert!(forbidden("a-b-c", "eyot-native-like v1.0.0\n").is_empty());
    }

    #[test]
    fn a_forbidden_package_that_exists_nowhere_is_told() {
        let known: Vec<String> = FORBIDDEN[1..].iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(unknown(&known), ["xtask/src/memory_build.rs: bollard is no package here"]);
    }

    #[test]
    fn a_source_in_memory_that_names_a_system_is_told() {
        let told = |path: &str, text: &str| names_a_system(&Source::new(path, text)).is_some();
        for text in ["#[cfg(target_os = \"linux\")]\nfn a() {}", "use std::os::linux::fs::MetadataExt;"] {
            assert!(told("crates/providers/src/memory/a.rs", text), "{text}");
            assert!(!told("crates/native/src/a.rs", text), "{text}");
        }
        assert!(!told(
            "crates/providers/src/memory/a.rs",
            "// target_os\n#[cfg(unix)]\nfn a() { \"linux\"; }"
        ));
    }
}
