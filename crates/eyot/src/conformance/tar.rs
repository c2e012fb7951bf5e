//! Trees as tar streams: out and in again alike, and archives that mean harm.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output, takes_odd_names};
use super::read::{collect, pattern};
use super::write::names;
use crate::driver::ByteStream;
use crate::error::Result;
use crate::files::{CreateDirOptions, TarInOptions};
use crate::path::ConfinedPath;
use crate::sandbox::Sandbox;

cases! {
    a_tree_comes_back_from_its_tar_stream_alike(workspace) needs [Tar, Shell, Symlinks];
    a_tar_stream_s_names_begin_with_the_last_segment_of_the_path(workspace) needs [Tar];
    a_single_file_is_packed_and_unpacked(workspace) needs [Tar];
    links_that_lead_out_are_packed_and_made_again_but_not_followed(workspace) needs [Tar, Shell, Symlinks];
    what_can_t_be_packed_is_left_out(workspace) needs [Tar, Shell];
    packing_what_is_missing_is_not_found(workspace) needs [Tar];
    unpacking_needs_a_directory_that_is_there(workspace) needs [Tar];
    unpacking_replaces_files_and_keeps_what_is_beside_them(workspace) needs [Tar];
    f4_names_that_lead_out_are_refused_and_named(workspace) needs [Tar];
    f4_hard_links_that_lead_out_and_devices_are_refused_and_named(workspace) needs [Tar];
    f4_symbolic_links_that_lead_out_are_refused_where_the_directory_is_held(workspace) needs [Tar, Beneath];
    f4_nothing_is_written_through_a_link_of_the_archive(workspace) needs [Tar, Shell, Symlinks];
    f4_setuid_bits_are_dropped(workspace) needs [Tar, Shell];
    f4_more_bytes_or_entries_than_allowed_are_too_large(workspace) needs [Tar];
    f4_a_stream_that_is_no_archive_or_ends_early_is_invalid(workspace) needs [Tar];
}

/// An archive written by hand, without a library's checks.
#[derive(Default)]
struct Archive(Vec<u8>);

