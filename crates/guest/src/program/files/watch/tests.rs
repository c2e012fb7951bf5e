//! Watches of real directories, by steps: each is done when the watch waits and the kernel has
//! nothing to say.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use tempfile::TempDir;

use super::super::failure::FileErrorKind;
use super::super::fake_io::{FakeIo, at, beneath};
use super::watch;
use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::{Event, Location, Reply, WatchRecord, decode};

struct Scene {
    directory: TempDir,
    io: FakeIo,
}

impl Scene {
    /// A directory with these files (and directories, with a slash at the end).
    fn new(paths: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for path in paths {
            let whole = directory.path().join(path);
            std::fs::create_dir_all(if path.ends_with('/') { &whole } else { whole.parent().unwrap() })
                .unwrap();
            if !path.ends_with('/') {
                std::fs::write(whole, "x").unwrap();
            }
        }
        Self { directory, io: FakeIo::default() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Adds the next step, in the directory.
    fn then(mut self, step: impl FnOnce(&Path) + 'static) -> Self {
        let directory = self.path().to_owned();
        self.io.steps.push_back(Box::new(move || step(&directory)));
        self
    }

    fn then_rename(self, from: &'static str, to: &'static str) -> Self {
        self.then(move |d| std::fs::rename(d.join(from), d.join(to)).unwrap())
    }

    /// Returns the watch's reports, one word and its paths a line, and whether it ended without
    /// being stopped.
    fn watch(mut self, location: &Location, recursive: bool) -> (Vec<String>, bool) {
        let end = watch(location, recursive, 1000, &mut self.io);
        assert_eq!(self.io.events, [Event::Opened(None)], "{end:?}");
        assert!(
            end.is_ok() || end.as_ref().is_err_and(|problem| problem.kind == FileErrorKind::Cancelled),
            "{end:?}"
        );
        (told(&self.io), end.is_ok())
    }

    /// Watches while `work` changes the directory all the time, and then step by step.
    fn while_this_goes_on(self, work: impl FnOnce(&Path) + Send + 'static) -> Vec<String> {
        let directory = self.path().to_owned();
        let work = Some(std::thread::spawn(move || work(&directory)));
        let location = beneath(self.path(), "");
        let mut io = Meanwhile { io: self.io, work };
        assert_eq!(watch(&location, true, 1000, &mut io).unwrap_err().kind, FileErrorKind::Cancelled);
        told(&io.io)
    }

    fn tells(self, recursive: bool) -> Vec<String> {
        let location = beneath(self.path(), "");
        self.watch(&location, recursive).0
    }
}

fn told(io: &FakeIo) -> Vec<String> {
    io.sent
        .iter()
        .flat_map(|piece| decode::<Vec<WatchRecord>>(piece).unwrap())
        .map(|record| line(&record))
        .collect()
}

fn line(record: &WatchRecord) -> String {
    let slash = if record.directory { "/" } else { "" };
    let path = String::from_utf8_lossy(&record.path);
    let kind = format!("{:?}", record.kind).to_lowercase();
    match &record.from {
        Some(from) => format!("{kind} {} {path}{slash}", String::from_utf8_lossy(from)),
        None => format!("{kind} {path}{slash}"),
    }
}

fn write(path: PathBuf) {
    std::fs::write(path, "y").unwrap();
}

#[test]
fn files_are_created_modified_renamed_and_removed() {
    let scene = Scene::new(&["old"])
        .then(|d| write(d.join("new")))
        .then(|d| std::fs::write(d.join("old"), "longer").unwrap())
        .then_rename("old", "older")
        .then(|d| std::fs::remove_file(d.join("older")).unwrap());
    let expected = ["created new", "modified new", "modified old", "renamed old older", "removed older"];
    assert_eq!(scene.tells(false), expected);
}

#[test]
fn a_file_moved_out_is_removed_and_one_moved_in_is_created() {
    let outside = tempfile::tempdir().unwrap();
    let (away, back) = (outside.path().join("f"), outside.path().join("f"));
    let scene = Scene::new(&["f"])
        .then(move |d| std::fs::rename(d.join("f"), away).unwrap())
        .then(move |d| std::fs::rename(back, d.join("g")).unwrap());
    assert_eq!(scene.tells(true), ["removed f", "created g"]);
}

#[test]
fn without_recursion_only_the_names_in_the_directory_itself_count() {
    let scene = Scene::new(&["d/"])
        .then(|d| write(d.join("d/f")))
        .then(|d| std::fs::create_dir(d.join("e")).unwrap());
    assert_eq!(scene.tells(false), ["created e/"]);
}

#[test]
fn directories_made_later_are_watched_with_all_that_was_made_in_them_meanwhile() {
    let scene = Scene::new(&[])
        .then(|d| std::fs::create_dir_all(d.join("a/b/c")).unwrap())
        .then(|d| write(d.join("a/b/c/f")))
        .then(|d| {
            std::fs::create_dir(d.join("n")).unwrap();
            write(d.join("n/early"));
        });
    let expected = [
        "created a/",
        "created a/b/",
        "created a/b/c/",
        "created a/b/c/f",
        "modified a/b/c/f",
        "created n/",
        "created n/early",
    ];
    assert_eq!(scene.tells(true), expected);
}

#[test]
fn a_directory_that_is_renamed_takes_its_watches_along() {
    let scene = Scene::new(&["a/b/f", "c/"])
        .then_rename("a", "c/d")
        .then(|d| write(d.join("c/d/b/new")))
        .then_rename("c/d/b/f", "g");
    let expected = ["renamed a c/d/", "created c/d/b/new", "modified c/d/b/new", "renamed c/d/b/f g"];
    assert_eq!(scene.tells(true), expected);
}

#[test]
fn two_directories_that_exchange_their_names_keep_their_watches() {
    let scene = Scene::new(&["a/x/", "b/"])
        .then(|d| {
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(rustix::fs::CWD, d.join("a"), rustix::fs::CWD, d.join("b"), exchange)
                .unwrap();
        })
        .then(|d| std::fs::create_dir(d.join("b/x/new")).unwrap())
        .then(|d| std::fs::create_dir(d.join("a/new")).unwrap());
    assert_eq!(scene.tells(true), ["renamed a b/", "renamed b a/", "created b/x/new/", "created a/new/"]);
}

#[test]
fn f1_what_is_done_in_a_directory_that_was_moved_out_is_not_told() {
    let outside = tempfile::tempdir().unwrap();
    let (away, there, back) =
        (outside.path().join("d"), outside.path().join("d/secret"), outside.path().join("d"));
    let scene = Scene::new(&["d/sub/"])
        .then(move |d| std::fs::rename(d.join("d"), away).unwrap())
        .then(move |_| write(there))
        .then(move |d| std::fs::rename(back, d.join("e")).unwrap())
        .then(|d| write(d.join("e/sub/f")));
    let told = scene.tells(true);
    assert_eq!(told[..2], ["removed d/", "created e/"]);
    let mut inside = told[2..4].to_vec();
    inside.sort();
    assert_eq!(inside, ["created e/secret", "created e/sub/"]);
    assert_eq!(told[4..], ["created e/sub/f", "modified e/sub/f"]);
}

#[test]
fn a_directory_left_and_made_anew_within_one_moment_is_the_new_one() {
    let outside = tempfile::tempdir().unwrap();
    let (away, there) = (outside.path().join("d"), outside.path().join("d/secret"));
    let scene = Scene::new(&["d/"])
        .then(move |d| {
            std::fs::rename(d.join("d"), &away).unwrap();
            write(there);
            std::fs::create_dir(d.join("d")).unwrap();
        })
        .then(|d| write(d.join("d/f")));
    assert_eq!(scene.tells(true), ["removed d/", "created d/", "created d/f", "modified d/f"]);
}

#[test]
fn directories_that_are_renamed_while_they_are_made_are_watched_under_their_last_names() {
    let scene = Scene::new(&[])
        .then(|d| {
            for round in 0..20 {
                std::fs::create_dir_all(d.join("a/b/c")).unwrap();
                std::fs::rename(d.join("a"), d.join(format!("r{round}"))).unwrap();
            }
        })
        .then(|d| (0..20).for_each(|round| write(d.join(format!("r{round}/b/c/f")))));
    let told = scene.tells(true);
    for round in 0..20 {
        assert!(told.contains(&format!("created r{round}/b/c/f")), "{round}: {told:?}");
    }
}

#[test]
fn the_end_of_the_place_is_the_last_event() {
    type Step = fn(&Path);
    let ends: [Step; 3] = [
        |d| std::fs::remove_dir_all(d.join("p")).unwrap(),
        |d| std::fs::rename(d.join("p"), d.join("q")).unwrap(),
        |d| {
            std::fs::rename(d.join("p"), d.join("q")).unwrap();
            std::fs::create_dir(d.join("p")).unwrap();
        },
    ];
    for end in ends {
        let scene = Scene::new(&["p/f"]).then(end);
        let location = beneath(scene.path(), "p");
        assert_eq!(scene.watch(&location, true), (vec!["removed /".to_owned()], true));
    }
}

#[test]
fn f1_a_place_whose_parent_is_moved_away_or_replaced_by_a_link_is_gone() {
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().to_owned();
    let scene = Scene::new(&["a/p/f"]).then(move |d| {
        std::fs::rename(d.join("a"), elsewhere.join("a")).unwrap();
        symlink(elsewhere.join("a"), d.join("a")).unwrap();
        write(d.join("a/p/secret"));
    });
    let location = beneath(scene.path(), "a/p");
    assert_eq!(scene.watch(&location, true), (vec!["removed /".to_owned()], true));
}

#[test]
fn f1_links_lead_to_the_place_within_its_directory_and_nowhere_below_it() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("deep")).unwrap();
    let (elsewhere, deep) = (outside.path().to_owned(), outside.path().join("deep/secret"));
    let scene = Scene::new(&["p/"]);
    symlink("p", scene.path().join("in")).unwrap();
    symlink(&elsewhere, scene.path().join("out")).unwrap();
    symlink(&elsewhere, scene.path().join("p/below")).unwrap();
    let out = beneath(scene.path(), "out");
    assert_eq!(watch(&out, true, 10, &mut FakeIo::default()).unwrap_err().kind, FileErrorKind::Permission);
    let location = beneath(scene.path(), "in");
    let scene = scene.then(move |_| write(deep)).then(|d| write(d.join("p/f")));
    assert_eq!(scene.watch(&location, true).0, ["created f", "modified f"]);
}

