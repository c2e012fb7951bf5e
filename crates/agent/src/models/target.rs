//! The target of a model's requests: its address, its key and its headers.

use std::collections::BTreeMap;

use eyot::{Error, Result};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};

use super::builtin;
use super::facts::{FactRow, ModelFacts};
use super::http_api::HttpApi;
use super::key::KeySource;
use super::registry::{self, ModelProviderSettings, ProviderRegistration};
use super::transport::WireRequest;
use super::wire::{self, WireModel};
use crate::credentials::url_secrets;
use crate::http::header_map;
use crate::model::{DEFAULT_MAX_TOKENS, ModelError, ModelErrorKind, ModelInfo, ModelRequest};
use crate::redaction::register_named;

/// The version of Anthropic's API that requests use. Version 2026-10-21 only refuses fields that are never sent here (sampling,
/// documents in the model's messages, citations in the user's), and other servers with this protocol know the older version.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// The beta header that asks Anthropic for reasoning between tool calls.
const INTERLEAVED_REASONING: &str = "interleaved-thinking-2025-05-14";

/// The target of a model's requests.
pub(super) struct ModelTarget {
    pub(super) model: WireModel,
    url: Url,
    key: KeySource,
    headers: HeaderMap,
}

impl ModelTarget {
    /// Finds the place of `provider/model-id`, with the settings that `own` has for its provider. `invalid`: it has another form,
    /// nobody has the provider, or its address or a header is none.
    pub(super) fn find(name: &str, own: &BTreeMap<String, ModelProviderSettings>) -> Result<Self> {
        let Some((provider, id)) = name.split_once('/') else {
            let form = "write `provider/model-id`, such as `anthropic/claude-haiku-4-5`";
            return Err(Error::invalid("model", format!("`{name}` names no provider: {form}")));
        };
        if id.trim().is_empty() {
            return Err(Error::invalid(
                "model",
                format!("`{name}` names no model: write `{provider}/model-id`"),
            ));
        }
        if let Some(registration) = registry::registration(provider) {
            return Self::registered(provider, id, registration, own);
        }
        let variable = |name: &str| std::env::var(name).ok();
        match builtin::find(provider, id, variable) {
            Some(found) => Self::built_in(found, id, own),
            None => Err(unknown_provider(name, provider)),
        }
    }

    fn registered(
        name: &str,
        id: &str,
        registration: ProviderRegistration,
        own: &BTreeMap<String, ModelProviderSettings>,
    ) -> Result<Self> {
        let facts = registration.models.get(id).copied().unwrap_or_default();
        let slug = registration.provider.as_deref().unwrap_or(name);
        let info = ModelInfo {
            id: id.to_owned(),
            provider: slug.to_owned(),
            api: registration.api,
            context_window: facts.context_window.or(registration.context_window).unwrap_or_default(),
            max_tokens: most_tokens(facts.max_tokens.or(registration.max_tokens)),
            reasoning: facts.reasoning.unwrap_or_default(),
            images: facts.images.unwrap_or_default(),
            prices: facts.prices.or(registration.prices).unwrap_or_default(),
        };
        let settings = settings_of(slug, own);
        let base_url = settings.base_url.as_deref().unwrap_or(&registration.base_url);
        let key = settings.api_key.clone().or(registration.api_key);
        // A key of the environment is for its vendor, and no other server gets it.
        let is_own = builtin::vendor_of(base_url) == Some(slug);
        let key = match key {
            Some(key) => KeySource::Given(key),
            None if is_own => KeySource::of_environment(slug),
            None => KeySource::None,
        };
        Self::new(info, None, base_url, key, registration.headers, &settings)
    }

    fn built_in(
        found: builtin::BuiltinProvider,
        id: &str,
        own: &BTreeMap<String, ModelProviderSettings>,
    ) -> Result<Self> {
        let settings = settings_of(found.name, own);
        let info = built_in_info(&found, id);
        let base_url = settings.base_url.as_deref().unwrap_or(&found.base_url);
        let key = match (settings.api_key.clone(), found.key_variable) {
            (Some(key), _) => KeySource::Given(key),
            (None, Some(name)) => KeySource::Variable { name, is_needed: builtin::is_vendors(base_url) },
            (None, None) => KeySource::None,
        };
        Self::new(info, found.row, base_url, key, BTreeMap::new(), &settings)
    }

