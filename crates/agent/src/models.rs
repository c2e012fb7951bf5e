//! Models behind an HTTP API: Anthropic's, OpenAI's, and those of servers that speak their protocols.
//!
//! [`resolve_model`] returns the model with a name. [`register_provider`] adds a provider, and [`configure_provider`] sets the
//! address, key or headers of one.
//!
//! Built in are `anthropic` (`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`), `openai` (`OPENAI_API_KEY`, `OPENAI_BASE_URL`) and
//! `ollama` (`OLLAMA_HOST`). `openai` speaks the responses API with OpenAI's own server and chat completions with any other;
//! `openai-responses` and `openai-completions` say which.

mod builtin;
mod decode;
mod facts;
mod failure;
mod http_api;
mod http_model;
mod key;
mod options;
mod registry;
mod retry;
mod secret;
mod target;
mod transport;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};

pub use facts::ModelFacts;
pub use options::ModelOptions;
pub use registry::{ModelProviderSettings, ProviderRegistration, configure_provider, register_provider};
pub use secret::ApiKey;

use crate::model::Model;
use http_model::HttpModel;
use retry::RetryModel;
use target::ModelTarget;
use transport::Transport;

/// Returns the model `provider/model-id`, such as `anthropic/claude-haiku-4-5`, with the default timeouts and retries. Nothing
/// is sent yet; a missing key is an error of the first turn. `invalid`: the name has another form, or its provider is unknown.
pub fn resolve_model(name: &str) -> Result<Arc<dyn Model>> {
    resolve_model_with(name, ModelOptions::default())
}

/// Checks `provider/model-id` without a request. `invalid`: the name has another form, or its provider is unknown. `permission`: the
/// provider does not work without a key, and there is none.
pub fn check_model(name: &str) -> Result<()> {
    let found = ModelTarget::find(name, &BTreeMap::new())?.key_header();
    found.map(drop).map_err(|error| Error::new(ErrorKind::Permission, error.message))
}

/// Returns a model like [`resolve_model`], with other timeouts and retries.
pub fn resolve_model_with(name: &str, options: ModelOptions) -> Result<Arc<dyn Model>> {
    model_at(ModelTarget::find(name, &BTreeMap::new())?, options)
}

/// Returns a model like [`resolve_model`]. The settings of its provider among `own` win over those of [`configure_provider`].
pub(crate) fn resolve_model_for(
    name: &str,
    own: &BTreeMap<String, ModelProviderSettings>,
) -> Result<Arc<dyn Model>> {
    model_at(ModelTarget::find(name, own)?, ModelOptions::default())
}

fn model_at(target: ModelTarget, options: ModelOptions) -> Result<Arc<dyn Model>> {
    let model = HttpModel::new(target, Transport::new(options));
    Ok(Arc::new(RetryModel::new(Arc::new(model), options)))
}
