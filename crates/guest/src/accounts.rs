//! The users and groups of an image, from the text of its `passwd` and `group`: read by whoever makes a sandbox of it, or by
//! the guest inside. Which ids may be used differs by maker, and is said by [`Ids`].

use std::collections::HashSet;

use crate::protocol::Identity;

/// The most users of an image that a call may name.
pub const MAX_USERS: usize = 256;

/// Which ids the image's users may have.
#[derive(Debug, Clone, Copy)]
pub struct Ids {
    /// Whether somebody may be this user.
    pub is_user: fn(u32) -> bool,
    /// Whether somebody may be of this group.
    pub is_group: fn(u32) -> bool,
    /// The home directory of a user who has no line in `passwd`.
    pub home_of_numbers: &'static str,
}

/// The users of an image.
#[derive(Debug, Clone)]
pub struct Users {
    all: Vec<Identity>,
    ids: Ids,
}

impl Users {
    /// Those of this `passwd`, in its order, the first of each name. Lines that are none, and ids that nobody may have, are
    /// left out.
    pub fn parse(passwd: &str, ids: Ids) -> Self {
        let mut names = HashSet::new();
        let usable = |user: &Identity| (ids.is_user)(user.uid) && (ids.is_group)(user.gid);
        let users = passwd.lines().filter_map(user_of_line).filter(usable);
        Self { all: users.filter(|user| names.insert(user.name.clone())).collect(), ids }
    }

    /// Those whom a call may name: the first [`MAX_USERS`].
    pub fn known(&self) -> &[Identity] {
        &self.all[..self.all.len().min(MAX_USERS)]
    }

    /// The first with this id.
    pub fn by_id(&self, uid: u32) -> Option<&Identity> {
        self.all.iter().find(|user| user.uid == uid)
    }

    /// Puts this user before all others, unless somebody has the id.
    pub fn complete_with(&mut self, user: Identity) {
        if self.by_id(user.uid).is_none() {
            self.all.insert(0, user);
        }
    }

    /// There is a root, and it keeps these capabilities, a mask.
    pub fn complete_with_root(&mut self, capabilities: u64) {
        self.complete_with(identity("root", 0, 0, "/root"));
        self.all.iter_mut().filter(|user| user.uid == 0).for_each(|root| root.capabilities = capabilities);
    }

    /// The user that this text means, as an image's configuration has it: `name`, `uid`, `name:group`, `uid:gid`. A number
    /// needs no line in `passwd` or `group`; a name does. `group_file` gives the text of `group`, and is asked for a
    /// group's name only.
    ///
    /// # Errors
    /// A sentence about who is not there, or what `group_file` fails with.
    pub fn find(
        &self,
        text: &str,
        group_file: impl FnOnce() -> Result<String, String>,
    ) -> Result<Identity, String> {
        let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        let by_name = self.all.iter().find(|known| known.name == user).cloned();
        let found = match (by_name, user.parse::<u32>()) {
            (Some(found), _) => found,
            (None, Ok(uid)) => self.numbered(uid)?,
            (None, Err(_)) => return Err(format!("there is no user `{user}` in the image")),
        };
        let Some(group) = group else { return Ok(found) };
        let gid = match group.parse() {
            Ok(gid) => Some(gid),
            Err(_) => group_id(&group_file()?, group),
        };
        match gid.filter(|gid| (self.ids.is_group)(*gid)) {
            Some(gid) => Ok(Identity { gid, ..found }),
            None => Err(format!("there is no group `{group}` in the image")),
        }
    }

    fn numbered(&self, uid: u32) -> Result<Identity, String> {
        if !(self.ids.is_user)(uid) {
            return Err(format!("nobody may be user {uid}"));
        }
        let known = self.by_id(uid).cloned();
        Ok(known.unwrap_or_else(|| identity(&uid.to_string(), uid, 0, self.ids.home_of_numbers)))
    }
}

fn user_of_line(line: &str) -> Option<Identity> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, ..] = fields[..] else { return None };
    let usable = !name.is_empty() && home.starts_with('/');
    usable.then_some(identity(name, uid.parse().ok()?, gid.parse().ok()?, home))
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
    const IDS: Ids = Ids {
        is_user: |id| id != GUEST,
        is_group: |id| id < 70_000 && id != GUEST,
        home_of_numbers: "/home/user",
    };

    fn users() -> Users {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nrubbish\nnode:x:1000:1000::/home/node:/bin/bash\nnode:x:7:7::/:/\n\
                      guest:x:65533:65533::/:/\nfar:x:7:99999::/:/\nnowhere:x:8:8:::/\n";
        let mut users = Users::parse(passwd, IDS);
        users.complete_with_root(1 << 7);
        users
    }

    fn found(text: &str) -> Result<Identity, String> {
        users().find(text, || Ok("root:x:0:\nstaff:x:50:node\n".to_owned()))
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
    fn an_image_without_users_has_root_and_the_list_has_an_end() {
        let mut users = Users::parse("", IDS);
        users.complete_with_root(0);
        assert_eq!(users.by_id(0).map(|root| root.home.as_str()), Some("/root"));
        let lines: String = (1..1000).map(|id| format!("u{id}:x:{id}:{id}::/:/\n")).collect();
        let mut users = Users::parse(&lines, IDS);
        users.complete_with_root(0);
        assert_eq!((users.known().len(), users.known()[0].name.as_str()), (MAX_USERS, "root"));
    }

    #[test]
    fn a_user_beyond_the_end_of_the_list_is_there_all_the_same() {
        let lines: String = (1..1001).map(|id| format!("u{id}:x:{id}:{id}::/:/\n")).collect();
        let users = Users::parse(&lines, IDS);
        assert_eq!(users.by_id(1000).map(|user| user.name.as_str()), Some("u1000"));
        assert_eq!(users.find("u900", || Ok(String::new())).unwrap().uid, 900);
    }
}
