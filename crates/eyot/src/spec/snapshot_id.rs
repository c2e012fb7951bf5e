//! The ids of snapshots.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A snapshot's id: `sn_` and a UUID (version 7) in 32 hexadecimal digits. Never used twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotId(String);

impl SnapshotId {
    /// Makes a new id, different from every other.
    pub fn generate() -> Self {
        Self(format!("sn_{}", uuid::Uuid::now_v7().simple()))
    }

    /// Parses `sn_` and 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self> {
        let digits = text.strip_prefix("sn_").unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 32 && digits.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            let problem = format!("must be `sn_` and 32 hexadecimal digits, not `{text}`");
            Err(Error::invalid("snapshot", problem))
        }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SnapshotId {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> Self {
        id.0
    }
}
