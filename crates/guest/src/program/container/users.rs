//! Who there is in a container: the users of its `passwd` and `group`, read before anything else runs in it.

use std::fs::File;
use std::io::Read;

use crate::accounts::{Ids, Users};
use crate::protocol::Identity;
use crate::protocol::container::CONTAINER_GUEST_ID;

/// The most that is read of either file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Nobody is the guest, and the last number means nobody to the kernel.
const fn is_free(id: u32) -> bool {
    id != CONTAINER_GUEST_ID && id != u32::MAX
}

/// Those of the container's own files, with a root that keeps `capabilities`. Files that are not there, or are no text, have
/// nobody.
pub fn read(capabilities: u64) -> Users {
    let ids = Ids { is_user: is_free, is_group: is_free, home_of_numbers: "/home/user" };
    let mut users = Users::parse(&text_of("/etc/passwd"), ids);
    users.complete_with_root(capabilities);
    users
}

/// Who is meant, or a sentence.
pub fn find(users: &Users, text: &str) -> Result<Identity, String> {
    users.find(text, || Ok(text_of("/etc/group")))
}

fn text_of(path: &str) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
    // An image without users has root alone.
    if read.is_ok() { text } else { String::new() }
}
