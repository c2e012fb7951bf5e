//! Images of snapshots under names that people choose: the Engine's image of a snapshot gets one more name.

use bollard::query_parameters::TagImageOptionsBuilder;
use eyot::{Error, ErrorKind, ImageInfo, NewImage, Result, SnapshotId};
use eyot_image::ImageName;

use super::commit::look_at_image;
use super::engine::is_absent;
use super::host::Host;
use super::kept_snapshot::{REPOSITORY, SnapshotNote, all, usable};

/// Parses the name of an image that is to be made.
pub(crate) fn new_name(reference: &str) -> Result<ImageName> {
    let name = ImageName::parse_new(reference)?;
    if name.repository() == format!("docker.io/library/{REPOSITORY}") {
        let reason = format!("is `{REPOSITORY}`, the name of all snapshots");
        return Err(Error::invalid("reference", reason).context("commit"));
    }
    Ok(name)
}

/// Refuses the name of an image that is no snapshot of this state folder, since an Engine has images of others, too. The labels
/// of an image say nothing here: who builds upon a snapshot has them. Names that clients may have fetched are the operator's.
pub(crate) async fn refuse_others_name(host: &Host, name: &ImageName) -> Result<()> {
    let refused = |message: &str, hint: String| {
        Err(Error::new(ErrorKind::Conflict, message.to_owned()).with_hint(hint))
    };
    if host.fetchable.names(name)
        || ImageName::parse(&host.default_image).is_ok_and(|default| default == *name)
    {
        let hint =
            "take another name; `[images]` and `[registries]` of the configuration have those".to_owned();
        return refused("the name is one that is fetched from a registry here", hint);
    }
    let there = match host.engine.client().await?.inspect_image(name.as_str()).await {
        Err(error) if is_absent(&error) => return Ok(()),
        there => there.map_err(|error| host.engine.failed("look for an image of that name", error))?,
    };
    if there.id.is_some() && all(host.state.open().await?).iter().any(|kept| kept.image == there.id) {
        return Ok(());
    }
    let hint = format!("take another name; or remove that image: docker rmi {}", name.short());
    refused("the Engine has another image of that name, which was not made of a snapshot here", hint)
}

/// Refuses a snapshot that has more than may be above the image below it.
pub(crate) async fn check_bytes(host: &Host, kept: &SnapshotNote, image: &NewImage) -> Result<()> {
    if image.max_bytes.is_none() {
        return Ok(());
    }
    let all = look_at_image(host, kept.image.as_deref().unwrap_or_default()).await?.bytes;
    let below = look_at_image(host, &kept.root_image).await.map_or(0, |below| below.bytes);
    image.check_own_bytes(all.saturating_sub(below))
}

/// Names the image of a snapshot.
pub(crate) async fn tag(host: &Host, snapshot: &SnapshotId, image: &NewImage) -> Result<ImageInfo> {
    let name = new_name(&image.reference)?;
    let named = async {
        let kept = usable(host, snapshot).await?;
        check_bytes(host, &kept, image).await?;
        refuse_others_name(host, &name).await?;
        let id = kept.image.as_deref().unwrap_or_default();
        let made = look_at_image(host, id).await?;
        let tag = name.tag().unwrap_or_default();
        let options = TagImageOptionsBuilder::default().repo(name.repository()).tag(tag);
        let tagged = host.engine.client().await?.tag_image(id, Some(options.build())).await;
        tagged.map_err(|error| host.engine.failed("name the image of the snapshot", error))?;
        Ok(ImageInfo {
            name: name.short().to_owned(),
            digest: made.id,
            layers: made.layers,
            size_bytes: made.bytes,
            created: made.created,
            complete: true,
        })
    };
    named.await.map_err(|error: Error| error.context(format!("commit `{}`", name.short())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_snapshots_is_for_no_image() {
        for wrong in
            ["eyot-snapshot", "eyot-snapshot:sn_1", "docker.io/library/eyot-snapshot:1", "host", "a@b"]
        {
            assert_eq!(new_name(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
        }
        assert!(new_name("team/eyot-snapshot:1").is_ok() && new_name("app:1").is_ok());
    }
}
