//! Builds a static program of the package whose build script calls it, so that it can be embedded
//! with `include_bytes!`.
//!
//! Cargo has no stable way to depend on another package's binary, so the build script runs cargo
//! once more: the same package, one feature, the profile `embedded`, `crt-static`, and a target
//! directory of its own (two runs of cargo in one target directory would wait for each other for
//! ever).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

const PROFILE: &str = "embedded";

/// Builds binary `name` of the calling package with `feature` alone, static, and leaves it as
/// `OUT_DIR/<name>`, with its SHA-256 in hexadecimal as `OUT_DIR/<name>.sha256`.
///
/// # Panics
/// When the program can't be built: the calling build script then fails and shows cargo's own
/// words.
pub fn build_static_program(name: &str, feature: &str) {
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out_dir = PathBuf::from(variable("OUT_DIR"));
    let target_dir = shared_target_dir(&out_dir);
    let target = variable("TARGET");
    println!("cargo::rerun-if-changed={}", manifest_dir.join("src").display());
    println!("cargo::rerun-if-changed={}", manifest_dir.join("Cargo.toml").display());

    let mut cargo = cargo_without_the_outer_build();
    cargo
        .args(["build", "--quiet", "--no-default-features", "--features", feature, "--bin", name])
        .args(profile_arguments())
        .args(["--target", &target, "--target-dir"])
        .arg(&target_dir)
        .arg("--manifest-path")
        .arg(manifest_dir.join("Cargo.toml"))
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static\u{1f}-Crelocation-model=static");
    let status = cargo.status().unwrap_or_else(|error| panic!("run cargo to build {name}: {error}"));
    assert!(status.success(), "building the static program {name} failed: {status}");

    let built = target_dir.join(&target).join(PROFILE).join(name);
    std::fs::copy(&built, out_dir.join(name))
        .unwrap_or_else(|error| panic!("copy {} to {}: {error}", built.display(), out_dir.display()));
    let program = std::fs::read(out_dir.join(name)).unwrap_or_else(|error| panic!("read {name}: {error}"));
    std::fs::write(out_dir.join(format!("{name}.sha256")), digest(&program))
        .unwrap_or_else(|error| panic!("write the digest of {name}: {error}"));
}

fn digest(program: &[u8]) -> String {
    Sha256::digest(program).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The profile as `--config` values, so that it is the same where the workspace's own profiles are
/// not seen: in a package from a registry.
///
/// With `EYOT_EMBED=quick` in the environment the program is built without link-time optimisation:
/// larger and slower, but seconds after a change instead of half a minute. For work on it, never
/// for measuring or shipping.
fn profile_arguments() -> Vec<String> {
    println!("cargo::rerun-if-env-changed=EYOT_EMBED");
    let settings = if env::var("EYOT_EMBED").is_ok_and(|how| how == "quick") {
        [
            "inherits=\"release\"",
            "opt-level=1",
            "lto=\"off\"",
            "incremental=true",
            "panic=\"abort\"",
            "strip=true",
        ]
    } else {
        [
            "inherits=\"release\"",
            "opt-level=\"s\"",
            "lto=\"fat\"",
            "codegen-units=1",
            "panic=\"abort\"",
            "strip=true",
        ]
    };
    let mut arguments = vec!["--profile".to_owned(), PROFILE.to_owned()];
    for setting in settings {
        arguments.extend(["--config".to_owned(), format!("profile.{PROFILE}.{setting}")]);
    }
    arguments
}

/// One directory for every profile of the outer build: debug, release and check share the program.
/// `OUT_DIR` is `<target>/<profile>/build/<package>/out`.
fn shared_target_dir(out_dir: &Path) -> PathBuf {
    out_dir.ancestors().nth(4).unwrap_or(out_dir).join("static")
}

fn cargo_without_the_outer_build() -> Command {
    let mut cargo = Command::new(variable("CARGO"));
    for (name, _) in env::vars() {
        let of_the_outer_build = name.starts_with("CARGO_FEATURE_")
            || name.starts_with("CARGO_CFG_")
            || name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_MANIFEST")
            || matches!(
                name.as_str(),
                "RUSTFLAGS"
                    | "RUSTC_WRAPPER"
                    | "RUSTC_WORKSPACE_WRAPPER"
                    | "CARGO_TARGET_DIR"
                    | "CARGO_BUILD_TARGET"
                    | "CARGO_MAKEFLAGS"
                    | "MAKEFLAGS"
                    | "TARGET"
                    | "HOST"
                    | "OUT_DIR"
                    | "PROFILE"
                    | "NUM_JOBS"
            );
        if of_the_outer_build {
            cargo.env_remove(name);
        }
    }
    cargo
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is set by cargo for build scripts"))
}
