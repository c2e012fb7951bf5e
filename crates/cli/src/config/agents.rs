//! `[agents]`, `[models.PROVIDER]` and `[pools.NAME.models.PROVIDER]` of a configuration file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use eyot_agent::{
    Budget, FileAgentSettings, ModelApi, ModelProviderSettings, ProviderRegistration, configure_provider,
    register_provider,
};
use serde::Deserialize;

use super::Span;

/// The most turns of a run on a server where nothing is said: no task needs as many, and a model that goes round in
/// circles is ended some day.
const DEFAULT_MAX_TURNS: u64 = 500;

/// The agents of a server.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// The folder of the agents' files, as `--agents`.
    pub folder: Option<PathBuf>,
    /// The model of agents whose file names none, as `--model`.
    pub model: Option<String>,
    /// The most turns of a run. By default 500.
    pub max_turns: Option<u64>,
    /// The most tokens of a run, read and written.
    pub max_tokens: Option<u64>,
    /// The longest time of a run, with its unit.
    pub max_time: Option<Span>,
    /// The highest price of a run.
    pub max_cost: Option<f64>,
    /// The most active runs of a pool.
    pub max_active_runs: Option<usize>,
}

/// The providers of models, by their names.
pub type ModelProviders = BTreeMap<String, ConfiguredModels>;

/// A provider of models: settings of a known one or, with `api`, a new one.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfiguredModels {
    /// The protocol of a new provider: `anthropic-messages`, `openai-completions` or `openai-responses`.
    pub api: Option<ModelApi>,
    /// The address.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Option<String>,
    /// Additional headers of each request.
    pub headers: BTreeMap<String, String>,
    /// The most tokens of a conversation, of a new provider.
    pub context_window: Option<u64>,
}

/// The settings of one pool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfiguredPool {
    /// The providers of models, for the pool's runs.
    pub models: ModelProviders,
}

impl fmt::Debug for ConfiguredModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Key, headers and address may be secret.
        f.debug_struct("ConfiguredModels").field("api", &self.api).finish_non_exhaustive()
    }
}

impl AgentSettings {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            folder: self.folder.or(below.folder),
            model: self.model.or(below.model),
            max_turns: self.max_turns.or(below.max_turns),
            max_tokens: self.max_tokens.or(below.max_tokens),
            max_time: self.max_time.or(below.max_time),
            max_cost: self.max_cost.or(below.max_cost),
            max_active_runs: self.max_active_runs.or(below.max_active_runs),
        }
    }

    /// Returns the settings of agents that are files.
    pub fn of_files(
        &self,
        provider: &str,
        model: Option<&str>,
        pools: &BTreeMap<String, ConfiguredPool>,
    ) -> FileAgentSettings {
        let own = |pool: &ConfiguredPool| {
            let models = pool.models.iter();
            models.map(|(name, models)| (name.clone(), models.settings())).collect()
        };
        FileAgentSettings {
            provider: Some(provider.to_owned()),
            default_model: model.map(str::to_owned).or_else(|| self.model.clone()),
            budget: Budget {
                max_turns: Some(self.max_turns.unwrap_or(DEFAULT_MAX_TURNS)),
                max_tokens: self.max_tokens,
                max_duration_ms: self.max_time.map(Span::ms),
                max_cost: self.max_cost,
            },
            providers_of_pools: pools.iter().map(|(name, pool)| (name.clone(), own(pool))).collect(),
        }
    }
}

impl ConfiguredModels {
    fn settings(&self) -> ModelProviderSettings {
        let mut settings = ModelProviderSettings::default();
        settings.base_url = self.base_url.clone();
        settings.api_key = self.api_key.as_deref().map(Into::into);
        settings.headers = self.headers.clone();
        settings
    }

    /// Returns why the settings can't be used.
    fn objection(&self, is_of_pool: bool) -> Option<&'static str> {
        match self.api {
            Some(_) if is_of_pool => {
                Some("a pool can't have a provider of its own: `api` belongs to [models]")
            }
            Some(_) if self.base_url.is_none() => Some("a provider with `api` needs a `base_url`"),
            None if self.context_window.is_some() => Some("`context_window` is for a provider with `api`"),
            _ => None,
        }
    }
}

/// Refuses providers that can't be used.
pub(super) fn check(models: &ModelProviders, pools: &BTreeMap<String, ConfiguredPool>) -> Result<(), String> {
    let of_all = models.iter().map(|(name, models)| (format!("models.{name}"), models, false));
    let of_pools = pools.iter().flat_map(|(pool, settings)| {
        let models = settings.models.iter();
        models.map(move |(name, models)| (format!("pools.{pool}.models.{name}"), models, true))
    });
    for (place, models, is_of_pool) in of_all.chain(of_pools) {
        if let Some(objection) = models.objection(is_of_pool) {
            return Err(format!("[{place}]: {objection}"));
        }
    }
    Ok(())
}

/// Sets the configured providers of models for this process.
pub fn configure_models(models: &ModelProviders) {
    for (name, models) in models {
        match (models.api, &models.base_url) {
            (Some(api), Some(base_url)) => {
                let mut registration = ProviderRegistration::new(api, base_url);
                registration.api_key = models.api_key.as_deref().map(Into::into);
                registration.headers = models.headers.clone();
                registration.context_window = models.context_window;
                register_provider(name, registration);
            }
            _ => configure_provider(name, models.settings()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_on_a_server_has_a_limit_of_turns_of_its_own_or_the_default_one() {
        let turns = |max_turns| {
            let settings = AgentSettings { max_turns, ..AgentSettings::default() };
            settings.of_files("native", None, &BTreeMap::new()).budget.max_turns
        };
        assert_eq!(turns(None), Some(500));
        assert_eq!(turns(Some(9_000)), Some(9_000));
    }
}
