//! The objects of the stand-in, with versions and a log of changes that can be forgotten, as etcd does.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

/// A change of an object.
#[derive(Clone)]
pub struct Change {
    pub version: u64,
    pub plural: String,
    pub kind: &'static str,
    pub object: Value,
}

#[derive(Default)]
struct Objects {
    version: u64,
    /// The changes up to this version are forgotten.
    compacted: u64,
    by_name: BTreeMap<(String, String), Value>,
    changes: Vec<Change>,
}

/// The objects.
pub struct Store {
    objects: Mutex<Objects>,
    version: watch::Sender<u64>,
}

/// The reason why an object was not deleted: both values, as the server words it.
pub enum Precondition {
    Absent,
    Uid { asked: String, found: String },
    Version { asked: String, found: String },
}

impl Store {
    pub fn new() -> Self {
        Self { objects: Mutex::default(), version: watch::channel(0).0 }
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub fn get(&self, plural: &str, name: &str) -> Option<Value> {
        self.lock().by_name.get(&(plural.to_owned(), name.to_owned())).cloned()
    }

    pub fn list(&self, plural: &str) -> (Vec<Value>, u64) {
        let objects = self.lock();
        let of = objects.by_name.iter().filter(|((kind, _), _)| kind == plural);
        (of.map(|(_, object)| object.clone()).collect(), objects.version)
    }

    /// Makes an object; `None` if there is one of that name.
    pub fn create(&self, plural: &str, name: &str, mut object: Value) -> Option<Value> {
        let objects = self.lock();
        let key = (plural.to_owned(), name.to_owned());
        if objects.by_name.contains_key(&key) {
            return None;
        }
        let version = objects.version + 1;
        object["metadata"]["uid"] =
            json!(format!("{:08x}-0000-4000-8000-{version:012x}", std::process::id()));
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        Some(self.put(objects, key, "ADDED", object))
    }

    /// Changes an object, if it is there.
    pub fn change(&self, plural: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let objects = self.lock();
        let key = (plural.to_owned(), name.to_owned());
        if let Some(mut object) = objects.by_name.get(&key).cloned() {
            change(&mut object);
            self.put(objects, key, "MODIFIED", object);
        }
    }

    /// Removes an object, or marks it as being deleted.
    pub fn delete(
        &self,
        plural: &str,
        name: &str,
        asked: &Value,
        at_once: bool,
    ) -> Result<Value, Precondition> {
        let objects = self.lock();
        let key = (plural.to_owned(), name.to_owned());
        let Some(mut object) = objects.by_name.get(&key).cloned() else { return Err(Precondition::Absent) };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found = &object["metadata"];
        let (uid, version) = (&asked["preconditions"]["uid"], &asked["preconditions"]["resourceVersion"]);
        if !uid.is_null() && *uid != found["uid"] {
            return Err(Precondition::Uid { asked: text(uid), found: text(&found["uid"]) });
        }
        if !version.is_null() && *version != found["resourceVersion"] {
            return Err(Precondition::Version {
                asked: text(version),
                found: text(&found["resourceVersion"]),
            });
        }
        if at_once {
            return Ok(self.remove(objects, key, object));
        }
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:01Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(1);
        Ok(self.put(objects, key, "MODIFIED", object))
    }

    /// Removes an object of this uid.
    pub fn forget(&self, plural: &str, name: &str, uid: &Value) {
        let objects = self.lock();
        let key = (plural.to_owned(), name.to_owned());
        if let Some(object) =
            objects.by_name.get(&key).cloned().filter(|object| object["metadata"]["uid"] == *uid)
        {
            self.remove(objects, key, object);
        }
    }

    fn remove(&self, mut objects: MutexGuard<'_, Objects>, key: (String, String), object: Value) -> Value {
        objects.by_name.remove(&key);
        self.log(objects, key.0, "DELETED", object)
    }

    fn put(
        &self,
        mut objects: MutexGuard<'_, Objects>,
        key: (String, String),
        kind: &'static str,
        mut object: Value,
    ) -> Value {
        object["metadata"]["resourceVersion"] = json!((objects.version + 1).to_string());
        objects.by_name.insert(key.clone(), object.clone());
        self.log(objects, key.0, kind, object)
    }

    fn log(
        &self,
        mut objects: MutexGuard<'_, Objects>,
        plural: String,
        kind: &'static str,
        mut object: Value,
    ) -> Value {
        objects.version += 1;
        let version = objects.version;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        objects.changes.push(Change { version, plural, kind, object: object.clone() });
        drop(objects);
        self.version.send_replace(version);
        object
    }

    /// Returns the changes after a version, and the newest version; `None` if they are forgotten.
    pub fn since(&self, plural: &str, version: u64) -> Option<(Vec<Change>, u64)> {
        let objects = self.lock();
        if version < objects.compacted {
            return None;
        }
        let later =
            objects.changes.iter().filter(|change| change.version > version && change.plural == plural);
        Some((later.cloned().collect(), objects.version))
    }

    /// Forgets every change so far.
    pub fn compact(&self) {
        let mut objects = self.lock();
        objects.version += 1;
        objects.compacted = objects.version;
        objects.changes.clear();
        let version = objects.version;
        drop(objects);
        self.version.send_replace(version);
    }
}
