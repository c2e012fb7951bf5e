//! The answer to a client that opened a preview: its addresses and tokens.

use std::time::SystemTime;

use eyot::wire::{PREVIEW_TOKEN, PreviewAnswer};

use super::address::PreviewTarget;
use super::grants::GrantSecrets;
use super::query::TICKET;

/// Makes the answer for a grant. `urls` are those of its own host and of its path, without tokens.
pub(crate) fn answer(
    target: &PreviewTarget,
    urls: [String; 2],
    issued: Option<GrantSecrets>,
    ends: SystemTime,
) -> PreviewAnswer {
    let (token, tickets) = issued.map(|GrantSecrets { token, tickets }| (token, tickets)).unzip();
    let [url, path_url] = match &tickets {
        Some([one, other]) => {
            let [url, path_url] = urls;
            [format!("{url}?{TICKET}={one}"), format!("{path_url}?{TICKET}={other}")]
        }
        None => urls,
    };
    PreviewAnswer {
        sandbox: target.sandbox.to_string(),
        port: target.port,
        url,
        path_url,
        public: token.is_none(),
        token,
        header: PREVIEW_TOKEN.to_owned(),
        expires_at: humantime::format_rfc3339_millis(ends).to_string(),
    }
}
