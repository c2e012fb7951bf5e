//! The registered providers of this process, and settings for all providers.

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

/// The registration of a provider: its address, its protocol, and facts about its models.
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
    /// The base address of the protocol's paths, such as `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    /// The key. Without one, none is sent, except for the vendor's own address under the vendor's name: that takes the key of
    /// the environment.
    #[serde(default)]
    pub api_key: Option<ApiKey>,
    /// Headers of each request. They may replace the default headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The provider's name in messages, events and [`configure_provider`]; `None`: the name of the registration.
    #[serde(default)]
    pub provider: Option<String>,
    /// The most tokens of a conversation with each of its models; `None`: unknown.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// The most tokens that each of its models writes in one turn; `None`: [`crate::DEFAULT_MAX_TOKENS`].
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// The prices of each of its models; `None`: they cost nothing.
    #[serde(default)]
    pub prices: Option<TokenPrices>,
    /// Facts about single models, by their id. Models that are not listed can be used too.
    #[serde(default)]
    pub models: BTreeMap<String, ModelFacts>,
}

/// Settings for a built-in or registered provider.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelProviderSettings {
    /// The address, instead of the provider's. The protocol stays the same.
    pub base_url: Option<String>,
    /// Additional headers. They replace headers of the registration with the same name.
    pub headers: BTreeMap<String, String>,
    /// The key, instead of the provider's.
    pub api_key: Option<ApiKey>,
    /// Set if OpenAI may store the answers of its responses API; `None`: it may not.
    pub store_responses: Option<bool>,
}

#[derive(Default)]
struct ProviderTables {
    registrations: HashMap<String, ProviderRegistration>,
    settings: HashMap<String, ModelProviderSettings>,
}

static PROVIDERS: LazyLock<RwLock<ProviderTables>> = LazyLock::new(RwLock::default);

/// Registers a provider for the whole process: `name/any-model-id` then resolves to one of its models. A registration replaces
/// an earlier one, or a built-in provider, with the same name. Models that were resolved before do not change.
pub fn register_provider(name: impl Into<String>, registration: ProviderRegistration) {
    registration.api_key.iter().for_each(ApiKey::remember);
    register_credentials(&registration.headers, Some(&registration.base_url));
    let mut tables = PROVIDERS.write().unwrap_or_else(PoisonError::into_inner);
    tables.registrations.insert(name.into(), registration);
}

/// Sets the address, key or headers of a provider's models, for the whole process. New settings replace all earlier settings
/// of the provider. Models that were resolved before do not change.
pub fn configure_provider(provider: impl Into<String>, settings: ModelProviderSettings) {
    settings.api_key.iter().for_each(ApiKey::remember);
    register_credentials(&settings.headers, settings.base_url.as_deref());
    let mut tables = PROVIDERS.write().unwrap_or_else(PoisonError::into_inner);
    tables.settings.insert(provider.into(), settings);
}

/// Finds the provider that is registered under a name.
pub(super) fn registration(name: &str) -> Option<ProviderRegistration> {
    PROVIDERS.read().unwrap_or_else(PoisonError::into_inner).registrations.get(name).cloned()
}

/// Returns the settings of a provider.
pub(super) fn settings(provider: &str) -> ModelProviderSettings {
    let tables = PROVIDERS.read().unwrap_or_else(PoisonError::into_inner);
    tables.settings.get(provider).cloned().unwrap_or_default()
}

/// Returns the names of the registered providers.
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
    /// Creates a registration without a key and without facts.
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
            .field("base_url", &RedactedUrl(&self.base_url))
            .field("api_key", &self.api_key)
            .field("headers", &RedactedHeaders(&self.headers))
            .field("provider", &self.provider)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelProviderSettings")
            .field("base_url", &self.base_url.as_deref().map(RedactedUrl))
            .field("api_key", &self.api_key)
            .field("headers", &RedactedHeaders(&self.headers))
            .field("store_responses", &self.store_responses)
            .finish()
    }
}

/// A `Debug` view of headers without their values.
struct RedactedHeaders<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for RedactedHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, REDACTED))).finish()
    }
}

/// An address without user, password, query and long parts of its path.
struct RedactedUrl<'a>(&'a str);

impl fmt::Debug for RedactedUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Url::parse(self.0) {
            Ok(url) => write!(f, "{:?}", shown_url(&url)),
            Err(_) => f.write_str("\"(no address)\""),
        }
    }
}
