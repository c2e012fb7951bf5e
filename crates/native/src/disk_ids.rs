//! The owners of files on the host's disk, and the ids that they have in a sandbox with a range.
//! The spec decides which owner a sandbox's files get on disk, whatever the image calls its users.
//! The kernel enforces it at the mount.

use minicbor::{Decode, Encode};

use crate::plan::{IdRange, IdRun, RANGE_LEN};

/// The owner (uid and gid) on disk of files that a sandbox of root's writes to a mounted folder.
pub const OWNER: u32 = 1000;
/// The first of the host ids that own files in persistent workspaces; there are as many as in a
/// range. No user of the host and no sandbox has them: the ranges of sandboxes begin above.
pub const WORKSPACE_BASE: u32 = 0x7000_0000;

/// The ids on the disk behind a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum DiskIds {
    /// The host's ids, unchanged.
    #[n(0)]
    Host,
    /// The same numbers as inside.
    #[n(1)]
    Inside,
    /// [`OWNER`], for this one user and this one group inside. Other users inside can make nothing
    /// there (`EOVERFLOW`). Files of other owners appear inside as those of a stranger, with the
    /// permissions that everybody has.
    #[n(2)]
    OneOwner {
        /// The user inside.
        #[n(0)]
        uid: u32,
        /// The group inside.
        #[n(1)]
        gid: u32,
    },
    /// The ids from [`WORKSPACE_BASE`] on, one for each id inside.
    #[n(3)]
    Workspace,
    /// The host ids of another range, one for each id inside: the files of a snapshot keep those of the sandbox that wrote
    /// them.
    #[n(4)]
    Range(#[n(0)] IdRange),
    /// The same numbers as inside, but this owner on disk is this user inside, and the other way round. So a folder of any owner
    /// is the user's own in a copy of it.
    #[n(5)]
    Swapped {
        /// The owner (uid and gid) on disk.
        #[n(0)]
        on_disk: (u32, u32),
        /// The user (uid and gid) inside.
        #[n(1)]
        inside: (u32, u32),
    },
}

impl DiskIds {
    /// Returns the uid map and the gid map of the user namespace by which a mount gets these ids;
    /// `None` if it needs no namespace of its own. `range` is the sandbox's.
    pub fn maps(self, range: IdRange) -> Option<[String; 2]> {
        match self {
            Self::Host | Self::Inside => None,
            Self::OneOwner { uid, gid } => Some([uid, gid].map(|inside| text(&one_owner(range, inside)))),
            Self::Workspace => {
                let extent = |run: IdRun| Extent {
                    on_disk: WORKSPACE_BASE + run.inside,
                    host: run.host,
                    count: run.count,
                };
                let map = text(&range.runs().map(extent).collect::<Vec<_>>());
                Some([map.clone(), map])
            }
            Self::Swapped { on_disk, inside } => Some(
                [(on_disk.0, inside.0), (on_disk.1, inside.1)]
                    .map(|(on_disk, inside)| text(&swapped(range, on_disk, inside))),
            ),
            Self::Range(written_by) if written_by == range => None,
            Self::Range(written_by) => {
                let map = text(&between(written_by, range));
                Some([map.clone(), map])
            }
        }
    }
}

/// A run of `count` ids on disk, from `on_disk` on, that are the kernel's ids from `host` on.
#[derive(Debug, Clone, Copy)]
struct Extent {
    on_disk: u32,
    host: u32,
    count: u32,
}

impl Extent {
    /// Leaves the ids from `first` up to `end` as they are.
    fn same(first: u32, end: u32) -> Self {
        Self { on_disk: first, host: first, count: end - first }
    }
}

/// Maps the owner on disk to one id of the sandbox. The other ids of the sandbox's range have none
/// on disk. The rest of the host's ids stay as they are: no user in the sandbox has one of them.
fn one_owner(range: IdRange, inside: u32) -> [Extent; 4] {
    let base = range.base;
    [
        Extent::same(0, OWNER),
        Extent { on_disk: OWNER, host: range.host_id(inside), count: 1 },
        Extent::same(OWNER + 1, base),
        // The last id is the kernel's sign for none.
        Extent::same(base + RANGE_LEN, u32::MAX),
    ]
}

/// Maps the ids of one range to those of another, in runs that follow one another in both.
fn between(on_disk: IdRange, host: IdRange) -> Vec<Extent> {
    let begins = |range: IdRange| range.runs().map(|run| run.inside).collect::<Vec<_>>();
    let mut cuts = [begins(on_disk), begins(host), vec![RANGE_LEN]].concat();
    cuts.sort_unstable();
    cuts.dedup();
    let extent = |ends: &[u32]| Extent {
        on_disk: on_disk.host_id(ends[0]),
        host: host.host_id(ends[0]),
        count: ends[1] - ends[0],
    };
    cuts.windows(2).map(extent).collect()
}

