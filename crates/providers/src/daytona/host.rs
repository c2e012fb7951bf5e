//! The vendor, with the notes of the state folder about sandboxes there.

use super::client::DaytonaClient;
use super::guest_notes::GuestNotes;
use crate::e2b::adopt::AdoptionNotes;

/// The vendor, with the notes about sandboxes there.
#[derive(Debug)]
pub(super) struct DaytonaHost {
    pub client: DaytonaClient,
    pub adoptions: AdoptionNotes,
    pub guests: GuestNotes,
}
