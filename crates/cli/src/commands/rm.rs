//! `eyot rm`: the end of sandboxes. Each is tried; what failed is said at the end.

use eyot::{Error, ErrorKind, SandboxProvider};
use serde_json::json;

use crate::args::RmArgs;
use crate::context::{Context, with_list_hint};
use crate::errors::Failure;

pub async fn run(args: &RmArgs, context: &Context) -> Result<u8, Failure> {
    let names = match args.all {
        true => context.provider().await?.list().await?.into_iter().map(|info| info.id.to_string()).collect(),
        false => args.names.clone(),
    };
    // With --all somebody else may have been faster, which is as good.
    let forgive = args.force || args.all;
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let (provider, found) = context.find(&name).await?;
        match remove(provider.as_ref(), found, forgive).await {
            Ok(true) => removed.push(name),
            Ok(false) => {}
            Err(error) => failures.push(error),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "removed": removed }))?;
    }
    settle(failures, context)
}

/// Whether there was one to remove.
async fn remove(provider: &dyn SandboxProvider, name: &str, forgive: bool) -> Result<bool, Error> {
    match provider.remove(name).await {
        Ok(()) => Ok(true),
        Err(error) if forgive && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
            Ok(false)
        }
        Err(error) => Err(with_list_hint(error)),
    }
}

/// The last failure is the command's; the ones before it are said now.
pub(super) fn settle(mut failures: Vec<Error>, context: &Context) -> Result<u8, Failure> {
    let Some(last) = failures.pop() else { return Ok(0) };
    for failure in failures {
        context.output.complain(&failure);
    }
    Err(last.into())
}
