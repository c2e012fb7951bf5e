//! The file of the guest's program: whatever is in its place, and however many make it, a sandbox
//! starts, and nobody can change the program of one that runs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use eyot::{ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use libtest_mimic::{Failed, Trial};
use rustix::fs::{AtFlags, CWD, XattrFlags};
use rustix::io::Errno;

use crate::maker::Maker;
use crate::state::State;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    let of_root = |trial: Trial| match rustix::process::geteuid().as_raw() {
        0 => trial,
        _ => trial.with_kind("only root may look at the guest's program").with_ignored_flag(true),
    };
    vec![
        trial("a_file_that_is_not_the_guests_program_is_replaced", replaced),
        trial("a_guest_starts_where_its_program_can_not_be_put_into_the_state_folder", not_placed),
        trial("a_guest_starts_from_memory_where_the_state_folder_is_noexec", without_exec),
        trial("processes_that_make_the_guests_program_at_once_all_start_a_guest", at_once),
        trial("a_guests_program_that_a_killed_process_left_half_is_never_used", killed),
        of_root(trial(
            "k7_the_program_of_a_guest_is_on_a_read_only_mount_without_a_path",
            k7_the_program_of_a_guest_is_on_a_read_only_mount_without_a_path,
        )),
        of_root(trial(
            "k7_the_program_of_an_ordinary_users_guest_is_on_such_a_mount_too",
            k7_the_program_of_an_ordinary_users_guest_is_on_such_a_mount_too,
        )),
    ]
}

/// Makes a sandbox, runs a command in it, and destroys it.
async fn works(state: &State) -> Result<(), Failed> {
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let result = sandbox.exec("echo up", ExecOptions::default()).await?;
    ensure(result.stdout_text() == "up\n", format!("{result:?}"))?;
    sandbox.destroy().await?;
    state.assert_empty()
}

/// Returns the only file in the folder of programs.
fn only_program(state: &Path) -> Result<PathBuf, Failed> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(state.join("programs"))? {
        programs.push(entry?.path());
    }
    match &programs[..] {
        [program] => Ok(program.clone()),
        _ => Err(format!("not one program: {programs:?}").into()),
    }
}

async fn replaced() -> Result<(), Failed> {
    let state = State::new()?;
    works(&state).await?;
    let path = only_program(&state.path())?;
    let made = fs::metadata(&path)?;
    ensure(made.mode() & 0o7777 == 0o111, format!("{:o}", made.mode()))?;
    let half = || File::options().write(true).open(&path)?.set_len(made.len() / 2);
    let other = || fs::write(&path, vec![0; usize::try_from(made.len()).unwrap_or(0)]);
    let open = || fs::set_permissions(&path, Permissions::from_mode(0o733));
    let script = || fs::write(&path, "#!/bin/sh\n");
    let of_another = || chown(&path, Some(1), Some(1));
    let mut changes: Vec<&dyn Fn() -> io::Result<()>> = vec![&half, &other, &open, &script];
    if rustix::process::geteuid().is_root() {
        changes.push(&of_another);
    }
    for change in changes {
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        change()?;
        if fs::metadata(&path)?.mode() & 0o022 == 0 {
            fs::set_permissions(&path, Permissions::from_mode(0o111))?;
        }
        works(&state).await?;
        let again = fs::metadata(only_program(&state.path())?)?;
        let marks = |found: &fs::Metadata| (found.mode(), found.uid(), found.len(), found.mtime());
        ensure(marks(&again) == marks(&made), format!("{again:?}"))?;
    }
    Ok(())
}

async fn not_placed() -> Result<(), Failed> {
    let state = State::new()?;
    works(&state).await?;
    let path = only_program(&state.path())?;
    fs::remove_file(&path)?;
    fs::create_dir(&path)?;
    works(&state).await?;
    fs::remove_dir_all(state.path().join("programs"))?;
    fs::write(state.path().join("programs"), "")?;
    works(&state).await
}

/// Enters a mount namespace: root's, or that of a user who has the rights for it there.
const OF_ROOT: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];
const OF_USER: [&str; 5] = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"];

async fn without_exec() -> Result<(), Failed> {
    let state = State::new()?;
    fs::create_dir(state.path())?;
    let is_root = rustix::process::geteuid().is_root();
    let wrapper = if is_root { &OF_ROOT[..] } else { &OF_USER[..] };
    let mut maker = Maker::start_within(wrapper, &state.path(), "noexec")?;
    let programs = maker.line().await?;
    ensure(programs == "0", format!("{programs} programs in a folder from which none can be run"))?;
    maker.end().await
}

