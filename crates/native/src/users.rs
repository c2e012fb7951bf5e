//! The users inside a sandbox: with a range of ids those of the image, else only one.

use std::io;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind, ImageDefaults, Result, ValidSpec};
use eyot_guest::accounts::Users as Accounts;
use eyot_guest::protocol::{Identity, Ids};

use crate::image::{Image, Lower, read_of_image};
use crate::plan::{GUEST_ID, IdMap, RANGE_LEN, USER_ID};
use crate::setup::RANGE_CAPABILITIES;

/// The users of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct SandboxUsers {
    /// The user that runs commands unless a call names another.
    pub default: Identity,
    /// The users that a call may name; empty where users can't be changed.
    pub others: Vec<Identity>,
    /// The ids of users that a call may name although they are not in `others`, if they are in the
    /// sandbox's own files by then. `None`: no such users.
    pub later: Option<Ids>,
    /// The image has no user with the default user's id. Lines for it must be added to its `passwd`
    /// and `group`.
    pub missing: bool,
}

impl SandboxUsers {
    /// Finds the users for this spec on an image of these layers.
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
                Some(name) => {
                    let reason = format!(
                        "`{name}` needs a range of ids, which only root's sandboxes have; this one has `user` alone"
                    );
                    Err(Error::invalid("user", reason).with_hint(
                        "leave the user out, or make the sandbox as root of its host: `sudo \"$(command -v eyot)\"` with the same words",
                    ))
                }
            },
            IdMap::Range(_) => {
                known.complete_with(default.clone());
                known.complete_with_root(RANGE_CAPABILITIES);
                let others = known.known().to_vec();
                let default = match wanted {
                    None => default,
                    Some(name) => {
                        let unusable = |reason| Error::invalid("user", format!("can't be used: {reason}"));
                        find(&known, name, lower).map_err(unusable)?
                    }
                };
                Ok(Self { default, others, later: Some(ids()), missing })
            }
        }
    }
}

impl SandboxUsers {
    /// Returns the uid and the gid that run commands unless a call names a user.
    pub(crate) fn ids(&self) -> (u32, u32) {
        (self.default.uid, self.default.gid)
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("read the image's users: {}", system_reason(error))
}

/// The line in `passwd` for the default user, if an image lacks it.
pub(crate) const PASSWD_LINE: &str = "user:x:1000:1000:user:/home/user:/bin/sh\n";
/// The line in `group` for the default user's group.
pub(crate) const GROUP_LINE: &str = "user:x:1000:\n";

fn user() -> Identity {
    Identity { name: "user".into(), uid: USER_ID, gid: USER_ID, home: "/home/user".into(), capabilities: 0 }
}

/// The ids that users inside may have: all except the guest's, up to the end of the range.
fn ids() -> Ids {
    Ids { users_below: GUEST_ID, groups_below: RANGE_LEN, reserved: None, home_of_numbers: "/".to_owned() }
}

/// Reads the users in an image's own `passwd`.
fn known(lower: &Lower) -> Result<Accounts> {
    let passwd = read_of_image(lower, "etc/passwd").map_err(|error| {
        let message = format!("create sandbox: {}", unreadable(&error));
        Error::new(ErrorKind::Invalid, message).with_source(error)
    })?;
    Ok(Accounts::parse(&passwd, ids()))
}

/// Finds a user by name or id. The error is a sentence.
fn find(known: &Accounts, wanted: &str, lower: &Lower) -> Result<Identity, String> {
    let group = || read_of_image(lower, "etc/group").map_err(|error| unreadable(&error));
    known.find(wanted, "the image", group)
}

/// Returns the image's wishes for its sandboxes, as far as they can be met. A wish for a user is
/// dropped in an ordinary user's sandbox, which has only one, and if it means the default user
/// anyway. `HOME` stays that of the user who runs commands, `PATH` is built with it, and the proxy
/// is the sandbox's own.
pub(crate) fn wishes(image: &Image) -> Result<ImageDefaults> {
    let proxies: Vec<String> =
        crate::egress::variables().into_iter().map(|(name, _)| name.to_lowercase()).collect();
    let is_ours = |name: &str| name == "PATH" || proxies.contains(&name.to_lowercase());
    let env = image.run.env.iter().filter(|(name, _)| !is_ours(name)).cloned().collect();
    let user = match &image.run.user {
        Some(user) if crate::maker::as_root() && !is_default(user, &image.lower)? => Some(user.clone()),
        _ => None,
    };
    Ok(ImageDefaults { env, workdir: image.run.workdir.clone(), user })
}

fn is_default(wanted: &str, lower: &Lower) -> Result<bool> {
    let known = known(lower)?;
    let default = known.by_id(USER_ID).cloned().unwrap_or_else(user);
    let found = find(&known, wanted, lower);
    Ok(found.is_ok_and(|found| found.uid == USER_ID && found.gid == default.gid))
}

#[cfg(test)]
mod tests {
    use eyot::SandboxSpec;