impl Archive {
    fn entry(mut self, kind: u8, path: &str, link: &str, content: &[u8]) -> Self {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
        put(0, path.as_bytes());
        put(100, b"0004755\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", content.len()).as_bytes());
        put(136, b"07777777777\0");
        put(148, b"        ");
        put(156, &[kind]);
        put(157, link.as_bytes());
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, path: &str, content: &str) -> Self {
        self.entry(b'0', path, "", content.as_bytes())
    }

    fn symlink(self, path: &str, target: &str) -> Self {
        self.entry(b'2', path, target, b"")
    }

    fn bytes(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

fn sent(archive: Vec<u8>) -> ByteStream {
    let pieces: Vec<Result<Bytes>> =
        archive.chunks(50_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

async fn unpack(sandbox: &Sandbox, path: &str, archive: Archive) -> Result<u64> {
    sandbox.tar_in(path, sent(archive.bytes()), TarInOptions::default()).await
}

async fn with_directory(sandbox: &Sandbox, path: &str) -> Check {
    Ok(sandbox.create_dir(path, CreateDirOptions { recursive: true }).await?)
}

async fn a_tree_comes_back_from_its_tar_stream_alike(sandbox: Sandbox) -> Check {
    let long = format!("t/{}/{}", ["a-longer-name"; 20].join("/"), "n".repeat(255));
    sandbox.write(&long, pattern(300_000)).await?;
    output(
        &sandbox,
        "cd t && mkdir empty .hidden && printf x > .hidden/f && : > zero && chmod 600 zero
         printf '#!/bin/sh\\necho ran\\n' > run && chmod 755 run && touch -d @1000000000 run
         ln -s run link && ln -s ../zero empty/up && ln -s nowhere dangling && chmod 500 empty",
    )
    .await?;
    if takes_odd_names(&sandbox).await? {
        output(&sandbox, "printf odd > t/\"$(printf 'new\\nline \\377')\"").await?;
    }
    let archive = collect(sandbox.tar_out("t").await?).await?;
    with_directory(&sandbox, "copy").await?;
    let made = sandbox.tar_in("copy", sent(archive), TarInOptions::default()).await?;
    // `%P` is the path below, then type, permission bits, target and size.
    let list =
        "find . -mindepth 1 \\( -type d -printf '%P %y %m\\n' \\) -o -printf '%P %y %m %l %s\\n' | sort";
    let original = output(&sandbox, &format!("cd t && {list}")).await?;
    ensure_eq!(output(&sandbox, &format!("cd copy/t && {list}")).await?, original);
    ensure_eq!(
        made,
        output(&sandbox, "find t -print0 | tr -dc '\\0' | wc -c").await?.trim().parse().unwrap_or(0)
    );
    ensure_eq!(output(&sandbox, "copy/t/link && stat -c %Y copy/t/run").await?, "ran\n1000000000");
    ensure!(
        sandbox.read(&format!("copy/{long}")).await? == pattern(300_000),
        "the content is not the original's"
    );
    output(&sandbox, "chmod 700 t/empty copy/t/empty").await?;
    Ok(())
}

async fn a_tar_stream_s_names_begin_with_the_last_segment_of_the_path(sandbox: Sandbox) -> Check {
    sandbox.write("a/b/f", "x").await?;
    let archive = collect(sandbox.tar_out("a/b").await?).await?;
    ensure!(archive.starts_with(b"b/\0"), "it begins with {:?}", String::from_utf8_lossy(&archive[..16]));
    with_directory(&sandbox, "copy").await?;
    ensure_eq!(sandbox.tar_in("copy", sent(archive), TarInOptions::default()).await?, 2);
    ensure_eq!(sandbox.read_text("copy/b/f").await?, "x");
    Ok(())
}

async fn a_single_file_is_packed_and_unpacked(sandbox: Sandbox) -> Check {
    sandbox.write("a/f", pattern(100_000)).await?;
    let archive = collect(sandbox.tar_out("a/f").await?).await?;
    with_directory(&sandbox, "copy").await?;
    ensure_eq!(sandbox.tar_in("copy", sent(archive), TarInOptions::default()).await?, 1);
    ensure!(sandbox.read("copy/f").await? == pattern(100_000), "the content is not the original's");
    Ok(())
}

async fn links_that_lead_out_are_packed_and_made_again_but_not_followed(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir -p venv/bin && ln -s /bin/sh venv/bin/sh && ln -s ../../elsewhere venv/lib")
        .await?;
    let archive = collect(sandbox.tar_out("venv").await?).await?;
    ensure!(archive.len() < 20_000, "{} bytes: a link was followed", archive.len());
    with_directory(&sandbox, "copy").await?;
    ensure_eq!(sandbox.tar_in("copy", sent(archive), TarInOptions::default()).await?, 4);
    let links = output(&sandbox, "readlink copy/venv/bin/sh && readlink copy/venv/lib").await?;
    ensure_eq!(links, "/bin/sh\n../../elsewhere");
    ensure_eq!(output(&sandbox, "copy/venv/bin/sh -c 'echo works'").await?, "works");
    Ok(())
}

async fn what_can_t_be_packed_is_left_out(sandbox: Sandbox) -> Check {
    sandbox.write("t/f", "x").await?;
    output(&sandbox, "mkfifo t/fifo").await?;
    let archive = collect(sandbox.tar_out("t").await?).await?;
    with_directory(&sandbox, "copy").await?;
    ensure_eq!(sandbox.tar_in("copy", sent(archive), TarInOptions::default()).await?, 2);
    ensure_eq!(sandbox.list("copy/t").await?.len(), 1);
    Ok(())
}

async fn packing_what_is_missing_is_not_found(sandbox: Sandbox) -> Check {
    ensure_fails!(sandbox.tar_out("missing").await, NotFound);
    Ok(())
}

async fn unpacking_needs_a_directory_that_is_there(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    ensure_fails!(unpack(&sandbox, "missing", Archive::default().file("x", "x")).await, NotFound);
    ensure_fails!(unpack(&sandbox, "f", Archive::default().file("x", "x")).await, NotDirectory);
    ensure_eq!(names(&sandbox).await?, ["f"]);
    Ok(())
}

async fn unpacking_replaces_files_and_keeps_what_is_beside_them(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "old and longer").await?;
    sandbox.write("d/beside", "kept").await?;
    let archive = Archive::default().entry(b'5', "d/", "", b"").file("d/f", "new").file("made/below/g", "x");
    ensure_eq!(unpack(&sandbox, ".", archive).await?, 3);
    ensure_eq!(sandbox.read_text("d/f").await?, "new");
    ensure_eq!(sandbox.read_text("d/beside").await?, "kept");
    ensure_eq!(sandbox.read_text("made/below/g").await?, "x");
    Ok(())
}

/// Each archive is refused as invalid, naming the entry `evil`, and makes nothing.
async fn are_refused<const N: usize>(sandbox: &Sandbox, archives: [Archive; N]) -> Check {
    with_directory(sandbox, "d").await?;
    for archive in archives {
        let unpacked = unpack(sandbox, "d", archive).await;
        let sentence = unpacked.as_ref().err().map(ToString::to_string).unwrap_or_default();
        ensure_fails!(unpacked, Invalid);
        ensure!(sentence.contains("evil"), "`{sentence}` does not name the entry");
        ensure!(sandbox.list("d").await?.is_empty(), "something was made in spite of `{sentence}`");
    }
    ensure_eq!(names(sandbox).await?, ["d"]);
    ensure!(!sandbox.exists("/evil").await?, "something was made at the root");
    Ok(())
}

async fn f4_names_that_lead_out_are_refused_and_named(sandbox: Sandbox) -> Check {
    let archives = [
        Archive::default().file("/evil", "x"),
        Archive::default().file("../evil", "x"),
        Archive::default().file("a/../../evil", "x"),
        Archive::default().entry(b'5', "../evil", "", b""),
        Archive::default().symlink("../evil", "x"),
        Archive::default().entry(b'x', "pax", "", b"16 path=../evil\n").file("fine", "x"),
        Archive::default().entry(b'L', "././@LongLink", "", b"/evil/long\0").file("fine", "x"),
    ];
    are_refused(&sandbox, archives).await
}

async fn f4_hard_links_that_lead_out_and_devices_are_refused_and_named(sandbox: Sandbox) -> Check {
    let archives = [
        Archive::default().entry(b'1', "evil", "/etc/passwd", b""),
        Archive::default().entry(b'1', "evil", "../../etc/passwd", b""),
        Archive::default().entry(b'3', "evil", "", b""),
        Archive::default().entry(b'4', "evil", "", b""),
        Archive::default().entry(b'6', "evil", "", b""),
    ];
    are_refused(&sandbox, archives).await
}

async fn f4_symbolic_links_that_lead_out_are_refused_where_the_directory_is_held(sandbox: Sandbox) -> Check {
    let place = ConfinedPath { path: sandbox.cwd().clone(), beneath: Some(sandbox.cwd().clone()) };
    for target in ["/etc/passwd", "../evil", "a/../../evil"] {
        let archive = sent(Archive::default().symlink("evil", target).bytes());
        ensure_fails!(sandbox.tar_in_at(&place, ".", archive, TarInOptions::default()).await, Invalid);
    }
    let inside = sent(Archive::default().file("d/f", "x").symlink("d/l", "../d/f").bytes());
    ensure_eq!(sandbox.tar_in_at(&place, ".", inside, TarInOptions::default()).await?, 2);
    ensure_eq!(sandbox.workspace().read_text_file("d/l").await?, "x");
    ensure_eq!(names(&sandbox).await?, ["d"]);
    Ok(())
}

async fn f4_nothing_is_written_through_a_link_of_the_archive(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir d outside && printf old > outside/f && ln -s ../outside d/there").await?;
    for archive in [
        Archive::default().symlink("l", "../outside").file("l/evil", "x"),
        Archive::default().symlink("up", "..").file("up/outside/f", "x"),
        Archive::default().file("there/f", "x"),
        Archive::default().entry(b'5', "there/evil/", "", b""),
        Archive::default().entry(b'1', "mine", "there/f", b""),
    ] {
        ensure_fails!(unpack(&sandbox, "d", archive).await, Invalid);
    }
    // A link at an entry's own name is replaced, not followed.
    unpack(&sandbox, "d", Archive::default().symlink("last", "../outside/f").file("last", "new")).await?;
    ensure_eq!(output(&sandbox, "ls -A outside && cat outside/f d/last").await?, "f\noldnew");
    Ok(())
}

async fn f4_setuid_bits_are_dropped(sandbox: Sandbox) -> Check {
    unpack(&sandbox, ".", Archive::default().file("f", "x").entry(b'5', "d/", "", b"")).await?;
    ensure_eq!(output(&sandbox, "stat -c %a f d").await?, "755\n755");
    Ok(())
}

async fn f4_more_bytes_or_entries_than_allowed_are_too_large(sandbox: Sandbox) -> Check {
    let archive =
        || sent((0..5).fold(Archive::default(), |tar, n| tar.file(&format!("f{n}"), "12345")).bytes());
    let within = |max_total_bytes, max_entries| TarInOptions { max_total_bytes, max_entries };
    ensure_eq!(sandbox.tar_in(".", archive(), within(25, 5)).await?, 5);
    ensure_fails!(sandbox.tar_in(".", archive(), within(24, 5)).await, TooLarge);
    ensure_fails!(sandbox.tar_in(".", archive(), within(25, 4)).await, TooLarge);
    Ok(())
}

async fn f4_a_stream_that_is_no_archive_or_ends_early_is_invalid(sandbox: Sandbox) -> Check {
    let whole = Archive::default().file("f", &"x".repeat(5000)).bytes();
    for bytes in [&whole[..100], &whole[..3000], &b"rubbish ".repeat(200)[..]] {
        let unpacked = sandbox.tar_in(".", sent(bytes.to_vec()), TarInOptions::default()).await;
        ensure_fails!(unpacked, Invalid);
    }
    ensure!(names(&sandbox).await?.is_empty(), "half a file was left");
    ensure_eq!(sandbox.tar_in(".", sent(Vec::new()), TarInOptions::default()).await?, 0);
    Ok(())
}
