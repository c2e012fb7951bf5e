//! The providers of this process: those that are registered, and settings for any.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{LazyLock, PoisonError, RwLock};

use reqwest::Url;
use serde::Deserialize;

use super::facts::ModelFacts;
use super::secret::ApiKey;
use crate::credentials::{REDACTED, url_secrets};
use crate::http::shown_url;
use crate::model::ModelApi;
use crate::redaction::register_named;
use crate::usage::TokenPrices;

/// A provider as it is registered: an address, the protocol that it speaks, and facts about its models.
///
/// ```
/// use eyot_agent::{ModelApi, ProviderRegistration, register_provider};
///
/// let mut lab = ProviderRegistration::new(ModelApi::OpenaiCompletions, "http://127.0.0.1:8000/v1");
/// lab.context_window = Some(32_768);
/// register_provider("lab", lab);
/// assert_eq!(eyot_agent::resolve_model("lab/qwen3")?.info().context_window, 32_768);
/// # Ok::<(), eyot::Error>(())
/// ```
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ProviderRegistration {
    /// The protocol.
    pub api: ModelApi,
    /// The address below which the protocol's paths are, such as `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    /// The key. Without one, none is sent, except for the vendor's own address under the vendor's name: that takes the key of
    /// the environment.
    #[serde(default)]
    pub api_key: Option<ApiKey>,
    /// Headers of each request. They may replace those that are sent anyway.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The provider's name in messages, events and [`configure_provider`]; `None`: the name by which it is registered.
    #[serde(default)]
    pub provider: Option<String>,
    /// The most tokens of a conversation with each of its models; `None`: it is not known.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// The most tokens that each of its models writes in one turn; `None`: [`crate::DEFAULT_MAX_TOKENS`].
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// The prices of each of its models; `None`: they cost nothing.
    #[serde(default)]
    pub prices: Option<TokenPrices>,
    /// What holds for single models, by their id. A model that is not here can be used too.
    #[serde(default)]
    pub models: BTreeMap<String, ModelFacts>,
}

/// Settings for a provider, whether built in or registered.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelProviderSettings {
    /// Another address. The protocol stays.
    pub base_url: Option<String>,
    /// More headers. They replace those of the registration that have the same name.
    pub headers: BTreeMap<String, String>,
    /// Another key.
    pub api_key: Option<ApiKey>,
    /// OpenAI may keep the answers of its responses API; `None`: it may not.
    pub store_responses: Option<bool>,
}

#[derive(Default)]
struct ProviderTables {
    registrations: HashMap<String, ProviderRegistration>,
    settings: HashMap<String, ModelProviderSettings>,
}

static PROVIDERS: LazyLock<RwLock<ProviderTables>> = LazyLock::new(RwLock::default);

/// Registers a provider for the whole process: `name/any-model-id` resolves to a model of it. A later registration of the name
/// takes its place, and one with the name of a provider that is built in takes that one's. Models that were resolved before
/// stay as they are.
pub fn register_provider(name: impl Into<String>, registration: ProviderRegistration) {
    registration.api_key.iter().for_each(ApiKey::remember);
    register_credentials(&registration.headers, Some(&registration.base_url));
    let mut tables = PROVIDERS.write().unwrap_or_else(PoisonError::into_inner);
    tables.registrations.insert(name.into(), registration);
}

/// Sets another address, key or headers for the models of a provider, for the whole process. Later settings take the place of
/// earlier ones as a whole. Models that were resolved before stay as they are.
pub fn configure_provider(provider: impl Into<String>, settings: ModelProviderSettings) {
    settings.api_key.iter().for_each(ApiKey::remember);
    register_credentials(&settings.headers, settings.base_url.as_deref());
    let mut tables = PROVIDERS.write().unwrap_or_else(PoisonError::into_inner);
    tables.settings.insert(provider.into(), settings);
}

/// Finds the provider that is registered by a name.
pub(super) fn registration(name: &str) -> Option<ProviderRegistration> {
    PROVIDERS.read().unwrap_or_else(PoisonError::into_inner).registrations.get(name).cloned()
}

/// The settings of a provider.
pub(super) fn settings(provider: &str) -> ModelProviderSettings {
    let tables = PROVIDERS.read().unwrap_or_else(PoisonError::into_inner);
    tables.settings.get(provider).cloned().unwrap_or_default()
}

/// The names by which providers are registered.
pub(super) fn registered_names() -> Vec<String> {
    PROVIDERS.read().unwrap_or_else(PoisonError::into_inner).registrations.keys().cloned().collect()
}

/// Registers the credentials of headers and of an address as secrets.
fn register_credentials(headers: &BTreeMap<String, String>, base_url: Option<&str>) {
    headers.iter().for_each(|(name, value)| register_named(name, value));
    if let Some(url) = base_url.and_then(|url| Url::parse(url).ok()) {
        url_secrets(&url).iter().for_each(|(name, value)| register_named(name, value));
    }
}

impl ProviderRegistration {
    /// A provider that speaks this protocol at this address, with no key and no facts.
    pub fn new(api: ModelApi, base_url: impl Into<String>) -> Self {
        Self {
            api,
            base_url: base_url.into(),
            api_key: None,
            headers: BTreeMap::new(),
            provider: None,
            context_window: None,
            max_tokens: None,
            prices: None,
            models: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for ProviderRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderRegistration")
            .field("api", &self.api)
            .field("base_url", &HiddenUrl(&self.base_url))
            .field("api_key", &self.api_key)
            .field("headers", &HiddenHeaders(&self.headers))
            .field("provider", &self.provider)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelProviderSettings")
            .field("base_url", &self.base_url.as_deref().map(HiddenUrl))
            .field("api_key", &self.api_key)
            .field("headers", &HiddenHeaders(&self.headers))
            .field("store_responses", &self.store_responses)
            .finish()
    }
}

/// Headers without their values.
struct HiddenHeaders<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for HiddenHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, REDACTED))).finish()
    }
}

/// An address without user, password, query and long parts of its path.
struct HiddenUrl<'a>(&'a str);

impl fmt::Debug for HiddenUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Url::parse(self.0) {
            Ok(url) => write!(f, "{:?}", shown_url(&url)),
            Err(_) => f.write_str("\"(no address)\""),
        }
    }
}
