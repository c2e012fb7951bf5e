//! The requests of a transcript.

use eyot_agent::standin::StandInRequest;
use serde_json::{Value, json};

use crate::pointers::visit;

/// The headers that are compared.
const HEADERS: [&str; 6] = [
    "authorization",
    "x-api-key",
    "anthropic-version",
    "anthropic-beta",
    "session_id",
    "x-client-request-id",
];

/// Removes the intended differences of every request.
pub fn request(asked: StandInRequest) -> Value {
    let (headers, mut body) = (asked.headers, asked.body);
    body["headers"] = HEADERS.iter().map(|name| json!([name, headers.get(*name)])).collect();
    for field in ["messages", "input"] {
        body[field].as_array_mut().into_iter().flatten().for_each(plain_message);
    }
    body["tools"].as_array_mut().into_iter().flatten().for_each(plain_tool);
    if let Some(fields) = body.as_object_mut() {
        // Chat completions of other servers than OpenAI's do not know it. Ours sends it to OpenAI alone.
        if fields.contains_key("messages") && fields.get("store") == Some(&json!(false)) {
            fields.remove("store");
        }
        // It ends in the middle of a task's id.
        if let Some(Value::String(key)) = fields.get_mut("prompt_cache_key")
            && let Some(end) = key.find(":task:")
        {
            key.truncate(end);
        }
        // The names of the two limits are those of OpenAI and of other servers.
        let most = fields.remove("max_completion_tokens").or_else(|| fields.remove("max_output_tokens"));
        most.into_iter().for_each(|most| drop(fields.insert("max_tokens".to_owned(), most)));
    }
    body
}

/// A user's text is a string or a single part, which is the same to a model. The order of arguments is not guaranteed.
fn plain_message(message: &mut Value) {
    if message["role"] == "user" && message["content"].is_string() {
        message["content"] = json!([{"type": "text", "text": message["content"].take()}]);
    }
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        call["function"]["arguments"] = serde_json::from_str(arguments).unwrap_or_default();
    }
}

/// The tools are those of Flue 2.x: `read` lists no folders, and `grep` can take a pattern literally.
fn plain_tool(tool: &mut Value) {
    let tool = if tool["function"].is_object() { &mut tool["function"] } else { tool };
    if tool["name"] == "read" {
        tool["description"] = Value::Null;
    }
    for schema in ["parameters", "input_schema"] {
        if tool["name"] == "grep"
            && let Some(properties) = tool[schema]["properties"].as_object_mut()
        {
            properties.remove("literal");
        }
    }
}

/// Sorts the requests for the two summaries of a split turn, which are sent at the same time.
pub fn sort_summaries(requests: &mut [Value]) {
    let is_summary = |request: &Value| request["tools"].is_null();
    requests.chunk_by_mut(|one, next| is_summary(one) && is_summary(next)).for_each(|both| {
        both.sort_by_key(|request| std::cmp::Reverse(request["max_tokens"].as_u64()));
    });
}

/// Removes what Flue 0.8.1 does not have about skills: the tool that loads one, and the instructions in a prompt that names one.
pub fn without_skills(our: &mut Value) {
    for request in our["requests"].as_array_mut().into_iter().flatten() {
        let Some(tools) = request["tools"].as_array_mut() else { continue };
        let before = tools.len();
        tools.retain(|tool| {
            let name = &tool["function"]["name"];
            name != "activate_skill" && name != "read_skill_resource"
        });
        if tools.len() < before {
            visit(request, "/messages/0/content", &mut |text| {
                replace(
                    text,
                    "call the `activate_skill` tool with that skill name before",
                    "activate that skill before",
                );
            });
        }
        visit(request, "/messages/*/content/*/text", &mut |text| {
            cut(text, "\n\n<skill_instructions>", "</skill_resources>")
        });
    }
}

fn replace(text: &mut Value, from: &str, to: &str) {
    if let Value::String(text) = text {
        *text = text.replace(from, to);
    }
}

/// Removes what stands from one word to another, both included.
fn cut(text: &mut Value, from: &str, to: &str) {
    if let Value::String(text) = text
        && let (Some(start), Some(end)) = (text.find(from), text.find(to))
    {
        text.replace_range(start..end + to.len(), "");
    }
}

/// Leaves out the limit of output tokens, which ours always sends, from the requests for which Flue's does not send one.
pub fn without_own_limits(their: &Value, our: &mut Value) {
    let theirs = their["requests"].as_array().into_iter().flatten();
    for (their, our) in theirs.zip(our["requests"].as_array_mut().into_iter().flatten()) {
        if their["max_tokens"].is_null()
            && let Some(fields) = our.as_object_mut()
        {
            fields.remove("max_tokens");
        }
    }
}

/// Masks the words of a request for a summary. What it has of the conversation stays.
pub fn mask_summary(transcript: &mut Value, request: &str) {
    let Some(request) = transcript.pointer_mut(request) else { return };
    for instructions in ["/system/0/text", "/messages/0/content", "/input/0/content"] {
        if let Some(Value::String(text)) = request.pointer_mut(instructions) {
            *text = "(the instructions for a summary)".to_owned();
        }
    }
    for prompt in ["/messages/*/content/*/text", "/input/*/content/*/text"] {
        visit(request, prompt, &mut cut_words);
    }
}

/// Leaves the conversation and the summary before it.
fn cut_words(text: &mut Value) {
    let Value::String(text) = text else { return };
    let end = |tag: &str| text.find(tag).map(|start| start + tag.len());
    if let Some(end) = end("\n</previous-summary>\n").or_else(|| end("\n</conversation>\n")) {
        text.truncate(end);
    }
}
