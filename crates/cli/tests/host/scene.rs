//! One host for one test: a state folder, and a way to run `eyot` on it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder for one test, and the way in which programs are started in it.
pub struct Scene {
    folder: TempDir,
    /// Shell commands that `sh -c` runs before `eyot`; they end with `exec "$@"`.
    prelude: String,
    /// The program that runs the prelude, with its arguments.
    wrapper: Vec<String>,
    refusals: Vec<crate::sys::Refusal>,
    simulated: Option<Value>,
    state: Option<PathBuf>,
}

/// The result of a program.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Scene {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("eyot-host-").tempdir().unwrap();
        Self {
            folder,
            prelude: "exec \"$@\"".to_owned(),
            wrapper: Vec::new(),
            refusals: Vec::new(),
            // What mends a container's refusals depends on the container: here is none.
            simulated: Some(serde_json::json!({ "facts": { "container": null } })),
            state: None,
        }
    }

    /// Runs these shell commands before; they end with `exec "$@"`.
    pub fn after(mut self, prelude: &str) -> Self {
        self.prelude = prelude.to_owned();
        self
    }

    /// Runs inside this program, such as `unshare …`.
    pub fn within(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Runs under a filter that refuses these calls.
    pub fn refusing(mut self, refusals: &[crate::sys::Refusal]) -> Self {
        self.refusals = refusals.to_vec();
        self
    }

    /// Simulates these facts, and a step that fails.
    pub fn simulating(mut self, mut facts: Value, fail_step: Option<&str>) -> Self {
        if facts.get("container").is_none() {
            facts["container"] = Value::Null;
        }
        self.simulated = Some(serde_json::json!({ "facts": facts, "fail_step": fail_step }));
        self
    }

    /// Uses another state folder.
    pub fn with_state(mut self, state: PathBuf) -> Self {
        self.state = Some(state);
        self
    }

    /// Returns a path of this test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `eyot` with these arguments.
    pub fn eyot(&self, arguments: &[&str]) -> Ran {
        let mut words: Vec<String> = self.wrapper.clone();
        words.extend(["sh", "-c", self.prelude.as_str(), "sh"].map(str::to_owned));
        words.push(program());
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().stdin(Stdio::null());
        let state = self.state.clone().unwrap_or_else(|| self.path("state"));
        command
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.path("home"))
            .env("EYOT_STATE", state);
        if let Some(simulated) = &self.simulated {
            let file = self.path("simulated.json");
            std::fs::write(&file, simulated.to_string()).unwrap();
            command.env("EYOT_SIMULATED", file);
        }
        if !self.refusals.is_empty() {
            crate::sys::refuse_calls(&mut command, &self.refusals);
        }
        let output = command.output().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts that the doctor finds no sandbox possible, for this reason and with this fix, and
    /// that every command that needs one says the same.
    #[track_caller]
    pub fn ends_everywhere_with(&self, cause: &str, sentence: &str, fix: &str) {
        let doctor = self.eyot(&["doctor", "--json"]);
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["cause"] == cause);
        let found = found.unwrap_or_else(|| panic!("no finding `{cause}`: {findings:#?}"));
        assert_eq!(found["status"], "error", "{found:#?}");
        let (why, _) = why_and_fix(found);
        assert!(why.contains(sentence), "`{why}` does not say `{sentence}`");
        assert_eq!(
            found["fix"].as_str().is_some_and(|found| found.contains(fix)),
            !fix.is_empty(),
            "{found:#?}"
        );
        for arguments in [
            &["run", "--", "true"][..],
            &["create", "--name", "box"],
            &["create", "--net", "host"],
            &["run", "--workspace", "project", "--", "true"],
        ] {
            self.says(arguments, why, found["fix"].as_str());
        }
        assert!(
            !self.path("state/sandboxes").exists() || self.is_empty("state/sandboxes"),
            "something is left"
        );
    }

    /// Asserts that a command fails with this sentence in its own, and with this hint.
    #[track_caller]
    pub fn says(&self, arguments: &[&str], sentence: &str, fix: Option<&str>) {
        let ran = self.eyot(arguments);
        assert_eq!(ran.code, Some(125), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(sentence), "{arguments:?} does not say `{sentence}`: {ran:?}");
        if let Some(fix) = fix {
            assert!(
                ran.stderr.contains(&format!("hint: {fix}\n")),
                "{arguments:?} does not hint `{fix}`: {ran:?}"
            );
        }
    }

    fn is_empty(&self, folder: &str) -> bool {
        std::fs::read_dir(self.path(folder)).unwrap().next().is_none()
    }
}

fn why_and_fix(found: &Value) -> (&str, &str) {
    (found["why"].as_str().unwrap_or_default(), found["fix"].as_str().unwrap_or_default())
}

/// Returns the `eyot` to test: that of the build, or a copy of it that another user can reach.
fn program() -> String {
    let program = std::env::var_os("EYOT_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_eyot").into());
    program.into_string().unwrap()
}

/// Runs a program to see whether it succeeds here. The error has the reason why not.
pub fn need(words: &[&str]) -> Result<(), String> {
    let ran = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    match ran {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "`{}` fails here: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("`{}`: {error}", words[0])),
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
