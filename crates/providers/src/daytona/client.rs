//! The calls of the API: the key, retries within the vendor's limits, and which calls may be sent again.

use std::collections::BTreeMap;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::{read, refused, unreachable, unreadable};
use super::facts::{DaytonaFacts, DaytonaPhase};
use super::options::{DaytonaOptions, below, checked, is_local};
use crate::e2b::vendor::{FIRST_WAIT, gives_up, retry_after};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The sandboxes on a page of a list.
const PAGE: &str = "100";
/// The most pages of a list that are read.
const MAX_PAGES: usize = 1000;

/// A client of the API.
#[derive(Debug, Clone)]
pub(super) struct DaytonaClient {
    http: reqwest::Client,
    pub options: DaytonaOptions,
    api: Url,
}

/// The request for a new sandbox.
#[derive(Debug)]
pub(super) struct NewDaytonaSandbox {
    pub name: String,
    pub snapshot: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    pub blocks_network: bool,
}

/// The calls that are sent again after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resend {
    /// Sent twice, it does as much as once.
    Safe,
    /// It is sent again only when the first one is known to have done nothing.
    OnlyWithoutEffect,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SandboxPage {
    items: Vec<DaytonaFacts>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl DaytonaClient {
    pub fn new(options: DaytonaOptions) -> Result<Self> {
        let api = checked(&options.api_url)?;
        let builder = reqwest::Client::builder();
        // What goes to this machine needs no TLS, so it must not go over a proxy.
        let builder = if is_local(&api) { builder.no_proxy() } else { builder };
        let http = builder
            .connect_timeout(CONNECT_PATIENCE)
            // A terminal is a WebSocket, which these have.
            .http1_only()
            // The key is for the address that was named, and for no other.
            .redirect(Policy::none())
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "prepare requests to Daytona").with_source(error)
            })?;
        Ok(Self { http, options, api })
    }

    /// Asks for a new sandbox, once: the call has no key of its own.
    pub async fn create(&self, new: &NewDaytonaSandbox) -> Result<DaytonaFacts> {
        let mut body = json!({
            "name": new.name,
            "labels": new.labels,
            "env": new.variables,
            "networkBlockAll": new.blocks_network,
            "autoStopInterval": self.options.auto_stop_minutes,
            // Another value than a negative one would have a stop, or time, remove it.
            "autoDeleteInterval": -1,
        });
        let more = [("snapshot", &new.snapshot), ("target", &self.options.target)];
        for (field, value) in more.into_iter().filter_map(|(field, value)| Some((field, value.as_ref()?))) {
            body[field] = json!(value);
        }
        let make = || Ok(with_json(self.request(Method::POST, below(&self.api, &["sandbox"]))?, &body));
        plain(read(self.send(Resend::OnlyWithoutEffect, make).await?).await?)
    }

    /// Returns what there is of the sandbox with an id. The vendor takes a name as well, and another sandbox may be called as
    /// this id.
    pub async fn get(&self, id: &str) -> Result<Option<DaytonaFacts>> {
        Ok(self.named(id).await?.filter(|facts| facts.id == id))
    }

    /// Returns what there is of the sandbox with this name, or with this id.
    pub async fn named(&self, named: &str) -> Result<Option<DaytonaFacts>> {
        Ok(self.get_whole(named).await?.filter(|facts| facts.phase() != DaytonaPhase::Gone))
    }

    /// Tells whether nothing is left of a sandbox: its name is free again.
    pub async fn is_removed(&self, id: &str) -> Result<bool> {
        Ok(self.get_whole(id).await?.is_none_or(|facts| facts.id != id || facts.is_destroyed()))
    }

    async fn get_whole(&self, named: &str) -> Result<Option<DaytonaFacts>> {
        let make = || self.request(Method::GET, below(&self.api, &["sandbox", named]));
        match self.read_again::<DaytonaFacts>(make).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            facts => plain(facts?).map(Some),
        }
    }

    /// Lists the sandboxes with these labels, page by page.
    pub async fn list(&self, labels: &[(&str, &str)]) -> Result<Vec<DaytonaFacts>> {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        let labels = json!(labels).to_string();
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let mut url = below(&self.api, &["sandbox"]);
            url.query_pairs_mut().append_pair("limit", PAGE);
            if labels != "{}" {
                url.query_pairs_mut().append_pair("labels", &labels);
            }
            if let Some(cursor) = &cursor {
                url.query_pairs_mut().append_pair("cursor", cursor);
            }
            let page: SandboxPage = self.read_again(|| self.request(Method::GET, url.clone())).await?;
            for facts in page.items {
                all.push(plain(facts)?);
            }
            let next = page.next_cursor.filter(|next| !next.is_empty());
            if next.is_none() {
                all.retain(|facts| facts.phase() != DaytonaPhase::Gone);
                return Ok(all);
            }
            if next == cursor {
                return Err(unreadable().with_source("a page of the list leads to itself"));
            }
            cursor = next;
        }
        Err(unreadable().with_source(format!("the list has more than {MAX_PAGES} pages")))
    }

    /// Asks for a change of a sandbox: `start` or `stop`.
    pub async fn ask(&self, id: &str, change: &str) -> Result<()> {
        let make = || {
            let request = self.request(Method::POST, below(&self.api, &["sandbox", id, change]))?;
            Ok(with_json(request, &json!({})))
        };
        self.send(Resend::Safe, make).await.map(drop)
    }

    /// Asks for the removal of a sandbox. One that is gone is fine.
    pub async fn delete(&self, id: &str) -> Result<()> {
        let make = || self.request(Method::DELETE, below(&self.api, &["sandbox", id]));
        match self.send(Resend::Safe, make).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the address of a sandbox' toolbox. The key is sent there, so it must be as safe as the API's own.
    pub fn toolbox(&self, facts: &DaytonaFacts) -> Result<Url> {
        let wrong = |why: &str| unreadable().with_source(why.to_owned());
        let address = checked(&facts.toolbox_proxy_url).map_err(|_| wrong("it names no toolbox"))?;
        if is_local(&address) && !is_local(&self.api) {
            return Err(wrong("its toolbox would be on this machine"));
        }
        Ok(below(&address, &[&facts.id]))
    }

    /// Makes a request with the key.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder> {
        let no_key = || {
            Error::new(ErrorKind::Permission, "Daytona needs a key")
                .with_hint("set DAYTONA_API_KEY in the environment")
                .with_no_effect()
        };
        let wrong_key = || Error::invalid("DAYTONA_API_KEY", "has what no header can carry");
        let key = self.options.api_key.as_ref().ok_or_else(no_key)?;
        let bearer = key.with_prefix("Bearer ").header().ok_or_else(wrong_key)?;
        Ok(self.http.request(method, url).timeout(PATIENCE).header(AUTHORIZATION, bearer))
    }

    /// Sends a call that may be sent again until its answer has come whole, within limits.
    pub async fn read_again<T: DeserializeOwned>(
        &self,
        make: impl Fn() -> Result<RequestBuilder>,
    ) -> Result<T> {
        let mut wait = FIRST_WAIT;
        for tries in 1.. {
            match read(self.send(Resend::Safe, &make).await?).await {
                Err(_) if !gives_up(tries, wait) => tokio::time::sleep(wait).await,
                answer => return answer,
            }
            wait *= 2;
        }
        Err(unreadable())
    }

    /// Sends a call until it is answered, within limits.
    pub async fn send(&self, resend: Resend, make: impl Fn() -> Result<RequestBuilder>) -> Result<Response> {
        let (mut wait, mut is_open) = (FIRST_WAIT, false);
        for tries in 1.. {
            let (error, asked) = match make()?.send().await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) if !may_retry(response.status()) => {
                    return Err(refused(response).await.with_unknown_effect_if(is_open));
                }
                Ok(response) => {
                    let asked = retry_after(response.headers());
                    (refused(response).await, asked)
                }
                Err(error) => (unreachable(error), None),
            };
            // What an earlier try has done is done, whatever becomes of the last one.
            is_open |= !error.had_no_effect();
            let waits = asked.unwrap_or(wait);
            if gives_up(tries, waits) || (is_open && resend == Resend::OnlyWithoutEffect) {
                return Err(error.with_unknown_effect_if(is_open));
            }
            tokio::time::sleep(waits).await;
            wait *= 2;
        }
        Err(unreadable())
    }
}

/// Gives a request a body of JSON.
pub(super) fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request.header(CONTENT_TYPE, "application/json").body(body.to_string())
}

fn plain(facts: DaytonaFacts) -> Result<DaytonaFacts> {
    if facts.has_plain_id() { Ok(facts) } else { Err(unreadable().with_source("a sandbox has no id")) }
}

fn may_retry(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}
