//! The handler for a server's messages: it offers no capabilities, and passes on progress reports.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use eyot_tools::{ToolContext, ToolProgress};
use rmcp::model::{ClientConfig, ProgressNotificationParam, ProgressToken};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

/// The client's name and version, and the calls that receive progress reports.
#[derive(Clone)]
pub(super) struct McpClientHandler {
    config: ClientConfig,
    watchers: Arc<Mutex<HashMap<ProgressToken, ToolContext>>>,
}

/// A guard: the call receives progress reports until this is dropped.
pub(super) struct ProgressWatch {
    token: ProgressToken,
    handler: McpClientHandler,
}

impl McpClientHandler {
    /// Creates a handler with this name and version.
    pub(super) fn new(config: ClientConfig) -> Self {
        Self { config, watchers: Arc::default() }
    }

    /// Passes progress reports with this token on to a call.
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
    // A negative or too large number becomes the nearest possible one.
    ToolProgress::new(progress.progress as u64, &message)
}
