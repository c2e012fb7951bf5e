//! Images in the Engine's own store, and the policy for fetching them from a registry. An image is
//! fetched only if the policy says so.

use std::cmp::Reverse;
use std::collections::HashMap;

use bollard::Docker;
use bollard::models::ImageSummary;
use bollard::query_parameters::{
    CreateImageOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
};

use eyot::{Error, ErrorKind, PullPolicy, Result};
use eyot_image::{AllowedImages, ImageName};
use futures_util::TryStreamExt;

use super::engine::{Engine, is_absent, is_conflict};

/// The default image, with Node.js.
pub const NODE_IMAGE: &str = "node:22-bookworm";
/// The image with Python.
pub const PYTHON_IMAGE: &str = "python:3.13-bookworm";
/// The image with Deno.
pub const DENO_IMAGE: &str = "denoland/deno:debian";

/// An image, in the form that a container is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineImage {
    /// The id, which means this very image even if its name goes to another one.
    pub id: String,
    /// The user that runs commands unless a call names another.
    pub user: String,
    /// The image's variables, in order.
    pub env: Vec<(String, String)>,
    /// The keys of the image's labels, which the Engine copies to its containers.
    pub labels: Vec<String>,
}

/// The images that may be fetched.
#[derive(Debug, Clone)]
pub(crate) enum Fetchable {
    /// Every image.
    All,
    /// Only these.
    Only(AllowedImages),
}

impl Fetchable {
    /// Allows the images in `only` and the default image, which the operator chose. Without `only`,
    /// allows all.
    pub(crate) fn new(only: Option<AllowedImages>, default: &str) -> Self {
        only.map_or(Self::All, |only| match ImageName::parse(default) {
            Ok(default) => Self::Only(only.with(default)),
            Err(_) => Self::Only(only),
        })
    }

    /// Tells whether this is one of the names that were listed.
    pub(crate) fn names(&self, name: &ImageName) -> bool {
        matches!(self, Self::Only(only) if only.has(name))
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => ImageName::parse(name).is_ok_and(|name| only.has(&name)),
        }
    }
}

/// Returns the image of this name. Fetches it first, if the policy says so and the image may be
/// fetched.
pub(crate) async fn resolve(
    engine: &Engine,
    name: &str,
    policy: PullPolicy,
    fetchable: &Fetchable,
) -> Result<EngineImage> {
    let docker = engine.client().await?;
    let may_fetch = fetchable.has(name);
    if policy == PullPolicy::Always && may_fetch {
        pull(engine, docker, name).await?;
    }
    match find(engine, name).await? {
        Some(image) => Ok(image),
        None if policy == PullPolicy::Missing && may_fetch => {
            pull(engine, docker, name).await?;
            find(engine, name).await?.ok_or_else(|| absent(name))
        }
        None if policy == PullPolicy::Never || may_fetch => Err(absent(name)),
        None => Err(not_fetched(name)),
    }
}

/// Makes the error for an image that may not be fetched. The client can choose from what the
/// operator allows.
fn not_fetched(name: &str) -> Error {
    let message =
        format!("create sandbox: the Engine has no image `{name}`, and it is not fetched for clients");
    let hint = format!(
        "name an image that the Engine has; or, on the server's host, docker pull {name}, or name it under `[images]`, \
         or a pattern under `[registries]`, `allow`, of the configuration"
    );
    Error::new(ErrorKind::NotFound, message).with_hint(hint)
}

fn absent(name: &str) -> Error {
    let message = format!("create sandbox: the Engine has no image `{name}`");
    let hint = format!("docker pull {name}; or let it be fetched: the pull policy `missing`");
    Error::new(ErrorKind::NotFound, message).with_hint(hint)
}

/// Looks for an image by name or id, without fetching it.
pub(crate) async fn find(engine: &Engine, name: &str) -> Result<Option<EngineImage>> {
    let found = match engine.client().await?.inspect_image(name).await {
        Err(error) if is_absent(&error) => return Ok(None),
        found => {
            found.map_err(|error| engine.failed(&format!("create sandbox: look at image `{name}`"), error))?
        }
    };
    let config = found.config.unwrap_or_default();
    let user = config.user.filter(|user| !user.is_empty()).unwrap_or_else(|| "0".to_owned());
    let env = config.env.unwrap_or_default();
    let env = env
        .iter()
        .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
    let labels = config.labels.unwrap_or_default().into_keys().collect();
    Ok(Some(EngineImage {
        id: found.id.unwrap_or_else(|| name.to_owned()),
        user,
        env: env.collect(),
        labels,
    }))
}

/// Removes an image unless something lies above it, and no image below it, which may be somebody's. Returns whether it is gone.
pub(crate) async fn remove(engine: &Engine, image: &str) -> Result<bool> {
    let options = RemoveImageOptionsBuilder::default().noprune(true).build();
    match engine.client().await?.remove_image(image, Some(options), None).await {
        Err(error) if is_absent(&error) => Ok(true),
        Err(error) if is_conflict(&error) => Ok(false),
        removed => removed.map(|_| true).map_err(|error| engine.failed("remove an image", error)),
    }
}

