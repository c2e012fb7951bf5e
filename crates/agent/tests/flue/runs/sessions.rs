//! Sessions: more than one, and those that come and go.

use serde_json::json;

use super::text;
use crate::scenario::Difference::Differs;
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "two_sessions_have_their_own_conversations_and_one_workspace",
            json!([
                {"do": "prompt", "text": "hello"},
                {"do": "shell", "text": "echo a > a.txt"},
                {"do": "shell", "text": "cat a.txt", "session": "other"},
                {"do": "prompt", "text": "hello", "session": "other"},
                {"do": "prompt", "text": "go on"},
            ]),
            vec![text("One."), text("Other."), text("Two.")],
        ),
        Scenario::new(
            "a_session_is_got_when_it_is_there_and_created_when_it_is_not",
            json!([
                {"do": "get", "session": "other"},
                {"do": "create", "session": "other"},
                {"do": "create", "session": "other"},
                {"do": "get", "session": "other"},
                {"do": "prompt", "text": "hello", "session": "other"},
            ]),
            vec![text("Hello.")],
        )
        .except("texts and names of errors", &[Differs("/outcomes/*/error/message")]),
        Scenario::new(
            "a_session_that_was_deleted_begins_again",
            json!([
                {"do": "prompt", "text": "hello", "session": "other"},
                {"do": "delete", "session": "other"},
                {"do": "delete", "session": "other"},
                {"do": "get", "session": "other"},
                {"do": "prompt", "text": "hello again", "session": "other"},
            ]),
            vec![text("Hello."), text("Hello again.")],
        )
        .except("texts and names of errors", &[Differs("/outcomes/*/error/message")]),
    ]
}