#[test]
fn f1_a_directory_that_is_swapped_for_a_link_all_the_time_tells_nothing_of_where_that_leads() {
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().to_owned();
    let told = Scene::new(&[]).while_this_goes_on(move |d| {
        for _ in 0..300 {
            std::fs::create_dir_all(d.join("d/sub")).unwrap();
            std::fs::rename(d.join("d"), d.join("e")).unwrap();
            symlink(&elsewhere, d.join("d")).unwrap();
            write(d.join("d/secret"));
            std::fs::remove_file(elsewhere.join("secret")).unwrap();
            std::fs::remove_file(d.join("d")).unwrap();
            std::fs::remove_dir_all(d.join("e")).unwrap();
        }
    });
    assert!(told.len() > 100 && !told.iter().any(|line| line.contains("secret")), "{} lines", told.len());
}

/// Waits for the kernel while something else is at work.
struct Meanwhile {
    io: FakeIo,
    work: Option<std::thread::JoinHandle<()>>,
}

impl CallIo for Meanwhile {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        self.io.send(bytes)
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, Stopped> {
        self.io.receive()
    }

    fn event(&mut self, event: Event) -> Result<(), Stopped> {
        self.io.event(event)
    }

    fn pass(&mut self, file: BorrowedFd<'_>, event: Event, answer: Option<Reply>) -> Result<bool, Stopped> {
        self.io.pass(file, event, answer)
    }