    use super::*;
    use crate::plan::IdRange;

    fn of(user: Option<&str>, passwd: &str) -> SandboxUsers {
        let lower = tempfile::tempdir().unwrap();
        std::fs::create_dir(lower.path().join("etc")).unwrap();
        std::fs::write(lower.path().join("etc/passwd"), passwd).unwrap();
        let spec = SandboxSpec { user: user.map(str::to_owned), ..SandboxSpec::default() };
        let lower = Lower::one(lower.path().to_str().unwrap());
        SandboxUsers::of(&spec.validate().unwrap(), IdMap::Range(IdRange { base: 1 << 30, shift: 0 }), &lower)
            .unwrap()
    }

    #[test]
    fn a_user_made_later_may_have_any_id_but_the_guests() {
        let later = of(None, "").later.unwrap();
        assert!(!later.has_user(GUEST_ID) && !later.has_group(RANGE_LEN) && later.has_user(4321));
    }

    #[test]
    fn an_ordinary_users_sandbox_has_one_user_and_the_refusal_of_another_says_why_and_what_to_do() {
        let (map, lower) = (IdMap::Single { uid: 501, gid: 20 }, Lower::one("/nonexistent"));
        let of = |user: &str| {
            let spec = SandboxSpec { user: Some(user.to_owned()), ..SandboxSpec::default() };
            SandboxUsers::of(&spec.validate().unwrap(), map, &lower)
        };
        assert_eq!(of("user").unwrap().default.name, "user");
        let refused = of("root").err().unwrap();
        assert!(refused.to_string().contains("a range of ids"), "{refused}");
        assert!(refused.hint().unwrap().contains("sudo \"$(command -v eyot)\""), "{refused:?}");
    }

    #[test]
    fn everybody_in_the_image_is_there_and_root_and_the_default_user_always() {
        let names = |user| of(user, "www:x:33:33::/:/bin/sh\n").others.into_iter().map(|user| user.name);
        assert_eq!(names(None).collect::<Vec<_>>(), ["root", "user", "www"]);
        assert_eq!(names(Some("root")).collect::<Vec<_>>(), ["root", "user", "www"]);
    }

    #[test]
    fn a_name_is_what_the_image_makes_of_it_and_user_is_the_default_user_where_there_is_no_other() {
        for (passwd, user, uid, gid) in [
            ("1000:x:0:0::/root:/bin/sh\n", Some("1000"), 0, 0),
            ("user:x:0:5::/root:/bin/sh\n", Some("user"), 1000, 1000),
            ("node:x:1000:0::/:/bin/sh\nuser:x:0:5::/root:/bin/sh\n", Some("user"), 0, 5),
            ("node:x:1000:0::/home/node:/bin/sh\n", None, 1000, 0),
            ("", Some("1000:0"), 1000, 0),
        ] {
            let default = of(user, passwd).default;
            assert_eq!((default.uid, default.gid), (uid, gid), "{passwd}");
            assert_eq!(default.capabilities != 0, uid == 0, "{passwd}");
        }
    }
}
