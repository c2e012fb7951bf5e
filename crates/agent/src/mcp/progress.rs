//! The client as a server sees it: it offers nothing, and hears of progress.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use eyot_tools::{ToolContext, ToolProgress};
use rmcp::model::{ClientConfig, ProgressNotificationParam, ProgressToken};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

/// The client's name and version, and the calls that want to hear of progress.
#[derive(Clone)]
pub(super) struct McpClientHandler {
    config: ClientConfig,
    watchers: Arc<Mutex<HashMap<ProgressToken, ToolContext>>>,
}

/// A call that hears of progress until this is dropped.
pub(super) struct ProgressWatch {
    token: ProgressToken,
    handler: McpClientHandler,
}

impl McpClientHandler {
    /// A client of this name.
    pub(super) fn new(config: ClientConfig) -> Self {
        Self { config, watchers: Arc::default() }
    }

    /// Reports progress with this token to a call.
    pub(super) fn watch(&self, token: ProgressToken, context: ToolContext) -> ProgressWatch {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.insert(token.clone(), context);
        ProgressWatch { token, handler: self.clone() }
    }
}

impl Drop for ProgressWatch {
    fn drop(&mut self) {
        self.handler.watchers.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(context) = watchers.get(&progress.progress_token).cloned() else { return };
        drop(watchers);
        context.report(reported(&progress));
    }
}

fn reported(progress: &ProgressNotificationParam) -> ToolProgress {
    let message = match (&progress.message, progress.total) {
        (Some(message), _) => message.clone(),
        (None, Some(total)) => format!("{} of {total}", progress.progress),
        (None, None) => progress.progress.to_string(),
    };
    // A negative or enormous number becomes the nearest that there is.
    ToolProgress::new(progress.progress as u64, &message)
}
