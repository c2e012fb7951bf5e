//! Bounds: what never comes, never ends, or does not fit is an error, and changes nothing.

use axum::http::{Method, StatusCode};
use eyot::{
    ByteStream, Bytes, ErrorKind, ExecOptions, Sandbox, SandboxProvider, SandboxSpec, TarInOptions,
    WriteMode, WriteOptions,
};
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};

use crate::ground::block_on;
use crate::injected::{Fault, Faults, NamedCase, Tried, ensure, failed, ground, named, within};

const START: &str = "/process.Process/Start";

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 12] = [
        ("a_call_that_waits_for_an_answer_hears_that_its_sandbox_is_gone", vanished),
        ("a_start_that_is_never_answered_fails_though_the_sandbox_lives", unanswered),
        ("a_first_line_without_an_end_is_an_error", flood),
        ("a_list_whose_script_has_failed_is_no_short_list", short_list),
        ("an_archive_with_more_long_paths_than_can_be_kept_is_refused", long_paths),
        ("an_archive_whose_long_name_has_no_end_is_refused", long_name),
        ("an_append_does_not_wait_for_a_lock_for_ever", locked),
        ("what_finds_the_disk_full_says_so_and_leaves_no_part", full_disk),
        ("a_variable_that_is_too_long_on_its_way_is_refused", long_variable),
        ("a_list_that_leads_to_the_same_page_again_is_an_error", same_page),
        ("what_is_said_of_a_refused_key_is_not_shown", refused_key),
        ("a_code_of_envds_is_shown_short_and_without_control_characters", odd_code),
    ];
    named("bounds", &cases)
}

/// Returns the content of one piece.
fn content(bytes: impl Into<Bytes>) -> ByteStream {
    futures_util::stream::iter([Ok(bytes.into())]).boxed()
}

fn vanished() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let native = ground.native.list().await?.remove(0).id;
        faults.plan(Method::POST, START, Fault::Silent);
        faults.plan(Method::POST, "/files", Fault::Silent);
        let (start, write) = (sandbox.clone(), sandbox.clone());
        let started = tokio::spawn(async move { start.exec("true", ExecOptions::default()).await });
        let written = tokio::spawn(async move { write.write("f", "x").await });
        for _ in 0..2 {
            faults.arrived().await;
        }
        ground.api.lose(&native.as_str().replacen("sb_", "i", 1)).await?;
        let error = failed(within(50, started).await??)?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        let error = failed(within(10, written).await??)?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))
    })
}

