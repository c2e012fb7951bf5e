//! The rights of the guest after it has run commands.

use std::time::Duration;

use eyot::{ExecOptions, Sandbox, SandboxSpec};
use libtest_mimic::{Failed, Trial};

use crate::state::State;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![trial("the_guest_keeps_its_capabilities_and_has_its_commands_killed_first", rights)]
}

async fn rights() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    // The guest raises the score once a command has run for a moment.
    let raised = "until [ $(cat /proc/self/oom_score_adj) = 500 ]; do sleep 0.02; done";
    for _ in 0..2 {
        let running = sandbox.exec(raised, ExecOptions::default());
        let result = tokio::time::timeout(Duration::from_secs(60), running).await??;
        ensure(result.success(), format!("{result:?}"))?;
    }
    let sets = "grep -E '^Cap(Eff|Prm)' /proc/1/status | cut -f2 | sort -u | wc -l";
    let result = sandbox.exec(sets, ExecOptions::default()).await?;
    ensure(result.stdout_text().trim() == "1", format!("effective and permitted differ: {result:?}"))?;
    sandbox.destroy().await?;
    state.assert_empty()
}
