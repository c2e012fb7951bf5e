//! The work of an agent, as a person sees it: answers on stdout, actions on stderr. With `--json`, programs get the events.

use eyot_agent::{AgentEvent, AgentEventKind, TokenUsage};
use serde_json::Value;

use crate::errors::Failure;
use crate::output::{Output, for_stdout, json_line, printable, say};

/// The number of lines of a tool's answer that are shown.
const SHOWN_LINES: usize = 8;
/// The number of characters of a line that are shown.
const SHOWN_CHARS: usize = 160;

/// Shows the events of a run.
pub(super) struct Renderer {
    output: Output,
    /// Set if the last output on stdout did not end its line.
    is_in_line: bool,
    has_ended: bool,
    /// The failure of the last turn, which is told once the run goes on: the end of the run tells its own.
    failed_turn: Option<String>,
    usage: TokenUsage,
}

impl Renderer {
    pub(super) fn new(output: Output) -> Self {
        Self { output, is_in_line: false, has_ended: false, failed_turn: None, usage: TokenUsage::default() }
    }

    /// Returns whether the run has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        self.has_ended = matches!(event.kind, AgentEventKind::RunEnd { .. });
        if self.output.json {
            return self.output.text(&format!("{}\n", json_line(event)?));
        }
        let is_of_task = event.parent_session.is_some();
        if let Some(failure) = self.failed_turn.take_if(|_| goes_on(&event.kind)) {
            self.tell(&format!("! {failure}"));
        }
        match &event.kind {
            AgentEventKind::TextDelta { text } if !is_of_task => self.speak(text)?,
            AgentEventKind::ToolStart { tool_name, args, .. } => {
                self.tell(&headline(tool_name, args));
                change(args).iter().for_each(|line| self.tell(line));
            }
            AgentEventKind::ToolCall { is_error, result, .. } => self.tell_result(*is_error, result),
            AgentEventKind::TaskStart { prompt, .. } => self.tell(&format!("  task: {}", first_line(prompt))),
            AgentEventKind::Turn { usage, is_error, error, .. } => {
                self.usage += usage.unwrap_or_default();
                if *is_error {
                    self.failed_turn = Some(error.as_deref().unwrap_or("the turn failed").to_owned());
                }
            }
            AgentEventKind::Compaction { messages_before, messages_after, .. } => {
                self.tell(&format!(
                    "  the conversation was shortened: {messages_before} to {messages_after} messages"
                ));
            }
            AgentEventKind::RunEnd { .. } => {
                self.end_line()?;
                self.tell(&spent(&self.usage));
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints what the agent says.
    fn speak(&mut self, text: &str) -> Result<(), Failure> {
        let shown = text.split('\n').map(for_stdout).collect::<Vec<_>>().join("\n");
        self.is_in_line = !shown.ends_with('\n');
        self.output.text(&shown)
    }

    fn end_line(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_in_line) { self.output.text("\n") } else { Ok(()) }
    }

    fn tell_result(&mut self, is_error: bool, result: &Value) {
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let mark = if is_error { "!" } else { "|" };
        lines.iter().take(SHOWN_LINES).for_each(|line| self.tell(&format!("  {mark} {}", short(line))));
        if lines.len() > SHOWN_LINES {
            self.tell(&format!("  {mark} … {} more lines", lines.len() - SHOWN_LINES));
        }
    }

    /// Prints a line about the work on stderr, unless `--quiet` is set.
    fn tell(&mut self, line: &str) {
        if self.output.quiet {
            return;
        }
        if std::mem::take(&mut self.is_in_line) {
            // The agent's text may stop in the middle of a line.
            drop(self.output.text("\n"));
        }
        say(&format!("{}\n", printable(line)));
    }
}

/// Returns whether a run does more work with this event.
fn goes_on(event: &AgentEventKind) -> bool {
    use AgentEventKind::{Compaction, TaskStart, TextDelta, ToolCall, ToolStart, Turn};
    matches!(
        event,
        TextDelta { .. }
            | ToolStart { .. }
            | ToolCall { .. }
            | TaskStart { .. }
            | Turn { .. }
            | Compaction { .. }
    )
}

/// Returns a tool call as one line: the tool, and its most telling argument.
fn headline(tool: &str, arguments: &Value) -> String {
    let about = ["command", "path", "pattern", "prompt", "name", "url"];
    let about = about.iter().find_map(|field| arguments[*field].as_str());
    match about {
        Some(about) => format!("> {tool}: {}", first_line(about)),
        None if arguments.as_object().is_none_or(serde_json::Map::is_empty) => format!("> {tool}"),
        None => format!("> {tool}: {}", short(&arguments.to_string())),
    }
}

/// Returns the change that an edit makes, as a diff.
fn change(arguments: &Value) -> Vec<String> {
    let (Some(old), Some(new)) = (arguments["oldText"].as_str(), arguments["newText"].as_str()) else {
        return Vec::new();
    };
    let marked = |mark: char, text: &str| -> Vec<String> {
        text.lines().take(SHOWN_LINES).map(|line| format!("  {mark} {}", short(line))).collect()
    };
    [marked('-', old), marked('+', new)].concat()
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let first = short(lines.next().unwrap_or_default());
    if lines.next().is_some() { format!("{first} …") } else { first }
}

fn short(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn spent(usage: &TokenUsage) -> String {
    let read = usage.input + usage.cache_read + usage.cache_write;
    let price = if usage.cost.total > 0.0 { format!(", ${:.4}", usage.cost.total) } else { String::new() };
    format!("{read} tokens read, {} written{price}", usage.output)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_one_line_about_what_it_is_about() {
        assert_eq!(headline("bash", &json!({"command": "ls\npwd"})), "> bash: ls …");
        assert_eq!(headline("sandbox_list", &json!({})), "> sandbox_list");
        assert_eq!(headline("browse", &json!({"port": 80})), "> browse: {\"port\":80}");
    }

    #[test]
    fn an_edit_is_shown_as_a_diff() {
        let edit = json!({"path": "a", "oldText": "one", "newText": "1\n2"});
        assert_eq!(change(&edit), ["  - one", "  + 1", "  + 2"]);
        assert!(change(&json!({"path": "a"})).is_empty());
    }
}
