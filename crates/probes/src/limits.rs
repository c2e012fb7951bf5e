//! K11: what can't be limited on this host is not promised either.

use std::collections::BTreeSet;
use std::sync::Arc;

use eyot::{DiskEnforcement, Enforcement, Limits, Requirement, Sandbox, SandboxSpec};

use crate::check::{Check, cases, ensure, ensure_fails, not_enforced};
use crate::world::{Stage, World};

cases! {
    k11_a_limit_that_is_required_and_can_not_be_held_refuses_the_create(world);
    k11_a_bomb_of_memory_hits_the_limit_inside(stage);
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

async fn k11_a_bomb_of_memory_hits_the_limit_inside(stage: Stage) -> Check {
    match stage.sandbox.isolation().limits.memory {
        Enforcement::Cgroup => {}
        _ => return not_enforced("no memory cgroup here can be written to"),
    }
    let result = stage.sh("tail -c 16G /dev/zero | tail -n 1 > /dev/null").await?;
    ensure!(!result.success(), "16 GiB fit: {:?}", result.outcome);
    stage.still_works().await
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
