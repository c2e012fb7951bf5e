//! F2: what is no regular file.

use eyot::{ErrorKind, RemoveOptions};

use crate::check::{Check, Failure, cases, ensure, ensure_eq, promptly};
use crate::world::Stage;

cases! {
    f02_a_read_of_what_is_no_regular_file_fails_at_once(stage);
    f02_a_write_to_what_is_no_regular_file_fails_at_once_or_replaces_it(stage);
    f02_special_files_are_described_listed_and_removed(stage);
    f02_a_hard_link_is_a_file_like_any_other_and_a_write_does_not_leak_through_it(stage);
}

const SPECIAL: [&str; 7] = ["fifo", "sock", "/dev/zero", "/dev/null", "/dev/tty", "/dev/ptmx", "/dev/full"];

async fn make_special(stage: &Stage) -> Check {
    let listen = "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => q(sock), Listen => 1)'";
    stage.output(&format!("mkfifo fifo; {listen} || mkfifo sock")).await?;
    Ok(())
}

async fn f02_a_read_of_what_is_no_regular_file_fails_at_once(stage: Stage) -> Check {
    make_special(&stage).await?;
    stage.output("ln -s fifo link-to-fifo; ln -s /dev/zero link-to-zero").await?;
    for path in SPECIAL.into_iter().chain(["link-to-fifo", "link-to-zero"]) {
        match promptly(path, stage.sandbox.read(path)).await? {
            Ok(bytes) => return Err(Failure::Broken(format!("{path} gave {} bytes", bytes.len()))),
            Err(error) => ensure_eq!((path, error.kind()), (path, ErrorKind::Invalid)),
        }
    }
    stage.still_works().await
}

async fn f02_a_write_to_what_is_no_regular_file_fails_at_once_or_replaces_it(stage: Stage) -> Check {
    make_special(&stage).await?;
    for path in SPECIAL {
        let append = eyot::WriteOptions { mode: eyot::WriteMode::Append, ..eyot::WriteOptions::default() };
        let appended = promptly(path, stage.sandbox.write_with(path, "x", append)).await?;
        ensure!(appended.is_err(), "{path} could be appended to");
        match promptly(path, stage.sandbox.write(path, "x")).await? {
            Ok(()) => ensure_eq!((path, &stage.sandbox.read(path).await?[..]), (path, &b"x"[..])),
            Err(error) => ensure!(error.kind() != ErrorKind::Internal, "{path}: {error}"),
        }
    }
    let devices = stage.output("for d in zero null full random; do [ -c /dev/$d ] || echo $d; done").await?;
    ensure!(devices.is_empty(), "a write replaced the device {devices}");
    stage.still_works().await
}

async fn f02_special_files_are_described_listed_and_removed(stage: Stage) -> Check {
    make_special(&stage).await?;
    for path in ["fifo", "sock"] {
        let stat = promptly("a stat", stage.sandbox.stat(path)).await??;
        ensure!(!stat.is_file && !stat.is_directory, "{path}: {stat:?}");
        promptly("a remove", stage.sandbox.remove(path, RemoveOptions::default())).await??;
    }
    ensure!(stage.sandbox.list(".").await?.is_empty(), "something is left");
    Ok(())
}

async fn f02_a_hard_link_is_a_file_like_any_other_and_a_write_does_not_leak_through_it(
    stage: Stage,
) -> Check {
    stage.output("echo -n first > one; ln one two").await?;
    ensure_eq!(&stage.sandbox.read("two").await?[..], b"first");
    stage.sandbox.write("two", "second").await?;
    ensure_eq!(&stage.sandbox.read("two").await?[..], b"second");
    // Replaced as a whole: the other name keeps the old content.
    ensure_eq!(&stage.sandbox.read("one").await?[..], b"first");
    // A file of another user can't be linked to, and so not be written through a link.
    let linked = stage.sh("ln /etc/passwd passwd; ln /usr/bin/env env").await?;
    ensure!(!linked.success(), "files of the image can be linked to: {linked:?}");
    Ok(())
}
