//! The programs that may be run, and for how long: checked on the program that will run, as far as
//! the request says which.
//!
//! A guard rail, not a wall. An allowed program can start any other; a link or a copy has another name.

use std::collections::BTreeMap;

use eyot::{Error, Result, SandboxPath};
use serde::{Deserialize, Serialize};

use super::policy_error;

/// The programs that may be run, and for how long.
///
/// An entry is compared with the command as it is written, as Anvia does. On top of that, a blocked name without a slash
/// blocks every program of that name, wherever it lies, and an entry with a slash is a path, relative to the workspace: as a
/// blocked one it blocks every path that leads to that file, and as an allowed one it allows no call from whose working
/// directory the path leads elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[doc(alias = "SandboxExecToolPolicy")]
pub struct ExecPolicy {
    /// The only programs that may be run. `None`: all that are not blocked. With a list, a call may not set the variables
    /// that decide what runs under a name: `PATH` and those that begin with `LD_`.
    pub allowed_commands: Option<Vec<String>>,
    /// Programs that may not be run, even if they are allowed.
    pub blocked_commands: Vec<String>,
    /// The deadline of a command that is given none, in milliseconds.
    pub default_timeout_ms: Option<u64>,
    /// The longest deadline that a call, or a default of these options, may give. The sandbox's own deadline, which holds
    /// where neither says one, is not compared with it.
    pub max_timeout_ms: Option<u64>,
}

/// The program that a request will run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramRequest<'a> {
    pub(super) command: &'a str,
    pub(super) cwd: Option<&'a str>,
    pub(super) env: &'a BTreeMap<String, String>,
}

