//! Compaction of the session's conversation.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;

use super::operation::{Operation, elapsed_ms};
use super::turns::{TurnFailure, ended_turn, failed_turn, message_of};
use crate::compaction::{
    CompactionLimits, CompactionPlan, SUMMARY_INSTRUCTIONS, prefix_request, summary_request,
};
use crate::conversation::{CompactionEntry, ConversationEntry};
use crate::event::{AgentEventKind, CompactionReason, LogLevel};
use crate::failure::{AgentError, AgentResult};
use crate::message::{ChatMessage, StopReason, timestamp_ms};
use crate::model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ThinkingLevel};
use crate::usage::TokenUsage;

/// A summary that a model wrote.
struct CompactionSummary {
    text: String,
    usage: TokenUsage,
}

impl Operation {
    pub(super) async fn compact(&self) -> AgentResult<()> {
        self.close_interrupted_work();
        let is_compaction = |entry: &ConversationEntry| matches!(entry, ConversationEntry::Compaction(_));
        if self.is_resumed && self.session.lock().entries_from(self.from).iter().any(is_compaction) {
            return Ok(());
        }
        let model = self.model(None, "compact")?;
        self.try_compact(&model, CompactionReason::Manual).await.map(drop)
    }

    /// Compacts the conversation. If that fails, the running call continues with the conversation as it is.
    pub(super) async fn compact_or_log(&self, model: &Arc<dyn Model>, reason: CompactionReason) {
        if let Err(error) = self.try_compact(model, reason).await {
            self.log_failed_compaction(&error);
        }
    }

    /// Compacts a conversation that the model finds too long. Returns whether it is shorter now.
    pub(super) async fn compact_overflow(&self, model: &Arc<dyn Model>) -> AgentResult<bool> {
        match self.try_compact(model, CompactionReason::Overflow).await {
            Err(error @ AgentError::Model { .. }) => {
                self.log_failed_compaction(&error);
                Ok(false)
            }
            compacted => compacted,
        }
    }

    fn log_failed_compaction(&self, error: &AgentError) {
        self.log(LogLevel::Error, format!("the conversation could not be made shorter: {error}"));
    }

    /// Compacts the conversation. Returns whether it was long enough for that.
    async fn try_compact(&self, model: &Arc<dyn Model>, reason: CompactionReason) -> AgentResult<bool> {
        let options = &self.session.config.compaction;
        let limits = CompactionLimits::new(options, model.info());
        let (plan, first_kept, previous) = {
            let conversation = self.session.lock();
            let shown = conversation.shown();
            let previous = conversation.last_compaction().map(|(_, summary)| summary.clone());
            let messages: Vec<ChatMessage> = shown.iter().map(|shown| shown.message.clone()).collect();
            let plan = CompactionPlan::new(&messages, limits.keep_recent_tokens, previous.as_ref());
            let first_kept = plan.as_ref().map(|plan| shown[plan.first_kept].entry);
            (plan, first_kept, previous)
        };
        let (Some(plan), Some(first_kept)) = (plan, first_kept) else {
            self.log(LogLevel::Info, "the conversation is too short to be made shorter".to_owned());
            return Ok(false);
        };
        let before = self.session.lock().messages().len() as u64;
        self.log(LogLevel::Info, format!("a summary of {} messages is written", plan.older.len()));
        self.scope.emit(AgentEventKind::CompactionStart { reason, estimated_tokens: plan.tokens_before });
        let started = Instant::now();
        let summariser = options.model.as_ref().unwrap_or(model);
        let previous = previous.as_ref().map(|previous| previous.summary.as_str());
        let (summary, usage) = self.summarise(summariser, &plan, limits, previous).await?;
        let entry = ConversationEntry::Compaction(CompactionEntry {
            summary,
            first_kept,
            tokens_before: plan.tokens_before,
            read_files: plan.read_files(),
            modified_files: plan.modified_files(),
            usage: Some(usage),
            timestamp: timestamp_ms(),
        });
        let after = {
            let mut shorter = self.session.lock().clone();
            shorter.push(entry.clone());
            shorter.messages().len() as u64
        };
        self.append_with_event(
            entry,
            AgentEventKind::Compaction {
                messages_before: before,
                messages_after: after,
                duration_ms: elapsed_ms(started),
                usage: Some(usage),
            },
        );
        Ok(true)
    }

