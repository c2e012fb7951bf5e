//! Transcripts: the requests, events and outcomes of a scenario in one runtime, in a form that can be compared.
//!
//! Ids become their order of appearance, times are left out, and so are the differences that every run has; docs/agents.md lists
//! them with their reasons.

use std::collections::BTreeMap;

use eyot_agent::standin::{StandIn, StandInRequest};
use serde_json::{Value, json};

/// The kinds of events that are compared. Flue 0.8.1 has more, and ours are those of 0.7.1.
const KINDS: [&str; 17] = [
    "run_start",
    "text_delta",
    "thinking_start",
    "thinking_delta",
    "thinking_end",
    "tool_start",
    "tool_call",
    "turn",
    "task_start",
    "task",
    "compaction_start",
    "compaction",
    "operation_start",
    "operation",
    "log",
    "idle",
    "run_end",
];

/// The fields of events that are times, or that 0.7.1 does not have.
const LEFT_OUT: [&str; 13] = [
    "timestamp",
    "startedAt",
    "owner",
    "eventIndex",
    "durationMs",
    "instanceId",
    "runId",
    "turnId",
    "purpose",
    "provider",
    "api",
    "output",
    "details",
];

/// The headers that are compared.
const HEADERS: [&str; 6] = [
    "authorization",
    "x-api-key",
    "anthropic-version",
    "anthropic-beta",
    "session_id",
    "x-client-request-id",
];