impl ExecPolicy {
    /// Refuses a program that may not be run.
    pub(super) fn check_program(&self, workdir: &SandboxPath, program: ProgramRequest<'_>) -> Result<()> {
        let command = program.command;
        self.check_name(command)?;
        if self.blocked_commands.is_empty() && self.allowed_commands.is_none() {
            return Ok(());
        }
        if command.contains('/') {
            self.check_file(workdir, program)?;
        }
        if self.allowed_commands.is_none() {
            return Ok(());
        }
        match program.env.keys().find(|name| *name == "PATH" || name.starts_with("LD_")) {
            Some(name) => Err(policy_error(format!(
                "Environment variable is not allowed by sandbox tool policy: {name}"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a command by its name alone, which is all that Anvia looks at.
    fn check_name(&self, command: &str) -> Result<()> {
        let names = |list: &[String]| list.iter().any(|entry| entry == command);
        if names(&self.blocked_commands) {
            return Err(blocked_error(command));
        }
        if self.allowed_commands.as_deref().is_some_and(|allowed| !names(allowed)) {
            return Err(not_allowed_error(command));
        }
        Ok(())
    }

    /// Refuses a path that leads to a blocked program, or to another file than the allowed path of the same name.
    fn check_file(&self, workdir: &SandboxPath, program: ProgramRequest<'_>) -> Result<()> {
        let command = program.command;
        // As in every path of the workspace.
        let cwd = program.cwd.unwrap_or(".").replace('\\', "/");
        let file = workdir.resolve(&cwd)?.resolve(command)?;
        for entry in &self.blocked_commands {
            let is_blocked =
                if entry.contains('/') { workdir.resolve(entry)? == file } else { file.file_name() == entry };
            if is_blocked {
                return Err(blocked_error(command));
            }
        }
        if self.allowed_commands.is_some() && workdir.resolve(command)? != file {
            return Err(not_allowed_error(command));
        }
        Ok(())
    }

    /// The deadline that these options give a command, which asks for `asked`; `None`: the sandbox's own.
    pub(super) fn timeout_ms(&self, asked: Option<u64>, otherwise: Option<u64>) -> Result<Option<u64>> {
        let Some(timeout) = asked.or(self.default_timeout_ms).or(otherwise) else {
            return Ok(None);
        };
        match self.max_timeout_ms.filter(|most| timeout > *most) {
            Some(most) => Err(policy_error(format!(
                "Command timeout exceeds sandbox tool policy ({timeout} > {most})."
            ))),
            None => Ok(Some(timeout)),
        }
    }
}

fn blocked_error(command: &str) -> Error {
    policy_error(format!("Command is blocked by sandbox tool policy: {command}"))
}

fn not_allowed_error(command: &str) -> Error {
    policy_error(format!("Command is not allowed by sandbox tool policy: {command}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &ExecPolicy, command: &str, cwd: Option<&str>) -> Result<(), String> {
        let (workdir, env) = (SandboxPath::parse("/workspace").unwrap(), BTreeMap::new());
        let checked = policy.check_program(&workdir, ProgramRequest { command, cwd, env: &env });
        checked.map_err(|error| error.to_string())
    }

    fn allowing(names: &[&str]) -> ExecPolicy {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ExecPolicy { allowed_commands: Some(names), ..ExecPolicy::default() }
    }

    fn blocking(names: &[&str]) -> ExecPolicy {
        let blocked_commands = names.iter().map(|name| (*name).to_owned()).collect();
        ExecPolicy { blocked_commands, ..ExecPolicy::default() }
    }

    #[test]
    fn only_what_is_allowed_may_run_and_a_path_is_another_program() {
        let policy = allowing(&["node"]);
        assert_eq!(check(&policy, "node", None), Ok(()));
        for command in ["python", "/usr/bin/node", "./node", "sh", "node "] {
            let expected = format!("Command is not allowed by sandbox tool policy: {command}");
            assert_eq!(check(&policy, command, None), Err(expected));
        }
    }

    #[test]
    fn a_blocked_name_is_blocked_wherever_the_program_lies() {
        let policy = blocking(&["rm"]);
        for command in ["rm", "/bin/rm", "../bin/./rm", "x/rm"] {
            let expected = format!("Command is blocked by sandbox tool policy: {command}");
            assert_eq!(check(&policy, command, None), Err(expected));
        }
        assert_eq!(check(&policy, "rmdir", None), Ok(()));
    }

    #[test]
    fn blocked_goes_before_allowed() {
        let policy = ExecPolicy { blocked_commands: vec!["rm".into()], ..allowing(&["rm"]) };
        assert!(check(&policy, "rm", None).unwrap_err().contains("blocked"));
    }

    #[test]
    fn a_path_is_judged_by_where_it_leads_from_the_calls_own_directory() {
        let policy = allowing(&["./build.sh"]);
        assert_eq!(check(&policy, "./build.sh", None), Ok(()));
        assert_eq!(check(&policy, "./build.sh", Some("sub\\..")), Ok(()));
        assert!(check(&policy, "../build.sh", Some("sub")).is_err());
        assert!(check(&policy, "./build.sh", Some("sub")).is_err());
        assert!(check(&blocking(&["/workspace/x"]), "./y/../x", None).is_err());
        assert!(check(&blocking(&["/workspace/x"]), "./x", Some("sub\\..")).is_err());
        assert!(check(&blocking(&["./x"]), "./x", Some("sub")).is_err());
    }

    #[test]
    fn a_call_may_not_change_what_an_allowed_name_means() {
        let workdir = SandboxPath::parse("/workspace").unwrap();
        for name in ["PATH", "LD_PRELOAD"] {
            let env = BTreeMap::from([(name.to_owned(), "x".to_owned())]);
            let program = ProgramRequest { command: "node", cwd: None, env: &env };
            let error = allowing(&["node"]).check_program(&workdir, program).unwrap_err().to_string();
            assert_eq!(error, format!("Environment variable is not allowed by sandbox tool policy: {name}"));
            assert!(ExecPolicy::default().check_program(&workdir, program).is_ok());
        }
    }

    #[test]
    fn a_deadline_is_the_calls_then_the_policys_then_the_options_and_never_too_long() {
        let policy = ExecPolicy { max_timeout_ms: Some(1_000), ..ExecPolicy::default() };
        assert_eq!(policy.timeout_ms(Some(5), Some(7)).unwrap(), Some(5));
        assert_eq!(policy.timeout_ms(None, Some(7)).unwrap(), Some(7));
        assert_eq!(policy.timeout_ms(None, None).unwrap(), None);
        let expected = "Command timeout exceeds sandbox tool policy (2000 > 1000).";
        assert_eq!(policy.timeout_ms(Some(2_000), None).unwrap_err().to_string(), expected);
        assert_eq!(policy.timeout_ms(None, Some(2_000)).unwrap_err().to_string(), expected);
        let policy = ExecPolicy { default_timeout_ms: Some(9), ..policy };
        assert_eq!(policy.timeout_ms(None, Some(7)).unwrap(), Some(9));
    }
}
