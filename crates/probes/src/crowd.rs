//! E6: very many commands at once.

use eyot::{ExecOptions, Limits, Outcome, SandboxSpec};
use futures_util::future::join_all;

use crate::check::{Check, cases, ensure_eq, promptly};
use crate::world::{Stage, World};

cases! {
    e06_200_commands_at_once_are_independent_and_all_correct(world);
    e06_commands_of_every_kind_at_once_do_not_disturb_each_other(stage);
}

async fn e06_200_commands_at_once_are_independent_and_all_correct(world: std::sync::Arc<World>) -> Check {
    let limits = Limits { pids: Some(4_096), ..Limits::default() };
    let stage = world.stage_of(SandboxSpec { limits, ..world.spec() }).await?;
    let exec = |number: usize| {
        let line = format!("echo out-{number}; echo err-{number} >&2; sleep 0.2; exit {}", number % 100);
        let sandbox = stage.sandbox.clone();
        async move { sandbox.exec(line, ExecOptions::default()).await }
    };
    let results = promptly("all of them", join_all((0..200).map(exec))).await?;
    for (number, result) in results.into_iter().enumerate() {
        let result = result?;
        ensure_eq!(result.outcome, Outcome::Exited(number as i32 % 100));
        ensure_eq!(result.stdout_text(), format!("out-{number}\n"));
        ensure_eq!(result.stderr_text(), format!("err-{number}\n"));
    }
    stage.still_works().await?;
    stage.end().await
}

async fn e06_commands_of_every_kind_at_once_do_not_disturb_each_other(stage: Stage) -> Check {
    let sandbox = &stage.sandbox;
    let mixed = (0..40_usize).map(|number| async move {
        let options = ExecOptions { timeout_ms: Some(300), ..ExecOptions::default() };
        match number % 4 {
            0 => Ok((number, sandbox.exec("yes", options).await?.outcome == Outcome::TimedOut)),
            1 => Ok((
                number,
                sandbox.exec("kill -9 $$", ExecOptions::default()).await?.outcome == Outcome::Signaled(9),
            )),
            2 => {
                let path = format!("file-{number}");
                sandbox.write(&path, vec![number as u8; 100_000]).await?;
                Ok((number, sandbox.read(&path).await?.iter().all(|byte| *byte == number as u8)))
            }
            _ => Ok((
                number,
                sandbox.exec(format!("exit {number}"), ExecOptions::default()).await?.outcome
                    == Outcome::Exited(number as i32),
            )),
        }
    });
    let results: Vec<eyot::Result<(usize, bool)>> = promptly("all of them", join_all(mixed)).await?;
    for result in results {
        let (number, correct) = result?;
        ensure_eq!((number, correct), (number, true));
    }
    Ok(())
}
