//! The events of the sandboxes in a server's pools.

use eyot::Result;
use eyot_engine::events::Event;
use futures_util::stream::BoxStream;
use reqwest::Method;

use super::RemoteServer;
use crate::remote::http::whole;
use crate::remote::server_events::values;

impl RemoteServer {
    /// Streams the events of the pools that the key opens, from event number `from_seq` on: with
    /// `sandbox` only those of that sandbox, by NAME, POOL/NAME or id. With `follow` it also streams
    /// later events, until the stream is dropped.
    pub async fn events(
        &self,
        from_seq: u64,
        follow: bool,
        sandbox: Option<&str>,
    ) -> Result<BoxStream<'static, Result<Event>>> {
        let (from_seq, follow) = (from_seq.to_string(), follow.to_string());
        let mut query = vec![("from_seq", from_seq.as_str()), ("follow", follow.as_str())];
        query.extend(sandbox.map(|sandbox| ("sandbox", sandbox)));
        let response = self.server().ask(self.request(Method::GET, &["v1", "events"], &query)?).await?;
        Ok(values(whole, self.server().bytes(response)))
    }
}
