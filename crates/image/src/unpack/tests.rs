//! Hostile archives, and the marks that overlays need from honest ones.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use tar::{Builder, EntryType, Header};

use super::*;

const LIMITS: UnpackLimits =
    UnpackLimits { max_unpacked_bytes: 8 << 20, max_entries: 100, ..UnpackLimits::SMALL };

#[derive(Default)]
struct Tar(Vec<u8>);

impl Tar {
    fn entry(mut self, kind: EntryType, path: &str, link: &str, mode: u32, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(12);
        header.set_uid(1000);
        header.set_gid(100);
        header.set_size(content.len() as u64);
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, path: &str, content: &str) -> Self {
        self.entry(EntryType::Regular, path, "", 0o644, content.as_bytes())
    }

    fn directory(self, path: &str, mode: u32) -> Self {
        self.entry(EntryType::Directory, path, "", mode, b"")
    }

    fn link(self, kind: EntryType, path: &str, target: &str) -> Self {
        self.entry(kind, path, target, 0o777, b"")
    }
}

/// A folder to unpack into, with a secret beside it.
struct TargetFolder(tempfile::TempDir);

impl TargetFolder {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.0.path().join("secret"), "alive").unwrap();
        fs::create_dir(place.0.path().join("victim")).unwrap();
        fs::set_permissions(place.0.path().join("victim"), fs::Permissions::from_mode(0o700)).unwrap();
        place
    }

    fn layer(&self) -> PathBuf {
        self.0.path().join("layer")
    }

    fn unpack(&self, tar: &Tar) -> io::Result<UnpackReport> {
        unpack(&tar.0[..], &self.layer(), Owners::Folded, &LIMITS)
    }

    fn refusal(tar: &Tar) -> String {
        let place = Self::new();
        let error = place.unpack(tar).expect_err("it is refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        assert_eq!(fs::read_to_string(place.0.path().join("secret")).unwrap(), "alive");
        assert_eq!(mode(&place.0.path().join("victim")), 0o700);
        assert!(fs::read_dir(place.0.path().join("victim")).unwrap().next().is_none());
        error.to_string()
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn is_removed(path: &Path) -> bool {
    let found = fs::symlink_metadata(path).unwrap();
    found.file_type().is_char_device() && found.rdev() == 0
}

fn is_opaque(path: &Path) -> bool {
    rustix::fs::lgetxattr(path, "user.overlay.opaque", &mut [0_u8; 2][..]).is_ok_and(|length| length == 1)
}

#[test]
fn absolute_paths_and_such_that_climb_are_refused_by_name() {
    for path in ["/etc/x", "../secret", "a/../../secret", "a/..", ".."] {
        let said = TargetFolder::refusal(&Tar::default().file(path, "dead"));
        assert!(said.contains(&format!("`{path}`")), "{said}");
        TargetFolder::refusal(&Tar::default().directory(path, 0o777));
        TargetFolder::refusal(&Tar::default().link(EntryType::Symlink, path, "x"));
    }
}

#[test]
fn a_link_on_the_way_leads_nowhere_but_inside() {
    let place = TargetFolder::new();
    let tar = Tar::default()
        .directory("real", 0o755)
        .link(EntryType::Symlink, "up", "../../..")
        .link(EntryType::Symlink, "abs", "/real")
        .file("up/secret", "inside")
        .file("abs/f", "x");
    place.unpack(&tar).unwrap();
    assert_eq!(fs::read_to_string(place.layer().join("secret")).unwrap(), "inside");
    assert!(place.layer().join("real/f").exists());
    assert_eq!(fs::read_to_string(place.0.path().join("secret")).unwrap(), "alive");
    let dangling = Tar::default().link(EntryType::Symlink, "l", "../victim").file("l/f", "x");
    assert!(TargetFolder::refusal(&dangling).contains("leads nowhere"));
    let looped = Tar::default().link(EntryType::Symlink, "l", "l").file("l/f", "x");
    assert!(TargetFolder::refusal(&looped).contains("loop"));
}

#[test]
fn nothing_is_replaced_and_nothing_is_written_through_a_link() {
    let twice = Tar::default().file("f", "a").file("f", "b");
    assert!(TargetFolder::refusal(&twice).contains("`f` is there twice"));
    let through = Tar::default().link(EntryType::Symlink, "f", "../secret").file("f", "dead");
    assert!(TargetFolder::refusal(&through).contains("twice"));
    let turned = Tar::default().directory("x/s", 0o777).link(EntryType::Symlink, "x", "../victim");
    assert!(TargetFolder::refusal(&turned).contains("twice"));
    let covered = Tar::default().link(EntryType::Symlink, "x", "../victim").directory("x", 0o777);
    assert!(TargetFolder::refusal(&covered).contains("twice"));
    let below = Tar::default().file("f", "a").file("f/g", "b");
    assert!(TargetFolder::refusal(&below).contains("no directory"));
    let place = TargetFolder::new();
    place.unpack(&Tar::default().directory("d", 0o700).file("d/f", "").directory("d", 0o755)).unwrap();
    assert_eq!(mode(&place.layer().join("d")), 0o755);
}

#[test]
fn hard_links_share_a_file_of_the_archive_and_reach_no_other() {
    let place = TargetFolder::new();
    let tar = Tar::default().file("a", "x").link(EntryType::Link, "d/b", "./a");
    place.unpack(&tar).unwrap();
    let ino = |name| fs::metadata(place.layer().join(name)).unwrap().ino();
    assert_eq!(ino("a"), ino("d/b"));
    for target in ["../secret", "/a", "missing", "a/../../secret", ""] {
        let said = TargetFolder::refusal(&Tar::default().file("a", "x").link(EntryType::Link, "b", target));
        assert!(said.contains("hard link"), "{target}: {said}");
    }
    let directory = Tar::default().directory("d", 0o755).link(EntryType::Link, "b", "d");
    assert!(TargetFolder::refusal(&directory).contains("to a directory"));
    // A link to a link is one more name of that link, and is never followed.
    let linked = TargetFolder::new();
    let tar = Tar::default().link(EntryType::Symlink, "l", "../secret").link(EntryType::Link, "m", "l");
    linked.unpack(&tar).unwrap();
    assert!(fs::symlink_metadata(linked.layer().join("m")).unwrap().is_symlink());
}

#[test]
fn devices_and_fifos_are_left_out_and_counted() {
    let place = TargetFolder::new();
    let tar = Tar::default()
        .link(EntryType::Char, "dev/null", "")
        .link(EntryType::Block, "dev/sda", "")
        .link(EntryType::Fifo, "run/f", "")
        .file("kept", "x");
    assert_eq!(place.unpack(&tar).unwrap(), UnpackReport { entries: 4, left_out: 3 });
    assert_eq!(fs::read_dir(place.layer()).unwrap().count(), 1);
}

#[test]
fn set_id_bits_go_times_and_other_bits_stay_and_a_closed_directory_is_filled_first() {
    let place = TargetFolder::new();
    let tar = Tar::default()
        .entry(EntryType::Directory, "d", "", 0o7555, b"")
        .entry(EntryType::Regular, "d/f", "", 0o6755, b"x")
        .entry(EntryType::Continuous, "d/g", "", 0o6711, b"")
        .directory("closed", 0)
        .entry(EntryType::Directory, "closed/below", "", 0o700, b"");
    place.unpack(&tar).unwrap();
    let at = |name: &str| place.layer().join(name);
    assert_eq!([mode(&at("d")), mode(&at("d/f")), mode(&at("d/g"))], [0o1555, 0o755, 0o711]);
    assert_eq!(mode(&at("closed")), 0);
    assert_eq!([fs::metadata(at("d")).unwrap().mtime(), fs::metadata(at("d/f")).unwrap().mtime()], [12, 12]);
}

#[test]
fn root_keeps_ids_within_a_sandboxs_and_everybody_else_folds_them_into_their_own() {
    let place = TargetFolder::new();
    let pax = b"16 uid=99999999\n";
    let tar = Tar::default().file("f", "").link(EntryType::Symlink, "l", "x").directory("d", 0o755);
    let tar = tar.entry(EntryType::XHeader, "x", "", 0, pax).file("far", "");
    unpack(&tar.0[..], &place.layer(), Owners::of_caller(), &LIMITS).unwrap();
    let ids = |name| {
        let found = fs::symlink_metadata(place.layer().join(name)).unwrap();
        (found.uid(), found.gid())
    };
    let caller = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let (kept, far) = if caller.0 == 0 { ((1000, 100), (65_534, 100)) } else { (caller, caller) };
    assert_eq!((ids("f"), ids("l"), ids("d"), ids("far")), (kept, kept, kept, far));
}

#[test]
fn what_is_removed_and_what_hides_everything_below_is_marked_as_overlays_want_it() {
    let place = TargetFolder::new();
    let tar = Tar::default()
        .file("a/.wh.gone", "")
        .file("b/.wh..wh..opq", "")
        .file("c/.wh.both", "")
        .file("c/both", "x")
        .directory("c/dir", 0o755)
        .file("c/.wh.dir", "")
        .file(".wh..wh.plnk", "");
    place.unpack(&tar).unwrap();
    let at = |name: &str| place.layer().join(name);
    assert!(is_removed(&at("a/gone")) && is_opaque(&at("b")));
    assert_eq!(fs::read_to_string(at("c/both")).unwrap(), "x");
    assert!(is_opaque(&at("c/dir")) && !is_opaque(&at("c")));
    assert_eq!(fs::read_dir(place.layer()).unwrap().count(), 3);
    for name in [".wh.", ".wh..", ".wh..."] {
        TargetFolder::refusal(&Tar::default().file(&format!("d/{name}"), ""));
    }
}

#[test]
fn only_attributes_of_the_user_are_kept_and_none_that_an_overlay_reads() {
    let line = |key: &str, value: &str| {
        let rest = format!(" SCHILY.xattr.{key}={value}\n");
        let length = (1..).find(|length: &usize| length.to_string().len() + rest.len() == *length).unwrap();
        format!("{length}{rest}")
    };
    let keys = ["user.mine", "user.overlay.opaque", "security.capability", "trusted.overlay.opaque"];
    let pax: String = keys.map(|key| line(key, "y")).concat();
    let place = TargetFolder::new();
    let tar = Tar::default().entry(EntryType::XHeader, "x", "", 0, pax.as_bytes()).directory("d", 0o755);
    place.unpack(&tar).unwrap();
    let mut names = [0_u8; 256];
    let length = rustix::fs::listxattr(place.layer().join("d"), &mut names[..]).unwrap();
    let names: Vec<&[u8]> =
        names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")).collect();
    assert_eq!(names, [b"user.mine"]);
}

#[test]
fn bombs_stop_at_the_limits() {
    let many = |count: usize| {
        (0..count).fold(Tar::default(), |tar, n| tar.link(EntryType::Fifo, &format!("f{n}"), ""))
    };
    TargetFolder::new().unpack(&many(100)).unwrap();
    assert!(TargetFolder::refusal(&many(101)).contains("too many entries"));
    let large = Tar::default().entry(EntryType::Regular, "f", "", 0o644, &vec![0; 9 << 20]);
    assert!(TargetFolder::refusal(&large).contains("too many bytes"));
    let name = vec![b'n'; 65 << 10];
    let long = Tar::default().entry(EntryType::GNULongName, "n", "", 0, &name).file("f", "");
    assert!(TargetFolder::refusal(&long).contains("bytes of headers"));
    let mut told = Header::new_gnu();
    told.set_path("f").unwrap();
    told.set_size(u64::MAX >> 1);
    told.set_cksum();
    TargetFolder::refusal(&Tar(told.as_bytes().to_vec()));
    let paths: Tar = (0..99).fold(Tar::default(), |tar, n| {
        let path = vec![b'a' + n % 20; 4000];
        let path = path.chunks(200).map(<[u8]>::to_vec).collect::<Vec<_>>().join(&b'/');
        tar.entry(EntryType::GNULongName, "n", "", 0, &path).directory("x", 0o755)
    });
    assert!(TargetFolder::refusal(&paths).contains("too many"));
}

#[test]
fn a_compressed_bomb_ends_at_the_same_limit() {
    let zeros = Tar::default().entry(EntryType::Regular, "f", "", 0o644, &vec![0; 64 << 20]);
    let gzip = {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        io::Write::write_all(&mut writer, &zeros.0).unwrap();
        writer.finish().unwrap()
    };
    for packed in [gzip, zstd::encode_all(&zeros.0[..], 3).unwrap()] {
        assert!(packed.len() < 1 << 20);
        let place = TargetFolder::new();
        let file = place.0.path().join("bomb");
        fs::write(&file, packed).unwrap();
        let error = unpack_file(&file, &place.layer(), Owners::Folded, &LIMITS).unwrap_err();
        assert!(error.to_string().contains("too many bytes"), "{error}");
    }
}

#[test]
fn long_names_and_extended_paths_are_checked_like_any_other() {
    let pax = |text: &str| Tar::default().entry(EntryType::XHeader, "x", "", 0, text.as_bytes());
    assert!(TargetFolder::refusal(&pax("18 path=../secret\n").file("f", "dead")).contains("leaves"));
    assert!(TargetFolder::refusal(&pax("12 path=a\0b\n").file("f", "dead")).contains("null byte"));
    assert!(TargetFolder::refusal(&pax("11 size=99\n").file("f", "dead")).contains("two sizes"));
    let long = Tar::default().entry(EntryType::GNULongName, "n", "", 0, b"../secret\0").file("f", "dead");
    assert!(TargetFolder::refusal(&long).contains("leaves"));
}

#[test]
fn archives_that_end_early_or_are_none_are_refused() {
    let whole = Tar::default().entry(EntryType::Regular, "f", "", 0o644, &[1; 2000]);
    TargetFolder::refusal(&Tar(whole.0[..1500].to_vec()));
    TargetFolder::refusal(&Tar(whole.0[..300].to_vec()));
    TargetFolder::refusal(&Tar(b"this is no tarball".repeat(100)));
}

#[test]
fn a_tar_of_the_usual_program_unpacks_to_what_went_in() {
    let place = TargetFolder::new();
    let source = place.0.path().join("source");
    fs::create_dir_all(source.join("d")).unwrap();
    fs::write(source.join("d").join("n".repeat(200)), "long").unwrap();
    symlink("/usr/bin/x", source.join("l")).unwrap();
    let mut tar = Builder::new(Vec::new());
    tar.follow_symlinks(false);
    tar.append_dir_all(".", &source).unwrap();
    place.unpack(&Tar(tar.into_inner().unwrap())).unwrap();
    assert_eq!(fs::read_to_string(place.layer().join("d").join("n".repeat(200))).unwrap(), "long");
    assert_eq!(fs::read_link(place.layer().join("l")).unwrap(), Path::new("/usr/bin/x"));
}
