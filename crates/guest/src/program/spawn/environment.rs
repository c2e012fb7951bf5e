//! A command's environment: the sandbox's basic variables, the user's, the working directory, and
//! the call's own.

use std::ffi::CString;

use crate::program::failure::failure;
use crate::protocol::{Exec, Failure, Identity};

/// The variables in their order, each name once.
#[derive(Debug, Default)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// For this command of this user.
    ///
    /// # Errors
    /// `invalid` for a name that is empty or has a `=`, and for a null byte anywhere.
    pub fn new(
        base: &[(String, String)],
        identity: &Identity,
        shell: &str,
        exec: &Exec,
    ) -> Result<Self, Failure> {
        let mut env = Self::default();
        for (name, value) in base {
            env.set(name, value)?;
        }
        let of_the_user =
            [("HOME", identity.home.as_str()), ("USER", &identity.name), ("LOGNAME", &identity.name)];
        for (name, value) in of_the_user.into_iter().chain([("SHELL", shell), ("PWD", &exec.cwd.path)]) {
            env.set(name, value)?;
        }
        if exec.terminal.is_some() && env.get("TERM").is_none() {
            env.set("TERM", "xterm-256color")?;
        }
        for (name, value) in &exec.env {
            env.set(name, value)?;
        }
        Ok(env)
    }

    /// A variable's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// As the kernel wants them.
    pub fn to_strings(&self) -> Vec<CString> {
        // `set` refuses null bytes, so none is left out.
        self.0.iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(failure("invalid", format!("`{}` is no name of a variable", name.escape_default())));
        }
        if value.contains('\0') {
            return Err(failure("invalid", format!("the variable `{name}` contains a null byte")));
        }
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CommandSpec, Location, Terminal};

    fn exec(env: &[(&str, &str)], terminal: bool) -> Exec {
        Exec {
            command: CommandSpec::Shell("true".into()),
            cwd: Location { path: "/workspace".into(), beneath: None },
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            user: None,
            stdin: false,
            terminal: terminal.then_some(Terminal { rows: 1, cols: 1 }),
        }
    }

    fn environment(exec: &Exec) -> Result<Environment, Failure> {
        let home = "/home/user".to_owned();
        let identity = Identity { name: "user".into(), uid: 1000, gid: 1000, home, capabilities: 0 };
        let base = [("PATH".to_owned(), "/bin".to_owned()), ("HOME".to_owned(), "/nowhere".to_owned())];
        Environment::new(&base, &identity, "/bin/sh", exec)
    }

    #[test]
    fn the_call_overrides_the_user_who_overrides_the_sandbox() {
        let env = environment(&exec(&[("PATH", "/mine"), ("A", "x=\n")], false)).unwrap();
        for (name, value) in [("PATH", "/mine"), ("HOME", "/home/user"), ("PWD", "/workspace"), ("A", "x=\n")]
        {
            assert_eq!(env.get(name), Some(value));
        }
        let strings = env.to_strings();
        assert_eq!(strings.iter().filter(|string| string.to_bytes().starts_with(b"HOME=")).count(), 1);
    }

    #[test]
    fn a_terminal_is_named_only_where_there_is_one() {
        assert_eq!(environment(&exec(&[], false)).unwrap().get("TERM"), None);
        assert_eq!(environment(&exec(&[], true)).unwrap().get("TERM"), Some("xterm-256color"));
        assert_eq!(environment(&exec(&[("TERM", "dumb")], true)).unwrap().get("TERM"), Some("dumb"));
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
            assert_eq!(environment(&exec(&[(name, value)], false)).unwrap_err().kind, "invalid");
        }
    }
}
