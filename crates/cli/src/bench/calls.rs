//! Measures a provider by the calls of the contract alone, for one that has no operation of the host
//! or of an Engine to be compared with.

use std::time::Instant;

use eyot::{ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use serde::Serialize;

use super::items::quantile;
use super::memory::{available_kib, resident_kib};
use super::{Item, Items};
use crate::errors::Failure;

const CREATE: Item = Item::plain("create → ready");
const ECHO: Item = Item::plain("exec of a shell line `echo hi`");
const WRITE: Item = Item::plain("write 1 MiB");
const READ: Item = Item::plain("read 1 MiB");
const DESTROY: Item = Item::plain("destroy");
const WHOLE: Item = Item::plain("create + exec + destroy");

/// The number of sandboxes whose commands are measured while all live.
const SAMPLE: usize = 100;

/// Sandboxes of a spec.
pub struct CallRounds<'a> {
    /// The provider of the sandboxes.
    pub provider: &'a dyn SandboxProvider,
    /// What they are made from.
    pub spec: SandboxSpec,
}

/// The costs of many live sandboxes.
#[derive(Debug, Clone, Serialize)]
pub struct LiveCalls {
    /// The number of live sandboxes.
    pub live: usize,
    /// The memory that each took of the host, in KiB. Other programs on the host disturb it.
    pub memory_each_kib: f64,
    /// The resident memory of this process with all of them live, in MiB.
    pub process_memory_mib: f64,
    /// The median time of a create while they were made, in microseconds.
    pub create_p50_us: f64,
    /// The median time of `echo hi` with all of them live, in microseconds.
    pub echo_p50_us: f64,
}

impl CallRounds<'_> {
    /// Runs one round.
    pub async fn round(&self, items: &mut Items) -> Result<(), Failure> {
        let sandbox = self.create(items).await?;
        let used = self.calls(&sandbox, items).await;
        let since = Instant::now();
        sandbox.destroy().await?;
        items.note(DESTROY, since);
        used?;
        let since = Instant::now();
        let sandbox = Sandbox::create(self.provider, self.spec.clone()).await?;
        let echoed = sandbox.exec("echo hi", ExecOptions::default()).await;
        sandbox.destroy().await?;
        echoed?;
        items.note(WHOLE, since);
        Ok(())
    }

    async fn create(&self, items: &mut Items) -> Result<Sandbox, Failure> {
        let since = Instant::now();
        let sandbox = Sandbox::create(self.provider, self.spec.clone()).await?;
        items.note(CREATE, since);
        Ok(sandbox)
    }

    async fn calls(&self, sandbox: &Sandbox, items: &mut Items) -> Result<(), Failure> {
        let since = Instant::now();
        sandbox.exec("echo hi", ExecOptions::default()).await?;
        items.note(ECHO, since);
        let since = Instant::now();
        sandbox.write("file", vec![7; 1 << 20]).await?;
        items.note(WRITE, since);
        let since = Instant::now();
        sandbox.read("file").await?;
        items.note(READ, since);
        Ok(())
    }

    /// Makes `live` sandboxes, measures, and destroys them. Calls `done` after each create.
    pub async fn live(&self, live: usize, done: &dyn Fn()) -> Result<LiveCalls, Failure> {
        let mut made = Vec::with_capacity(live);
        let measured = self.measure_live(live, &mut made, done).await;
        for sandbox in made {
            sandbox.destroy().await?;
        }
        measured
    }

    async fn measure_live(
        &self,
        live: usize,
        made: &mut Vec<Sandbox>,
        done: &dyn Fn(),
    ) -> Result<LiveCalls, Failure> {
        let (before, mut creates, mut echoes) = (available_kib()?, Vec::new(), Vec::new());
        for _ in 0..live {
            let since = Instant::now();
            made.push(Sandbox::create(self.provider, self.spec.clone()).await?);
            creates.push(since.elapsed().as_secs_f64() * 1e6);
            done();
        }
        let memory_each_kib = (before - available_kib()?) / live.max(1) as f64;
        let process_memory_mib = resident_kib()? / 1024.0;
        for sandbox in made.iter().take(SAMPLE) {
            let since = Instant::now();
            sandbox.exec("echo hi", ExecOptions::default()).await?;
            echoes.push(since.elapsed().as_secs_f64() * 1e6);
        }
        let (create_p50_us, echo_p50_us) = (quantile(&creates, 0.5), quantile(&echoes, 0.5));
        Ok(LiveCalls { live, memory_each_kib, process_memory_mib, create_p50_us, echo_p50_us })
    }
}
