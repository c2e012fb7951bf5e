//! The spec of a sandbox of a pool: the pool's template, the image that was named, how long it
//! stays awake.

use eyot::{Capability, IdleAction, Result, SandboxId, SandboxName, SandboxPath, SandboxSpec};

use super::SandboxPool;
use super::make::without_file_contents;
use crate::pool_options::{POOL_WORKDIR, PoolCreate};
use crate::store::SandboxRow;

/// The name that is shown for an image when none was named.
const UNNAMED: &str = "host";

/// An image as it is shown.
pub(super) fn image_label(image: Option<&str>) -> &str {
    image.unwrap_or(UNNAMED)
}

/// The longest name of an image: a repository, a tag and a digest at their longest.
const MAX_REFERENCE_BYTES: usize = 1024;

/// Tells if a name has the form of an image's reference, such as `registry.example:5000/team/app:1.2@sha256:…`. It has
/// neither empty parts nor `..`, and begins with a letter or a digit, so no provider takes it for a path.
fn has_form_of_reference(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let is_part = |part: &str| part.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    name.len() <= MAX_REFERENCE_BYTES
        && name.bytes().all(is_good)
        && !name.contains("..")
        && name.split('/').all(is_part)
}

impl SandboxPool {
    /// Tells if a tenant or a model may ask for an image by this name: an alias or the default of the pool, or a name of
    /// the form that references of images have. The form alone decides: no such name reaches the host's file system.
    pub fn allows_image(&self, image: &str) -> bool {
        let options = self.options();
        options.images.contains_key(image)
            || options.default_image.as_deref() == Some(image)
            || has_form_of_reference(image)
    }

    /// The image of a create, as it is named: its own, or the pool's.
    pub(super) fn image(&self, create: &PoolCreate) -> Option<String> {
        create.image.clone().or_else(|| self.options().default_image.clone())
    }

    /// Returns the idle time after which a sandbox sleeps.
    pub(super) fn sleep_after_ms(&self, create: &PoolCreate) -> Option<u64> {
        create.sleep_after_ms.or(self.options().sleep_after_ms)
    }

    /// Returns the spec of the sandbox with this id.
    pub(super) fn spec(&self, id: SandboxId, name: &SandboxName, create: &PoolCreate) -> Result<SandboxSpec> {
        let options = self.options();
        let mut spec = create.spec.clone().unwrap_or_else(|| options.template.clone());
        (spec.id, spec.name) = (Some(id), None);
        options.unless_limited.fill(&mut spec.limits);
        // To the provider it has a name made from its id; inside, the one that it has in the pool.
        spec.hostname.get_or_insert_with(|| name.clone());
        if spec.workdir.is_none() {
            spec.workdir = Some(SandboxPath::parse(POOL_WORKDIR)?);
        }
        let image = self.image(create);
        spec.image = image.map(|named| options.images.get(&named).cloned().unwrap_or(named));
        // A provider without sleep keeps sandboxes awake: files must not vanish because they were
        // not used for a while.
        let can_sleep = self.provider().capabilities().has(Capability::Sleep);
        if let Some(after_ms) = self.sleep_after_ms(create).filter(|_| can_sleep) {
            spec.lifecycle.idle_timeout_ms = Some(after_ms);
            spec.lifecycle.on_idle = IdleAction::Sleep;
        }
        Ok(spec)
    }

    /// In what a sandbox that is there differs from what is asked for.
    pub(super) fn differences(&self, asked: &PoolCreate, row: &SandboxRow) -> Vec<String> {
        let other_image =
            asked.image.as_ref().is_some_and(|image| image != image_label(row.image.as_deref()));
        let without_image = |spec| SandboxSpec { image: None, ..without_file_contents(spec) };
        let other_spec = asked.spec.is_some()
            && self
                .spec(row.id.clone(), &row.name, asked)
                .is_ok_and(|spec| without_image(spec) != without_image(row.spec.clone()));
        let other_services = !asked.services.is_empty() && asked.services != row.services;
        let differs = [("image", other_image), ("spec", other_spec), ("services", other_services)];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::has_form_of_reference;

    #[test]
    fn a_reference_is_told_from_a_path_by_its_form_alone() {
        let digest = format!("node@sha256:{}", "0".repeat(64));
        for name in ["host", "node", "node:22", "127.0.0.1:5000/a/b_c:x", "Cargo.toml", "src", &digest] {
            assert!(has_form_of_reference(name), "{name}");
        }
        let long = "a".repeat(2000);
        for name in [
            "",
            "/",
            "/etc",
            ".",
            "./src",
            "../x",
            "~",
            "~/x",
            "a/../b",
            "a//b",
            "a/",
            "a/./b",
            "a/.b",
            "a b",
            "a\0",
            "a\n",
            "a%2fb",
            "a?b",
            "a#b",
            "a\\b",
            "ä",
            "@a",
            ":a",
            "_a",
            "-a",
            "file:///etc",
            &long,
        ] {
            assert!(!has_form_of_reference(name), "{name}");
        }
    }
}
