//! The findings of a probe: one `name=value` a line, written inside and read outside.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::check::{Check, Failure, ensure};

/// Writes a fact at once, so that it counts even if the process dies next.
pub fn note(name: impl Display, value: impl Display) {
    println!("{name}={value}");
}

/// Notes what came of a system call: `ok`, or the error's name.
pub fn tried<T>(name: impl Display, result: Result<T, i32>) {
    match result {
        Ok(_) => note(name, "ok"),
        Err(errno) => note(name, errno_name(errno)),
    }
}

/// Notes what came of something that std does.
pub fn tried_io<T>(name: impl Display, result: std::io::Result<T>) {
    tried(name, result.map_err(|error| error.raw_os_error().unwrap_or(0)));
}

/// An error's name, for those that matter here.
pub fn errno_name(errno: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::ENXIO, "ENXIO"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENFILE, "ENFILE"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ENODEV, "ENODEV"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"),
        (libc::EOVERFLOW, "EOVERFLOW"),
    ];
    match known.iter().find(|(number, _)| *number == errno) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("errno{errno}"),
    }
}

/// The facts of one probe, as read outside.
#[derive(Debug)]
pub struct Facts(BTreeMap<String, String>);

impl Facts {
    /// Reads a probe's output.
    pub fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// One fact.
    pub fn get(&self, name: &str) -> Check<&str> {
        let missing = || Failure::Broken(format!("the probe did not say `{name}`: {self:?}"));
        self.0.get(name).map(String::as_str).ok_or_else(missing)
    }

    /// One fact as a number.
    pub fn number(&self, name: &str) -> Check<u64> {
        let value = self.get(name)?;
        value.parse().map_err(|_| Failure::Broken(format!("`{name}` is no number: {value}")))
    }

    /// Fails unless the fact has this value.
    pub fn is(&self, name: &str, expected: &str) -> Check {
        let found = self.get(name)?;
        ensure!(found == expected, "`{name}` came to {found}, not {expected}");
        Ok(())
    }

    /// Fails unless there are facts whose name begins so, and each has one of these values.
    pub fn each(&self, prefix: &str, expected: &[&str]) -> Check {
        let of_prefix: Vec<_> = self.0.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
        ensure!(!of_prefix.is_empty(), "the probe said nothing of `{prefix}…`: {self:?}");
        let wrong: Vec<_> =
            of_prefix.iter().filter(|(_, value)| !expected.contains(&value.as_str())).collect();
        ensure!(wrong.is_empty(), "not {expected:?}: {wrong:?}");
        Ok(())
    }

    /// The facts whose name begins so (what follows in their names) that have none of these values.
    /// Fails if no fact's name begins so.
    pub fn others(&self, prefix: &str, expected: &[&str]) -> Check<Vec<(String, String)>> {
        let rest =
            |(name, value): (&String, &String)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone()));
        let of_prefix: Vec<_> = self.0.iter().filter_map(rest).collect();
        ensure!(!of_prefix.is_empty(), "the probe said nothing of `{prefix}…`: {self:?}");
        Ok(of_prefix.into_iter().filter(|(_, value)| !expected.contains(&value.as_str())).collect())
    }

    /// Fails if there is no fact whose name begins so, or if one of them is `ok`.
    pub fn none_worked(&self, prefix: &str) -> Check {
        let of_prefix: Vec<_> = self.0.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
        ensure!(!of_prefix.is_empty(), "the probe said nothing of `{prefix}…`: {self:?}");
        let worked: Vec<_> = of_prefix.iter().filter(|(_, value)| *value == "ok").collect();
        ensure!(worked.is_empty(), "these worked: {worked:?}");
        Ok(())
    }
}
