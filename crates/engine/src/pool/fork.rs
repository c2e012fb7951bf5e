//! Forks: sandboxes that begin with the files of a snapshot or of another sandbox.

use std::collections::HashSet;

use eyot::internal::run_detached;
use eyot::{
    Error, ErrorKind, Manifest, NewSnapshot, Result, Sandbox, SandboxName, SandboxSpec, SnapshotInfo,
};
use futures_util::future::join_all;

use super::as_provider::PoolProvider;
use super::branch_options::{ForkOptions, ForkSource, ForkedFiles, Forks, SnapshotTaken};
use super::still::StillTerms;

/// Forks that no caller has received yet. Dropping them destroys them.
struct UnclaimedForks(Option<(Forks, Vec<Sandbox>)>);

impl UnclaimedForks {
    fn claim(mut self) -> Result<Forks> {
        let claimed = self.0.take().map(|(forks, _)| forks);
        claimed.ok_or_else(|| Error::new(ErrorKind::Internal, "forks were handed out twice"))
    }
}

impl Drop for UnclaimedForks {
    fn drop(&mut self) {
        let (Some((_, made)), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            if let Err(error) = destroy(made).await {
                tracing::warn!(%error, "undo forks that nobody waits for");
            }
        });
    }
}

/// Destroys all of these. The first failure is returned once all were tried.
async fn destroy(sandboxes: Vec<Sandbox>) -> Result<()> {
    let ended = join_all(sandboxes.iter().map(Sandbox::destroy)).await;
    ended.into_iter().collect()
}

impl PoolProvider {
    /// Makes sandboxes that begin with the files of what [`crate::SandboxPool::fork_source`] found. If one can't be made, or
    /// nobody waits for them any more, none stays.
    pub async fn fork(&self, source: ForkSource, options: ForkOptions) -> Result<Forks> {
        self.pool().require_snapshots("fork")?;
        if options.count == 0 || options.count > ForkOptions::MAX {
            return Err(Error::invalid("count", format!("must be from 1 to {}", ForkOptions::MAX)));
        }
        let provider = self.clone();
        let made = run_detached(async move {
            provider.fork_files(source, &options).await.map(|forks| UnclaimedForks(Some(forks)))
        });
        made.await.and_then(UnclaimedForks::claim)
    }

    async fn fork_files(&self, source: ForkSource, options: &ForkOptions) -> Result<(Forks, Vec<Sandbox>)> {
        // What can be known before is: taking a snapshot may end commands.
        let names = self.names_of_forks(source.name(), options).await?;
        let disk_mib = match &source.0 {
            ForkedFiles::Snapshot(snapshot) => snapshot.spec.limits.disk_mib,
            ForkedFiles::Sandbox(row) => row.spec.limits.disk_mib,
        };
        let fits = self.pool().refuse_more_than_fit(names.len(), disk_mib).await;
        fits.map_err(|error| error.context("fork"))?;
        let (snapshot, stopped) = match source.0 {
            ForkedFiles::Snapshot(snapshot) => (*snapshot, Vec::new()),
            ForkedFiles::Sandbox(row) => {
                let new = NewSnapshot { for_forks: true, ..self.pool().new_snapshot(&row) };
                let terms = StillTerms { stop: options.stop, asleep_only: false };
                let SnapshotTaken { snapshot, stopped } = self.pool().take(*row, new, terms).await?;
                (snapshot, stopped)
            }
        };
        let made = self.fork_snapshot(&snapshot, &names).await?;
        Ok((Forks { names, stopped }, made))
    }

    async fn fork_snapshot(&self, snapshot: &SnapshotInfo, names: &[SandboxName]) -> Result<Vec<Sandbox>> {
        let made = join_all(names.iter().map(|name| {
            self.make(SandboxSpec {
                id: None,
                name: Some(name.clone()),
                hostname: None,
                image: None,
                snapshot: Some(snapshot.id.clone()),
                manifest: Manifest { env: snapshot.spec.manifest.env.clone(), ..Manifest::default() },
                ..snapshot.spec.clone()
            })
        }));
        let (made, failed): (Vec<_>, Vec<_>) = made.await.into_iter().partition(Result::is_ok);
        let made: Vec<Sandbox> = made.into_iter().flatten().collect();
        let Some(error) = failed.into_iter().find_map(Result::err) else { return Ok(made) };
        destroy(made).await?;
        Err(error.context("fork"))
    }

    /// Chooses names that are free: NAME for one with a name, else NAME-1, NAME-2 and so on.
    async fn names_of_forks(&self, source: &SandboxName, options: &ForkOptions) -> Result<Vec<SandboxName>> {
        if let (Some(name), 1) = (&options.name, options.count) {
            self.pool().refuse_in_use(name).await.map_err(|error| error.context("fork"))?;
            return Ok(vec![name.clone()]);
        }
        let taken: HashSet<SandboxName> = self.pool().rows().await?.into_iter().map(|row| row.name).collect();
        let begins = options.name.as_ref().unwrap_or(source).as_str();
        let mut names = Vec::new();
        for number in 1.. {
            let ending = format!("-{number}");
            let kept = begins.len().min(SandboxName::MAX_CHARS - ending.len());
            let name = SandboxName::parse(&format!("{}{ending}", &begins[..kept]))?;
            if !taken.contains(&name) {
                names.push(name);
            }
            if names.len() == options.count {
                break;
            }
        }
        Ok(names)
    }
}
