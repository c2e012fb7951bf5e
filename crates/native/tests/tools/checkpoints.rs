//! The toolset `checkpoints`: kept files, the way back, and what has changed.

use eyot_tools::toolset;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::session::Session;
use crate::{ensure, ensure_eq, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_model_undoes_a_bad_step_and_sees_what_it_has_changed", undone),
        trial("a_checkpoint_of_a_sandbox_that_works_is_refused_unless_that_may_be_ended", working),
        trial("of_very_many_changes_the_first_are_listed_and_the_answer_says_so", many),
    ]
}

fn session() -> Result<Session, Failed> {
    let mut session = Session::new()?;
    session.tools = session.tools.clone().and(toolset("checkpoints")?)?;
    Ok(session)
}

async fn undone() -> Result<(), Failed> {
    let session = session()?;
    session.shell("echo one > a").await?;
    let taken = session.ok("checkpoint", json!({ "name": "good" })).await?;
    ensure_eq(taken, json!({ "checkpoint": "good" }))?;
    session.shell("echo two > a; echo new > b").await?;
    let changes = json!({ "changes": [
        { "path": "/home/user/a", "change": "changed" },
        { "path": "/home/user/b", "change": "added" },
    ] });
    for asked in [json!({}), json!({ "checkpoint": "good" }), json!({ "path": "/home/user" })] {
        ensure_eq(session.ok("diff", asked).await?, changes.clone())?;
    }
    ensure_eq(session.ok("restore", json!({ "checkpoint": "good" })).await?, json!({ "ok": true }))?;
    ensure_eq(session.shell("cat a; ls").await?, "one\na\n".to_owned())?;
    let other = session.ok("checkpoint", json!({ "sandbox": "other" })).await?;
    ensure(other["checkpoint"].as_str().is_some_and(|id| id.starts_with("sn_")), format!("{other}"))?;
    let said = session.refusal("restore", json!({ "checkpoint": "nothing" })).await?;
    ensure(said.contains("`nothing`"), said)?;
    let said = session.refusal("checkpoint", json!({ "name": "good" })).await?;
    ensure(said.contains("`good` is in use"), said)?;
    session.close().await
}

async fn working() -> Result<(), Failed> {
    let session = session()?;
    session.shell("sleep 1000 > /dev/null 2>&1 &").await?;
    let said = session.refusal("checkpoint", json!({})).await?;
    ensure(said.contains("`sleep 1000` runs in sandbox `default`") && said.contains("`stop`"), said)?;
    let taken = session.ok("checkpoint", json!({ "stop": true })).await?;
    ensure_eq(&taken["stopped"], &json!(["sleep 1000"]))?;
    session.close().await
}

async fn many() -> Result<(), Failed> {
    let session = session()?;
    session.ok("checkpoint", json!({})).await?;
    session.shell("mkdir d && cd d && seq 2000 | xargs touch").await?;
    let output = session.call("diff", json!({})).await;
    let listed = output.structured.as_ref().and_then(|answer| answer["changes"].as_array());
    ensure_eq(listed.map(Vec::len), Some(1000))?;
    ensure(output.as_text().contains("there are more"), "the answer does not say so")?;
    session.close().await
}
