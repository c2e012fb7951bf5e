//! The users of a container, from its `passwd` and `group`, read before anything else runs in it.

use crate::accounts::Users;
use crate::program::account_files::{self, GROUP, PASSWD};
use crate::protocol::container::CONTAINER_GUEST_ID;
use crate::protocol::{Identity, Ids};

/// Returns the ids that users may have in a container: all but the guest's, and the last number,
/// which means nobody to the kernel.
pub fn ids() -> Ids {
    Ids {
        users_below: u32::MAX,
        groups_below: u32::MAX,
        reserved: Some(CONTAINER_GUEST_ID),
        home_of_numbers: "/home/user".to_owned(),
    }
}

/// Reads the users of the container's own files, with a root that keeps `capabilities`. A file that
/// is missing, or can't be read, names no users.
pub fn read(capabilities: u64) -> Users {
    // An image without users has root alone.
    let mut users = Users::parse(&account_files::read(PASSWD).unwrap_or_default(), ids());
    users.complete_with_root(capabilities);
    users
}

/// Finds the user that a text names, or returns a sentence.
pub fn find(users: &Users, text: &str) -> Result<Identity, String> {
    users.find(text, "the image", || account_files::read(GROUP))
}
