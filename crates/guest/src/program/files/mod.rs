//! The file calls: blocking code that runs on a worker thread, inside the sandbox, as the
//! workload's user.
//!
//! One operation, one file. [`locate`] opens paths so that no symbolic link leads out of the
//! directory a call is held beneath; [`descent`] and [`walk`] go through trees by directory
//! descriptor, so that a link that is swapped in while they work is never followed; [`failure`]
//! turns the kernel's errors into the kinds of the wire. What is no file call is not served here.

mod append;
mod create_dir;
mod draft;
mod failure;
#[cfg(test)]
mod fake_io;
mod glob;
mod grep;
mod list;
mod locate;
mod pass;
mod read;
mod regular;
mod remove;
mod rename;
mod stat;
mod tar_in;
mod tar_out;
mod tree;
mod walk;
mod watch;
mod write;

#[cfg(feature = "fuzzing")]
pub use crate::glob_pattern::Pattern;
use crate::line_search::{Bounds, Matcher};
use crate::program::call_io::CallIo;
use crate::protocol::{Failure, Reply, Request};
#[cfg(feature = "fuzzing")]
pub use failure::FileError as Refusal;
use failure::{FileError, FileErrorKind};
pub use regular::open_in_sandbox as open_regular;

/// Serves one file request to its end: events and content go over `io`, and the answer is returned.
///
/// # Errors
/// The reason alone: the caller knows the operation and the path. A request that is not about files
/// is `internal`. A caller who is gone is `cancelled`.
pub fn serve(request: Request, io: &mut dyn CallIo) -> Result<Reply, Failure> {
    answer(request, io).map_err(FileError::into_failure)
}

fn answer(request: Request, io: &mut dyn CallIo) -> Result<Reply, FileError> {
    match request {
        Request::Read(file, offset, limit) => read::read(&file, offset, limit, io),
        Request::ReadPassed(file, offset, limit) => read::read_passed(&file, offset, limit, io),
        Request::Write(file, how) => write::write(&file, &how, io),
        Request::WritePassed(file, how) => write::write_passed(&file, &how, io),
        Request::Stat(file) => stat::stat(&file),
        Request::List(directory) => list::list(&directory, io),
        Request::Exists(file) => stat::exists(&file),
        Request::CreateDir(directory, recursive) => create_dir::create_dir(&directory, recursive),
        Request::Remove(file, recursive, force) => remove::remove(&file, recursive, force, io),
        Request::Rename(from, to) => rename::rename(&from, &to),
        Request::Glob(root, pattern, hidden, max_results) => {
            glob::glob(&root, &pattern, hidden, max_results, io)
        }
        Request::Grep { root, pattern, literal, ignore_case, include, max_matches, max_line_bytes } => {
            let matcher = Matcher::new(&pattern, literal, ignore_case, include.as_deref())?;
            grep::grep(&root, matcher, Bounds { max_matches, max_line_bytes }, io)
        }
        Request::TarOut(root) => tar_out::tar_out(&root, io),
        Request::TarIn(directory, max_bytes, max_entries) => {
            tar_in::tar_in(&directory, max_bytes, max_entries, io)
        }
        Request::Watch(place, recursive, max_directories) => {
            watch::watch(&place, recursive, max_directories, io)
        }
        _ => Err(FileError::new(FileErrorKind::Internal, "this call is not about files")),
    }
}

#[cfg(test)]
mod tests {
    use super::fake_io::{FakeIo, at, beneath};
    use super::*;
    use crate::protocol::{Location, WriteParameters};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    const REPLACE: WriteParameters = WriteParameters { mode: 0, permissions: None, max_bytes: None };

    #[test]
    fn a_failure_is_the_reason_alone() {
        let location = Location { path: "/no/such/file".into(), beneath: None };
        let failure = serve(Request::Read(location, 0, None), &mut FakeIo::default()).unwrap_err();
        assert_eq!(failure.kind, "not_found");
        assert_eq!(failure.message, "does not exist");
    }

    #[test]
    fn a_request_that_is_not_about_files_is_refused() {
        assert_eq!(serve(Request::Ping, &mut FakeIo::default()).unwrap_err().kind, "internal");
    }

