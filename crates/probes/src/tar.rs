//! F4: archives that were made to leave the folder that they are unpacked into. They are written
//! here byte by byte: no library would write them.

use eyot::{ByteStream, Bytes, ErrorKind, TarInOptions};
use futures_util::{StreamExt, stream};

use crate::check::{Check, Failure, cases, ensure, ensure_eq, ensure_fails, promptly};
use crate::world::Stage;

cases! {
    f04_entries_that_would_leave_the_folder_are_refused_and_named(stage);
    f04_links_that_lead_out_can_not_be_written_through(stage);
    f04_devices_and_fifos_are_not_made(stage);
    f04_setuid_bits_are_dropped(stage);
    f04_an_archive_that_unpacks_to_too_much_is_refused_in_bounded_memory(stage);
    f04_pax_records_do_not_smuggle_a_path(stage);
    f04_of_duplicate_entries_the_last_one_stays_and_types_do_not_mix(stage);
    f04_garbage_and_truncated_archives_are_typed_errors(stage);
}

const BLOCK: usize = 512;

/// An archive in the making.
#[derive(Default)]
pub struct TarBuilder(Vec<u8>);

/// One header's fields.
#[derive(Clone, Copy)]
pub struct TarHeader<'a> {
    name: &'a str,
    kind: u8,
    link: &'a str,
    mode: u32,
    /// The size in the header, which need not be true.
    size: u64,
}

impl TarBuilder {
    /// A regular file.
    pub fn file(self, name: &str, content: &[u8]) -> Self {
        let size = content.len() as u64;
        self.entry(TarHeader { name, kind: b'0', link: "", mode: 0o644, size }, content)
    }

    /// A regular file with these permission bits.
    pub fn program(self, name: &str, mode: u32) -> Self {
        self.entry(TarHeader { name, kind: b'0', link: "", mode, size: 1 }, b"x")
    }

    fn link(self, name: &str, kind: u8, target: &str) -> Self {
        self.entry(TarHeader { name, kind, link: target, mode: 0o777, size: 0 }, b"")
    }

    fn directory(self, name: &str) -> Self {
        self.entry(TarHeader { name, kind: b'5', link: "", mode: 0o755, size: 0 }, b"")
    }

    /// A PAX header for the next entry.
    fn pax(self, records: &[(&str, &str)]) -> Self {
        let mut content = String::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let digits = (rest + 2).to_string().len();
            content.push_str(&format!("{} {key}={value}\n", rest + digits));
        }
        let size = content.len() as u64;
        let entry = TarHeader { name: "PaxHeaders/x", kind: b'x', link: "", mode: 0o644, size };
        self.entry(entry, content.as_bytes())
    }

    /// An entry with these bytes behind it, whatever its header says.
    fn entry(mut self, entry: TarHeader<'_>, content: &[u8]) -> Self {
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &entry.name.as_bytes()[..entry.name.len().min(100)]);
        put(100, format!("{:07o}\0", entry.mode).as_bytes());
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", entry.size).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[entry.kind]);
        put(157, &entry.link.as_bytes()[..entry.link.len().min(100)]);
        put(257, b"ustar\x0000");
        put(329, b"0000001\0");
        put(337, b"0000003\0");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    /// The archive as a stream of small pieces.
    pub fn finish(mut self) -> ByteStream {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        pieces(self.0)
    }
}

