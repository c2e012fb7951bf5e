//! The policies of Anvia's tools, by the table of what Anvia 0.6.0 answered. The TypeScript
//! drop-in is held against it too (`sdks/typescript/test/anvia/policies.test.ts`).

use std::collections::BTreeMap;
use std::time::Duration;

use eyot::{Capabilities, Capability};
use eyot_tools::{WorkspaceToolsOptions, workspace_tools};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Table {
    messages: BTreeMap<String, String>,
    requests: BTreeMap<String, Value>,
    programs: Vec<ProgramRow>,
    calls: Vec<CallRow>,
}

/// A list of programs, and the requests that it refuses, by the key of the message.
#[derive(Deserialize)]
struct ProgramRow {
    exec: Value,
    /// Refused by Anvia too.
    #[serde(default)]
    anvia: BTreeMap<String, Vec<String>>,
    /// Refused here alone.
    #[serde(default)]
    eyot: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct CallRow {
    tool: String,
    options: Value,
    input: Value,
    refusal: Option<String>,
    /// Marks options that the types can't hold.
    #[serde(default)]
    typed: bool,
    /// Marks a sandbox that has neither ports nor processes.
    #[serde(default)]
    plain: bool,
}

impl Table {
    fn read() -> Self {
        serde_json::from_str(include_str!("anvia_policies.json")).unwrap()
    }

    /// Returns the sentence for a request that a row names.
    fn sentence(&self, row: &ProgramRow, name: &str) -> Option<String> {
        let refused = row.anvia.iter().chain(&row.eyot);
        let mut words = refused.filter(|(_, names)| names.iter().any(|refused| refused == name));
        let (word, _) = words.next()?;
        let request = &self.requests[name];
        let subject = if word == "variable" {
            request["env"].as_object().unwrap().keys().next().unwrap().clone()
        } else {
            request["command"].as_str().unwrap().to_owned()
        };
        Some(format!("{}{subject}", self.messages[word]))
    }

    /// Returns whether a sentence is a policy's, and no other answer of a tool.
    fn is_of_a_policy(&self, sentence: &str) -> bool {
        self.messages.values().any(|message| sentence.starts_with(message))
            || self.calls.iter().any(|call| call.refusal.as_deref() == Some(sentence))
    }

    /// Returns the sentence that refuses a call, be it when the tools are made or when one is called.
    async fn refusal(&self, tool: &str, options: &Value, input: &Value, plain: bool) -> Option<String> {
        let mut options: WorkspaceToolsOptions = with_tool(options, tool);
        options.ports =
            input["containerPort"].as_u64().map(|port| u16::try_from(port).unwrap()).into_iter().collect();
        let all = [Capability::Processes, Capability::Dial];
        let capabilities = if plain { Capabilities::default() } else { Capabilities::new(all) };
        let tools = match workspace_tools(options, &capabilities) {
            Ok(tools) => tools,
            Err(error) => return Some(error.to_string()),
        };
        // What is let through may wait for a command that nobody ends. Time is the test's.
        let call =
            tokio::time::timeout(Duration::from_secs(3600), crate::call_of(&tools, tool, input.clone()));
        let answer = call.await.ok().filter(|answer| answer.is_error)?.as_text();
        self.is_of_a_policy(&answer).then_some(answer)
    }
}

fn with_tool(options: &Value, tool: &str) -> WorkspaceToolsOptions {
    let mut options = options.clone();
    options["allow"] = json!([tool]);
    serde_json::from_value(options).unwrap()
}

#[tokio::test(start_paused = true)]
async fn programs_are_refused_as_the_table_says() {
    let table = Table::read();
    for row in &table.programs {
        for (name, request) in &table.requests {
            for tool in ["exec_command", "start_process"] {
                let refused = table.refusal(tool, &json!({ "exec": row.exec }), request, false).await;
                assert_eq!(refused, table.sentence(row, name), "{tool} {name} under {}", row.exec);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_kept_as_the_table_says() {
    let table = Table::read();
    for CallRow { tool, options, input, refusal, typed, plain } in &table.calls {
        if *typed {
            let read = serde_json::from_value::<WorkspaceToolsOptions>(options.clone());
            assert!(read.is_err(), "{options}");
        } else {
            let refused = table.refusal(tool, options, input, *plain).await;
            assert_eq!(&refused, refusal, "{tool} {options} {input}");
        }
    }
}