    fn wait(&mut self, fd: BorrowedFd<'_>, until: Option<Instant>) -> Result<bool, Stopped> {
        if self.work.as_ref().is_some_and(|work| !work.is_finished()) {
            return self.io.wait(fd, Some(Instant::now() + Duration::from_millis(20)));
        }
        if let Some(work) = self.work.take() {
            work.join().unwrap();
        }
        self.io.wait(fd, until)
    }

    fn stopped(&self) -> bool {
        self.io.stopped()
    }
}

#[test]
fn a_file_is_watched_by_its_name_and_survives_being_replaced() {
    let scene = Scene::new(&["f", "other"])
        .then(|d| write(d.join("other")))
        .then(|d| std::fs::write(d.join("f"), "longer").unwrap())
        .then_rename("other", "f")
        .then(|d| {
            std::fs::rename(d.join("f"), d.join("f~")).unwrap();
            write(d.join("f"));
        })
        .then(|d| std::fs::remove_file(d.join("f")).unwrap());
    let location = beneath(scene.path(), "f");
    let expected = ["modified ", "modified ", "removed ", "created ", "modified ", "removed "];
    assert_eq!(scene.watch(&location, true), (expected.map(str::to_owned).to_vec(), true));
}

#[test]
fn what_is_missing_or_has_too_many_directories_is_refused() {
    let scene = Scene::new(&["a/b/", "c/"]);
    let refused = |path: &str, most| {
        watch(&beneath(scene.path(), path), true, most, &mut FakeIo::default()).unwrap_err()
    };
    assert_eq!(refused("gone", 10).kind, FileErrorKind::NotFound);
    let problem = refused("", 3);
    assert!(
        problem.kind == FileErrorKind::Quota && problem.reason.contains("more than 3 directories"),
        "{problem:?}"
    );
    assert_eq!(refused("", 4).kind, FileErrorKind::Cancelled);
}

