//! The toolsets that a command names, with their policies.

use eyot::{Capabilities, SandboxName, SandboxProvider};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_providers::remote::RemoteServer;
use eyot_tools::{Toolset, default_tools, toolset, toolset_over, workspace_tools};

use crate::args::WorkspaceOptionsArg;
use crate::errors::{Failure, USAGE};

const WORKSPACE: &str = "workspace";

/// Returns the toolsets of these names as one. The options are for `workspace`, which must then be
/// among them; its tools are checked against the capabilities of the sandboxes.
pub fn toolsets(
    names: &[&str],
    options: Option<&WorkspaceOptionsArg>,
    capabilities: &Capabilities,
) -> Result<Toolset, Failure> {
    found(names, options, capabilities, || toolset("pool"), toolset)
}

/// Returns the same over a provider that is there: `provider` is the toolset that it brings, which also stands for no name.
pub fn toolsets_over(
    provider: &dyn SandboxProvider,
    names: &[&str],
    options: Option<&WorkspaceOptionsArg>,
) -> Result<Toolset, Failure> {
    let find = |name: &str| toolset_over(provider, name);
    found(names, options, provider.capabilities(), || default_tools(provider), find)
}

fn found(
    names: &[&str],
    options: Option<&WorkspaceOptionsArg>,
    capabilities: &Capabilities,
    default: impl Fn() -> eyot::Result<Toolset>,
    find: impl Fn(&str) -> eyot::Result<Toolset>,
) -> Result<Toolset, Failure> {
    let usage = |error| Failure::with_code(error, USAGE);
    if options.is_some() && !names.contains(&WORKSPACE) {
        let failure =
            Failure::usage("`--workspace-options` is for the toolset `workspace`, which is not asked for");
        return Err(failure.hint("say it with `workspace`, as in `eyot tools --toolset workspace`"));
    }
    let options = options.map(|options| &*options.0);
    let mut sets = names.iter().map(|name| match options {
        Some(options) if *name == WORKSPACE => workspace_tools(options.clone(), capabilities),
        _ => find(name),
    });
    let first = sets.next().unwrap_or_else(default).map_err(usage)?;
    sets.try_fold(first, |tools, next| joined(tools, next.map_err(usage)?))
}

/// Returns the same toolsets, answered by a server in this pool, and that pool. `None`: the key's
/// own.
pub async fn served(
    server: &RemoteServer,
    pool: Option<&SandboxName>,
    names: &[&str],
    options: Option<&WorkspaceOptionsArg>,
) -> Result<(Toolset, SandboxPool), Failure> {
    let usage = |error| Failure::with_code(error, USAGE);
    if options.is_some() {
        let failure =
            Failure::usage("`--workspace-options` are for tools of this host, and a server has its own");
        return Err(failure.hint("leave `--workspace-options` or `--server` out"));
    }
    let names = if names.is_empty() { &["pool"] } else { names };
    let mut tools: Option<Toolset> = None;
    for name in names {
        let set = server.tools(pool, &toolset(name).map_err(usage)?)?;
        tools = Some(match tools {
            Some(before) => joined(before, set)?,
            None => set,
        });
    }
    let tools = tools.ok_or_else(|| Failure::usage("no toolset is named"))?;
    let mut options = PoolOptions::default();
    if let Some(pool) = pool {
        options.name = pool.clone();
    }
    Ok((tools, SandboxPool::open(server.provider(pool).await?, options)?))
}

/// Joins two toolsets. A model can't tell two tools of one name apart.
fn joined(tools: Toolset, next: Toolset) -> Result<Toolset, Failure> {
    let hint =
        format!("`{}` has tools of the same name: serve it alone, by a server of its own", next.name());
    tools.and(next).map_err(|error| Failure::with_code(error, USAGE).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str], options: Option<&str>) -> Result<Vec<String>, Failure> {
        let options = options.map(|options| options.parse().unwrap());
        let tools = toolsets(names, options.as_ref(), &Capabilities::default())?;
        let schemas = tools.schemas(eyot_tools::ToolFormat::Mcp);
        let listed = schemas.as_array().unwrap().iter();
        Ok(listed.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn a_toolset_that_is_not_there_and_one_given_twice_are_usage_errors() {
        for refused in [&["nope"][..], &["pool", "pool"]] {
            assert_eq!(names(refused, None).unwrap_err().exit_code(), USAGE, "{refused:?}");
        }
        assert_eq!(names(&[], None).unwrap(), names(&["pool"], None).unwrap());
    }

    #[test]
    fn a_provider_that_brings_no_tools_has_the_toolset_pool_and_none_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let native =
            eyot_native::NativeProvider::new(eyot_native::NativeOptions { state, ..Default::default() });
        let native = native.unwrap();
        assert_eq!(toolsets_over(&*native, &[], None).unwrap().name(), "pool");
        assert_eq!(toolsets_over(&*native, &["coding"], None).unwrap().name(), "coding");
        let refused = toolsets_over(&*native, &[eyot_tools::PROVIDER_TOOLSET], None).unwrap_err();
        assert_eq!(refused.exit_code(), USAGE);
    }

    #[test]
    fn the_options_are_those_of_the_toolset_workspace() {
        let allowed = names(&["workspace"], Some(r#"{"allow": ["read_file"]}"#)).unwrap();
        assert_eq!(allowed, ["read_file"]);
        assert_eq!(names(&["pool"], Some("{}")).unwrap_err().exit_code(), USAGE);
        // Asked for, but not to be had of such sandboxes.
        let unsupported = names(&["workspace"], Some(r#"{"allow": ["start_process"]}"#));
        assert_eq!(unsupported.unwrap_err().exit_code(), USAGE);
    }

    #[test]
    fn options_that_are_wrong_say_what_is_wrong() {
        for (wrong, says) in
            [("{", "EOF"), (r#"{"alow": []}"#, "alow"), ("@/nowhere", "can't read `/nowhere`")]
        {
            let error = wrong.parse::<WorkspaceOptionsArg>().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
