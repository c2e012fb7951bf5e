//! Tar streams for the targets that unpack: checksums put right, so that a change anywhere gets
//! past the first check, and small archives to begin with.

use tar::{EntryType, Header};

const BLOCK: usize = 512;

/// Puts right the checksum of every header, found as a reader finds them: one after the other, each
/// by the size that the one before tells.
pub fn repair(bytes: &mut [u8]) {
    let mut at = 0_usize;
    while let Some(block) = at.checked_add(BLOCK).and_then(|end| bytes.get_mut(at..end)) {
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        if block.iter().any(|byte| *byte != 0) {
            header.set_cksum();
            block.copy_from_slice(header.as_bytes());
        }
        let size = header.entry_size().unwrap_or(0);
        let blocks = usize::try_from(size.div_ceil(BLOCK as u64)).unwrap_or(usize::MAX);
        let next = blocks.checked_mul(BLOCK).and_then(|length| length.checked_add(at + BLOCK));
        match next {
            Some(next) => at = next,
            None => return,
        }
    }
}

/// Small archives, each led by `first`.
pub fn seeds(first: u8) -> Vec<(&'static str, Vec<u8>)> {
    let whole = |tar: TarSeed| [&[first][..], &tar.0, &[0; 2 * BLOCK]].concat();
    let file = EntryType::Regular;
    vec![
        ("tree", whole(TarSeed::default().add(EntryType::Directory, "d", "").file("d/f", b"content"))),
        ("link", whole(TarSeed::default().add(EntryType::Symlink, "d/l", "../x").file("x", b"x"))),
        ("hard", whole(TarSeed::default().file("x", b"x").add(EntryType::Link, "d/h", "x"))),
        ("climb", whole(TarSeed::default().file("a/../../x", b"x").add(EntryType::Symlink, "l", "/etc"))),
        ("through", whole(TarSeed::default().add(EntryType::Symlink, "l", ".").file("l/f", b"x"))),
        ("trap", whole(TarSeed::default().file("there/canary", b"dead"))),
        (
            "turn",
            whole(TarSeed::default().add(EntryType::Directory, "x/s", "").add(EntryType::Symlink, "x", "..")),
        ),
        (
            "climb_by_links",
            whole(TarSeed::default().add(EntryType::Symlink, "d/x", "..").add(
                EntryType::Symlink,
                "d/y",
                "x/..",
            )),
        ),
        ("special", whole(TarSeed::default().add(EntryType::Fifo, "p", "").add(EntryType::Char, "c", ""))),
        ("pax", whole(TarSeed::default().data(EntryType::XHeader, "p", b"12 path=d/y\n").add(file, "x", ""))),
        ("long", whole(TarSeed::default().data(EntryType::GNULongName, "n", b"d/long\0").add(file, "x", ""))),
        (
            "long_link",
            whole(TarSeed::default().data(EntryType::GNULongLink, "n", b"x\0").add(
                EntryType::Symlink,
                "l",
                "",
            )),
        ),
        ("passwd", whole(TarSeed::default().add(EntryType::Symlink, "etc/passwd", "../../canary"))),
    ]
}

/// Returns inputs with entries that only layers of images have, each led by `first`.
pub fn seeds_of_layers(first: u8) -> Vec<(&'static str, Vec<u8>)> {
    let whole = |tar: TarSeed| [&[first][..], &tar.0, &[0; 2 * BLOCK]].concat();
    let attribute = b"29 SCHILY.xattr.user.a=value\n";
    vec![
        ("removed", whole(TarSeed::default().file("d/.wh.x", b"").file("d/.wh.y", b"").file("d/y", b"y"))),
        (
            "opaque",
            whole(TarSeed::default().file("d/.wh..wh..opq", b"").file(".wh.d", b"").file("d/f", b"f")),
        ),
        (
            "removed_above",
            whole(TarSeed::default().file(".wh...", b"").file("d/.wh..", b"").file(".wh.", b"")),
        ),
        (
            "attribute",
            whole(TarSeed::default().data(EntryType::XHeader, "p", attribute).add(
                EntryType::Directory,
                "d",
                "",
            )),
        ),
    ]
}

#[derive(Default)]
struct TarSeed(Vec<u8>);

impl TarSeed {
    fn add(self, kind: EntryType, path: &str, link: &str) -> Self {
        self.entry(kind, path, link, b"")
    }

    fn file(self, path: &str, content: &[u8]) -> Self {
        self.entry(EntryType::Regular, path, "", content)
    }

    fn data(self, kind: EntryType, path: &str, content: &[u8]) -> Self {
        self.entry(kind, path, "", content)
    }

    fn entry(mut self, kind: EntryType, path: &str, link: &str, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o4755);
        header.set_mtime(1);
        header.set_size(content.len() as u64);
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }
}
