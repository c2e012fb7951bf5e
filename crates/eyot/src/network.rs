//! Reading a network mode: a word; or, as Anvia writes it, a switch or an object with a mode.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::spec::NetworkMode;

impl<'de> Deserialize<'de> for NetworkMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NetworkModeVisitor)
    }
}

struct NetworkModeVisitor;

const WORDS: [&str; 4] = ["none", "egress", "bridge", "host"];

impl<'de> Visitor<'de> for NetworkModeVisitor {
    type Value = NetworkMode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`none`, `egress`, `bridge`, `host`, true, false, or an object with a `mode`")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<NetworkMode, E> {
        Ok(if is_on { NetworkMode::Egress } else { NetworkMode::None })
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<NetworkMode, E> {
        match word {
            "none" => Ok(NetworkMode::None),
            "egress" => Ok(NetworkMode::Egress),
            "bridge" => Ok(NetworkMode::Bridge),
            "host" => Ok(NetworkMode::Host),
            other => Err(E::unknown_variant(other, &WORDS)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NetworkMode, A::Error> {
        let mut mode = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "mode" if mode.is_none() => mode = Some(map.next_value()?),
                "mode" => return Err(A::Error::duplicate_field("mode")),
                other => return Err(A::Error::unknown_field(other, &["mode"])),
            }
        }
        mode.ok_or_else(|| A::Error::missing_field("mode"))
    }
}
