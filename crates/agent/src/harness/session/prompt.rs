//! Prompts and skills: the model works until it has an answer.

use std::sync::Arc;

use eyot::{Error, ErrorKind};
use serde_json::{Map, Value};

use super::operation::Operation;
use super::response::PromptResponse;
use super::toolbox::Toolbox;
use super::{PromptOptions, SkillChoice, SkillOptions};
use crate::conversation::{ConversationEntry, MessageSource};
use crate::failure::{AgentError, AgentResult};
use crate::message::{ChatMessage, ContentBlock, UserMessage, timestamp_ms};
use crate::model::{Model, ThinkingLevel};
use crate::result_tools::{FOLLOW_UP, FOOTER, ResultOutcome, ResultTools};
use crate::skill::KnownSkill;

/// The most times that a model is reminded to give a result.
const MAX_REMINDERS: usize = 32;

/// A prompt, with everything that its turns need.
pub(super) struct PromptCall {
    pub(super) model: Arc<dyn Model>,
    pub(super) thinking: ThinkingLevel,
    pub(super) toolbox: Toolbox,
    /// The name of the call for errors, such as `prompt`.
    pub(super) asked: String,
    pub(super) source: MessageSource,
}

impl Operation {
    pub(super) async fn prompt(&self, text: String, options: PromptOptions) -> AgentResult<PromptResponse> {
        self.run_prompt(text, options, MessageSource::Prompt, "prompt".to_owned(), None).await
    }

    pub(super) async fn skill(
        &self,
        skill: SkillChoice,
        options: SkillOptions,
    ) -> AgentResult<PromptResponse> {
        let skill = self.find_skill(skill)?;
        let sandbox = self.session.source.sandbox().await?;
        let mut text = skill.instructions(sandbox.as_ref()).await?;
        text.push_str(&arguments_text(&options.arguments));
        let asked = format!("skill `{}`", skill.name());
        self.run_prompt(text, options.prompt, MessageSource::Skill, asked, Some(skill)).await
    }

    fn find_skill(&self, skill: SkillChoice) -> AgentResult<KnownSkill> {
        let name = match skill {
            SkillChoice::Packaged(skill) => return Ok(KnownSkill::Packaged(skill)),
            SkillChoice::Named(name) => name,
        };
        if let Some(skill) = self.session.skill(&name) {
            return Ok(skill.clone());
        }
        let known: Vec<&str> = self.session.config.context.skills.iter().map(KnownSkill::name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("there is no skill `{name}`; there are: {known}");
        let hint = format!(
            "a workspace's skills are read when the harness is created: write .agents/skills/{name}/SKILL.md before"
        );
        Err(Error::new(ErrorKind::NotFound, message).with_hint(hint).into())
    }

    async fn run_prompt(
        &self,
        text: String,
        options: PromptOptions,
        source: MessageSource,
        asked: String,
        skill: Option<KnownSkill>,
    ) -> AgentResult<PromptResponse> {
        let PromptOptions { result, tools, model, thinking, images } = options;
        let results = result.as_ref().map(ResultTools::new).transpose()?;
        let (model, thinking) =
            (self.model(model, &asked)?, thinking.unwrap_or(self.session.config.thinking));
        let toolbox = Toolbox::new(self, tools, results.as_ref(), skill.as_ref(), &model)?;
        let call = PromptCall { model, thinking, toolbox, asked, source };
        self.close_interrupted_work();
        if !self.has_begun() {
            let text = if results.is_some() { text + "\n" + FOOTER } else { text };
            self.say(text, images, call.source);
        }
        let data = match &results {
            None => {
                if !self.rests() {
                    self.run_turns(&call).await?;
                }
                None
            }
            Some(results) => Some(self.until_result(&call, results).await?),
        };
        let conversation = self.session.lock();
        let (text, usage) = (conversation.last_text(), conversation.usage_since(self.from));
        Ok(PromptResponse { text, data, usage, model: call.model.info().id.clone() })
    }

    /// Lets the model work until it gives a result. If it stops without one, it is reminded.
    async fn until_result(&self, call: &PromptCall, results: &ResultTools) -> AgentResult<Value> {
        results.restore(&self.session.lock().answered_calls(self.from));
        let mut rests = self.rests();
        for _ in 0..=MAX_REMINDERS {
            if !std::mem::take(&mut rests) {
                self.run_turns(call).await?;
            }
            match results.outcome() {
                ResultOutcome::Result(value) => return Ok(value),
                ResultOutcome::GaveUp(reason) => return Err(self.gave_up(reason)),
                ResultOutcome::Pending => self.say(FOLLOW_UP.to_owned(), Vec::new(), MessageSource::Retry),
            }
        }
        Err(self.gave_up(format!(
            "Agent did not call `finish` or `give_up` after {} attempts.",
            MAX_REMINDERS + 1
        )))
    }

    fn gave_up(&self, reason: String) -> AgentError {
        AgentError::GaveUp { reason, text: self.session.lock().last_text() }
    }

    /// Adds a message to the conversation, which the model gets with the next turn.
    fn say(&self, text: String, images: Vec<ContentBlock>, source: MessageSource) {
        let mut content = vec![ContentBlock::text(text)];
        content.extend(images);
        let message = ChatMessage::User(UserMessage { content, timestamp: timestamp_ms() });
        self.append(ConversationEntry::Message { message, source });
    }

    /// Returns the model of the call, or else that of the session.
    pub(super) fn model(&self, model: Option<Arc<dyn Model>>, asked: &str) -> AgentResult<Arc<dyn Model>> {
        model.or_else(|| self.session.config.model.clone()).ok_or_else(|| {
            let error = Error::new(ErrorKind::Invalid, format!("{asked}: there is no model"));
            error.with_hint("give one to the harness, or to this call").into()
        })
    }
}

fn arguments_text(arguments: &Map<String, Value>) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    let json = serde_json::to_string_pretty(arguments).unwrap_or_default();
    format!("\n\nArguments:\n{json}")
}