    /// Every call that can reach a file or a directory below `directory` through `d`.
    fn every_call(directory: &Path) -> Vec<Request> {
        let (file, dir) = (beneath(directory, "d/f"), beneath(directory, "d"));
        let grep = Request::Grep {
            root: dir.clone(),
            pattern: "canary".into(),
            literal: true,
            ignore_case: false,
            include: None,
            max_matches: 10,
            max_line_bytes: 100,
        };
        vec![
            Request::Read(file.clone(), 0, None),
            Request::ReadPassed(file.clone(), 0, None),
            Request::Write(file.clone(), REPLACE),
            Request::WritePassed(file.clone(), REPLACE),
            Request::Write(file.clone(), WriteParameters { mode: 1, ..REPLACE }),
            Request::Write(beneath(directory, "d/new"), WriteParameters { mode: 2, ..REPLACE }),
            Request::Stat(file.clone()),
            Request::List(dir.clone()),
            Request::CreateDir(beneath(directory, "d/made"), true),
            Request::Rename(file.clone(), beneath(directory, "d/g")),
            Request::Rename(beneath(directory, "d/g"), file.clone()),
            Request::Remove(beneath(directory, "d/made"), true, true),
            Request::Remove(beneath(directory, "d/new"), true, true),
            Request::Glob(dir.clone(), "**".into(), true, 10),
            grep,
            Request::TarOut(dir.clone()),
        ]
    }

    /// Swaps `d` for a link to `outside` and back until it is over.
    fn swap(directory: &Path, outside: &Path, over: &AtomicBool) {
        let (d, link) = (directory.join("d"), directory.join("link"));
        symlink(outside, &link).unwrap();
        let exchange = rustix::fs::RenameFlags::EXCHANGE;
        while !over.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(rustix::fs::CWD, &d, rustix::fs::CWD, &link, exchange).unwrap();
        }
    }

    #[test]
    fn f1_no_call_follows_a_link_that_is_swapped_in_while_it_runs() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/f"), "mine").unwrap();
        std::fs::write(outside.path().join("f"), "canary").unwrap();
        let over = AtomicBool::new(false);
        let mut succeeded = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| swap(dir.path(), outside.path(), &over));
            let mut requests =
                (0..).flat_map(|round| every_call(dir.path()).into_iter().map(move |call| (round, call)));
            // On a busy machine the real directory may be away for most of the time: then it takes
            // more rounds.
            while let Some((round, request)) = requests.next()
                && (round < 300 || succeeded <= 100)
            {
                let mut io = FakeIo::receiving(["mine"]);
                let reply = serve(request, &mut io);
                succeeded += u32::from(reply.is_ok());
                let sent = String::from_utf8_lossy(&io.sent.concat()).into_owned();
                assert!(!sent.contains("canary"), "{reply:?}");
                if let Ok(Reply::Grep(found)) = reply {
                    assert!(found.matches.is_empty());
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        let names: Vec<_> =
            std::fs::read_dir(outside.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["f"]);
        assert_eq!(std::fs::read(outside.path().join("f")).unwrap(), b"canary");
    }

    /// Does the work as a user who is not root, on a thread for it.
    fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        let drop_root = || {
            let nobody = rustix::fs::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        };
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                if rustix::process::geteuid().is_root() {
                    drop_root();
                }
                work()
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn what_the_user_may_not_do_is_permission() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let set =
            |name: &str, mode| std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).unwrap();
        std::fs::create_dir_all(path("closed/inner")).unwrap();
        std::fs::write(path("closed/open-file"), "x").unwrap();
        std::fs::write(path("secret"), "x").unwrap();
        for (name, mode) in [("closed/open-file", 0o666), ("closed", 0o555), ("secret", 0), ("", 0o777)] {
            set(name, mode);
        }
        let refused = [
            Request::Read(at(path("secret")), 0, None),
            Request::Write(at(path("secret")), REPLACE),
            Request::Write(at(path("closed/open-file")), REPLACE),
            Request::Write(at(path("closed/new")), REPLACE),
            Request::CreateDir(at(path("closed/new")), true),
            Request::Remove(at(path("closed")), true, true),
            Request::Rename(at(path("closed/open-file")), at(path("mine"))),
            Request::TarOut(at(dir.path())),
        ];
        let kinds = as_nobody(|| {
            let answer =
                |request| serve(request, &mut FakeIo::receiving(["y"])).map_err(|failure| failure.kind);
            let append = Request::Write(at(path("closed/open-file")), WriteParameters { mode: 1, ..REPLACE });
            assert_eq!(answer(append), Ok(Reply::Size(2)));
            let everything = Request::Glob(at(dir.path()), "**".into(), false, 10);
            assert!(matches!(answer(everything), Ok(Reply::Glob(found)) if found.paths.len() == 2));
            refused.map(|request| answer(request).unwrap_err())
        });
        assert!(kinds.iter().all(|kind| kind == "permission"), "{kinds:?}");
        assert!(path("closed/inner").exists());
        set("closed", 0o755);
        set("secret", 0o600);
    }
}
