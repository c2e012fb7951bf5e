//! Programs that developers use must run inside. Each is tried, and shows as ignored where the host
//! lacks it.

mod cases;

use std::path::Path;

use cases::{CASES, Case};
use eyot::{ExecOptions, Sandbox, SandboxSpec};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let trials = CASES.iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn on_host(program: &str) -> bool {
    ["/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

fn trial(case: &'static Case) -> Trial {
    let missing = case.needs.iter().find(|program| !on_host(program));
    let trial = Trial::test(case.name, move || run(case));
    match missing {
        Some(program) => trial.with_kind(format!("{program} is not installed")).with_ignored_flag(true),
        None => trial,
    }
}

fn run(case: &Case) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let state = tempfile::tempdir()?;
        let options = NativeOptions { state: state.path().join("state"), ..NativeOptions::default() };
        let provider = NativeProvider::new(options)?;
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let options = ExecOptions { timeout_ms: Some(120_000), ..ExecOptions::default() };
        let result = sandbox.exec(case.script, options).await?;
        sandbox.destroy().await?;
        let (output, errors) = (result.stdout_text(), result.stderr_text());
        if output == case.output {
            Ok(())
        } else {
            Err(format!("{:?}: stdout {output:?}, stderr {errors:?}", result.outcome).into())
        }
    })
}
