//! `sandbox_list` and `transfer`, and the choice of a call's sandbox.

use eyot::SandboxName;
use eyot_tools::handle_tool_call;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::session::Session;
use crate::{ensure, ensure_eq, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_call_that_names_no_sandbox_means_default_and_makes_it", default_sandbox),
        trial("a_session_may_mean_another_sandbox_by_default", other_default),
        trial("sandboxes_share_no_files", apart),
        trial("a_file_goes_from_one_sandbox_to_another_and_is_counted", transfer),
        trial("a_transfer_that_can_t_be_says_why", refused_transfers),
    ]
}

async fn default_sandbox() -> Result<(), Failed> {
    let session = Session::new()?;
    ensure_eq(session.ok("sandbox_list", json!({})).await?, json!({ "sandboxes": [] }))?;
    session.shell("true").await?;
    let listed = json!({ "sandboxes": [{ "name": "default", "image": "host", "status": "running" }] });
    ensure_eq(session.ok("sandbox_list", json!({})).await?, listed)?;
    session.close().await
}

async fn other_default() -> Result<(), Failed> {
    let session = Session::new()?;
    let context = session.context.clone().with_sandbox(SandboxName::parse("other")?);
    let call = json!({ "path": "a", "content": "" });
    let output = handle_tool_call(&context, &session.tools, "write_file", call).await;
    ensure(!output.is_error, output.as_text())?;
    let names = session.ok("sandbox_list", json!({})).await?;
    ensure_eq(&names["sandboxes"][0]["name"], &json!("other"))?;
    session.close().await
}

async fn apart() -> Result<(), Failed> {
    let session = Session::new()?;
    session.ok("write_file", json!({ "sandbox": "a", "path": "/tmp/x", "content": "of a" })).await?;
    let said = session.refusal("read_file", json!({ "sandbox": "b", "path": "/tmp/x" })).await?;
    ensure(said.contains("`/tmp/x`") && said.contains("`b`"), said)?;
    session.close().await
}

async fn transfer() -> Result<(), Failed> {
    let session = Session::new()?;
    session.ok("shell", json!({ "sandbox": "a", "command": "echo hi > f; chmod 750 f" })).await?;
    let input = json!({ "from_sandbox": "a", "from_path": "f", "to_sandbox": "b", "to_path": "x/y/g" });
    ensure_eq(session.ok("transfer", input).await?, json!({ "ok": true, "bytes": 3, "files": 1 }))?;
    let there =
        session.ok("shell", json!({ "sandbox": "b", "command": "stat -c %a x/y/g; cat x/y/g" })).await?;
    ensure_eq(&there["stdout"], &json!("750\nhi\n"))?;
    session.close().await
}

async fn refused_transfers() -> Result<(), Failed> {
    let session = Session::new()?;
    let transfer = |from: &str, path: &str| json!({ "from_sandbox": from, "from_path": path, "to_sandbox": "b", "to_path": "t" });
    let said = session.refusal("transfer", transfer("a", "f")).await?;
    ensure_eq(said.as_str(), "there is no sandbox `a` in this pool\nhint: the pool has none")?;
    session.ok("shell", json!({ "sandbox": "a", "command": "mkdir d" })).await?;
    let said = session.refusal("transfer", transfer("builder", "f")).await?;
    ensure(said.ends_with("hint: there are: `a`"), said)?;
    let said = session.refusal("transfer", transfer("a", "d")).await?;
    ensure(said.contains("is a directory") && said.contains("`recursive`"), said)?;
    let said = session.refusal("transfer", transfer("a", "missing")).await?;
    ensure(said.contains("missing` in sandbox `a`: does not exist"), said)?;
    session.close().await
}
