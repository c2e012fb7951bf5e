//! The place where a model is: its address, its key and its headers.

use std::collections::BTreeMap;

use eyot::{Error, Result};
use reqwest::Url;
use reqwest::header::HeaderValue;

use super::builtin;
use super::facts::{FactRow, ModelFacts};
use super::key::KeySource;
use super::registry::{self, ModelProviderSettings, ProviderRegistration};
use super::transport::WireRequest;
use super::wire::{self, WireModel};
use crate::model::{DEFAULT_MAX_TOKENS, ModelApi, ModelError, ModelInfo, ModelRequest};

/// The version of Anthropic's API whose requests are made here. 2026-10-21 refuses fields that are never sent here (sampling,
/// documents in the model's messages, citations in the user's); other servers that speak the protocol know the older one.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Asks Anthropic for reasoning between tool calls.
const INTERLEAVED_REASONING: &str = "interleaved-thinking-2025-05-14";

/// The place where a model is.
pub(super) struct ModelTarget {
    pub(super) model: WireModel,
    url: String,
    key: KeySource,
    headers: BTreeMap<String, String>,
}

impl ModelTarget {
    /// Finds the place of `provider/model-id`. `invalid`: it has another form, nobody has the provider, or its address is none.
    pub(super) fn find(name: &str) -> Result<Self> {
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
            return Self::registered(provider, id, registration);
        }
        let variable = |name: &str| std::env::var(name).ok();
        match builtin::find(provider, id, variable) {
            Some(found) => Self::built_in(found, id),
            None => Err(unknown_provider(name, provider)),
        }
    }

    fn registered(name: &str, id: &str, registration: ProviderRegistration) -> Result<Self> {
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
        let settings = registry::settings(slug);
        let base_url = settings.base_url.as_deref().unwrap_or(&registration.base_url);
        let key = settings.api_key.clone().or(registration.api_key);
        let key = key.map_or_else(|| KeySource::of_environment(slug), KeySource::Given);
        Self::new(info, None, base_url, key, registration.headers, &settings)
    }

    fn built_in(found: builtin::BuiltinProvider, id: &str) -> Result<Self> {
        let settings = registry::settings(found.name);
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
        let url = endpoint(&info, base_url)?;
        let all = headers.into_iter().chain(settings.headers.clone());
        let headers = all.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let model = WireModel {
            info,
            style: row.and_then(|row| row.style),
            is_vendors: builtin::is_vendors(&url),
            store: settings.store_responses.unwrap_or_default(),
        };
        Ok(Self { model, url, key, headers })
    }

    /// The request for a turn. [`crate::ModelErrorKind::Unauthorized`]: the key is missing. [`crate::ModelErrorKind::Invalid`]:
    /// the vendor is known to refuse it.
    pub(super) fn request(&self, request: &ModelRequest) -> Result<WireRequest, ModelError> {
        wire::check(&self.model, request)?;
        let mut headers = self.own_headers(request);
        let (name, _) = self.key_header("");
        if !self.headers.contains_key(name)
            && let Some(key) = self.key.read(&self.model.info.provider)?
        {
            let (name, value) = self.key_header(key.expose());
            headers.insert(name.to_owned(), value);
        }
        headers.extend(self.headers.clone());
        Ok(WireRequest {
            url: self.url.clone(),
            headers: headers.into_iter().collect(),
            body: wire::body(&self.model, request),
        })
    }

    /// The headers beside those that were registered.
    fn own_headers(&self, request: &ModelRequest) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::new();
        let mut add = |name: &str, value: &str| headers.insert(name.to_owned(), value.to_owned());
        match self.model.info.api {
            ModelApi::AnthropicMessages => {
                add("anthropic-version", ANTHROPIC_VERSION);
                if wire::anthropic::wants_interleaved_reasoning(&self.model) {
                    add("anthropic-beta", INTERLEAVED_REASONING);
                }
            }
            ModelApi::OpenaiResponses => {
                let is_value = |id: &&String| HeaderValue::from_str(id).is_ok();
                if let Some(session_id) = request.session_id.as_ref().filter(is_value) {
                    add("session_id", session_id);
                    add("x-client-request-id", session_id);
                }
            }
            ModelApi::OpenaiCompletions | ModelApi::InProcess => {}
        }
        headers
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        match self.model.info.api {
            ModelApi::AnthropicMessages => ("x-api-key", key.to_owned()),
            _ => ("authorization", format!("Bearer {key}")),
        }
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
        // Each current model of the vendors sees images; one of another server may not.
        images: facts.images.unwrap_or(builtin::is_vendors(&found.base_url)),
        prices: facts.prices.unwrap_or_default(),
    }
}

/// Zero means that nobody knows.
fn most_tokens(known: Option<u32>) -> u32 {
    known.filter(|most| *most > 0).unwrap_or(DEFAULT_MAX_TOKENS)
}

/// The address of the API below that of the provider.
fn endpoint(info: &ModelInfo, base_url: &str) -> Result<String> {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if Url::parse(base_url).ok().filter(is_http).is_none() {
        let form = "is no address that begins with `http://` or `https://`";
        return Err(Error::invalid("base_url", format!("of the provider `{}` {form}", info.provider)));
    }
    let base = base_url.trim_end_matches('/');
    match info.api {
        // Addresses for Anthropic's API are written with and without the version.
        ModelApi::AnthropicMessages => {
            Ok(format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base)))
        }
        ModelApi::OpenaiCompletions => Ok(format!("{base}/chat/completions")),
        ModelApi::OpenaiResponses => Ok(format!("{base}/responses")),
        ModelApi::InProcess => Err(Error::invalid(
            "api",
            format!("of the provider `{}` is none that is asked over HTTP", info.provider),
        )),
    }
}

fn unknown_provider(name: &str, provider: &str) -> Error {
    let mut names = registry::registered_names();
    names.extend(builtin::NAMES.map(str::to_owned));
    names.sort();
    names.dedup();
    let known = names.join(", ");
    Error::invalid("model", format!("`{name}` names the provider `{provider}`, which is not one of {known}"))
        .with_hint("register_provider adds a provider")
}