/// Maps each id on disk to the same one inside, but these two to each other.
fn swapped(range: IdRange, on_disk: u32, inside: u32) -> Vec<Extent> {
    let ends = [on_disk, inside].into_iter().flat_map(|id| [id, id.saturating_add(1)]);
    let runs = range.runs().flat_map(|run| [run.inside, run.inside + run.count]);
    let mut cuts: Vec<u32> = ends.chain(runs).filter(|cut| *cut <= RANGE_LEN).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let other = |id: u32| match id {
        id if id == inside => on_disk,
        id if id == on_disk => inside,
        id => id,
    };
    let extent = |ends: &[u32]| Extent {
        on_disk: other(ends[0]),
        host: range.host_id(ends[0]),
        count: ends[1] - ends[0],
    };
    cuts.windows(2).map(extent).collect()
}

fn text(extents: &[Extent]) -> String {
    let line = |Extent { on_disk, host, count }: &Extent| format!("{on_disk} {host} {count}\n");
    extents.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u32 = 0x7123_0000;
    const IN_ORDER: IdRange = IdRange { base: BASE, shift: 0 };
    const SHIFTED: IdRange = IdRange { base: BASE, shift: 4094 };

    /// Computes the id on disk of an id of the host's kernel, as the kernel does.
    fn on_disk(extents: &[Extent], host: u32) -> Option<u32> {
        let found =
            extents.iter().find(|extent| host.checked_sub(extent.host).is_some_and(|at| at < extent.count));
        found.map(|extent| extent.on_disk + (host - extent.host))
    }

    #[test]
    fn of_a_sandboxs_ids_one_has_a_place_on_disk_and_it_is_the_owners() {
        for (range, inside) in [IN_ORDER, SHIFTED]
            .into_iter()
            .flat_map(|range| [0, 33, OWNER, RANGE_LEN - 1].map(|inside| (range, inside)))
        {
            let extents = one_owner(range, inside);
            for id in 0..RANGE_LEN {
                let expected = (id == inside).then_some(OWNER);
                assert_eq!(on_disk(&extents, range.host_id(id)), expected, "{id} of {inside}");
            }
        }
    }

    #[test]
    fn other_owners_on_disk_stay_who_they_are_and_are_nobody_in_the_sandbox() {
        let extents = one_owner(SHIFTED, 0);
        for id in [0, 999, 1001, 65_534, BASE - 1, BASE + RANGE_LEN, u32::MAX - 1] {
            assert_eq!(on_disk(&extents, id), Some(id));
        }
        assert_eq!(on_disk(&extents, OWNER), None);
        assert_eq!(on_disk(&extents, u32::MAX), None);
    }

    #[test]
    fn a_workspaces_ids_on_disk_are_a_block_of_their_own() {
        let maps = DiskIds::Workspace.maps(IN_ORDER).unwrap();
        assert_eq!(
            maps,
            [
                format!("{WORKSPACE_BASE} {BASE} {RANGE_LEN}\n"),
                format!("{WORKSPACE_BASE} {BASE} {RANGE_LEN}\n")
            ]
        );
        let [shifted, _] = DiskIds::Workspace.maps(SHIFTED).unwrap();
        let (rest, end) = (RANGE_LEN - 4094, WORKSPACE_BASE + RANGE_LEN - 4094);
        assert_eq!(shifted, format!("{WORKSPACE_BASE} {} {rest}\n{end} {BASE} 4094\n", BASE + 4094));
        assert_eq!(DiskIds::Host.maps(IN_ORDER), None);
        assert_eq!(DiskIds::Inside.maps(IN_ORDER), None);
    }

    #[test]
    fn every_id_of_a_range_is_on_disk_what_another_range_has_for_it() {
        let other = IdRange { base: 0x7555_0000, shift: 77 };
        for (on_disk_ids, host_ids) in [(IN_ORDER, other), (SHIFTED, other), (other, SHIFTED)] {
            let extents = between(on_disk_ids, host_ids);
            for id in 0..RANGE_LEN {
                assert_eq!(on_disk(&extents, host_ids.host_id(id)), Some(on_disk_ids.host_id(id)), "{id}");
            }
        }
        assert_eq!(DiskIds::Range(SHIFTED).maps(SHIFTED), None);
    }

    #[test]
    fn the_owner_of_a_copied_folder_is_the_user_inside_and_all_others_keep_their_numbers() {
        for range in [IN_ORDER, SHIFTED] {
            for (owner, user) in [(0, 1000), (1000, 1000), (1000, 0), (501, RANGE_LEN - 1), (1_000_000, 1000)]
            {
                let extents = swapped(range, owner, user);
                for id in 0..RANGE_LEN {
                    let expected = match id {
                        id if id == user => owner,
                        id if id == owner => user,
                        id => id,
                    };
                    assert_eq!(on_disk(&extents, range.host_id(id)), Some(expected), "{id}: {owner} {user}");
                }
            }
        }
    }

    #[test]
    fn a_user_and_a_group_have_maps_of_their_own() {
        let [uids, gids] = DiskIds::OneOwner { uid: 1000, gid: 0 }.maps(IN_ORDER).unwrap();
        assert!(uids.contains(&format!("\n1000 {} 1\n", BASE + 1000)), "{uids}");
        assert!(gids.contains(&format!("\n1000 {BASE} 1\n")), "{gids}");
    }
}
