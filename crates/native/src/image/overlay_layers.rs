//! The layers of a sandbox's overlay, by the names that its mount has for them. The kernel takes all of them in one page.

use super::{Lower, points};
use crate::plan::{LOWER, NEXT_ROOT, NEXT_WORK, lower_beside_snapshots, overlay_options, snapshot_point};

/// The most snapshots that a sandbox may lie above. Each takes a mount.
const MAX_DEPTH: usize = 320;
/// The most bytes of the options of a mount: a page, without the zero at its end.
const MAX_OPTIONS_BYTES: usize = 4095;

/// Returns the names of the layers, topmost first. `has_points`: a layer of mount points lies above those of the image.
pub(crate) fn overlay_layers(lower: &Lower, has_points: bool) -> Vec<String> {
    let image = image_point(lower);
    let snapshots = (0..lower.snapshots.len()).map(snapshot_point);
    if lower.layers.is_empty() {
        return snapshots.chain([image]).collect();
    }
    let points = has_points.then_some(points::NAME);
    let names = points.into_iter().chain(lower.layers.iter().map(String::as_str));
    snapshots.chain(names.map(|name| format!("{image}/{name}"))).collect()
}

/// Returns the mount point of the image's layer, or of the folder of its layers.
pub(crate) fn image_point(lower: &Lower) -> String {
    if lower.snapshots.is_empty() { LOWER.to_owned() } else { lower_beside_snapshots() }
}

/// Tells whether a sandbox may lie above so many layers, with one of mount points above those of the image.
pub(crate) fn fits_in_mount(lower: &Lower) -> bool {
    lower.snapshots.len() <= MAX_DEPTH
        && overlay_options(&overlay_layers(lower, true), NEXT_ROOT, NEXT_WORK).len() <= MAX_OPTIONS_BYTES
}

#[cfg(test)]
mod tests {
    use eyot::SnapshotId;

    use super::super::SnapshotLayer;
    use super::*;

    fn lower(layers: usize, snapshots: usize) -> Lower {
        let snapshot = || SnapshotLayer { id: SnapshotId::generate(), folder: "/s".to_owned(), ids: None };
        let snapshots = std::iter::repeat_with(snapshot).take(snapshots).collect();
        Lower { folder: "/l".to_owned(), layers: vec!["0123456789".to_owned(); layers], snapshots }
    }

    #[test]
    fn as_many_layers_fit_as_their_names_leave_room_for() {
        assert!(fits_in_mount(&lower(0, MAX_DEPTH)) && fits_in_mount(&lower(120, 0)));
        let most = (0..MAX_DEPTH).rev().find(|count| fits_in_mount(&lower(120, *count))).unwrap();
        let options =
            |count| overlay_options(&overlay_layers(&lower(120, count), true), NEXT_ROOT, NEXT_WORK).len();
        assert!(options(most) <= MAX_OPTIONS_BYTES && options(most + 1) > MAX_OPTIONS_BYTES, "{most}");
    }
}