fn pieces(bytes: Vec<u8>) -> ByteStream {
    let pieces: Vec<_> = bytes.chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

async fn unpack(stage: &Stage, tar: ByteStream) -> Check<eyot::Result<u64>> {
    promptly("an unpack", stage.sandbox.tar_in("/workspace/in", tar, TarInOptions::default())).await
}

/// Makes the folder to unpack into, and the files that must stay as they are.
async fn prepare(stage: &Stage) -> Check {
    stage.output("mkdir in out; echo kept > out/kept; echo kept > /tmp/kept").await?;
    Ok(())
}

async fn ensure_untouched(stage: &Stage) -> Check {
    let found = stage.output("ls -A /workspace; ls -A out; cat out/kept /tmp/kept; ls -A /tmp").await?;
    ensure_eq!(found, "in\nout\nkept\nkept\nkept\nkept");
    Ok(())
}

async fn f04_entries_that_would_leave_the_folder_are_refused_and_named(stage: Stage) -> Check {
    prepare(&stage).await?;
    let names =
        ["../out/evil", "/workspace/out/evil", "a/../../out/evil", "..", "a/../../../tmp/evil", "/tmp/evil"];
    for name in names {
        match unpack(&stage, TarBuilder::default().file(name, b"x").finish()).await? {
            // Neutralised: it arrived, but inside.
            Ok(_) => {}
            Err(error) => {
                ensure!(
                    [ErrorKind::Invalid, ErrorKind::Permission].contains(&error.kind()),
                    "{name}: {error}"
                );
                ensure!(error.to_string().contains(name), "{name} is not named: {error}");
            }
        }
        ensure_untouched(&stage).await?;
    }
    Ok(())
}

async fn f04_links_that_lead_out_can_not_be_written_through(stage: Stage) -> Check {
    prepare(&stage).await?;
    let targets = ["../out", "/workspace/out", "/tmp", "../../tmp", "/proc/self/cwd/../out", "."];
    for target in targets {
        let tar = TarBuilder::default().link("link", b'2', target).file("link/evil", b"x").finish();
        let unpacked = unpack(&stage, tar).await?;
        ensure_no_internal(target, &unpacked)?;
        ensure_untouched(&stage).await?;
        let again = TarBuilder::default()
            .link("l1", b'2', target)
            .link("l2", b'2', "l1")
            .directory("l2/evil")
            .finish();
        ensure_no_internal(target, &unpack(&stage, again).await?)?;
        ensure_untouched(&stage).await?;
        stage.output("rm -rf in; mkdir in").await?;
    }
    for target in ["../out/kept", "/workspace/out/kept", "/tmp/kept", "/etc/passwd", "../../etc/passwd"] {
        // A hard link to it, and then a write to the link.
        let tar = TarBuilder::default().link("hard", b'1', target).file("hard", b"evil").finish();
        ensure_no_internal(target, &unpack(&stage, tar).await?)?;
        ensure_untouched(&stage).await?;
        let linked = stage.output("find in -type f -links +1").await?;
        ensure!(linked.is_empty(), "{target} was linked to");
        stage.output("rm -rf in; mkdir in").await?;
    }
    Ok(())
}

fn ensure_no_internal(what: &str, result: &eyot::Result<u64>) -> Check {
    match result {
        Err(error) if error.kind() == ErrorKind::Internal => Err(Failure::Broken(format!("{what}: {error}"))),
        _ => Ok(()),
    }
}

async fn f04_devices_and_fifos_are_not_made(stage: Stage) -> Check {
    prepare(&stage).await?;
    for kind in [b'3', b'4', b'6', b'7', b'S', b'V', b'M', b'Z'] {
        let entry = TarHeader { name: "special", kind, link: "", mode: 0o666, size: 0 };
        let unpacked = unpack(&stage, TarBuilder::default().entry(entry, b"").finish()).await?;
        ensure_no_internal(&format!("type {}", char::from(kind)), &unpacked)?;
        let made = stage.output("find in ! -type f ! -type d").await?;
        ensure!(made.is_empty(), "type {}: {made}", char::from(kind));
        stage.output("rm -rf in; mkdir in").await?;
    }
    Ok(())
}

async fn f04_setuid_bits_are_dropped(stage: Stage) -> Check {
    prepare(&stage).await?;
    let entry = TarHeader { name: "program", kind: b'0', link: "", mode: 0o6755, size: 1 };
    let folder = TarHeader { name: "folder", kind: b'5', link: "", mode: 0o2755, size: 0 };
    let unpacked =
        unpack(&stage, TarBuilder::default().entry(entry, b"x").entry(folder, b"").finish()).await?;
    ensure_no_internal("setuid", &unpacked)?;
    let found = stage.output("find in -perm /6000").await?;
    ensure!(found.is_empty(), "still setuid: {found}");
    Ok(())
}

async fn f04_an_archive_that_unpacks_to_too_much_is_refused_in_bounded_memory(stage: Stage) -> Check {
    prepare(&stage).await?;
    let sandbox = &stage.sandbox;
    let limits = TarInOptions { max_total_bytes: 1 << 20, max_entries: 10 };
    let large = vec![0_u8; 2 << 20];
    let tar = TarBuilder::default().file("large", &large).finish();
    ensure_fails!(promptly("a large file", sandbox.tar_in("in", tar, limits)).await?, TooLarge | Quota);
    let many = (0..50).fold(TarBuilder::default(), |tar, number| tar.file(&format!("f{number}"), b"x"));
    ensure_fails!(
        promptly("many files", sandbox.tar_in("in", many.finish(), limits)).await?,
        TooLarge | Quota
    );
    // It claims 8 GiB, and would go on for ever.
    let entry = TarHeader { name: "endless", kind: b'0', link: "", mode: 0o644, size: 0o77777777777 };
    let start = pieces(TarBuilder::default().entry(entry, b"").0);
    let zeroes = Bytes::from(vec![0_u8; 64 << 10]);
    let endless = start.chain(stream::repeat_with(move || Ok(zeroes.clone()))).boxed();
    ensure_fails!(
        promptly("an endless file", sandbox.tar_in("in", endless, limits)).await?,
        TooLarge | Quota
    );
    let room = stage.output("du -sk in | cut -f1").await?;
    ensure!(room.parse::<u64>().is_ok_and(|kib| kib < 4096), "{room} KiB were unpacked");
    stage.still_works().await
}

async fn f04_pax_records_do_not_smuggle_a_path(stage: Stage) -> Check {
    prepare(&stage).await?;
    let smuggled: [&[(&str, &str)]; 6] = [
        &[("path", "../out/evil")],
        &[("path", "/tmp/evil")],
        &[("linkpath", "/tmp/kept")],
        &[("size", "99999999999999999999")],
        &[("path", "a\0b")],
        &[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", "../out/evil")],
    ];
    for records in smuggled {
        let tar = TarBuilder::default().pax(records).file("innocent", b"x").finish();
        ensure_no_internal(&format!("{records:?}"), &unpack(&stage, tar).await?)?;
        ensure_untouched(&stage).await?;
        let link = TarBuilder::default().pax(records).link("innocent", b'1', "nothing").finish();
        ensure_no_internal(&format!("{records:?}"), &unpack(&stage, link).await?)?;
        ensure_untouched(&stage).await?;
        stage.output("rm -rf in; mkdir in").await?;
    }
    // A GNU long name does not either.
    let name = b"../out/evil\0";
    let long =
        TarHeader { name: "././@LongLink", kind: b'L', link: "", mode: 0o644, size: name.len() as u64 };
    let tar = TarBuilder::default().entry(long, name).file("innocent", b"x").finish();
    ensure_no_internal("a long name", &unpack(&stage, tar).await?)?;
    ensure_untouched(&stage).await
}

async fn f04_of_duplicate_entries_the_last_one_stays_and_types_do_not_mix(stage: Stage) -> Check {
    prepare(&stage).await?;
    let tar = TarBuilder::default().file("twice", b"first").file("twice", b"second").finish();
    if unpack(&stage, tar).await?.is_ok() {
        ensure_eq!(&stage.sandbox.read("in/twice").await?[..], b"second");
    }
    // A link to the outside in the place of a file, and the file once more.
    let tar = TarBuilder::default().file("x", b"1").link("x", b'2', "/tmp/kept").file("x", b"evil").finish();
    ensure_no_internal("file, link, file", &unpack(&stage, tar).await?)?;
    ensure_untouched(&stage).await?;
    let tar = TarBuilder::default().directory("d").link("d", b'2', "../out").file("d/evil", b"x").finish();
    ensure_no_internal("folder, link, file", &unpack(&stage, tar).await?)?;
    ensure_untouched(&stage).await
}

async fn f04_garbage_and_truncated_archives_are_typed_errors(stage: Stage) -> Check {
    prepare(&stage).await?;
    let whole = TarBuilder::default().file("file", &[b'x'; 5_000]).0;
    for cut in [1, 100, 511, 513, 2_000] {
        let result = promptly("a truncated archive", unpack(&stage, pieces(whole[..cut].to_vec()))).await??;
        ensure_fails!(result, Invalid);
    }
    ensure_fails!(unpack(&stage, pieces(vec![0xA5; 100_000])).await?, Invalid);
    let mut broken = whole.clone();
    broken[150] ^= 0x55;
    ensure_fails!(unpack(&stage, pieces(broken)).await?, Invalid);
    stage.still_works().await
}
