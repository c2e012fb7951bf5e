//! The users and groups of an image, from the text of its `passwd` and `group`. The maker of a
//! sandbox reads them, or the guest inside. [`Ids`] says which ids a maker allows.

use std::collections::HashSet;

use crate::protocol::{Identity, Ids};

/// The most users of an image that a guest is told of.
pub const MAX_USERS: usize = 256;
/// The user id of root.
pub const ROOT: u32 = 0;

impl Ids {
    /// Tells whether a user may have this id.
    pub fn has_user(&self, uid: u32) -> bool {
        uid < self.users_below && self.reserved != Some(uid)
    }

    /// Tells whether a group may have this id.
    pub fn has_group(&self, gid: u32) -> bool {
        gid < self.groups_below && self.reserved != Some(gid)
    }

    fn have(&self, user: &Identity) -> bool {
        self.has_user(user.uid) && self.has_group(user.gid)
    }
}

/// The users of an image.
#[derive(Debug, Clone)]
pub struct Users {
    all: Vec<Identity>,
    ids: Ids,
}

impl Users {
    /// Parses the users of this `passwd`, in its order, the first of each name. Malformed lines,
    /// and ids that are not allowed, are left out.
    pub fn parse(passwd: &str, ids: Ids) -> Self {
        let mut names = HashSet::new();
        let users = users_of(passwd).filter(|user| ids.have(user));
        Self { all: users.filter(|user| names.insert(user.name.clone())).collect(), ids }
    }

    /// Those whom a guest is told of: the first [`MAX_USERS`].
    pub fn known(&self) -> &[Identity] {
        &self.all[..self.all.len().min(MAX_USERS)]
    }

    /// The first with this id.
    pub fn by_id(&self, uid: u32) -> Option<&Identity> {
        self.all.iter().find(|user| user.uid == uid)
    }

    /// Puts this user before all others, unless one of them has the id.
    pub fn complete_with(&mut self, user: Identity) {
        if self.by_id(user.uid).is_none() {
            self.all.insert(0, user);
        }
    }

    /// There is a root, and it keeps these capabilities, a mask.
    pub fn complete_with_root(&mut self, capabilities: u64) {
        self.complete_with(identity("root", ROOT, ROOT, "/root"));
        self.all.iter_mut().filter(|user| user.uid == ROOT).for_each(|root| root.capabilities = capabilities);
    }

    /// The same as [`find`], among these.
    ///
    /// # Errors
    /// As [`find`].
    pub fn find(
        &self,
        text: &str,
        place: &str,
        group_file: impl FnOnce() -> Result<String, String>,
    ) -> Result<Identity, String> {
        find(text, self.all.iter().cloned(), &self.ids, place, group_file)
    }
}

/// The user that this text means, as an image's configuration has it: `name`, `uid`, `name:group`,
/// `uid:gid`. The first of `users` with a name, or a number, is the one. A number needs no line in
/// `passwd` or `group`; a name does. `group_file` gives the text of `group`, and is asked for a
/// group's name only. `place` is where they were looked for, for the sentence.
///
/// # Errors
/// A sentence about who is not there or may not be, or what `group_file` fails with.
pub fn find(
    text: &str,
    users: impl Iterator<Item = Identity> + Clone,
    ids: &Ids,
    place: &str,
    group_file: impl FnOnce() -> Result<String, String>,
) -> Result<Identity, String> {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    let found = match users.clone().find(|known| known.name == user) {
        Some(found) if ids.have(&found) => found,
        Some(found) => return Err(beyond(&found, place)),
        None => numbered(user, users, ids, place)?,
    };
    let Some(group) = group else { return Ok(found) };
    let gid = match group.parse() {
        Ok(gid) => Some(gid),
        Err(_) => group_id(&group_file()?, group),
    };
    match gid {
        Some(gid) if ids.has_group(gid) => Ok(Identity { gid, ..found }),
        Some(gid) => Err(format!("nobody may be of group {gid}")),
        None => Err(format!("there is no group `{group}` in {place}")),
    }
}

/// The user of this number, of these or of no line.
fn numbered(
    text: &str,
    mut users: impl Iterator<Item = Identity>,
    ids: &Ids,
    place: &str,
) -> Result<Identity, String> {
    let Ok(uid) = text.parse::<u32>() else {
        return Err(format!("there is no user `{text}` in {place}"));
    };
    if !ids.has_user(uid) {
        return Err(format!("nobody may be user {uid}"));
    }
    let known = users.find(|user| user.uid == uid && ids.have(user));
    Ok(known.unwrap_or_else(|| identity(text, uid, 0, &ids.home_of_numbers)))
}

