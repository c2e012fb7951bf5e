//! What happened to the sandboxes of a server's pools.

use eyot::Result;
use eyot::events::Event;
use futures_util::stream::BoxStream;
use reqwest::Method;

use super::RemoteServer;
use crate::remote::http::whole;
use crate::remote::server_events::values;

impl RemoteServer {
    /// What happened in the pools that the key opens, from the event of this number on; `follow`: and what happens then, until
    /// the stream is dropped.
    pub async fn events(&self, from_seq: u64, follow: bool) -> Result<BoxStream<'static, Result<Event>>> {
        let (from_seq, follow) = (from_seq.to_string(), follow.to_string());
        let query = [("from_seq", from_seq.as_str()), ("follow", follow.as_str())];
        let response = self.server().ask(self.request(Method::GET, &["v1", "events"], &query)?).await?;
        Ok(values(whole, self.server().bytes(response)))
    }
}
