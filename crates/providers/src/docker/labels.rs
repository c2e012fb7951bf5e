//! The record of a sandbox, kept in labels of its container. Labels never change. Every user of the
//! Engine can read them, but could enter the container anyway. They are trusted only with a MAC:
//! see [`super::seal`].

use std::collections::{BTreeMap, HashMap};

use eyot::{
    Error, ErrorKind, Manifest, Result, SandboxId, SandboxInfo, SandboxName, SandboxSpec, SnapshotId,
};
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::life::Life;
use super::seal::{Kind, Seal};

/// The prefix of Eyot's own labels.
pub(crate) const PREFIX: &str = "dev.eyot.";
/// The label on everything that Eyot makes. Its value is the version of the labels' format.
pub(crate) const SCHEMA: &str = "dev.eyot.schema";
/// The current value of [`SCHEMA`].
pub(crate) const SCHEMA_VERSION: &str = "3";
/// The first version, whose records have no MAC: one is used only after an adoption.
pub(crate) const UNSIGNED_VERSION: &str = "1";
/// The versions whose records can be read. Until version 2 the variables were open to all who read labels.
const READABLE: [&str; 3] = [UNSIGNED_VERSION, "2", SCHEMA_VERSION];
/// The id of the state folder that made the container or volume.
pub(crate) const STATE: &str = "dev.eyot.state";
/// The MAC of the record: see [`super::seal`].
pub(crate) const MAC: &str = "dev.eyot.mac";
/// A sandbox's id.
pub(crate) const ID: &str = "dev.eyot.id";
/// A sandbox's name.
pub(crate) const NAME: &str = "dev.eyot.name";
/// The id of a persistent workspace.
pub(crate) const WORKSPACE: &str = "dev.eyot.workspace";
/// The mark that tells a volume from an earlier one of the same name.
pub(crate) const MAKING: &str = "dev.eyot.making";
/// The id of the state folder, on the image of files that are compared just now.
pub(crate) const COMPARED: &str = "dev.eyot.compared";
/// The id of a snapshot, on its image.
pub(crate) const SNAPSHOT: &str = "dev.eyot.snapshot";
/// The prefix of the labels for a spec's metadata.
const METADATA: &str = "dev.eyot.metadata.";
pub(crate) const RECORD: &str = "dev.eyot.record";

/// The data that a later process needs to use or to remove a sandbox. The files of the manifest are
/// left out: they may be large, and are in the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub id: SandboxId,
    pub name: SandboxName,
    pub created_ms: i64,
    pub spec: SandboxSpec,
    /// The secret that both sides' nonces are derived from. It is in no label: [`Record::read`]
    /// derives it.
    #[serde(skip)]
    pub guest_secret: [u8; 32],
    /// The user that runs commands, written as in an image.
    pub user: String,
    /// The image's variables, in order.
    pub env: Vec<(String, String)>,
    /// The variables of the spec, encrypted. Only labels have them so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
    /// The persistent workspace was made for this sandbox. A workspace that existed before outlives
    /// a failed create.
    pub made_workspace: bool,
    /// The snapshot that the container lies above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<LowerSnapshot>,
}

/// The snapshot that a container lies above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LowerSnapshot {
    /// The snapshot, which may be removed since.
    pub snapshot: SnapshotId,
    /// The Engine's id of the image below all of its snapshots.
    pub root_image: String,
    /// The files of the working directory are among the container's own, and not in a volume.
    pub has_workdir: bool,
    /// The container took the place of an earlier one of its sandbox, and sleeps until it is started.
    pub replaces: bool,
    /// The Engine's id of that earlier container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
}

/// The variables of a spec, which labels have encrypted: labels go along into images that others make of a container, and images
/// are given away.
#[derive(Serialize, Deserialize)]
struct HiddenVariables {
    env: BTreeMap<String, String>,
    manifest_env: BTreeMap<String, String>,
}

