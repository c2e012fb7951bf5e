//! Who there is inside: the image's users where a range of ids allows to become them, else the one user.

use std::collections::BTreeMap;
use std::io;

use eyot::{Error, ErrorKind, ImageWishes, Result, ValidSpec};
use eyot_guest::protocol::Identity;

use crate::image::{Image, Lower, read_of_image};
use crate::plan::{IdMap, USER_ID};
use crate::setup::range_capability_mask;

/// The most users of an image that the guest is told of.
const MAX_USERS: usize = 256;

/// The users of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Users {
    /// Who runs commands unless a call says otherwise.
    pub default: Identity,
    /// Whom a call may name; empty where users can't be changed.
    pub others: Vec<Identity>,
    /// The image has nobody with the default user's id: these lines are to be added to its `passwd` and `group`.
    pub missing: bool,
}

impl Users {
    /// The users for this spec on an image of these layers.
    pub(crate) fn of(spec: &ValidSpec, map: IdMap, lower: &Lower) -> Result<Self> {
        let known = parse(&read_of_image(lower, "etc/passwd").map_err(unreadable)?);
        let missing = !known.iter().any(|user| user.uid == USER_ID);
        let default = known.iter().find(|user| user.uid == USER_ID).cloned().unwrap_or_else(user);
        let wanted = spec.spec().user.as_deref();
        match map {
            IdMap::Single { .. } => match wanted {
                None => Ok(Self { default, others: Vec::new(), missing }),
                Some(name) if name == default.name || name == "1000" => {
                    Ok(Self { default, others: Vec::new(), missing })
                }
                Some(name) => Err(Error::invalid(
                    "user",
                    format!(
                        "`{name}` needs a range of ids of its own, which this host gives to root only; only `user` is here"
                    ),
                )),
            },
            IdMap::Range { .. } => {
                let mut others = with_root(known, &default);
                if writes_to_host_as_the_user(spec) {
                    others.retain(|user| user.uid == USER_ID);
                }
                let default = match wanted {
                    None => default,
                    Some(name) => find(&others, name, lower)?
                        .ok_or_else(|| Error::invalid("user", format!("is not in the image: `{name}`")))?,
                };
                Ok(Self { default, others, missing })
            }
        }
    }
}

fn unreadable(error: io::Error) -> Error {
    let message = format!("create sandbox: read the image's users: {}", crate::sentence(&error));
    Error::new(ErrorKind::Invalid, message).with_source(error)
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

fn with_root(mut known: Vec<Identity>, default: &Identity) -> Vec<Identity> {
    if !known.iter().any(|user| user.uid == default.uid) {
        known.insert(0, default.clone());
    }
    if !known.iter().any(|user| user.uid == 0) {
        known.insert(
            0,
            Identity { name: "root".into(), uid: 0, gid: 0, home: "/root".into(), capabilities: 0 },
        );
    }
    for user in known.iter_mut().filter(|user| user.uid == 0) {
        user.capabilities = range_capability_mask();
    }
    known.truncate(MAX_USERS);
    known
}

/// Who is meant by a name or a number, with another group behind a colon. A number needs no line in `passwd`.
fn find(users: &[Identity], wanted: &str, lower: &Lower) -> Result<Option<Identity>> {
    let (name, group) = wanted.split_once(':').map_or((wanted, None), |(name, group)| (name, Some(group)));
    let by_name = users.iter().find(|user| user.name == name);
    let known = by_name.or_else(|| users.iter().find(|user| user.uid.to_string() == name)).cloned();
    let Some(found) = known.or_else(|| of_number(name)) else { return Ok(None) };
    let Some(group) = group else { return Ok(Some(found)) };
    let gid = match group.parse() {
        Ok(gid) => Some(gid),
        Err(_) => group_id(&read_of_image(lower, "etc/group").map_err(unreadable)?, group),
    };
    Ok(gid.filter(|gid| *gid < crate::plan::RANGE_LEN).map(|gid| Identity { gid, ..found }))
}

fn of_number(name: &str) -> Option<Identity> {
    let uid = name.parse().ok().filter(|uid| *uid < crate::plan::GUEST_ID)?;
    Some(Identity { name: name.to_owned(), uid, gid: 0, home: "/".to_owned(), capabilities: 0 })
}

fn group_id(groups: &str, wanted: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (name == wanted).then(|| fields.nth(1)?.parse().ok()).flatten()
    };
    groups.lines().find_map(of_line)
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
    let known = parse(&read_of_image(lower, "etc/passwd").map_err(unreadable)?);
    let default = known.iter().find(|user| user.uid == USER_ID).cloned().unwrap_or_else(user);
    Ok(find(&known, wanted, lower)?.is_some_and(|found| found.uid == USER_ID && found.gid == default.gid))
}

/// The users of a `passwd` file, the first of each name, without the guest's own id.
fn parse(passwd: &str) -> Vec<Identity> {
    let mut users = BTreeMap::new();
    for (line_number, line) in passwd.lines().enumerate() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, ..] = fields[..] else {
            continue;
        };
        let (Ok(uid), Ok(gid)) = (uid.parse::<u32>(), gid.parse::<u32>()) else {
            continue;
        };
        let usable = uid < crate::plan::GUEST_ID && gid < crate::plan::RANGE_LEN && home.starts_with('/');
        if usable && !name.is_empty() {
            let identity = Identity { name: name.into(), uid, gid, home: home.into(), capabilities: 0 };
            users.entry(name.to_owned()).or_insert((line_number, identity));
        }
    }
    let mut users: Vec<(usize, Identity)> = users.into_values().collect();
    users.sort_by_key(|(line_number, _)| *line_number);
    users.into_iter().map(|(_, identity)| identity).collect()
}

#[cfg(test)]
mod tests {
    use eyot::{Mount, SandboxPath, SandboxSpec};

    use super::*;

    fn names(user: Option<&str>, writable: bool) -> Vec<String> {
        let lower = tempfile::tempdir().unwrap();
        let target = SandboxPath::parse("/mnt/x").unwrap();
        let mounts = vec![Mount { source: "/srv".into(), target, writable }];
        let spec = SandboxSpec { mounts, user: user.map(str::to_owned), ..SandboxSpec::default() };
        let lower = Lower::one(lower.path().to_str().unwrap());
        let users = Users::of(&spec.validate().unwrap(), IdMap::Range { base: 1 << 30 }, &lower).unwrap();
        users.others.into_iter().map(|user| user.name).collect()
    }

    #[test]
    fn nobody_but_the_user_is_there_where_ids_in_a_writable_mount_are_the_hosts() {
        assert_eq!(names(None, true), ["user"]);
        assert_eq!(names(Some("1000"), true), ["user"]);
        assert_eq!(names(None, false), ["root", "user"]);
        assert_eq!(names(Some("root"), true), ["root", "user"]);
    }

    #[test]
    fn a_passwd_file_is_read_and_rubbish_in_it_is_skipped() {
        let users = parse(
            "root:x:0:0::/root:/bin/sh\nbad\nnode:x:1000:1000::/home/node:/bin/bash\nx:x:99999:1::/:/\n",
        );
        assert_eq!(users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>(), ["root", "node"]);
    }
}