    async fn summarise(
        &self,
        model: &Arc<dyn Model>,
        plan: &CompactionPlan,
        limits: CompactionLimits,
        previous: Option<&str>,
    ) -> AgentResult<(String, TokenUsage)> {
        let older = async {
            if plan.older.is_empty() && previous.is_none() {
                return Ok(None);
            }
            let request = summary_request(&plan.older, previous);
            self.write_summary(model, request, limits.summary_tokens()).await.map(Some)
        };
        let prefix = async {
            if plan.prefix.is_empty() {
                return Ok(None);
            }
            self.write_summary(model, prefix_request(&plan.prefix), limits.prefix_tokens()).await.map(Some)
        };
        // Both end, whatever becomes of one: each has a turn to tell and tokens to charge.
        let (older, prefix) = tokio::join!(older, prefix);
        let (older, prefix) = (older?, prefix?);
        let usage = [&older, &prefix]
            .into_iter()
            .flatten()
            .fold(TokenUsage::default(), |sum, written| sum + written.usage);
        let text = |written: &Option<CompactionSummary>| written.as_ref().map(|written| written.text.clone());
        Ok((plan.summary(text(&older).as_deref(), text(&prefix).as_deref()), usage))
    }

    async fn write_summary(
        &self,
        model: &Arc<dyn Model>,
        request: String,
        max_tokens: u32,
    ) -> AgentResult<CompactionSummary> {
        let request = ModelRequest {
            system_prompt: Some(SUMMARY_INSTRUCTIONS.to_owned()),
            messages: vec![ChatMessage::user(request)],
            tools: Vec::new(),
            max_tokens: Some(max_tokens),
            // Most models count reasoning against the tokens of the summary, so the effort is low.
            thinking: ThinkingLevel::Low,
            session_id: None,
        };
        self.session.harness.budget.begin_turn().map_err(AgentError::Budget)?;
        let started = Instant::now();
        let written = tokio::select! {
            biased;
            () = self.abort.aborted() => Err(TurnFailure::Aborted),
            written = whole_turn(model.as_ref(), request) => {
                written.map_err(|error| TurnFailure::Model { error, had_begun: false })
            }
        };
        let turn = match written {
            Ok(turn) => message_of(turn, model.info()),
            Err(failure) => return Err(self.failed_summary(model.info(), failure, started)),
        };
        self.scope.emit(ended_turn(&turn, started));
        self.session.harness.budget.charge(turn.usage);
        // An incomplete summary would lose content, because the older messages are no longer sent.
        if turn.stop_reason != StopReason::Stop || turn.text().trim().is_empty() {
            let source = ModelError::new(ModelErrorKind::Cut, "the model did not write a complete summary");
            return Err(AgentError::Model { asked: "compact".to_owned(), source });
        }
        Ok(CompactionSummary { text: turn.text(), usage: turn.usage })
    }

    /// Tells of a summary that failed, and returns the error.
    fn failed_summary(&self, model: &ModelInfo, failure: TurnFailure, started: Instant) -> AgentError {
        self.session.harness.budget.charge(failure.usage(model).unwrap_or_default());
        self.scope.emit(failed_turn(model, &failure, started));
        match failure {
            TurnFailure::Aborted => self.abort.error(),
            TurnFailure::Refused(turn) => AgentError::Refused(turn.text()),
            TurnFailure::Model { error, .. } => {
                AgentError::Model { asked: "compact".to_owned(), source: error }
            }
        }
    }
}

/// Asks for a turn, and waits for it to be complete.
async fn whole_turn(model: &dyn Model, request: ModelRequest) -> Result<crate::model::ModelTurn, ModelError> {
    let mut stream = model.stream(request).await?;
    while let Some(event) = stream.next().await {
        if let ModelEvent::Done(turn) = event? {
            return Ok(turn);
        }
    }
    Err(ModelError::cut())
}