/// The secret in a record of version 1, which everybody who reads labels knows.
#[derive(Deserialize)]
struct OwnSecret {
    #[serde(default)]
    secret: Option<[u8; 32]>,
}

impl Record {
    /// Reduces a spec to the part that is recorded.
    pub(crate) fn recorded(spec: &SandboxSpec) -> SandboxSpec {
        SandboxSpec {
            manifest: Manifest { env: spec.manifest.env.clone(), ..Manifest::default() },
            ..spec.clone()
        }
    }

    /// Returns the labels of the sandbox's container. `inherited` are the image's labels. The
    /// Engine copies them to the container, so those that look like Eyot's own are emptied.
    pub(crate) fn labels(
        &self,
        seal: &Seal,
        inherited: impl IntoIterator<Item = String>,
    ) -> Result<HashMap<String, String>> {
        let record = self.to_text(seal)?;
        let look_alikes = inherited.into_iter().filter(|key| key.starts_with(PREFIX));
        let mut labels: HashMap<String, String> = look_alikes.map(|key| (key, String::new())).collect();
        labels.extend(self.spec.labels.clone());
        labels.extend(
            self.spec.metadata.iter().map(|(key, value)| (format!("{METADATA}{key}"), value.clone())),
        );
        labels.extend([
            (SCHEMA.to_owned(), SCHEMA_VERSION.to_owned()),
            (STATE.to_owned(), seal.state_id().to_owned()),
            (ID.to_owned(), self.id.to_string()),
            (NAME.to_owned(), self.name.to_string()),
            (MAC.to_owned(), seal.mac(Kind::Container, &self.container_name(), &record)),
            (RECORD.to_owned(), record),
        ]);
        Ok(labels)
    }

    /// Writes the record down, with its variables encrypted.
    fn to_text(&self, seal: &Seal) -> Result<String> {
        let failed = |error| Error::new(ErrorKind::Internal, "write the sandbox's record").with_source(error);
        let mut open = self.clone();
        let env = std::mem::take(&mut open.spec.env);
        let manifest_env = std::mem::take(&mut open.spec.manifest.env);
        if !env.is_empty() || !manifest_env.is_empty() {
            let text = serde_json::to_string(&HiddenVariables { env, manifest_env }).map_err(failed)?;
            open.hidden = Some(seal.hide(self.id.as_str(), &text)?);
        }
        serde_json::to_string(&open).map_err(failed)
    }

    /// Decrypts the variables. Those that another state folder has encrypted stay hidden.
    fn reveal(&mut self, seal: &Seal) {
        let text = self.hidden.as_deref().and_then(|hidden| seal.reveal(self.id.as_str(), hidden));
        let read = text.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(HiddenVariables { env, manifest_env }) = read {
            (self.spec.env, self.spec.manifest.env, self.hidden) = (env, manifest_env, None);
        }
    }

    /// Reads the record in a container's labels, if its MAC is valid for a container of this name.
    pub(crate) fn verified(seal: &Seal, name: &str, labels: &HashMap<String, String>) -> Option<Self> {
        let (text, mac) = (labels.get(RECORD)?, labels.get(MAC)?);
        if !seal.verifies(Kind::Container, name, text, mac) {
            return None;
        }
        let record = Self::read(seal, labels.get(SCHEMA)?, text)?;
        (record.container_name() == name).then_some(record)
    }

    /// Reads a record of any known version. It is not verified.
    pub(crate) fn read(seal: &Seal, schema: &str, text: &str) -> Option<Self> {
        if !READABLE.contains(&schema) {
            return None;
        }
        let mut record: Self = serde_json::from_str(text).ok()?;
        record.reveal(seal);
        let own: OwnSecret = serde_json::from_str(text).ok()?;
        let derived = || seal.guest_secret(record.id.as_str(), record.created_ms);
        Some(Self { guest_secret: own.secret.unwrap_or_else(derived), ..record })
    }

