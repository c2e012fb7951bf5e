//! Skills, of the workspace and of the program.

use std::sync::Arc;

use bytes::Bytes;
use eyot::{Sandbox, SandboxProvider, SandboxSpec};
use eyot_agent::{
    AgentSandbox, HarnessOptions, PackagedSkill, PromptOptions, ScriptedTurn, SkillOptions, init,
};
use eyot_providers::memory::MemoryProvider;
use serde_json::json;

use crate::support::{agent_with, last_text, tool_results};

const REVIEW: &str = "---\nname: review\ndescription: Reviews code.\n---\nRead every line.";

/// A workspace with a skill, and its provider, which it lives with.
async fn workspace() -> (Arc<dyn SandboxProvider>, Sandbox) {
    let provider: Arc<dyn SandboxProvider> = Arc::new(MemoryProvider::default());
    let sandbox = Sandbox::create(provider.as_ref(), SandboxSpec::default()).await.expect("a sandbox");
    for (path, text) in [("review/SKILL.md", REVIEW), ("notes.txt", "no skill")] {
        sandbox.write(&format!(".agents/skills/{path}"), text).await.expect("a file");
    }
    (provider, sandbox)
}

fn packaged() -> PackagedSkill {
    let main = "---\nname: deploy\ndescription: Deploys.\n---\nPush the button.";
    let files = [("SKILL.md", main), ("button.md", "It is red.\nIt is round.")];
    PackagedSkill::new("deploy", files.map(|(path, text)| (path.to_owned(), Bytes::from(text))))
        .expect("a skill")
}

fn options(sandbox: Sandbox) -> HarnessOptions {
    HarnessOptions {
        sandbox: AgentSandbox::Sandbox(sandbox),
        skills: vec![packaged()],
        ..HarnessOptions::default()
    }
}

#[tokio::test]
async fn the_model_is_shown_the_skills_and_loads_them_when_it_needs_them() {
    let path = "/.flue/packaged-skills/deploy/button.md";
    let turns = [
        ScriptedTurn::call("1", "activate_skill", json!({"name": "review"}))
            .and_call("2", "activate_skill", json!({"name": "deploy"}))
            .and_call("3", "activate_skill", json!({"name": "nothing"}))
            .and_call("4", "read_skill_resource", json!({"path": path, "offset": 2}))
            .and_call("5", "read_skill_resource", json!({"path": "/etc/passwd"})),
        ScriptedTurn::text("ok"),
    ];
    let (_provider, sandbox) = workspace().await;
    let agent = agent_with(turns, options(sandbox)).await;
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let requests = agent.model.requests();
    let system = requests[0].system_prompt.as_ref().unwrap();
    assert!(system.contains("- **deploy** — Deploys.\n- **review** — Reviews code."), "{system}");
    let results = tool_results(&requests[1]);
    assert!(results[0].0.contains("Read every line."), "{results:?}");
    assert!(results[1].0.contains(&format!("- button.md → read_skill_resource {path}")), "{results:?}");
    assert_eq!(results[2].0, "Skill \"nothing\" is not available. Available skills: deploy, review.");
    assert_eq!(results[3], ("It is round.".into(), false));
    assert_eq!(results[4], ("Packaged skill file not found: /etc/passwd".into(), true));
}

#[tokio::test]
async fn a_skill_is_run_by_name_or_as_it_is_with_arguments() {
    let turns = [ScriptedTurn::text("reviewed"), ScriptedTurn::text("deployed")];
    let (_provider, sandbox) = workspace().await;
    let agent = agent_with(turns, options(sandbox)).await;
    let arguments = json!({"branch": "main"}).as_object().unwrap().clone();
    let reviewed = agent.session.skill("review", SkillOptions { arguments, ..SkillOptions::default() });
    assert_eq!(reviewed.await.unwrap().text, "reviewed");
    let asked = last_text(&agent.model.requests()[0]);
    assert!(
        asked.starts_with("Run the skill named \"review\".\n\n<skill_instructions>\nRead every line."),
        "{asked}"
    );
    assert!(asked.ends_with("Arguments:\n{\n  \"branch\": \"main\"\n}"), "{asked}");
    agent.session.skill(packaged(), SkillOptions::default()).await.unwrap();
    let error = agent.session.skill("nothing", SkillOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no skill `nothing`; there are: deploy, review");
}

#[tokio::test]
async fn a_skill_that_is_wrong_or_there_twice_is_refused_when_the_harness_is_made() {
    let (_provider, sandbox) = workspace().await;
    sandbox.write(".agents/skills/deploy/SKILL.md", REVIEW.replace("review", "deploy")).await.unwrap();
    let error = init(options(sandbox.clone())).await.err().unwrap();
    assert_eq!(error.to_string(), "skill `deploy` exists twice: in the agent and in the workspace");
    sandbox.write(".agents/skills/deploy/SKILL.md", "no front matter").await.unwrap();
    let error = init(options(sandbox)).await.err().unwrap();
    assert!(error.to_string().contains("start it with `---`"), "{error}");
}
