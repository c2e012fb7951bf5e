//! Comparison with recorded runs of the real mawk.

use eyot::{ExecOptions, Sandbox, SandboxSpec};
use serde::Deserialize;

use crate::memory::MemoryProvider;

/// A run of mawk, with its output.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MawkRun {
    script: String,
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    status: i32,
}

#[derive(Deserialize)]
struct MawkRuns {
    run: Vec<MawkRun>,
}

const FILES: &str = "cd \"$(mktemp -d)\"
printf '0x1A nan inf +5 -3. .e1 1e3 5x 0x  010\\n' > in1
printf 'a b c\\nd e f\\n\\ng h i\\n' > in2
printf 'x:1:2\\ny:3:4\\n' > in3
";

#[tokio::test]
async fn programs_print_what_mawk_prints() {
    let runs: MawkRuns = toml::from_str(include_str!("programs.toml")).unwrap();
    assert!(runs.run.len() > 150);
    let provider = MemoryProvider::default();
    let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
    let mut different = Vec::new();
    for run in runs.run {
        let options = ExecOptions { timeout_ms: Some(20_000), ..ExecOptions::default() };
        let result = sandbox.exec(format!("{FILES}{}", run.script), options).await.unwrap();
        let (stdout, stderr) = (result.stdout_text(), result.stderr_text());
        let printed = (stdout, stderr, result.flatten().exit_code);
        if printed != (run.stdout, run.stderr, run.status) {
            different.push((run.script, printed));
        }
    }
    sandbox.destroy().await.unwrap();
    assert!(different.is_empty(), "{different:#?}");
}
