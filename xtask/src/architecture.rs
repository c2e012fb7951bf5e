//! The rules of ARCHITECTURE.md that a program can check.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{cargo, output, root};
use crate::rules;

/// Checks every rule, and says all that is wrong at once.
pub fn check() -> Result<(), String> {
    let sources = rust_files(&root().join("crates"))?;
    let mut wrong = Vec::new();
    wrong.extend(forbidden_dependencies()?);
    for file in &sources {
        let text = fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
        let name = file.strip_prefix(root()).unwrap_or(file).display().to_string();
        wrong.extend(unsafe_outside_sys(&name, &text));
        wrong.extend(dropped_results(&name, &text));
    }
    wrong.extend(threats_without_a_test(&sources)?);
    wrong.extend(rules::without_a_test(&sources)?);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("the architecture's rules are broken:\n  {}", wrong.join("\n  "))),
    }
}

/// Who must not know whom, over however many corners: the contract no provider and no HTTP, the server no provider.
const FORBIDDEN: &[(&str, &str, &[&str])] = &[
    (
        "eyot",
        "sandbox",
        &["hyper", "axum", "reqwest", "bollard", "kube", "rmcp", "eyot-native", "eyot-guest", "libc-"],
    ),
    ("eyot-server", "server", &["bollard", "kube", "bashkit", "eyot-native", "eyot-guest", "eyot-providers"]),
];

fn forbidden_dependencies() -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for (package, folder, forbidden) in FORBIDDEN {
        let tree = output(cargo().args(["tree", "-q", "-p", package, "-e", "normal", "--prefix", "none"]))?;
        let names = tree.lines().filter_map(|line| line.split(' ').next());
        let found = names.filter(|name| forbidden.contains(name));
        wrong.extend(found.map(|name| format!("crates/{folder} depends on {name}")));
    }
    Ok(wrong)
}

fn unsafe_outside_sys(name: &str, text: &str) -> Vec<String> {
    let allowed = name.ends_with("/sys.rs") || name.contains("/sys/");
    let is_unsafe = |line: &&str| {
        let code = line.trim_start();
        !code.starts_with("//")
            && (code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl"))
    };
    let found = text.lines().filter(is_unsafe).count();
    if allowed || found == 0 { Vec::new() } else { vec![format!("{name}: unsafe code outside of sys.rs")] }
}

fn dropped_results(name: &str, text: &str) -> Vec<String> {
    let dropped = text.lines().any(|line| line.trim_start().starts_with("let _ ="));
    if dropped && name.starts_with("crates/native/src") {
        vec![format!("{name}: a result is dropped")]
    } else {
        Vec::new()
    }
}

/// Every row of SECURITY.md's table names tests that exist, or the issue that it waits for.
fn threats_without_a_test(sources: &[PathBuf]) -> Result<Vec<String>, String> {
    let security = fs::read_to_string(root().join("SECURITY.md"))
        .map_err(|error| format!("read SECURITY.md: {error}"))?;
    let mut known = String::new();
    for file in sources {
        known.push_str(&fs::read_to_string(file).unwrap_or_default());
    }
    let mut wrong = Vec::new();
    for row in security.lines().filter(|line| is_threat_row(line)) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (id, proof) = (cells[1], cells.get(3).copied().unwrap_or_default());
        let tests: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() && !proof.contains("issue") {
            wrong.push(format!("SECURITY.md: row {id} names neither a test nor an issue"));
        }
        let missing = tests.iter().filter(|test| !known.contains(**test));
        wrong.extend(missing.map(|test| format!("SECURITY.md: row {id} names `{test}`, which is nowhere")));
    }
    Ok(wrong)
}

fn is_threat_row(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("| ") else { return false };
    let mut letters = rest.chars();
    letters.next().is_some_and(|letter| "KFEN".contains(letter))
        && letters.next().is_some_and(|digit| digit.is_ascii_digit())
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("read {}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true if path.file_name().is_some_and(|name| name != "target") => pending.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}
