//! ttl and idle deadlines, with no Eyot process alive.

use eyot::{ErrorKind, Sandbox, SandboxProvider};
use libtest_mimic::{Failed, Trial};

use crate::maker::Maker;
use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_ttl_fires_with_no_eyot_process_alive", ttl),
        trial("an_idle_deadline_fires_with_no_eyot_process_alive", idle),
        trial("a_sandbox_whose_deadline_fired_is_destroyed_and_swept", swept),
    ]
}

async fn left_by_a_maker(state: &State, task: &str) -> Result<String, Failed> {
    let mut maker = Maker::start(&state.path(), task, 1500)?;
    let id = maker.line().await?;
    maker.end().await?;
    wait_for_end(state.guest_of(&id)?).await?;
    Ok(id)
}

async fn ended_alone(task: &str) -> Result<(), Failed> {
    let state = State::new()?;
    left_by_a_maker(&state, task).await?;
    // Its control groups are not in the state folder that goes with this test.
    state.provider()?.list().await?;
    state.assert_empty()
}

async fn ttl() -> Result<(), Failed> {
    ended_alone("ttl").await
}

async fn idle() -> Result<(), Failed> {
    ended_alone("idle").await
}

async fn swept() -> Result<(), Failed> {
    let state = State::new()?;
    let id = left_by_a_maker(&state, "ttl").await?;
    let provider = state.provider()?;
    let error = Sandbox::open(&*provider, &id).await.err().ok_or("an expired sandbox was opened")?;
    ensure(error.kind() == ErrorKind::Destroyed, format!("{error}"))?;
    ensure(provider.list().await?.is_empty(), "an expired sandbox is listed")?;
    state.assert_empty()
}
