//! The user of a command: one from the guest's configuration, else one from the sandbox's own files
//! at the time of the call. The workload can write those files. They say which of the allowed ids
//! belongs to a name, and nothing more. An id outside the sandbox's range, or the guest's own, is
//! refused, and no look-up gives a capability that root has not.

use std::borrow::Cow;

use crate::accounts::{self, ROOT};
use crate::program::account_files::{self, GROUP, PASSWD};
use crate::program::failure::failure;
use crate::protocol::{Exec, Failure, GuestConfig, Identity, Ids};

/// Finds the user of a command.
///
/// # Errors
/// `unsupported` if the guest can't change users. `not_found` for a user who does not exist, is not
/// allowed, or can't be looked up because the sandbox's files are no lists of users.
pub fn find_identity<'a>(exec: &Exec, config: &'a GuestConfig) -> Result<Cow<'a, Identity>, Failure> {
    let Some(wanted) = exec.user.as_deref() else {
        return Ok(Cow::Borrowed(&config.user));
    };
    if let Some(known) = find_configured(wanted, config) {
        return Ok(Cow::Borrowed(known));
    }
    if !config.switch_user || config.users.is_empty() {
        let user = &config.user.name;
        return Err(failure(
            "unsupported",
            format!("there is no user `{wanted}`: this sandbox has the user `{user}` only"),
        ));
    }
    let found = match &config.later_users {
        Some(ids) => look_up(wanted, config, ids).map(Cow::Owned),
        None => Err(format!("there is no user `{wanted}`")),
    };
    found.map_err(|reason| failure("not_found", reason))
}

/// Finds a user of the configuration, by name or, if none has that name, by number.
fn find_configured<'a>(wanted: &str, config: &'a GuestConfig) -> Option<&'a Identity> {
    let all = || std::iter::once(&config.user).chain(&config.users);
    let by_name = all().find(|user| user.name == wanted);
    let by_number = || wanted.parse::<u32>().ok().and_then(|uid| all().find(|user| user.uid == uid));
    by_name.or_else(by_number)
}

/// Finds the user with the name, or the number, in the sandbox's present files.
fn look_up(wanted: &str, config: &GuestConfig, ids: &Ids) -> Result<Identity, String> {
    let passwd = account_files::read(PASSWD)?;
    let told = std::iter::once(&config.user).chain(&config.users).cloned();
    let users = told.chain(accounts::users_of(&passwd));
    let mut found = accounts::find(wanted, users, ids, "the sandbox", || account_files::read(GROUP))?;
    if found.uid == ROOT {
        let root = config.users.iter().find(|user| user.uid == ROOT);
        found.capabilities = root.map_or(0, |root| root.capabilities);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CommandSpec, Location};

    fn identity(name: &str, uid: u32) -> Identity {
        Identity { name: name.into(), uid, gid: uid, home: "/".into(), capabilities: 0 }
    }

    fn config(switch_user: bool, users: Vec<Identity>) -> GuestConfig {
        GuestConfig {
            client_nonce: [0; 16],
            guest_nonce: [0; 16],
            ttl_ms: None,
            idle_timeout_ms: None,
            user: identity("user", 1000),
            users,
            env: Vec::new(),
            switch_user,
            log_bytes: 0,
            max_processes: None,
            forbid_setuid: false,
            memory_events_fd: None,
            last_process_id: 0,
            later_users: None,
            late_files: Vec::new(),
        }
    }

    fn asked(user: &str, config: &GuestConfig) -> Result<u32, String> {
        let exec = Exec {
            command: CommandSpec::Shell("true".into()),
            cwd: Location { path: "/".into(), beneath: None },
            env: Vec::new(),
            user: Some(user.into()),
            stdin: false,
            terminal: None,
        };
        find_identity(&exec, config).map(|found| found.uid).map_err(|failure| failure.kind)
    }

    #[test]
    fn whom_the_guest_was_told_of_is_found_by_name_and_by_number() {
        let config = config(true, vec![identity("root", 0), identity("7", 8), identity("app", 7)]);
        for (wanted, uid) in [("user", 1000), ("1000", 1000), ("root", 0), ("0", 0), ("app", 7), ("7", 8)] {
            assert_eq!(asked(wanted, &config), Ok(uid), "{wanted}");
        }
    }

    #[test]
    fn without_leave_to_look_nobody_else_is_there() {
        assert_eq!(asked("nobody", &config(true, vec![identity("root", 0)])), Err("not_found".into()));
        assert_eq!(asked("root", &config(false, Vec::new())), Err("unsupported".into()));
        assert_eq!(asked("1000", &config(false, Vec::new())), Ok(1000));
    }
}