async fn at_once() -> Result<(), Failed> {
    for _ in 0..3 {
        let state = State::new()?;
        let mut makers = Vec::new();
        for task in ["once", "make", "once", "make", "once", "make"] {
            makers.push(Maker::start(&state.path(), task, 0)?);
        }
        for maker in &mut makers {
            maker.line().await?;
            maker.end().await?;
        }
        only_program(&state.path())?;
        let provider = state.provider()?;
        for sandbox in provider.list().await? {
            provider.remove(sandbox.id.as_str()).await?;
        }
        state.assert_empty()?;
    }
    Ok(())
}

async fn killed() -> Result<(), Failed> {
    for _ in 0..5 {
        let state = State::new()?;
        let mut maker = Maker::start(&state.path(), "once", 0)?;
        let programs = state.path().join("programs");
        // It is killed at some moment between the first byte of the file and its own end.
        while fs::read_dir(&programs).is_ok_and(|mut entries| entries.next().is_none())
            || (!programs.exists() && maker.process.try_wait()?.is_none())
        {
            tokio::task::yield_now().await;
        }
        maker.kill_9().await?;
        let provider = state.provider()?;
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let result = sandbox.exec("echo up", ExecOptions::default()).await?;
        ensure(result.stdout_text() == "up\n", format!("{result:?}"))?;
        for sandbox in provider.list().await? {
            provider.remove(sandbox.id.as_str()).await?;
        }
    }
    Ok(())
}

async fn k7_the_program_of_a_guest_is_on_a_read_only_mount_without_a_path() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    ensure_fixed(&state, sandbox.id().as_str())?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn k7_the_program_of_an_ordinary_users_guest_is_on_such_a_mount_too() -> Result<(), Failed> {
    const USER: u32 = 61_234;
    let state = State::new()?;
    let folder = state.path();
    fs::set_permissions(folder.parent().ok_or("no folder above")?, Permissions::from_mode(0o711))?;
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    chown(&folder, Some(USER), Some(USER))?;
    let id = USER.to_string();
    let wrapper = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
    for task in ["once", "make"] {
        let mut maker = Maker::start_within(&wrapper, &folder, task)?;
        let made = maker.line().await?;
        maker.end().await?;
        ensure_fixed(&state, &made)?;
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(state.guest_of(&made)?).ok_or("no process number")?,
            rustix::process::Signal::KILL,
        )?;
    }
    Ok(())
}

/// Fails unless the program of a sandbox's guest is the file in the state folder, on a mount through
/// which not even the host's root can change it, and whose path tells nothing.
fn ensure_fixed(state: &State, sandbox: &str) -> Result<(), Failed> {
    let link = PathBuf::from(format!("/proc/{}/exe", state.guest_of(sandbox)?));
    let told = fs::read_link(&link)?;
    ensure(told == Path::new("/"), format!("the link to the program tells {}", told.display()))?;
    let file = only_program(&state.path())?;
    let (linked, placed) = (fs::metadata(&link)?, fs::metadata(&file)?);
    ensure((linked.dev(), linked.ino()) == (placed.dev(), placed.ino()), "the program is another file")?;
    let chmod = fs::set_permissions(&link, Permissions::from_mode(0o777));
    refused("chmod", chmod, &[Errno::ROFS])?;
    refused("chown", chown(&link, Some(1), Some(1)), &[Errno::ROFS])?;
    let write = || OpenOptions::new().write(true).open(&link);
    // The kernel says first that the program runs.
    refused("write", write(), &[Errno::ROFS, Errno::TXTBSY])?;
    let truncate = OpenOptions::new().write(true).truncate(true).open(&link);
    refused("truncate", truncate, &[Errno::ROFS, Errno::TXTBSY])?;
    let attribute = rustix::fs::setxattr(&link, "trusted.x", b"x", XattrFlags::empty());
    refused("setxattr", attribute.map_err(io::Error::from), &[Errno::ROFS])?;
    let beside = state.path().join("programs/linked");
    let linked = rustix::fs::linkat(CWD, &link, CWD, &beside, AtFlags::SYMLINK_FOLLOW);
    refused("link", linked.map_err(io::Error::from), &[Errno::XDEV])?;
    // Once the guest has ended, only the mount would be in the way.
    let flags = rustix::fs::fstatvfs(File::open(&link)?)?.f_flag;
    let wanted = rustix::fs::StatVfsMountFlags::RDONLY | rustix::fs::StatVfsMountFlags::NOSUID;
    ensure(flags.contains(wanted | rustix::fs::StatVfsMountFlags::NODEV), format!("{flags:?}"))
}

fn refused<T>(what: &str, result: io::Result<T>, errnos: &[Errno]) -> Result<(), Failed> {
    let errno = result.err().and_then(|error| Errno::from_io_error(&error));
    ensure(errno.is_some_and(|errno| errnos.contains(&errno)), format!("{what} came to {errno:?}"))
}