fn unanswered() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        faults.plan(Method::POST, START, Fault::Silent);
        let error = failed(within(90, sandbox.exec("true", ExecOptions::default())).await?)?;
        ensure(error.kind() == ErrorKind::Unavailable && !error.had_no_effect(), format!("{error:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn flood() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        faults.plan(Method::POST, START, Fault::Flood);
        let error = failed(within(10, sandbox.list(".")).await?)?;
        ensure(error.kind() == ErrorKind::Internal, format!("{error:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn short_list() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        sandbox.write("f", "x").await?;
        faults.plan(Method::POST, START, Fault::EndsWithOne);
        let error = failed(sandbox.list(".").await)?;
        ensure(error.kind() == ErrorKind::Permission, format!("{error:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

/// Returns an entry of an archive with a name that needs an entry of its own, of so many bytes.
fn entry(name: &[u8], name_bytes: usize) -> Vec<u8> {
    let header = |kind: u8, path: &str, size: usize| {
        let mut block = vec![0; 512];
        block[..path.len()].copy_from_slice(path.as_bytes());
        block[100..107].copy_from_slice(b"0000644");
        block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        block[156] = kind;
        block[257..265].copy_from_slice(b"ustar  \0");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block
    };
    let mut padded = [name, b"\0"].concat();
    padded.resize(padded.len().next_multiple_of(512), 0);
    [header(b'L', "././@LongLink", name_bytes), padded, header(b'0', "short", 0)].concat()
}

async fn refused_archive(archive: ByteStream, sandbox: &Sandbox) -> Result<ErrorKind, Failed> {
    let unpacked = sandbox.tar_in(".", archive, TarInOptions::default());
    Ok(failed(within(60, unpacked).await?)?.kind())
}

fn long_paths() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let entries = (0..40).map(|number| {
            let name = format!("{number:02}{}", "/a".repeat(2000));
            Ok(Bytes::from(entry(name.as_bytes(), name.len() + 1)))
        });
        let archive = futures_util::stream::iter(entries.collect::<Vec<_>>()).boxed();
        let kind = refused_archive(archive, &sandbox).await?;
        ensure(kind == ErrorKind::TooLarge, format!("{kind:?}"))?;
        ensure(sandbox.list(".").await?.is_empty(), "a part was made")?;
        Ok(sandbox.destroy().await?)
    })
}

fn long_name() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        // 8 GiB of a name, of which 256 MiB come before the sender waits.
        let begin = Bytes::from(entry(b"", 8_589_934_591)[..512].to_vec());
        let piece = Bytes::from(vec![b'n'; 1 << 20]);
        let pieces = std::iter::once(begin).chain(std::iter::repeat_n(piece, 256)).map(Ok);
        let archive = futures_util::stream::iter(pieces).chain(futures_util::stream::pending()).boxed();
        let kind = refused_archive(archive, &sandbox).await?;
        ensure(kind == ErrorKind::Invalid, format!("{kind:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn locked() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let line = "echo one > f; flock f sleep 86393 & while flock -n f true; do :; done";
        sandbox.exec(line, ExecOptions::default()).await?;
        let options = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
        let error = failed(within(40, sandbox.write_stream("f", content("two\n"), options)).await?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(sandbox.read_text("f").await? == "one\n", "it was written to")?;
        Ok(sandbox.destroy().await?)
    })
}

fn full_disk() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        // The upload is on another disk than the place.
        let line = "cd /dev/shm && printf one > f && cat /dev/zero > filler";
        let filled = sandbox.exec(line, ExecOptions::default()).await?;
        ensure(filled.stderr_text().contains("No space"), format!("{filled:?}"))?;
        for (path, mode) in
            [("f", WriteMode::Append), ("new", WriteMode::Append), ("new", WriteMode::CreateNew)]
        {
            let options = WriteOptions { mode, ..WriteOptions::default() };
            let much = content(vec![b'x'; 1 << 20]);
            let error = failed(sandbox.write_stream(&format!("/dev/shm/{path}"), much, options).await)?;
            ensure(error.kind() == ErrorKind::Quota, format!("{path}: {error:?}"))?;
        }
        let left = sandbox.exec("cd /dev/shm; cat f; ls -A", ExecOptions::default()).await?;
        ensure(left.stdout_text() == "onef\nfiller\n", format!("{left:?}"))?;
        let archive = tar_of("big", &vec![b'x'; 1 << 20]);
        let unpacked = sandbox.tar_in("/dev/shm", content(archive), TarInOptions::default()).await;
        let error = failed(unpacked)?;
        ensure(error.kind() == ErrorKind::Quota, format!("{error:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn tar_of(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = entry(name.as_bytes(), name.len() + 1);
    let header = archive.len() - 512;
    archive[header + 124..header + 135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    archive[header + 148..header + 156].fill(b' ');
    let sum: u32 = archive[header..].iter().map(|byte| u32::from(*byte)).sum();
    archive[header + 148..header + 155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend_from_slice(bytes);
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    archive
}

fn long_variable() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let with = |length: usize| {
            let mut options = ExecOptions::default();
            options.env.insert("V".to_owned(), "v".repeat(length - "V=".len()));
            options
        };
        // `EYOT_VARIABLE_0=` comes before it.
        let ran = sandbox.exec("echo ${#V}", with(131_071 - 16)).await?;
        ensure(ran.stdout_text() == format!("{}\n", 131_071 - 18), format!("{ran:?}"))?;
        let error = failed(sandbox.exec("true", with(131_072 - 16)).await)?;
        ensure(error.kind() == ErrorKind::TooLarge, format!("{error:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn same_page() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        for _ in 0..2 {
            faults.plan(Method::GET, "/v2/sandboxes", Fault::SamePage);
        }
        let error = failed(ground.provider().list().await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))
    })
}

fn refused_key() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN] {
            let said = Fault::Said(status, r#"{"message":"the key e2b_0123 of team T"}"#);
            faults.plan(Method::GET, "/v2/sandboxes", said);
            let error = failed(ground.provider().list().await)?;
            ensure(error.kind() == ErrorKind::Permission, format!("{error:?}"))?;
            ensure(!format!("{error:?}").contains("team T"), format!("{error:?}"))?;
        }
        Ok(())
    })
}

async fn odd(faults: &Faults, sandbox: &Sandbox) -> Result<String, Failed> {
    const CODE: &str = concat!("{\"code\":\"\\u001b[31m", "long word ", "\"}");
    faults.plan(Method::POST, START, Fault::Said(StatusCode::INTERNAL_SERVER_ERROR, CODE));
    Ok(format!("{:?}", failed(sandbox.exec("true", ExecOptions::default()).await)?))
}

fn odd_code() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let shown = within(20, odd(&faults, &sandbox)).await??;
        ensure(shown.contains("[31mlong word") && !shown.contains("u{1b}"), shown)?;
        Ok(sandbox.destroy().await?)
    })
}