fn beyond(user: &Identity, place: &str) -> String {
    let Identity { name, uid, gid, .. } = user;
    format!(
        "nobody may be user `{name}` of {place}: its ids {uid} and {gid} are not among those of this sandbox"
    )
}

/// The users of the lines of a `passwd`, whatever their ids; lines that are none are left out.
pub fn users_of(passwd: &str) -> impl Iterator<Item = Identity> + Clone {
    passwd.lines().filter_map(user_of_line)
}

fn user_of_line(line: &str) -> Option<Identity> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    let home = fields.nth(1).filter(|home| home.starts_with('/'))?;
    Some(identity(name, uid, gid, home))
}

fn group_id(group_file: &str, wanted: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == wanted).then(|| fields.nth(1)?.parse().ok()).flatten()
    };
    group_file.lines().find_map(of_line)
}

fn identity(name: &str, uid: u32, gid: u32, home: &str) -> Identity {
    Identity { name: name.to_owned(), uid, gid, home: home.to_owned(), capabilities: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: u32 = 65_533;
    fn ids() -> Ids {
        Ids {
            users_below: u32::MAX,
            groups_below: 70_000,
            reserved: Some(GUEST),
            home_of_numbers: "/home/user".to_owned(),
        }
    }

    fn users() -> Users {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nrubbish\nnode:x:1000:1000::/home/node:/bin/bash\nnode:x:7:7::/:/\n\
                      guest:x:65533:65533::/:/\nfar:x:7:99999::/:/\nnowhere:x:8:8:::/\n";
        let mut users = Users::parse(passwd, ids());
        users.complete_with_root(1 << 7);
        users
    }

    fn found(text: &str) -> Result<Identity, String> {
        users().find(text, "the image", || Ok("root:x:0:\nstaff:x:50:node\n".to_owned()))
    }

    #[test]
    fn a_user_is_found_by_name_and_by_number_and_with_a_group() {
        for (text, uid, gid, home) in [
            ("node", 1000, 1000, "/home/node"),
            ("1000", 1000, 1000, "/home/node"),
            ("node:staff", 1000, 50, "/home/node"),
            ("4000:4001", 4000, 4001, "/home/user"),
            ("4000", 4000, 0, "/home/user"),
        ] {
            let found = found(text).unwrap();
            assert_eq!((found.uid, found.gid, found.home.as_str()), (uid, gid, home), "{text}");
            assert_eq!(found.capabilities, 0);
        }
        assert_eq!(found("root").unwrap().capabilities, 1 << 7);
    }

    #[test]
    fn who_may_not_be_and_who_is_not_there_is_refused() {
        assert_eq!(
            users().known().iter().map(|user| user.name.as_str()).collect::<Vec<_>>(),
            ["root", "node"]
        );
        for text in ["guest", "65533", "0:65533", "0:70000", "4294967296", "nobody", "", "node:nogroup"] {
            assert!(found(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_user_whose_ids_nobody_may_have_is_not_passed_over_for_a_later_one_of_the_name() {
        let passwd = "far:x:7:99999::/:/\nfar:x:8:8::/:/\n";
        let refused = find("far", users_of(passwd), &ids(), "the sandbox", || Ok(String::new()));
        assert!(refused.unwrap_err().contains("its ids 7 and 99999 are not among"));
    }

    #[test]
    fn an_image_without_users_has_root_and_the_list_has_an_end() {
        let mut users = Users::parse("", ids());
        users.complete_with_root(0);
        assert_eq!(users.by_id(0).map(|root| root.home.as_str()), Some("/root"));
        let lines: String = (1..1000).map(|id| format!("u{id}:x:{id}:{id}::/:/\n")).collect();
        let mut users = Users::parse(&lines, ids());
        users.complete_with_root(0);
        assert_eq!((users.known().len(), users.known()[0].name.as_str()), (MAX_USERS, "root"));
    }

    #[test]
    fn a_user_beyond_the_end_of_the_list_is_there_all_the_same() {
        let lines: String = (1..1001).map(|id| format!("u{id}:x:{id}:{id}::/:/\n")).collect();
        let users = Users::parse(&lines, ids());
        assert_eq!(users.by_id(1000).map(|user| user.name.as_str()), Some("u1000"));
        assert_eq!(users.find("u900", "the image", || Ok(String::new())).unwrap().uid, 900);
    }
}
