//! Changes of a sandbox of a pool: its labels, its deadlines, the rules of its network.

use std::collections::BTreeMap;

use super::as_provider::PoolProvider;
use eyot::internal::{check_labels, check_lifecycle, check_rules, run_detached};
use eyot::{Lifecycle, Result, SandboxSpec};
use eyot_egress::EgressRules;

/// Changes of a sandbox. A field that is `None` stays as it is.
#[derive(Debug, Default, Clone)]
pub struct Changes {
    /// Labels to set; those without a value are removed.
    pub labels: BTreeMap<String, Option<String>>,
    /// The deadlines; see [`Sandbox::set_lifecycle`](eyot::Sandbox::set_lifecycle).
    pub lifecycle: Option<Lifecycle>,
    /// The rules of its network; see [`Sandbox::set_egress_rules`](eyot::Sandbox::set_egress_rules).
    pub egress: Option<EgressRules>,
}

impl Changes {
    fn check(&self, now: &SandboxSpec) -> Result<()> {
        let mut changed = now.clone();
        self.relabel(&mut changed);
        check_labels(&changed.labels)?;
        self.lifecycle.as_ref().map_or(Ok(()), check_lifecycle)?;
        self.egress.as_ref().map_or(Ok(()), check_rules)
    }

    fn relabel(&self, spec: &mut SandboxSpec) {
        for (key, value) in &self.labels {
            match value {
                Some(value) => spec.labels.insert(key.clone(), value.clone()),
                None => spec.labels.remove(key),
            };
        }
    }
}

impl PoolProvider {
    /// Changes a sandbox of the pool, by id or name. One whose deadlines or rules are to change is woken. What can't be as it
    /// is asked for changes nothing; where the provider fails in the middle, rules come before deadlines and those before
    /// labels.
    pub async fn change(&self, id_or_name: &str, changes: Changes) -> Result<()> {
        let (provider, sandbox) = (self.pool().as_provider(), id_or_name.to_owned());
        run_detached(async move { provider.change_inline(&sandbox, changes).await }).await
    }

    async fn change_inline(&self, id_or_name: &str, changes: Changes) -> Result<()> {
        let row = self.pool().live_row(id_or_name).await?;
        changes.check(&row.spec)?;
        if changes.egress.is_some() || changes.lifecycle.is_some() {
            let sandbox = self.find_awake(row.id.as_str()).await?;
            if let Some(rules) = &changes.egress {
                sandbox.set_egress_rules(rules).await?;
            }
            if let Some(lifecycle) = &changes.lifecycle {
                sandbox.set_lifecycle(lifecycle).await?;
            }
        }
        let change = move |spec: &mut SandboxSpec| {
            changes.relabel(spec);
            spec.lifecycle = changes.lifecycle.unwrap_or_else(|| spec.lifecycle.clone());
            spec.egress = changes.egress.unwrap_or_else(|| spec.egress.clone());
        };
        self.pool().inner.records.ask(move |store| store.change_spec(&row.id, change)).await.map(drop)
    }
}
