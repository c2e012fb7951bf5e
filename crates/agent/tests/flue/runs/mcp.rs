//! Tools of an MCP server.

use eyot_agent::ModelApi;
use eyot_agent::standin::StandInTurn;
use serde_json::json;

use super::{call, go, text};
use crate::scenario::Difference::{Differs, OnlyOurs};
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    let server = json!({"mcp": "toy box!"});
    vec![
        Scenario::new(
            "the_tools_of_an_mcp_server_are_called_by_their_names",
            go(),
            vec![
                call("c1", "mcp__toy_box__greet", json!({"name": "Ada"})),
                call("c2", "mcp__toy_box__fail", json!({})).and_call(
                    "c3",
                    "mcp__toy_box__nothing",
                    json!({}),
                ),
                text("It said hello."),
            ],
        )
        .with(server.clone()),
        Scenario::new(
            "answers_of_an_mcp_server_of_all_kinds_become_text",
            go(),
            vec![
                call("c1", "mcp__toy_box__fetch_all", json!({})),
                StandInTurn::call("c2", "mcp__toy_box__count", json!({})),
                text("That was all."),
            ],
        )
        .with(server.clone()),
        Scenario::new(
            "an_image_of_an_mcp_server_is_named_and_shown",
            go(),
            vec![call("c1", "mcp__toy_box__draw", json!({})), text("A pixel.")],
        )
        .by(ModelApi::AnthropicMessages)
        .with(server)
        .except(
            "images in answers of MCP servers",
            &[Differs("/requests/1/messages/2/content/0/content"), OnlyOurs("/events/2/result/content/1")],
        ),
    ]
}
