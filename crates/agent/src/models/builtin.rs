//! The built-in providers.

use reqwest::Url;

use super::facts::{self, FactRow};
use crate::model::ModelApi;

/// The names of the built-in providers.
pub(super) const NAMES: [&str; 5] =
    ["anthropic", "ollama", "openai", "openai-completions", "openai-responses"];

const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com/v1";
const OLLAMA_URL: &str = "http://127.0.0.1:11434/v1";

/// A built-in provider, with the settings from the environment.
pub(super) struct BuiltinProvider {
    /// The name in messages, events and settings.
    pub(super) name: &'static str,
    pub(super) api: ModelApi,
    pub(super) base_url: String,
    /// The variable with the key; `None`: the provider needs no key.
    pub(super) key_variable: Option<&'static str>,
    /// The facts about the model.
    pub(super) row: Option<&'static FactRow>,
}

/// Finds a built-in provider.
///
/// `openai` is OpenAI's responses API. If `OPENAI_BASE_URL` names another server, it is chat completions: all compatible
/// servers (vLLM, llama.cpp, LM Studio, LiteLLM, gateways) speak that, and few have the responses API. `openai-completions`
/// and `openai-responses` choose the API for any server.
pub(super) fn find(
    name: &str,
    model: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<BuiltinProvider> {
    let set = |name: &str| variable(name).map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
    let openai = |api: Option<ModelApi>| {
        let base_url = set("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI_URL.to_owned());
        let usual =
            if is_vendors(&base_url) { ModelApi::OpenaiResponses } else { ModelApi::OpenaiCompletions };
        BuiltinProvider {
            name: "openai",
            api: api.unwrap_or(usual),
            base_url,
            key_variable: Some("OPENAI_API_KEY"),
            row: facts::of_openai(model),
        }
    };
    match name {
        "anthropic" => Some(BuiltinProvider {
            name: "anthropic",
            api: ModelApi::AnthropicMessages,
            base_url: set("ANTHROPIC_BASE_URL").unwrap_or_else(|| ANTHROPIC_URL.to_owned()),
            key_variable: Some("ANTHROPIC_API_KEY"),
            row: facts::of_anthropic(model),
        }),
        "openai" => Some(openai(None)),
        "openai-completions" => Some(openai(Some(ModelApi::OpenaiCompletions))),
        "openai-responses" => Some(openai(Some(ModelApi::OpenaiResponses))),
        "ollama" => Some(BuiltinProvider {
            name: "ollama",
            api: ModelApi::OpenaiCompletions,
            base_url: set("OLLAMA_HOST").map_or_else(|| OLLAMA_URL.to_owned(), |host| ollama_url(&host)),
            key_variable: None,
            row: None,
        }),
        _ => None,
    }
}

/// Returns whether an address is a vendor's own.
pub(super) fn is_vendors(url: &str) -> bool {
    vendor_of(url).is_some()
}

/// The provider whose own address this is: `anthropic` or `openai`. An address without TLS is nobody's own.
pub(super) fn vendor_of(url: &str) -> Option<&'static str> {
    let url = Url::parse(url).ok().filter(|url| url.scheme() == "https")?;
    let host = url.host_str()?;
    let is_below =
        |own: &str| host.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let vendors = [("openai.com", "openai"), ("anthropic.com", "anthropic")];
    vendors.into_iter().find(|(own, _)| is_below(own)).map(|(_, vendor)| vendor)
}

/// Returns the address in `OLLAMA_HOST`, which may be written as for Ollama's own programs: with or without `http://`, a port
/// and a path. A server that listens on all addresses is reached by loopback.
fn ollama_url(host: &str) -> String {
    let url = if host.contains("://") { host.to_owned() } else { format!("http://{host}") };
    let Ok(mut url) = Url::parse(&url) else { return url };
    let has_port = host.rsplit('/').next().is_some_and(|end| end.contains(':'));
    let set = if has_port || url.scheme() == "https" { Ok(()) } else { url.set_port(Some(11434)) };
    let is_any = url.host_str() == Some("0.0.0.0");
    if set.is_ok() && is_any && url.set_host(Some("127.0.0.1")).is_err() {
        return OLLAMA_URL.to_owned();
    }
    format!("{}/v1", url.as_str().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, variables: &[(&str, &str)]) -> BuiltinProvider {
        let variable = |asked: &str| {
            let found = variables.iter().find(|(name, _)| *name == asked);
            found.map(|(_, value)| (*value).to_owned())
        };
        find(name, "gpt-5", variable).unwrap()
    }

    #[test]
    fn openai_is_chat_completions_where_the_server_is_another() {
        assert_eq!(with("openai", &[]).api, ModelApi::OpenaiResponses);
        let other = with("openai", &[("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")]);
        assert_eq!(
            (other.api, other.base_url.as_str()),
            (ModelApi::OpenaiCompletions, "http://127.0.0.1:8000/v1")
        );
        let europe = with("openai", &[("OPENAI_BASE_URL", "https://eu.api.openai.com/v1")]);
        assert_eq!(europe.api, ModelApi::OpenaiResponses);
        let other = with("openai-responses", &[("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")]);
        assert_eq!(other.api, ModelApi::OpenaiResponses);
        assert!(!is_vendors("https://api.openai.com.example.org/v1"));
        assert!(!is_vendors("https://notopenai.com/v1"));
        assert!(!is_vendors("http://api.openai.com/v1"));
    }

    #[test]
    fn the_address_of_ollama_may_be_written_short() {
        let url = |host: &str| with("ollama", &[("OLLAMA_HOST", host)]).base_url;
        assert_eq!(with("ollama", &[("OLLAMA_HOST", " ")]).base_url, OLLAMA_URL);
        assert_eq!(url("0.0.0.0"), OLLAMA_URL);
        assert_eq!(url("box:8080"), "http://box:8080/v1");
        assert_eq!(url("http://box"), "http://box:11434/v1");
    }
}
