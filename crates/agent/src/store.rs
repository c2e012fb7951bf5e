//! Where conversations and events are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use eyot::Result;

use crate::conversation::ConversationEntry;
use crate::event::AgentEvent;

/// A place where conversations and the events of runs are kept.
#[async_trait]
pub trait AgentStore: Send + Sync {
    /// Returns the entries of the conversation of this key, or `None` if there is no such conversation.
    async fn conversation(&self, key: &str) -> Result<Option<Vec<ConversationEntry>>>;

    /// Writes these changes, in their order: all of them, or none.
    async fn commit(&self, changes: Vec<StoreChange>) -> Result<()>;

    /// Deletes the conversation of this key. One that is missing is fine.
    async fn delete_conversation(&self, key: &str) -> Result<()>;
}

/// A change of what is kept.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StoreChange {
    /// Begins a conversation, unless there is one of this key.
    Begin {
        /// The conversation's key.
        key: String,
    },
    /// Adds an entry at the end of a conversation.
    Append {
        /// The conversation's key.
        key: String,
        /// The entry.
        entry: Box<ConversationEntry>,
    },
    /// Adds an event to a run.
    Event(Arc<AgentEvent>),
}

/// A store that is forgotten with this process. It keeps conversations; events are for those who listen.
#[derive(Debug, Default)]
pub struct MemoryStore {
    conversations: Mutex<HashMap<String, Vec<ConversationEntry>>>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<ConversationEntry>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl AgentStore for MemoryStore {
    async fn conversation(&self, key: &str) -> Result<Option<Vec<ConversationEntry>>> {
        Ok(self.lock().get(key).cloned())
    }

    async fn commit(&self, changes: Vec<StoreChange>) -> Result<()> {
        let mut conversations = self.lock();
        for change in changes {
            match change {
                StoreChange::Begin { key } => {
                    conversations.entry(key).or_default();
                }
                StoreChange::Append { key, entry } => {
                    conversations.entry(key).or_default().push(*entry);
                }
                StoreChange::Event(_) => {}
            }
        }
        Ok(())
    }

    async fn delete_conversation(&self, key: &str) -> Result<()> {
        self.lock().remove(key);
        Ok(())
    }
}
