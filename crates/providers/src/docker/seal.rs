//! Proof that a label is ours: a MAC with the secret of the state folder.
//!
//! Anybody can write labels: an image brings some along, and `docker commit` copies all of them. So
//! a record in a label counts only with a MAC over the record, the id of the state folder, and the
//! name of the container or volume, which no image can choose.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use eyot::{Error, ErrorKind, Result};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::state_secret::SECRET_BYTES;

/// Separates these MACs from every other use of the secret.
const DOMAIN: &str = "eyot docker label 1";
const STATE_DOMAIN: &str = "eyot docker state id 1";
const VARIABLES_DOMAIN: &str = "eyot docker variables 1";
const GUEST_DOMAIN: &str = "eyot docker guest secret 1";
/// The number of bytes of a MAC that make up the id of a state folder.
const STATE_ID_BYTES: usize = 8;

/// The block size of SHA-256, in bytes.
const BLOCK_BYTES: usize = 64;

/// The kind of a labelled thing. A MAC for one kind is not valid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A sandbox's container.
    Container,
    /// The volume of a persistent workspace.
    Workspace,
    /// The container through which the guest's volume is filled.
    Filler,
    /// A container that never runs, through which the files of an image are read or changed.
    Helper,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Workspace => "workspace",
            Self::Filler => "filler",
            Self::Helper => "helper",
        }
    }
}

/// Makes and verifies MACs with the secret of one state folder.
pub(crate) struct Seal {
    secret: [u8; SECRET_BYTES],
    state_id: String,
}

impl std::fmt::Debug for Seal {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").field("state_id", &self.state_id).finish_non_exhaustive()
    }
}

impl Seal {
    /// Makes a seal with this secret.
    pub(crate) fn new(secret: [u8; SECRET_BYTES]) -> Self {
        let id = over(&secret, &[STATE_DOMAIN]).finalize().into_bytes();
        Self { secret, state_id: hex::encode(&id[..STATE_ID_BYTES]) }
    }

    /// Returns the id of the state folder. It is derived from the secret, but is public.
    pub(crate) fn state_id(&self) -> &str {
        &self.state_id
    }

    /// Computes the MAC of a record, for the thing of this kind and name.
    pub(crate) fn mac(&self, kind: Kind, name: &str, record: &str) -> String {
        hex::encode(self.label(kind, name, record).finalize().into_bytes())
    }

    /// Verifies a MAC, in constant time.
    pub(crate) fn verifies(&self, kind: Kind, name: &str, record: &str, mac: &str) -> bool {
        hex::decode(mac).is_ok_and(|mac| self.label(kind, name, record).verify_slice(&mac).is_ok())
    }

    /// Derives the secret that a sandbox's nonces come from. It is in no label, so a copy of the
    /// labels gives no access to the guest.
    pub(crate) fn guest_secret(&self, id: &str, created_ms: i64) -> [u8; SECRET_BYTES] {
        over(&self.secret, &[GUEST_DOMAIN, id, &created_ms.to_string()]).finalize().into_bytes().into()
    }

    /// Encrypts text about a sandbox, for a label: whoever copies the label can't read it.
    pub(crate) fn hide(&self, id: &str, text: &str) -> Result<String> {
        let failed = |_| Error::new(ErrorKind::Internal, "encrypt a sandbox's variables");
        let mut bytes = text.as_bytes().to_vec();
        let nonce = self.cipher().map_err(failed)?.seal_in_place_append_tag(Aad::from(id), &mut bytes);
        Ok(hex::encode(nonce.map_err(failed)?.as_ref()) + &hex::encode(bytes))
    }

    /// Decrypts the text of [`Seal::hide`]. `None`: another secret has encrypted it, or it was changed.
    pub(crate) fn reveal(&self, id: &str, hidden: &str) -> Option<String> {
        let mut bytes = hex::decode(hidden).ok()?;
        let (nonce, text) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let text = self.cipher().ok()?.open_in_place(nonce, Aad::from(id), text).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }

