//! Many sandboxes at once, and a maker that is killed among them.

use eyot::{ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use libtest_mimic::{Failed, Trial};

use crate::maker::Maker;
use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("two_hundred_sandboxes_in_parallel_leave_nothing_behind", two_hundred),
        trial("kill_9_among_two_hundred_and_removing_all_leaves_nothing_behind", killed_among),
    ]
}

async fn two_hundred() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let provider = provider.clone();
        tasks.spawn(async move {
            let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
            sandbox.write("n", number.to_string()).await?;
            let result = sandbox.exec("cat n", ExecOptions::default()).await?;
            let id = sandbox.id().to_string();
            Ok::<_, eyot::Error>((sandbox, id, number, result.stdout_text()))
        });
    }
    let mut guests = Vec::new();
    let mut sandboxes = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (sandbox, id, number, output) = done??;
        ensure(output == number.to_string(), format!("sandbox {number} answered {output}"))?;
        guests.push(state.guest_of(&id)?);
        sandboxes.push(sandbox);
    }
    let destroyed = sandboxes.iter().map(|sandbox| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.destroy().await })
    });
    for done in destroyed.collect::<Vec<_>>() {
        done.await??;
    }
    for guest in guests {
        wait_for_end(guest).await?;
    }
    state.assert_empty()
}

async fn killed_among() -> Result<(), Failed> {
    let state = State::new()?;
    let mut maker = Maker::start(&state.path(), "many", 200)?;
    for _ in 0..60 {
        maker.line().await?;
    }
    maker.kill_9().await?;
    let provider = state.provider()?;
    let listed = provider.list().await?;
    let guests: Vec<i32> = listed.iter().filter_map(|info| state.guest_of(info.id.as_str()).ok()).collect();
    for info in listed {
        provider.remove(info.id.as_str()).await?;
    }
    for guest in guests {
        wait_for_end(guest).await?;
    }
    // Those that were being made when the maker was killed are nobody's: the list sweeps them.
    ensure(provider.list().await?.is_empty(), "sandboxes are left")?;
    state.assert_empty()
}