    fn new(
        info: ModelInfo,
        row: Option<&FactRow>,
        base_url: &str,
        key: KeySource,
        headers: BTreeMap<String, String>,
        settings: &ModelProviderSettings,
    ) -> Result<Self> {
        let api = HttpApi::of(info.api).ok_or_else(|| {
            let reason = format!("of the provider `{}` is not an HTTP API", info.provider);
            Error::invalid("api", reason)
        })?;
        let url = endpoint(&info, api, base_url)?;
        // One of the environment was not registered.
        url_secrets(&url).iter().for_each(|(name, value)| register_named(name, value));
        let all = headers.into_iter().chain(settings.headers.clone());
        let headers = header_map(&all.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())?;
        let model = WireModel {
            info,
            api,
            style: row.and_then(|row| row.style),
            is_vendors: builtin::is_vendors(url.as_str()),
            store: settings.store_responses.unwrap_or_default(),
        };
        Ok(Self { model, url, key, headers })
    }

    /// Returns the request for a turn. [`crate::ModelErrorKind::Unauthorized`]: the key is missing. [`crate::ModelErrorKind::Invalid`]:
    /// the vendor is known to refuse it.
    pub(super) fn request(&self, request: &ModelRequest) -> Result<WireRequest, ModelError> {
        wire::check(&self.model, request)?;
        let mut headers = self.own_headers(request);
        if let Some(key) = self.key_header()? {
            headers.insert(self.key_name(), key);
        }
        headers.extend(self.headers.clone());
        Ok(WireRequest { url: self.url.clone(), headers, body: wire::body(&self.model, request) })
    }

    /// Returns the header with the key, if there is a key and no registered header in its place.
    /// [`crate::ModelErrorKind::Unauthorized`]: the key is missing.
    pub(super) fn key_header(&self) -> Result<Option<HeaderValue>, ModelError> {
        if self.headers.contains_key(self.key_name()) {
            return Ok(None);
        }
        let key = self.key.read(&self.model.info.provider)?;
        key.map(|key| self.key_value(key.expose())).transpose()
    }