/// Makes the transcript of a scenario from the requests and from the events and outcomes. `is_parallel`: what happens in one
/// session is compared apart from what happens in the others.
pub fn transcript(stand_in: &StandIn, mut played: Value, is_parallel: bool) -> Value {
    let mut requests: Vec<Value> = stand_in.requests().into_iter().map(request).collect();
    let mut events = played["events"].as_array().cloned().unwrap_or_default();
    let mut names = Names::default();
    events.iter().filter(|event| event["type"] == "task_start").for_each(|task| names.add(&task["taskId"]));
    if is_parallel {
        events.sort_by_key(|event| names.shortened(event["session"].as_str().unwrap_or_default()));
        requests.sort_by_key(ToString::to_string);
    }
    sort_summaries(&mut requests);
    played["outcomes"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .for_each(|done| plain_result(&mut done["result"]));
    let events = events_of(events, is_parallel.then_some(&mut names));
    let mut whole = json!({"events": events, "outcomes": played["outcomes"], "requests": requests});
    names.shorten(&mut whole);
    whole
}

/// Sorts the requests for the two summaries of a split turn, which are sent at the same time.
fn sort_summaries(requests: &mut [Value]) {
    let is_summary = |request: &Value| request["tools"].is_null();
    requests.chunk_by_mut(|one, next| is_summary(one) && is_summary(next)).for_each(|both| {
        both.sort_by_key(|request| std::cmp::Reverse(request["max_tokens"].as_u64()));
    });
}

/// Removes the intended differences of every request.
fn request(asked: StandInRequest) -> Value {
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

/// Returns the events without what is not compared. The answers of one turn arrive in any order, and our runtime holds back the
/// end of a piece of text where a secret may begin.
fn events_of(events: Vec<Value>, mut tasks: Option<&mut Names>) -> Vec<Value> {
    let compared = |event: &Value| {
        // The lines that a session writes into the log are other ones.
        let is_line = event["type"] == "log" && !event["session"].is_null();
        KINDS.contains(&event["type"].as_str().unwrap_or_default()) && !is_line
    };
    let mut events: Vec<Value> = events.into_iter().filter(compared).map(plain_event).collect();
    events.dedup_by(|piece, before| join_pieces(before, piece));
    let is_parallel = tasks.is_some();
    let is_of_a_call = |event: &Value| match event["type"].as_str() {
        Some("tool_start" | "tool_call") => true,
        Some("task") => is_parallel,
        _ => false,
    };
    let mut order = |event: &Value| match event["type"].as_str() {
        Some("tool_start") => (0, String::new()),
        Some("tool_call") => (1, event["toolCallId"].to_string()),
        _ => {
            let task = event["taskId"].as_str().unwrap_or_default();
            (2, tasks.as_mut().map(|names| names.shortened(task)).unwrap_or_default())
        }
    };
    events
        .chunk_by_mut(|one, next| is_of_a_call(one) && is_of_a_call(next))
        .for_each(|together| together.sort_by_key(&mut order));
    events
}

fn plain_event(event: Value) -> Value {
    let Value::Object(mut fields) = event else { return event };
    LEFT_OUT.iter().for_each(|field| drop(fields.remove(*field)));
    fields.get_mut("result").into_iter().for_each(plain_result);
    // What 0.7.1 calls an agent is a workflow now.
    if let Some(name) = fields.remove("workflowName") {
        fields.insert("agentName".to_owned(), name);
    }
    // 0.7.1 says at the start of a task who does it, and calls that the role.
    if let Some(agent) = fields.remove("agent")
        && fields["type"] == "task_start"
    {
        fields.insert("role".to_owned(), agent);
    }
    // Flue counts no tokens for a failed turn, and ours none that the provider did not count.
    if fields.get("isError") == Some(&json!(true))
        && fields.get("usage").is_some_and(|usage| usage["totalTokens"] == 0)
    {
        fields.remove("usage");
    }
    Value::Object(fields)
}

/// `result` is the older name of `data`. What is for programs in an answer of a tool is not compared.
fn plain_result(result: &mut Value) {
    if let Some(fields) = result.as_object_mut() {
        ["result", "details", "terminate"].iter().for_each(|field| drop(fields.remove(*field)));
    }
}

/// Adds a piece to the one before it, if both are of one text. Returns whether they are.
fn join_pieces(before: &mut Value, piece: &Value) -> bool {
    for (kind, field) in [("text_delta", "text"), ("thinking_delta", "delta")] {
        if before["type"] == kind && piece["type"] == kind {
            let text = [&before[field], &piece[field]].map(|text| text.as_str().unwrap_or_default()).concat();
            before[field] = json!(text);
            return true;
        }
    }
    false
}

/// Short names for ids, in the order in which they appear.
#[derive(Default)]
struct Names {
    known: BTreeMap<String, String>,
}

impl Names {
    fn add(&mut self, id: &Value) {
        self.shortened(id.as_str().unwrap_or_default());
    }

    /// Replaces the ids in all texts of a value, and makes equal numbers equal.
    fn shorten(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.shortened(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.shorten(item)),
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                fields.values_mut().for_each(|value| self.shorten(value));
            }
            Value::Number(number) => *value = json!(number.as_f64()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn shortened(&mut self, text: &str) -> String {
        let mut short = String::new();
        // Errors of Flue begin with its name.
        let mut rest = text.strip_prefix("[flue] ").unwrap_or(text);
        while let Some(first) = rest.chars().next() {
            let (piece, length) = match id_at_start(rest) {
                Some(id) => (self.name(id), id.len()),
                None => (first.to_string(), first.len_utf8()),
            };
            short.push_str(&piece);
            rest = &rest[length..];
        }
        short
    }

    fn name(&mut self, id: &str) -> String {
        let next = format!("(id {})", self.known.len() + 1);
        self.known.entry(id.to_owned()).or_insert(next).clone()
    }
}

/// Returns the id that a text begins with: a UUID, the id of an operation, or one that a stand-in makes.
fn id_at_start(text: &str) -> Option<&str> {
    let fixed = [(36, is_uuid as fn(&str) -> bool), (29, is_operation)].into_iter();
    let fixed = fixed.filter_map(|(length, is)| text.get(..length).filter(|id| is(id))).next();
    fixed.or_else(|| {
        let kind =
            ["fc_standin_", "rs_standin_", "msg_standin_"].into_iter().find(|kind| text.starts_with(kind))?;
        let digits = text[kind.len()..].bytes().take_while(u8::is_ascii_digit).count();
        Some(&text[..kind.len() + digits])
    })
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.bytes().enumerate().all(|(place, byte)| match dashes.contains(&place) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    })
}

fn is_operation(text: &str) -> bool {
    text.strip_prefix("op_").is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Merges blocks of events that are the same as the block before, and requests that are: a turn that was asked for again.
pub fn without_repetitions(transcript: &mut Value) {
    let events = transcript["events"].as_array().cloned().unwrap_or_default();
    let ends = |event: &Value| event["type"] == "operation_start" || event["type"] == "turn";
    let mut blocks: Vec<&[Value]> = events.chunk_by(|one, _| !ends(one)).collect();
    blocks.dedup();
    transcript["events"] = json!(blocks.concat());
    if let Some(requests) = transcript["requests"].as_array_mut() {
        requests.dedup();
    }
}

/// Masks what a pointer points at; `*` is any one name or number that is there. Returns what was there.
pub fn mask(value: &mut Value, at: &str) -> Vec<Value> {
    let mut found = Vec::new();
    visit(value, at, &mut |place| found.push(std::mem::replace(place, json!("(differs)"))));
    found
}

/// Removes the item or field that a pointer points at. Returns what was there.
pub fn remove(value: &mut Value, at: &str) -> Option<Value> {
    let (parent, name) = at.rsplit_once('/')?;
    match value.pointer_mut(parent)? {
        Value::Array(items) => {
            name.parse().ok().filter(|number| *number < items.len()).map(|number: usize| items.remove(number))
        }
        Value::Object(fields) => fields.remove(name),
        _ => None,
    }
}

fn visit(value: &mut Value, at: &str, found: &mut impl FnMut(&mut Value)) {
    let Some(rest) = at.strip_prefix('/') else { return found(value) };
    let (name, below) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
    match value {
        Value::Object(fields) if name == "*" => {
            fields.values_mut().for_each(|field| visit(field, below, found))
        }
        Value::Array(items) if name == "*" => items.iter_mut().for_each(|item| visit(item, below, found)),
        Value::Object(fields) => {
            fields.get_mut(name).into_iter().for_each(|field| visit(field, below, found))
        }
        Value::Array(items) => {
            let item = name.parse::<usize>().ok().and_then(|number| items.get_mut(number));
            item.into_iter().for_each(|item| visit(item, below, found));
        }
        _ => {}
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
