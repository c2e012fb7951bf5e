//! Who there is in a container: the users of its `passwd` and `group`, read before anything else runs in it.

use std::fs::File;
use std::io::Read;

use crate::protocol::Identity;
use crate::protocol::container::CONTAINER_GUEST_ID;

/// The home directory of a user who is not in `passwd`.
const HOME_OF_NUMBERS: &str = "/home/user";
/// The most users that a call may name.
const MOST_USERS: usize = 256;
/// The most that is read of either file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The users of a container.
#[derive(Debug, Default)]
pub struct Users {
    known: Vec<Identity>,
    groups: Vec<(String, u32)>,
}

impl Users {
    /// Those of the container's own files. Files that are not there, or are no text, have nobody. `capabilities`: what
    /// root keeps.
    pub fn read(capabilities: u64) -> Self {
        Self::parse(&text_of("/etc/passwd"), &text_of("/etc/group"), capabilities)
    }

    fn parse(passwd: &str, group: &str, capabilities: u64) -> Self {
        let mut known: Vec<Identity> = Vec::new();
        for user in passwd.lines().filter_map(user_of_line) {
            if user.uid != CONTAINER_GUEST_ID && !known.iter().any(|other| other.name == user.name) {
                known.push(user);
            }
        }
        if !known.iter().any(|user| user.uid == 0) {
            known.insert(0, identity("root", 0, 0, "/root"));
        }
        known.iter_mut().filter(|user| user.uid == 0).for_each(|root| root.capabilities = capabilities);
        known.truncate(MOST_USERS);
        Self { known, groups: group.lines().filter_map(group_of_line).collect() }
    }

    /// Whom a call may name.
    pub fn known(&self) -> &[Identity] {
        &self.known
    }

    /// The user that this text means, as an image's configuration has it: `name`, `uid`, `name:group`, `uid:gid`. A
    /// number needs no entry in `passwd`; a name does.
    pub fn find(&self, text: &str) -> Result<Identity, String> {
        let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        let by_name = self.known.iter().find(|known| known.name == user).cloned();
        let mut found = match (by_name, user.parse::<u32>()) {
            (Some(found), _) => found,
            (None, Ok(uid)) => self.numbered(uid)?,
            (None, Err(_)) => return Err(format!("there is no user `{user}` in the image")),
        };
        if let Some(group) = group {
            found.gid = self.group(group)?;
        }
        Ok(found)
    }

    fn numbered(&self, uid: u32) -> Result<Identity, String> {
        if uid == CONTAINER_GUEST_ID || uid == u32::MAX {
            return Err(format!("nobody may be user {uid}"));
        }
        let known = self.known.iter().find(|known| known.uid == uid).cloned();
        Ok(known.unwrap_or_else(|| identity(&uid.to_string(), uid, 0, HOME_OF_NUMBERS)))
    }

    fn group(&self, text: &str) -> Result<u32, String> {
        let by_name = self.groups.iter().find(|(name, _)| name == text).map(|(_, gid)| *gid);
        let gid = by_name.or_else(|| text.parse().ok());
        gid.filter(|gid| *gid != CONTAINER_GUEST_ID && *gid != u32::MAX)
            .ok_or_else(|| format!("there is no group `{text}` in the image"))
    }
}

fn text_of(path: &str) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
    // An image without users has root alone.
    if read.is_ok() { text } else { String::new() }
}

fn user_of_line(line: &str) -> Option<Identity> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, ..] = fields[..] else { return None };
    let usable = !name.is_empty() && home.starts_with('/');
    usable.then_some(identity(name, uid.parse().ok()?, gid.parse().ok()?, home))
}

fn group_of_line(line: &str) -> Option<(String, u32)> {
    let mut fields = line.split(':');
    Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
}

fn identity(name: &str, uid: u32, gid: u32, home: &str) -> Identity {
    Identity { name: name.to_owned(), uid, gid, home: home.to_owned(), capabilities: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> Users {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nrubbish\nnode:x:1000:1000::/home/node:/bin/bash\nnode:x:7:7::/:/\n\
                      guest:x:65533:65533::/:/\n";
        Users::parse(passwd, "root:x:0:\nstaff:x:50:node\n", 1 << 7)
    }

    #[test]
    fn a_user_is_found_by_name_and_by_number_and_with_a_group() {
        let users = users();
        for (text, uid, gid, home) in [
            ("node", 1000, 1000, "/home/node"),
            ("1000", 1000, 1000, "/home/node"),
            ("node:staff", 1000, 50, "/home/node"),
            ("4000:4001", 4000, 4001, "/home/user"),
            ("4000", 4000, 0, "/home/user"),
        ] {
            let found = users.find(text).unwrap();
            assert_eq!((found.uid, found.gid, found.home.as_str()), (uid, gid, home), "{text}");
            assert_eq!(found.capabilities, 0);
        }
        assert_eq!(users.find("root").unwrap().capabilities, 1 << 7);
    }

    #[test]
    fn nobody_can_be_the_guest_and_who_is_not_there_is_refused() {
        let users = users();
        assert!(users.known().iter().all(|user| user.uid != CONTAINER_GUEST_ID));
        for text in ["guest", "65533", "0:65533", "4294967295", "nobody", "", "node:nogroup"] {
            assert!(users.find(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_image_without_users_has_root() {
        let users = Users::parse("", "", 0);
        assert_eq!(users.find("root").unwrap().home, "/root");
        assert_eq!(users.find("0").unwrap().name, "root");
    }
}
