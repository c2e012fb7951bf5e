//! The variables that every command has, whatever made its sandbox. `HOME`, `USER` and `LOGNAME`
//! come from who runs it.

/// The search path for programs, unless something else sets one.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The usual variables, less those that `given` has, and `given`.
pub fn completed(given: &[(String, String)]) -> Vec<(String, String)> {
    let usual = [("PATH", SYSTEM_PATH), ("LANG", "C.UTF-8"), ("TZ", "UTC")];
    let missing = usual.into_iter().filter(|(name, _)| !given.iter().any(|(known, _)| known == name));
    let missing = missing.map(|(name, value)| (name.to_owned(), value.to_owned()));
    missing.chain(given.iter().cloned()).collect()
}

/// Puts what pip and npm install for one user before everything else that `PATH` names.
pub fn put_own_programs_first(env: &mut [(String, String)], home: &str) {
    let own = format!("{}/.local/bin", home.trim_end_matches('/'));
    for (_, path) in env.iter_mut().filter(|(name, _)| name == "PATH") {
        if path.split(':').all(|folder| folder != own) {
            *path = format!("{own}:{path}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_users_own_are_found_first() {
        let path = |path: &str, home: &str| {
            let mut env = vec![("A".to_owned(), "/a".to_owned()), ("PATH".to_owned(), path.to_owned())];
            put_own_programs_first(&mut env, home);
            env[1].1.clone()
        };
        assert_eq!(path("/bin", "/home/node"), "/home/node/.local/bin:/bin");
        assert_eq!(path("/bin", "/"), "/.local/bin:/bin");
        assert_eq!(path("/bin:/root/.local/bin", "/root"), "/bin:/root/.local/bin");
    }

    #[test]
    fn what_is_given_wins_and_what_is_missing_is_filled_in() {
        let env = completed(&[("PATH".into(), "/bin".into()), ("A".into(), "1".into())]);
        let find = |name: &str| {
            env.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((find("PATH"), find("LANG"), find("A")), (vec!["/bin"], vec!["C.UTF-8"], vec!["1"]));
    }
}