    /// Returns the headers in addition to the registered ones.
    fn own_headers(&self, request: &ModelRequest) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // An id that no header can have is left out.
        let mut add = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        match self.model.api {
            HttpApi::Messages => {
                add("anthropic-version", ANTHROPIC_VERSION);
                if wire::anthropic::wants_interleaved_reasoning(&self.model) {
                    add("anthropic-beta", INTERLEAVED_REASONING);
                }
            }
            HttpApi::Responses => {
                if let Some(session_id) = &request.session_id {
                    add("session_id", session_id);
                    add("x-client-request-id", session_id);
                }
            }
            HttpApi::Completions => {}
        }
        headers
    }

    /// The header that has the key.
    fn key_name(&self) -> &'static str {
        match self.model.api {
            HttpApi::Messages => "x-api-key",
            HttpApi::Completions | HttpApi::Responses => "authorization",
        }
    }

    fn key_value(&self, key: &str) -> Result<HeaderValue, ModelError> {
        let value = match self.model.api {
            HttpApi::Messages => HeaderValue::from_str(key),
            HttpApi::Completions | HttpApi::Responses => HeaderValue::from_str(&format!("Bearer {key}")),
        };
        let provider = &self.model.info.provider;
        let mut value = value.map_err(|_| {
            let message =
                format!("the key of the provider `{provider}` has a character that no header can have");
            ModelError::new(ModelErrorKind::Invalid, message)
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The settings of a provider. What `own` leaves out is as for the whole process, unless it has an address of its own: the
/// process's key and headers are not for that.
fn settings_of(provider: &str, own: &BTreeMap<String, ModelProviderSettings>) -> ModelProviderSettings {
    let usual = registry::settings(provider);
    let Some(own) = own.get(provider).cloned() else { return usual };
    own.api_key.iter().for_each(super::ApiKey::remember);
    if own.base_url.is_some() {
        return own;
    }
    ModelProviderSettings {
        base_url: usual.base_url,
        headers: usual.headers.into_iter().chain(own.headers).collect(),
        api_key: own.api_key.or(usual.api_key),
        store_responses: own.store_responses.or(usual.store_responses),
    }
}

fn built_in_info(found: &builtin::BuiltinProvider, id: &str) -> ModelInfo {
    let facts = found.row.map(|row| ModelFacts {
        context_window: Some(row.context_window),
        max_tokens: Some(row.max_tokens),
        reasoning: Some(row.style.is_some()),
        images: Some(true),
        prices: Some(row.prices),
    });
    let facts = facts.unwrap_or_default();
    ModelInfo {
        id: id.to_owned(),
        provider: found.name.to_owned(),
        api: found.api,
        context_window: facts.context_window.unwrap_or_default(),
        max_tokens: most_tokens(facts.max_tokens),
        reasoning: facts.reasoning.unwrap_or_default(),
        // All current models of the vendors accept images. Those of other servers may not.
        images: facts.images.unwrap_or(builtin::is_vendors(&found.base_url)),
        prices: facts.prices.unwrap_or_default(),
    }
}

/// Returns the output limit, or the default if it is unknown or zero.
fn most_tokens(known: Option<u32>) -> u32 {
    known.filter(|most| *most > 0).unwrap_or(DEFAULT_MAX_TOKENS)
}

/// Returns the address of the API below the provider's address. A query stays behind it.
fn endpoint(info: &ModelInfo, api: HttpApi, base_url: &str) -> Result<Url> {
    let no_address = || {
        let reason = "must be an address that begins with `http://` or `https://`";
        Error::invalid("base_url", format!("of the provider `{}` {reason}", info.provider))
    };
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let mut url = Url::parse(base_url).ok().filter(is_http).ok_or_else(no_address)?;
    let path: &[&str] = match api {
        HttpApi::Messages => &["v1", "messages"],
        HttpApi::Completions => &["chat", "completions"],
        HttpApi::Responses => &["responses"],
    };
    // Users write addresses for Anthropic's API with and without the version.
    let has_version = api == HttpApi::Messages && url.path().trim_end_matches('/').ends_with("/v1");
    let mut parts = url.path_segments_mut().map_err(|()| no_address())?;
    parts.pop_if_empty();
    if has_version {
        parts.pop();
    }
    parts.extend(path);
    drop(parts);
    Ok(url)
}

fn unknown_provider(name: &str, provider: &str) -> Error {
    let mut names = registry::registered_names();
    names.extend(builtin::NAMES.map(str::to_owned));
    names.sort();
    names.dedup();
    let known = names.join(", ");
    Error::invalid("model", format!("`{name}` names the provider `{provider}`, which is not one of {known}"))
        .with_hint(
            "`[models.NAME]` of the configuration adds a provider, and so does `register_provider` in Rust",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelApi;

    fn registered(api: ModelApi, slug: &str, base_url: &str) -> ModelTarget {
        let mut registration = ProviderRegistration::new(api, base_url);
        registration.provider = Some(slug.to_owned());
        ModelTarget::registered("lab", "m", registration, &BTreeMap::new()).unwrap()
    }

    #[test]
    fn the_key_of_the_environment_goes_to_its_vendor_alone() {
        let has_key = |slug: &str, base_url: &str| {
            let target = registered(ModelApi::OpenaiCompletions, slug, base_url);
            matches!(target.key, KeySource::Variable { .. })
        };
        assert!(!has_key("openai", "http://gpu-box:8000/v1"));
        assert!(!has_key("openai", "http://api.openai.com/v1"));
        assert!(!has_key("anthropic", "https://gateway.example.com"));
        assert!(!has_key("anthropic", "https://api.openai.com/v1"));
        assert!(has_key("openai", "https://eu.api.openai.com/v1"));
        assert!(has_key("anthropic", "https://api.anthropic.com"));
    }

    #[test]
    fn the_path_of_the_api_goes_before_the_query_of_an_address() {
        let url = |api, base_url: &str| registered(api, "lab", base_url).url.to_string();
        let (messages, completions, responses) =
            (ModelApi::AnthropicMessages, ModelApi::OpenaiCompletions, ModelApi::OpenaiResponses);
        assert_eq!(
            url(completions, "https://x.openai.azure.com/openai/v1?api-version=preview"),
            "https://x.openai.azure.com/openai/v1/chat/completions?api-version=preview"
        );
        assert_eq!(url(responses, "http://host/v1/"), "http://host/v1/responses");
        assert_eq!(url(completions, "http://host"), "http://host/chat/completions");
        for base in ["http://host/a", "http://host/a/v1", "http://host/a/v1/"] {
            assert_eq!(url(messages, base), "http://host/a/v1/messages");
        }
    }
}