    /// Returns the name of the sandbox's container, by which the Engine keeps names of sandboxes
    /// unique.
    pub(crate) fn container_name(&self) -> String {
        container_name(&self.name)
    }

    /// Describes the sandbox without asking it.
    pub(crate) fn info(&self, condition: &Condition, isolation: eyot::Isolation) -> SandboxInfo {
        SandboxInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            pool: None,
            provider: super::NAME.to_owned(),
            status: condition.status(),
            workdir: self.workdir(),
            created_ms: self.created_ms,
            spec: self.spec.clone(),
            isolation,
            life: condition.life().map(|Life(life)| life.clone()).unwrap_or_default(),
        }
    }

    /// Tells whether the working directory is among the container's own files.
    pub(crate) fn has_own_workdir(&self) -> bool {
        self.base.as_ref().is_some_and(|base| base.has_workdir)
    }

    /// Returns the working directory.
    pub(crate) fn workdir(&self) -> eyot::SandboxPath {
        // A record is made from a checked spec, in which it is filled in.
        self.spec.workdir.clone().unwrap_or_else(eyot::SandboxPath::root)
    }

    /// Returns the rest of the time to live, in milliseconds; `None` without a time to live.
    pub(crate) fn ttl_left_ms(&self, now_ms: i64) -> Option<u64> {
        let lifecycle = &self.spec.lifecycle;
        let ttl = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy)?;
        let lived = u64::try_from(now_ms.saturating_sub(self.created_ms)).unwrap_or(0);
        Some(ttl.saturating_sub(lived))
    }
}

/// Returns the name of the container for a sandbox of this name.
pub(crate) fn container_name(name: &SandboxName) -> String {
    format!("eyot-{name}")
}

