//! K11: what can't be limited on this host is not promised either.

use std::collections::BTreeSet;
use std::sync::Arc;

use eyot::{DiskEnforcement, Enforcement, ExecOptions, Limits, Outcome, Requirement, Sandbox, SandboxSpec};

use crate::check::{Check, cases, ensure, ensure_fails, not_enforced};
use crate::world::{Stage, World};

cases! {
    k11_a_limit_that_is_required_and_can_not_be_held_refuses_the_create(world);
    k11_a_bomb_of_memory_hits_the_limit_inside(world);
    k11_a_full_disk_hits_the_limit_inside(stage);
}

async fn k11_a_limit_that_is_required_and_can_not_be_held_refuses_the_create(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let held = stage.sandbox.isolation().limits;
    stage.end().await?;
    let requirements = [
        (Requirement::Memory, held.memory == Enforcement::Cgroup),
        (Requirement::Cpus, held.cpus == Enforcement::Cgroup),
        (Requirement::Pids, held.pids != Enforcement::None),
        (Requirement::Disk, held.disk == DiskEnforcement::Quota),
        (Requirement::OwnKernel, false),
    ];
    for (requirement, holds) in requirements {
        let limits =
            Limits { memory_mib: Some(64), cpus: Some(1.0), disk_mib: Some(64), ..Limits::default() };
        let spec = SandboxSpec { limits, require: BTreeSet::from([requirement]), ..SandboxSpec::default() };
        let made = Sandbox::create(world.provider(), spec).await;
        match holds {
            true => made?.destroy().await?,
            false => ensure_fails!(made, Unsupported),
        }
    }
    Ok(())
}

/// The bomb is in a sandbox with little memory; the stage is its sibling, and the bomb is larger than what both have.
async fn k11_a_bomb_of_memory_hits_the_limit_inside(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    if stage.sandbox.isolation().limits.memory != Enforcement::Cgroup {
        stage.end().await?;
        return not_enforced("no memory cgroup here can be written to");
    }
    stage.sandbox.write("kept", "the sibling's").await?;
    let limits = Limits { memory_mib: Some(64), ..Limits::default() };
    let bombed = Sandbox::create(world.provider(), SandboxSpec { limits, ..SandboxSpec::default() }).await?;
    // In one process, in a file in memory, and in many processes.
    let bombs = [
        "tail -c 16G /dev/zero | tail -n 1 > /dev/null",
        "for i in 1 2 3 4; do head -c 400M /dev/zero | tail -c 390M > /dev/null & done; wait; exit 1",
    ];
    for bomb in bombs {
        let result = bombed.exec(bomb, ExecOptions::default()).await?;
        ensure!(!result.success(), "`{bomb}` fit: {:?}", result.outcome);
    }
    let result = bombed.exec(bombs[0], ExecOptions::default()).await?;
    ensure!(result.outcome == Outcome::OutOfMemory, "the outcome does not say why: {:?}", result.outcome);
    // What fills the memory and belongs to no process must leave the guest alive.
    bombed
        .exec(
            "head -c 1G /dev/zero > /dev/shm/full; head -c 1G /dev/zero > /run/full",
            ExecOptions::default(),
        )
        .await?;
    let alive = bombed.exec("rm -f /dev/shm/full /run/full; echo alive", ExecOptions::default()).await?;
    ensure!(alive.stdout_text() == "alive\n", "the sandbox does not work on: {alive:?}");
    bombed.destroy().await?;
    ensure!(stage.sandbox.read_text("kept").await? == "the sibling's", "the sibling lost its file");
    stage.still_works().await?;
    stage.end().await
}

async fn k11_a_full_disk_hits_the_limit_inside(stage: Stage) -> Check {
    match stage.sandbox.isolation().limits.disk {
        DiskEnforcement::Quota => {}
        _ => return not_enforced("no disk quota here can be set"),
    }
    let result = stage.sh("head -c 64G /dev/zero > full").await?;
    ensure!(result.stderr_text().contains("space") || result.stderr_text().contains("quota"), "{result:?}");
    stage.still_works().await
}