#[test]
fn one_directory_too_many_ends_the_watch_with_a_reason() {
    let mut scene = Scene::new(&["a/"]).then(|d| std::fs::create_dir(d.join("b")).unwrap());
    let problem = watch(&at(scene.directory.path()), true, 2, &mut scene.io).unwrap_err();
    assert_eq!(problem.kind, FileErrorKind::Quota);
}

#[test]
fn f6_what_is_lost_is_told_and_the_watch_goes_on_in_directories_of_which_it_never_heard() {
    let most: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let scene = Scene::new(&["d/"])
        .then(move |d| {
            for number in 0..=most / 2 {
                write(d.join(format!("d/{number}")));
                std::fs::remove_file(d.join(format!("d/{number}"))).unwrap();
            }
            std::fs::create_dir_all(d.join("late/later")).unwrap();
        })
        .then(|d| write(d.join("late/later/f")));
    let told = scene.tells(true);
    let overflows: Vec<usize> = (0..told.len()).filter(|index| told[*index] == "overflow /").collect();
    assert_eq!(overflows.len(), 1);
    assert_eq!(told[overflows[0] + 1..], ["created late/later/f", "modified late/later/f"]);
}

#[test]
fn f3_names_are_told_as_they_are() {
    let scene = Scene::new(&[]).then(|d| {
        for name in [&b"\xff\xfe"[..], b"new\nline", "é".as_bytes(), &[b'n'; 255]] {
            std::fs::create_dir(d.join(std::ffi::OsStr::from_bytes(name))).unwrap();
        }
    });
    let mut io = scene.io;
    watch(&at(scene.directory.path()), true, 10, &mut io).unwrap_err();
    let names: Vec<Vec<u8>> = io
        .sent
        .iter()
        .flat_map(|piece| decode::<Vec<WatchRecord>>(piece).unwrap())
        .map(|record| record.path)
        .collect();
    assert_eq!(names, [b"\xff\xfe".to_vec(), b"new\nline".to_vec(), "é".into(), vec![b'n'; 255]]);
}

#[test]
fn many_small_writes_in_a_row_are_one_modification() {
    let scene = Scene::new(&["f"]).then(|d| {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).open(d.join("f")).unwrap();
        (0..1000).for_each(|_| file.write_all(b"x").unwrap());
    });
    assert_eq!(scene.tells(true), ["modified f"]);
}

#[test]
fn f6_a_tree_that_is_churned_is_watched_to_an_end_and_its_last_state_is_known() {
    let scene = Scene::new(&[]).then(|d| write(d.join("last/one/f")));
    let told = scene.while_this_goes_on(|d| {
        for round in 0..400 {
            std::fs::create_dir_all(d.join("t/a/b/c")).unwrap();
            write(d.join("t/a/b/c/f"));
            std::fs::rename(d.join("t/a"), d.join("u")).unwrap();
            std::fs::rename(d.join("u/b"), d.join(format!("t/b{}", round % 3))).unwrap();
            std::fs::remove_dir_all(d.join("u")).unwrap();
            std::fs::remove_dir_all(d.join("t")).unwrap();
        }
        std::fs::create_dir_all(d.join("last/one")).unwrap();
    });
    assert_eq!(told[told.len() - 2..], ["created last/one/f", "modified last/one/f"]);
    assert!(
        told.len() > 400 && told.iter().any(|line| line.starts_with("created t/b")),
        "{} lines",
        told.len()
    );
}
