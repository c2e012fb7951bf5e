//! The tools of a server, called as a model calls them.

use eyot::wire::ToolAnswer;
use eyot::{Result, SandboxName};
use eyot_tools::{ToolContent, ToolOutput, Toolset};
use reqwest::Method;
use serde_json::Value;

use super::{RemoteServer, with_json};

impl RemoteServer {
    /// Calls a tool of a set in a pool; `None`: the key's own. A failure of the tool is in the
    /// answer; an error means that the request failed.
    pub async fn call(
        &self,
        pool: Option<&SandboxName>,
        set: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<ToolOutput> {
        let query: Vec<_> = pool.iter().map(|pool| ("pool", pool.as_str())).collect();
        let request = self.request(Method::POST, &["v1", "toolsets", set, tool], &query)?;
        let answer: ToolAnswer = self.answer(with_json(request, &arguments)?).await?;
        let ToolAnswer { content, structured, is_error } = answer;
        Ok(ToolOutput { content: content.into_iter().map(ToolContent::Text).collect(), structured, is_error })
    }

    /// Returns the tools of a set as they are declared here. The server answers their calls, in
    /// this pool; `None`: the key's own. A call that is dropped is cancelled there.
    pub fn tools(&self, pool: Option<&SandboxName>, set: &Toolset) -> Result<Toolset> {
        let tools = set.tools().iter().map(|tool| {
            let (server, pool) = (self.clone(), pool.cloned());
            let (set, name) = (set.name().to_owned(), tool.name().to_owned());
            tool.clone().with_handler(move |_, arguments| {
                let (server, pool, set, name) = (server.clone(), pool.clone(), set.clone(), name.clone());
                async move { server.call(pool.as_ref(), &set, &name, arguments).await }
            })
        });
        Toolset::new(set.name(), tools)
    }
}
