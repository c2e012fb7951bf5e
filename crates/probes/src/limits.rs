//! K11: what can't be limited on this host is not promised either.

use std::collections::BTreeSet;
use std::sync::Arc;

use eyot::{DiskEnforcement, Enforcement, ExecOptions, Limits, Outcome, Requirement, Sandbox, SandboxSpec};

use crate::check::{Check, cases, ensure, ensure_fails, not_enforced};
use crate::world::World;

cases! {
    k11_a_limit_that_is_required_and_can_not_be_held_refuses_the_create(world);
    k11_a_bomb_of_memory_hits_the_limit_inside(world);
    k11_a_full_disk_hits_the_limit_inside(world);
}

async fn k11_a_limit_that_is_required_and_can_not_be_held_refuses_the_create(world: Arc<World>) -> Check {
    let limits = Limits { memory_mib: Some(64), cpus: Some(1.0), disk_mib: Some(64), ..Limits::default() };
    let asked = SandboxSpec { limits, ..world.plain_spec() };
    let stage = world.stage_of(asked.clone()).await?;
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
        let spec = SandboxSpec { require: BTreeSet::from([requirement]), ..asked.clone() };
        let made = Sandbox::create(world.provider(), spec).await;
        if holds { made?.destroy().await? } else { ensure_fails!(made, Unsupported) }
    }
    Ok(())
}

/// The bomb is in a sandbox with little memory; the stage is its sibling, and the bomb is larger
/// than what both have.
async fn k11_a_bomb_of_memory_hits_the_limit_inside(world: Arc<World>) -> Check {
    let limits = Limits { memory_mib: Some(64), ..Limits::default() };
    let bombed = Sandbox::create(world.provider(), SandboxSpec { limits, ..world.plain_spec() }).await?;
    if bombed.isolation().limits.memory != Enforcement::Cgroup {
        bombed.destroy().await?;
        return not_enforced("no memory cgroup here can be written to");
    }
    let stage = world.stage().await?;
    stage.sandbox.write("kept", "the sibling's").await?;
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

/// Fills the disk as each user in turn: root inside has no reserve either. The sibling has a disk
/// of its own, as small.
async fn k11_a_full_disk_hits_the_limit_inside(world: Arc<World>) -> Check {
    let limits = Limits { disk_mib: Some(64), ..world.spec().limits };
    let spec = SandboxSpec { limits, ..world.spec() };
    let (stage, sibling) = (world.stage_of(spec.clone()).await?, world.stage_of(spec).await?);
    if stage.sandbox.isolation().limits.disk != DiskEnforcement::Quota {
        stage.end().await?;
        sibling.end().await?;
        return not_enforced("a disk quota needs root, loop devices and mkfs.ext4");
    }
    for user in stage.everybody() {
        let result = stage.sh_as(user, "head -c 64G /dev/zero > /tmp/full").await?;
        let said = result.stderr_text();
        ensure!(said.contains("space") || said.contains("quota"), "{user}: {result:?}");
        let files =
            "mkdir -p /tmp/many; i=0; while echo x > /tmp/many/$i; do i=$((i + 1)); done 2>/dev/null; exit 1";
        ensure!(!stage.sh_as(user, files).await?.success(), "{user}: files without end");
        sibling.sandbox.write("as before", vec![1_u8; 16 << 20]).await?;
        ensure!(stage.sh_as(user, "rm -rf /tmp/full /tmp/many").await?.success(), "{user}: remove them");
    }
    sibling.still_works().await?;
    sibling.end().await?;
    stage.still_works().await?;
    stage.end().await
}
