//! Who there is inside: the image's users where a range of ids allows to become them, else the one user.

use std::io;

use eyot::{Error, ErrorKind, ImageWishes, Result, ValidSpec};
use eyot_guest::accounts::Users as Accounts;
use eyot_guest::protocol::{Identity, Ids};

use crate::image::{Image, Lower, read_of_image};
use crate::plan::{GUEST_ID, IdMap, RANGE_LEN, USER_ID};
use crate::setup::RANGE_CAPABILITIES;

/// The users of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Users {
    /// Who runs commands unless a call says otherwise.
    pub default: Identity,
    /// Whom a call may name; empty where users can't be changed.
    pub others: Vec<Identity>,
    /// Whom a call may name who is none of these, but in the sandbox's own files by then. `None`: nobody.
    pub later: Option<Ids>,
    /// The image has nobody with the default user's id: these lines are to be added to its `passwd` and `group`.
    pub missing: bool,
}

impl Users {
    /// The users for this spec on an image of these layers.
    pub(crate) fn of(spec: &ValidSpec, map: IdMap, lower: &Lower) -> Result<Self> {
        let mut known = known(lower)?;
        let missing = known.by_id(USER_ID).is_none();
        let default = known.by_id(USER_ID).cloned().unwrap_or_else(user);
        let wanted = spec.spec().user.as_deref();
        match map {
            IdMap::Single { .. } => match wanted {
                None => Ok(Self { default, others: Vec::new(), later: None, missing }),
                Some(name) if name == default.name || name == "1000" => {
                    Ok(Self { default, others: Vec::new(), later: None, missing })
                }
                Some(name) => Err(Error::invalid(
                    "user",
                    format!(
                        "`{name}` needs a range of ids of its own, which this host gives to root only; only `user` is here"
                    ),
                )),
            },
            IdMap::Range { .. } => {
                known.complete_with(default.clone());
                known.complete_with_root(RANGE_CAPABILITIES);
                let (others, later) = match writes_to_host_as_the_user(spec) {
                    true => (known.by_id(USER_ID).cloned().into_iter().collect(), None),
                    false => (known.known().to_vec(), Some(ids())),
                };
                let default = match wanted {
                    None => default,
                    Some(name) => {
                        find(&known, name, lower).map_err(|reason| Error::invalid("user", reason))?
                    }
                };
                Ok(Self { default, others, later, missing })
            }
        }
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("read the image's users: {}", crate::sentence(error))
}

/// Whether commands run as the default user unless a call says otherwise.
pub(crate) fn runs_as_default(spec: &ValidSpec) -> bool {
    spec.spec().user.as_deref().is_none_or(|user| user == "user" || user == "1000")
}

/// Whether ids inside are, in some writable mount, the same ids on the host. Then nobody but the one user may be
/// there: root inside would leave setuid files of the host's root behind.
fn writes_to_host_as_the_user(spec: &ValidSpec) -> bool {
    runs_as_default(spec) && spec.spec().mounts.iter().any(|mount| mount.writable)
}

/// The line that an image without the default user gets.
pub(crate) const PASSWD_LINE: &str = "user:x:1000:1000:user:/home/user:/bin/sh\n";
/// The line that its group gets.
pub(crate) const GROUP_LINE: &str = "user:x:1000:\n";

fn user() -> Identity {
    Identity { name: "user".into(), uid: USER_ID, gid: USER_ID, home: "/home/user".into(), capabilities: 0 }
}

/// Who may be somebody inside: all but the guest, and what is beyond the range.
fn ids() -> Ids {
    Ids { users_below: GUEST_ID, groups_below: RANGE_LEN, reserved: None, home_of_numbers: "/".to_owned() }
}

/// The users of an image's own `passwd`.
fn known(lower: &Lower) -> Result<Accounts> {
    let passwd = read_of_image(lower, "etc/passwd").map_err(|error| {
        let message = format!("create sandbox: {}", unreadable(&error));
        Error::new(ErrorKind::Invalid, message).with_source(error)
    })?;
    Ok(Accounts::parse(&passwd, ids()))
}

/// Who is meant, or a sentence.
fn find(known: &Accounts, wanted: &str, lower: &Lower) -> Result<Identity, String> {
    let group = || read_of_image(lower, "etc/group").map_err(|error| unreadable(&error));
    known.find(wanted, "the image", group)
}

/// What an image wishes of its sandboxes, as far as it can be had here: an ordinary user's have one user only, and one
/// that is the default user anyway need not be named. Who is to run commands keeps `HOME`; the way to programs is built
/// with it, and the proxy is the sandbox's own.
pub(crate) fn wishes(image: &Image) -> Result<ImageWishes> {
    let proxies: Vec<String> =
        crate::egress::variables().into_iter().map(|(name, _)| name.to_lowercase()).collect();
    let is_ours = |name: &str| name == "PATH" || proxies.contains(&name.to_lowercase());
    let env = image.run.env.iter().filter(|(name, _)| !is_ours(name)).cloned().collect();
    let user = match &image.run.user {
        Some(user) if crate::maker::as_root() && !is_default(user, &image.lower)? => Some(user.clone()),
        _ => None,
    };
    Ok(ImageWishes { env, workdir: image.run.workdir.clone(), user })
}

fn is_default(wanted: &str, lower: &Lower) -> Result<bool> {
    let known = known(lower)?;
    let default = known.by_id(USER_ID).cloned().unwrap_or_else(user);
    let found = find(&known, wanted, lower);
    Ok(found.is_ok_and(|found| found.uid == USER_ID && found.gid == default.gid))
}

#[cfg(test)]
mod tests {
    use eyot::{Mount, SandboxPath, SandboxSpec};

    use super::*;

    fn of(user: Option<&str>, writable: bool) -> Users {
        let lower = tempfile::tempdir().unwrap();
        let target = SandboxPath::parse("/mnt/x").unwrap();
        let mounts = vec![Mount { source: "/srv".into(), target, writable }];
        let spec = SandboxSpec { mounts, user: user.map(str::to_owned), ..SandboxSpec::default() };
        let lower = Lower::one(lower.path().to_str().unwrap());
        Users::of(&spec.validate().unwrap(), IdMap::Range { base: 1 << 30 }, &lower).unwrap()
    }

    fn names(user: Option<&str>, writable: bool) -> Vec<String> {
        of(user, writable).others.into_iter().map(|user| user.name).collect()
    }

    #[test]
    fn a_user_made_later_is_somebody_unless_ids_in_a_writable_mount_are_the_hosts() {
        assert!(of(None, true).later.is_none());
        assert!(of(Some("root"), true).later.is_some());
        assert!(
            of(None, false).later.is_some_and(|ids| !ids.has_user(GUEST_ID) && !ids.has_group(RANGE_LEN))
        );
    }

    #[test]
    fn nobody_but_the_user_is_there_where_ids_in_a_writable_mount_are_the_hosts() {
        assert_eq!(names(None, true), ["user"]);
        assert_eq!(names(Some("1000"), true), ["user"]);
        assert_eq!(names(None, false), ["root", "user"]);
        assert_eq!(names(Some("root"), true), ["root", "user"]);
    }
}
