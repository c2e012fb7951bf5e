//! Changes of a sandbox, on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::spec::{IdleAction, Lifecycle};
use eyot_egress::EgressRules;

/// Changes of a sandbox. A field that is absent stays as it is.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PatchSandbox {
    /// Labels to set; those that are `null` are removed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// The deadlines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<PatchLifecycle>,
    /// The rules of the network `egress`, as a whole. Connections that they do not allow are closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<EgressRules>,
}

/// Changes of deadlines. A field that is absent stays as it is; `null` removes the deadline.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PatchLifecycle {
    /// It is destroyed this many milliseconds after it was made.
    #[serde(deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    pub ttl_ms: Option<Option<u64>>,
    /// After this many milliseconds without use, counted from now, `on_idle` happens.
    #[serde(deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    pub idle_timeout_ms: Option<Option<u64>>,
    /// The action taken once it has been idle for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_idle: Option<IdleAction>,
    /// `false` switches both deadlines off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_destroy: Option<bool>,
}

impl PatchLifecycle {
    /// All of them.
    pub fn whole(lifecycle: &Lifecycle) -> Self {
        let Lifecycle { ttl_ms, idle_timeout_ms, on_idle, auto_destroy } = lifecycle.clone();
        Self {
            ttl_ms: Some(ttl_ms),
            idle_timeout_ms: Some(idle_timeout_ms),
            on_idle: Some(on_idle),
            auto_destroy: Some(auto_destroy),
        }
    }

    /// Deadlines as they are after the change.
    pub fn applied(self, to: Lifecycle) -> Lifecycle {
        Lifecycle {
            ttl_ms: self.ttl_ms.unwrap_or(to.ttl_ms),
            idle_timeout_ms: self.idle_timeout_ms.unwrap_or(to.idle_timeout_ms),
            on_idle: self.on_idle.unwrap_or(to.on_idle),
            auto_destroy: self.auto_destroy.unwrap_or(to.auto_destroy),
        }
    }
}

/// A value that is there, be it `null`.
fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_stays_and_null_is_none() {
        let patch: PatchLifecycle = serde_json::from_str(r#"{"ttl_ms": null, "on_idle": "sleep"}"#).unwrap();
        let was = Lifecycle { ttl_ms: Some(1), idle_timeout_ms: Some(2), ..Lifecycle::default() };
        let is = patch.applied(was.clone());
        assert_eq!((is.ttl_ms, is.idle_timeout_ms, is.on_idle), (None, Some(2), IdleAction::Sleep));
        assert_eq!(PatchLifecycle::default().applied(was.clone()), was);
        let whole = serde_json::to_string(&PatchLifecycle::whole(&Lifecycle::default())).unwrap();
        let again: PatchLifecycle = serde_json::from_str(&whole).unwrap();
        assert_eq!(again.applied(was), Lifecycle::default());
    }
}