    fn cipher(&self) -> std::result::Result<RandomizedNonceKey, aws_lc_rs::error::Unspecified> {
        let key = over(&self.secret, &[VARIABLES_DOMAIN]).finalize().into_bytes();
        RandomizedNonceKey::new(&AES_256_GCM, &key)
    }

    fn label(&self, kind: Kind, name: &str, record: &str) -> Hmac<Sha256> {
        over(&self.secret, &[DOMAIN, kind.word(), &self.state_id, name, record])
    }
}

/// Computes the MAC over some parts. The length of each is included, so no two lists of parts give
/// the same bytes.
fn over(secret: &[u8; SECRET_BYTES], parts: &[&str]) -> Hmac<Sha256> {
    // HMAC itself pads a key with zeros up to a block.
    let mut key = [0; BLOCK_BYTES];
    key[..SECRET_BYTES].copy_from_slice(secret);
    let mut mac = Hmac::<Sha256>::new(&key.into());
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part.as_bytes());
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_holds_for_its_secret_kind_name_and_record_alone() {
        let seal = Seal::new([1; 32]);
        let mac = seal.mac(Kind::Container, "eyot-a", "{}");
        assert!(seal.verifies(Kind::Container, "eyot-a", "{}", &mac));
        assert!(!seal.verifies(Kind::Workspace, "eyot-a", "{}", &mac));
        assert!(!seal.verifies(Kind::Container, "eyot-b", "{}", &mac));
        assert!(!seal.verifies(Kind::Container, "eyot-a", "{} ", &mac));
        assert!(!Seal::new([2; 32]).verifies(Kind::Container, "eyot-a", "{}", &mac));
    }

    #[test]
    fn a_mac_that_is_cut_or_no_mac_at_all_verifies_nothing() {
        let seal = Seal::new([1; 32]);
        let mac = seal.mac(Kind::Container, "a", "b");
        for wrong in ["", "x", &mac[..62], &mac[..2], &format!("{mac}00")] {
            assert!(!seal.verifies(Kind::Container, "a", "b", wrong), "{wrong}");
        }
    }

    #[test]
    fn moving_a_byte_from_one_part_to_the_next_gives_another_mac() {
        let seal = Seal::new([1; 32]);
        assert_ne!(seal.mac(Kind::Container, "ab", "c"), seal.mac(Kind::Container, "a", "bc"));
    }

    #[test]
    fn what_is_hidden_is_read_with_the_same_secret_for_the_same_sandbox_alone() {
        let seal = Seal::new([1; 32]);
        let hidden = seal.hide("sb_1", "TOKEN").unwrap();
        assert_eq!(seal.reveal("sb_1", &hidden).as_deref(), Some("TOKEN"));
        assert_ne!(seal.hide("sb_1", "TOKEN").unwrap(), hidden);
        assert_eq!(seal.reveal("sb_2", &hidden), None);
        assert_eq!(Seal::new([2; 32]).reveal("sb_1", &hidden), None);
        let changed = hidden.replace(&hidden[..2], if hidden.starts_with("00") { "01" } else { "00" });
        for wrong in ["", "00", "xyz", &hidden[..24], &hidden[..hidden.len() - 2], &changed] {
            assert_eq!(seal.reveal("sb_1", wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_id_of_a_state_folder_and_a_guests_secret_depend_on_the_secret() {
        let (one, other) = (Seal::new([1; 32]), Seal::new([2; 32]));
        assert_eq!(one.state_id().len(), 16);
        assert_ne!(one.state_id(), other.state_id());
        assert_ne!(one.guest_secret("x", 1), other.guest_secret("x", 1));
        assert_ne!(one.guest_secret("x", 1), one.guest_secret("x", 2));
        assert!(!format!("{one:?}").contains("secret"));
    }
}