/// Lists the images with these labels, the latest first.
pub(crate) async fn labelled(engine: &Engine, labels: &[&str]) -> Result<Vec<ImageSummary>> {
    let filters: HashMap<&str, Vec<&str>> = HashMap::from([("label", labels.to_vec())]);
    let options = ListImagesOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = engine.client().await?.list_images(Some(options)).await;
    let mut listed = listed.map_err(|error| engine.failed("list the images of snapshots", error))?;
    listed.sort_by_key(|image| Reverse(image.created));
    Ok(listed)
}

/// Adds the tag `latest` to a name without tag and digest, which the Engine would take for every
/// tag.
fn with_tag(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains([':', '@']) { name.to_owned() } else { format!("{name}:latest") }
}

async fn pull(engine: &Engine, docker: &Docker, name: &str) -> Result<()> {
    let options = CreateImageOptionsBuilder::default().from_image(&with_tag(name)).build();
    let done = docker.create_image(Some(options), None, None).try_for_each(|step| async move {
        tracing::debug!(status = step.status, "an image is being fetched");
        Ok(())
    });
    done.await.map_err(|error| {
        explained(name, engine.failed(&format!("create sandbox: fetch image `{name}`"), error))
    })
}

/// Adds the reason to a failed fetch. The Engine answers every failure of a registry with the same
/// status; only its message tells them apart.
fn explained(name: &str, error: Error) -> Error {
    let text = error.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.to_lowercase().contains(word));
    let (kind, hint) = match () {
        () if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Quota) => return error,
        () if says(&[
            "unauthorized",
            "authentication required",
            "access denied",
            "access to the resource is denied",
            "no basic auth credentials",
        ]) =>
        {
            (
                ErrorKind::Permission,
                format!(
                    "the registry wants a login, or has no such image: docker login, then docker pull {name}"
                ),
            )
        }
        () if says(&["verification failed", "digest mismatch", "unexpected commit digest"]) => (
            ErrorKind::Invalid,
            format!(
                "what the registry sent is damaged or was tampered with, and was not kept: docker pull {name}"
            ),
        ),
        () if says(&["not found", "manifest unknown", "does not exist"]) => {
            (ErrorKind::NotFound, "look for a misspelt name or tag".to_owned())
        }
        () if says(&[
            "no such host",
            "connection refused",
            "i/o timeout",
            "timeout",
            "dial tcp",
            "server misbehaving",
        ]) =>
        {
            (
                ErrorKind::Unavailable,
                format!(
                    "the Engine can't reach the registry; load the image another way (docker load, docker import), or: docker pull {name}"
                ),
            )
        }
        () if says(&["invalid reference", "invalid tag", "repository name must"]) => {
            (ErrorKind::Invalid, "an image is named as in docker pull".to_owned())
        }
        () => return error,
    };
    Error::new(kind, text).with_hint(hint).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_fetched_is_told_by_the_reference_however_it_is_written() {
        let only = AllowedImages::new(ImageName::parse("python:3.13"), Vec::new());
        let fetchable = Fetchable::new(Some(only), NODE_IMAGE);
        for name in ["python:3.13", "library/python:3.13", "docker.io/library/python:3.13", NODE_IMAGE] {
            assert!(fetchable.has(name), "{name}");
        }
        for name in ["python", "python:3.12", "localhost:5000/python:3.13", "node:22", "No Name"] {
            assert!(!fetchable.has(name) && Fetchable::new(None, NODE_IMAGE).has(name), "{name}");
        }
    }

    #[test]
    fn a_name_without_a_tag_means_latest() {
        for (name, tagged) in [
            ("node", "node:latest"),
            ("node:22", "node:22"),
            ("localhost:5000/a/b", "localhost:5000/a/b:latest"),
            ("a@sha256:00", "a@sha256:00"),
        ] {
            assert_eq!(with_tag(name), tagged);
        }
    }

    #[test]
    fn what_a_registry_answers_is_typed_by_its_words() {
        let of = |words: &str| explained("x", Error::new(ErrorKind::Setup, words)).kind();
        assert_eq!(of("pull access denied for x"), ErrorKind::Permission);
        assert_eq!(of("Get https://r/v2/: dial tcp: lookup r: no such host"), ErrorKind::Unavailable);
        assert_eq!(of("manifest for x:1 not found: manifest unknown"), ErrorKind::NotFound);
        assert_eq!(of("filesystem layer verification failed for digest sha256:1"), ErrorKind::Invalid);
        assert_eq!(of("Get http://r/v2/x: no basic auth credentials"), ErrorKind::Permission);
        assert_eq!(of("something else"), ErrorKind::Setup);
    }
}
