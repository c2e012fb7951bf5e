//! Scenarios: the steps of a caller and the turns of a model, which both runtimes play.

use eyot_agent::ModelApi;
use eyot_agent::standin::StandInTurn;
use serde_json::{Value, json};

/// Steps of a caller and turns of a model.
#[derive(Clone)]
pub struct Scenario {
    /// The name of the test, as a sentence.
    pub name: &'static str,
    /// The protocol of the model.
    pub api: ModelApi,
    /// The settings of the agent: `files`, `instructions`, `tools`, `subagents`, `thinking`, `compaction`, `contextWindow`,
    /// `maxTokens`, `cwd`, `skills`, `sandboxTools`, `mcp`, and `run`: the input of a run that the steps are.
    pub setup: Value,
    /// The steps: `do` says what, such as `prompt`, and `text` with what.
    pub steps: Vec<Value>,
    /// The turns of the model.
    pub turns: Vec<StandInTurn>,
    /// The turns of the model where ours are others, because ours asks again.
    pub our_turns: Option<Vec<StandInTurn>>,
    /// Set if things happen at the same time, in any order.
    pub is_parallel: bool,
    /// The rows of the tables in docs/agents.md that this run meets.
    pub rows: Vec<&'static str>,
    /// The numbers of the requests for summaries, as JSON pointers.
    pub summaries: Vec<&'static str>,
    /// The intended differences of this run, in addition to those of every run.
    pub differences: Vec<Difference>,
}

/// An intended difference, whose reason is a row of the tables in docs/agents.md. One that is not there fails the test, so that the lists
/// stay true. Places are JSON pointers into a transcript; `*` is any one name or number.
#[derive(Debug, Clone, Copy)]
pub enum Difference {
    /// Both have something there, but not the same.
    Differs(&'static str),
    /// Flue's transcript alone has it.
    OnlyTheirs(&'static str),
    /// Our transcript alone has it.
    OnlyOurs(&'static str),
}

impl Scenario {
    /// Creates a scenario with a model behind chat completions.
    pub fn new(name: &'static str, steps: Value, turns: Vec<StandInTurn>) -> Self {
        let steps = steps.as_array().cloned().unwrap_or_default();
        Self {
            name,
            api: ModelApi::OpenaiCompletions,
            setup: json!({"instructions": "Be brief."}),
            steps,
            turns,
            our_turns: None,
            is_parallel: false,
            rows: Vec::new(),
            summaries: Vec::new(),
            differences: Vec::new(),
        }
    }

    /// Returns this scenario with other settings of the agent.
    pub fn with(mut self, setup: Value) -> Self {
        if let (Some(known), Value::Object(more)) = (self.setup.as_object_mut(), setup) {
            known.extend(more);
        }
        self
    }

    /// Returns this scenario with a model of another protocol.
    pub fn by(self, api: ModelApi) -> Self {
        Self { api, ..self }
    }

    /// Returns this scenario with other turns for our runtime.
    pub fn with_our_turns(self, turns: Vec<StandInTurn>) -> Self {
        Self { our_turns: Some(turns), ..self }
    }

    /// Returns this scenario, in which things happen at the same time.
    pub fn in_any_order(self) -> Self {
        Self { is_parallel: true, ..self }
    }

    /// Returns this scenario with places where the two differ, each on its own. The reason is in this row of
    /// the tables in docs/agents.md.
    pub fn except(mut self, row: &'static str, differences: &[Difference]) -> Self {
        self.rows.push(row);
        self.differences.extend(differences);
        self
    }

    /// Returns this scenario with errors that are worded differently, and whose names say more than Flue's `Error`.
    pub fn with_errors_of_models(self) -> Self {
        self.except(
            "texts and names of errors",
            &[
                Difference::Differs("/events/*/error"),
                Difference::Differs("/outcomes/*/error/name"),
                Difference::Differs("/outcomes/*/error/message"),
            ],
        )
    }

    /// Returns this scenario with differences in the words of the requests for summaries, which have these numbers.
    pub fn with_summaries(mut self, requests: &[&'static str]) -> Self {
        self.rows.push("the requests for a summary");
        self.summaries.extend(requests);
        self
    }
}