/// Refuses labels that look like Eyot's own.
pub(crate) fn check(spec: &SandboxSpec) -> Result<()> {
    match spec.labels.keys().find(|key| key.starts_with(PREFIX)) {
        Some(key) => Err(Error::invalid("labels", format!("must not begin with `{PREFIX}`: `{key}`"))),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use eyot::{Bytes, Lifecycle};

    use super::*;

    /// Makes the record of a sandbox with this spec.
    pub(crate) fn record(spec: SandboxSpec) -> Record {
        let spec = spec.validate().unwrap();
        Record {
            id: spec.id().clone(),
            name: spec.name().clone(),
            created_ms: 1_000,
            spec: Record::recorded(spec.spec()),
            guest_secret: [7; 32],
            user: "0".to_owned(),
            env: Vec::new(),
            hidden: None,
            made_workspace: false,
            base: None,
        }
    }

    fn seal() -> Seal {
        Seal::new([1; 32])
    }

    fn labels(record: &Record) -> HashMap<String, String> {
        record.labels(&seal(), []).unwrap()
    }

    #[test]
    fn a_record_is_found_again_in_the_labels_beside_the_users_own() {
        let mut spec = SandboxSpec::default();
        spec.labels.insert("team".into(), "red".into());
        spec.metadata.insert("ticket".into(), "ä 42".into());
        spec.manifest.files.insert("a".into(), Bytes::from("large"));
        spec.manifest.env.insert("A".into(), "1".into());
        let record = record(spec);
        let labels = labels(&record);
        assert_eq!(labels["team"], "red");
        assert_eq!(labels["dev.eyot.metadata.ticket"], "ä 42");
        let found = Record::verified(&seal(), &record.container_name(), &labels).unwrap();
        let guest_secret = seal().guest_secret(record.id.as_str(), record.created_ms);
        assert_eq!(found, Record { guest_secret, ..record });
        assert!(found.spec.manifest.files.is_empty() && found.spec.manifest.env.contains_key("A"));
    }

    #[test]
    fn a_record_of_version_1_keeps_the_secret_that_its_guest_knows() {
        let text = serde_json::to_string(&record(SandboxSpec::default())).unwrap();
        let first = text.replacen('{', &format!("{{\"secret\":{:?},", [9; 32]), 1);
        assert_eq!(Record::read(&seal(), "1", &first).unwrap().guest_secret, [9; 32]);
        assert_ne!(Record::read(&seal(), "2", &text).unwrap().guest_secret, [9; 32]);
        assert!(Record::read(&seal(), "4", &text).is_none());
    }

    #[test]
    fn no_label_holds_a_secret() {
        let mut spec = SandboxSpec::default();
        spec.env.insert("TOKEN".into(), "very-private".into());
        spec.manifest.env.insert("OTHER".into(), "very-private".into());
        let record = record(spec);
        let labels = labels(&record);
        for part in ["secret", "private", "TOKEN", "OTHER"] {
            assert!(!labels.values().any(|text| text.contains(part)), "{labels:?}");
        }
        let found = Record::verified(&seal(), &record.container_name(), &labels).unwrap();
        assert_eq!((&found.spec.env, found.hidden), (&record.spec.env, None));
        // Another state folder reads the rest.
        let others = Record::read(&Seal::new([2; 32]), SCHEMA_VERSION, &labels[RECORD]).unwrap();
        assert!(others.spec.env.is_empty() && others.hidden.is_some());
        let open = serde_json::to_string(&record).unwrap();
        assert_eq!(Record::read(&seal(), "2", &open).unwrap().spec.env, record.spec.env);
    }

    #[test]
    fn labels_that_were_forged_copied_or_changed_are_no_sandbox() {
        let record = record(SandboxSpec::default());
        let name = record.container_name();
        let verified = |name: &str, change: &dyn Fn(&mut HashMap<String, String>)| {
            let mut labels = labels(&record);
            change(&mut labels);
            Record::verified(&seal(), name, &labels).is_some()
        };
        assert!(verified(&name, &|_| {}));
        assert!(!verified("eyot-copied", &|_| {}));
        assert!(!verified(&name, &|labels| drop(labels.remove(MAC))));
        assert!(!verified(&name, &|labels| drop(labels.insert(MAC.into(), "00".repeat(32)))));
        assert!(!verified(&name, &|labels| labels.get_mut(RECORD).unwrap().push(' ')));
        assert!(!verified(&name, &|labels| drop(labels.insert(SCHEMA.into(), "4".into()))));
        assert!(Record::verified(&Seal::new([2; 32]), &name, &labels(&record)).is_none());
        assert!(Record::verified(&seal(), &name, &HashMap::new()).is_none());
        let mut spec = SandboxSpec::default();
        spec.labels.insert("dev.eyot.id".into(), "x".into());
        assert!(check(&spec).is_err());
    }

    #[test]
    fn an_images_labels_neither_win_over_ours_nor_add_to_them() {
        let image = ["dev.eyot.record", "dev.eyot.metadata.team", "dev.eyot.new", "org.example"];
        let record = record(SandboxSpec::default());
        let made = record.labels(&seal(), image.map(str::to_owned)).unwrap();
        assert_eq!(made["dev.eyot.metadata.team"], "");
        assert_eq!(made["dev.eyot.new"], "");
        assert!(!made.contains_key("org.example"));
        assert!(Record::verified(&seal(), &record.container_name(), &made).is_some());
    }

    #[test]
    fn a_ttl_passes_by_the_wall_clock_and_not_where_it_is_switched_off() {
        let with = |auto_destroy| {
            let lifecycle = Lifecycle { ttl_ms: Some(500), auto_destroy, ..Lifecycle::default() };
            record(SandboxSpec { lifecycle, ..SandboxSpec::default() })
        };
        assert_eq!(with(true).ttl_left_ms(1_200), Some(300));
        assert_eq!(with(true).ttl_left_ms(9_999), Some(0));
        assert_eq!(with(false).ttl_left_ms(1_200), None);
    }
}
