//! Backups and restores of a state folder; and files that are not backups, or hostile ones.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tar::{Builder, EntryType, Header};

use crate::machine::{Machine, Ran};
use crate::server::{Connection, Server};

/// Makes every kind of file that a sandbox can have. Runs inside.
const FILL: &str = r#"
    cd /workspace && mkdir -p deep/er shut && echo hello > deep/er/file && ln deep/er/file other && ln -s deep/er/file link
    mkfifo pipe && printf 'x' > "odd $(printf '\001') name" && touch -d '2001-02-03 04:05:06.789' old
    chmod 4711 old && echo kept > shut/in && chmod 0 shut && truncate -s 5M sparse && echo end >> sparse
    setfattr -n user.note -v value deep 2>/dev/null || python3 -c "import os; os.setxattr('deep', 'user.note', b'value')"
    echo elsewhere > ~/file"#;
const LOOK: &str = r#"
    cd /workspace; find . -printf '%p %y %m %u %g %n %s %T+ %l\n' 2>/dev/null | sort; stat -c %i deep/er/file other | uniq | wc -l
    ls -d /srv 2>/dev/null; cat deep/er/file link ~/file; python3 -c "import os; print(os.getxattr('deep', 'user.note'))"; tail -c 4 sparse; echo "$WHO""#;

fn archive(machine: &Machine) -> String {
    machine.path_text("state.tar.zst")
}

/// Runs `eyot` on the same machine with another state folder.
fn elsewhere(machine: &Machine, state: &str, arguments: &[&str]) -> Ran {
    machine.run(&[&["--state", &machine.path_text(state)], arguments].concat())
}

fn look(ran: impl Fn(&[&str]) -> Ran) -> String {
    let looked = ran(&["exec", "box", "--", "sh", "-c", LOOK]);
    assert_eq!(looked.code, Some(0), "{looked:?}");
    looked.text()
}

#[test]
fn sandboxes_pools_keys_and_events_come_back_elsewhere_as_they_were() {
    let machine = Machine::new();
    machine.run(&["create", "--name", "box", "--env", "WHO=me"]).success();
    machine.run(&["exec", "box", "--", "sh", "-c", FILL]).success();
    if rustix::process::geteuid().is_root() {
        // Something of the image that is not there any more.
        machine.run(&["exec", "box", "--user", "root", "--", "rmdir", "/srv"]).success();
    }
    machine.run(&["create", "--name", "kept", "--workspace", "mine"]).success();
    machine.run(&["write", "kept", "file", "--content", "of the workspace"]).success();
    machine.run(&["pool", "create", "team", "builder"]).success();
    machine.run(&["write", "team/builder", "of-pool", "--content", "x"]).success();
    machine.run(&["keys", "create", "ours", "-q"]).success();
    let before = look(|arguments| machine.run(arguments));
    let keys = machine.run(&["keys", "ls"]).success();
    let told = machine.run(&["--json", "backup", "--sleep", &archive(&machine)]).json();
    assert_eq!(told["sandboxes"], 3, "{told}");
    assert_eq!(Path::new(&archive(&machine)).metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let restored = elsewhere(&machine, "other", &["--json", "restore", &archive(&machine)]);
    assert!(restored.stderr.contains("never use both folders"), "{restored:?}");
    assert_eq!(restored.json()["sandboxes"], 3, "{restored:?}");
    let there = |arguments: &[&str]| elsewhere(&machine, "other", arguments);
    there(&["events", "--verify"]).success();
    assert!(there(&["events"]).text().contains("builder"));
    assert!(there(&["ls"]).text().contains("sleeping"));
    assert_eq!(look(there), before);
    assert_eq!(there(&["keys", "ls"]).success(), keys);
    assert_eq!(there(&["read", "kept", "file"]).success(), "of the workspace");
    assert_eq!(there(&["read", "team/builder", "of-pool"]).success(), "x");
    assert!(!machine.path("other.restoring").exists());
    there(&["-q", "rm", "--all"]).success();
    // The one that it was made of is as it was.
    assert_eq!(look(|arguments| machine.run(arguments)), before);
}

#[test]
fn a_key_of_a_backup_opens_the_server_of_the_restored_folder() {
    let machine = Machine::new();
    let key = machine.run(&["keys", "create", "theirs", "-q"]).text().trim().to_owned();
    machine.run(&["backup", "-q", &archive(&machine)]).success();
    elsewhere(&machine, "other", &["restore", "-q", &archive(&machine)]).success();
    assert!(!contains_text(&machine.path("other"), &key));
    let server = Server::start(&machine, &["--state", &machine.path_text("other")], &[], &[]);
    let status = |key: &str| {
        let mut connection = Connection::open(&server.address, key);
        connection.send("GET", "/v1/sandboxes", "");
        connection.answer().0
    };
    // The server's own helper has made its key in the first folder, after the backup.
    assert_eq!((status(&key), status(&server.key)), (200, 401));
}

fn contains_text(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().flatten().any(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => contains_text(&entry.path(), text),
        kind if kind.is_file() => {
            let bytes = std::fs::read(entry.path()).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        }
        _ => false,
    })
}

#[test]
fn sandboxes_that_run_are_named_and_nothing_is_written() {
    let machine = Machine::with_sandbox();
    let refused = machine.run(&["backup", &archive(&machine)]);
    assert!(refused.failure(125).contains("run: box\n") && refused.stderr.contains("--sleep"), "{refused:?}");
    assert!(!Path::new(&archive(&machine)).exists());
    machine.run(&["sleep", "box"]).success();
    machine.run(&["backup", "-q", &archive(&machine)]).success();
    assert!(machine.run(&["backup", &archive(&machine)]).failure(125).contains("there is a file already"));
}

#[test]
fn by_pipes_and_into_an_empty_folder_and_never_over_one_that_is_used() {
    let machine = Machine::with_sandbox();
    let made = machine.run(&["backup", "-q", "--sleep", "-"]);
    assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""));
    machine.write("state.tar.zst", &made.stdout);
    std::fs::create_dir(machine.path("empty")).unwrap();
    let into = ["--state", &machine.path_text("empty"), "restore", "-q", "-"];
    machine.run_with_input(&into, &made.stdout).success();
    assert_eq!(elsewhere(&machine, "empty", &["exec", "box", "--", "echo", "awake"]).success(), "awake\n");
    let again = elsewhere(&machine, "empty", &["restore", &archive(&machine)]);
    assert!(again.failure(125).contains("something is there already"), "{again:?}");
    elsewhere(&machine, "empty", &["-q", "rm", "--all"]).success();
}

/// An entry: its path, what it is, and the target of a link.
type Forged<'a> = (&'a str, EntryType, &'a str);

/// Makes a backup with these entries behind a good beginning.
fn forged(machine: &Machine, manifest: &[u8], fill: impl FnOnce(&mut Builder<Vec<u8>>)) -> String {
    let mut builder = Builder::new(Vec::new());
    put(&mut builder, "eyot-backup.json", EntryType::Regular, "", manifest);
    fill(&mut builder);
    let bytes = zstd::encode_all(builder.into_inner().unwrap().as_slice(), 0).unwrap();
    machine.write("forged.tar.zst", bytes)
}

fn manifest(machine: &Machine) -> Vec<u8> {
    let as_root = rustix::process::geteuid().is_root();
    let state = machine.state();
    let manifest =
        json!({ "format": 1, "eyot": "0.1.0", "state": state, "as_root": as_root, "sandboxes": [] });
    serde_json::to_vec(&manifest).unwrap()
}

fn put(builder: &mut Builder<Vec<u8>>, path: &str, kind: EntryType, target: &str, content: &[u8]) {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    let fields = header.as_old_mut();
    fields.name[..path.len()].copy_from_slice(path.as_bytes());
    fields.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_mode(0o755);
    header.set_uid(rustix::process::geteuid().as_raw().into());
    header.set_gid(rustix::process::getegid().as_raw().into());
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

#[test]
fn what_leads_out_of_the_folder_or_is_no_part_of_one_is_refused_and_leaves_nothing() {
    use EntryType::{Block, Char, Directory, Link, Regular, Symlink};
    let machine = Machine::new();
    let outside = machine.write("outside/victim", "untouched");
    let folder = machine.path_text("outside");
    let (sandbox, record) = ("sandboxes/sb_1", "sandboxes/sb_1/sandbox.json.new");
    let entries: [(&str, &[Forged<'_>]); 17] = [
        ("leads elsewhere", &[("../escaped", Regular, "")]),
        ("leads elsewhere", &[("/tmp/escaped", Regular, "")]),
        ("leads elsewhere", &[("events/../../escaped", Regular, "")]),
        ("leads elsewhere", &[("events//x", Regular, "")]),
        ("no part of a state folder", &[("else", Regular, "")]),
        (
            "not a directory",
            &[
                ("layers", Directory, ""),
                ("layers/x", Directory, ""),
                ("layers/x/l", Symlink, &folder),
                ("layers/x/l/escaped", Regular, ""),
            ],
        ),
        ("has something twice", &[("layers", Directory, ""), ("layers", Directory, "")]),
        // What is opened or written by its name later must be what it seems.
        ("only be a file", &[("layers", Symlink, &folder)]),
        ("only be a file", &[("eyot.db", Symlink, &outside)]),
        ("only be a file", &[("eyot.db", EntryType::Fifo, "")]),
        ("only be a file", &[("sandboxes", Directory, ""), (sandbox, Symlink, &folder)]),
        (
            "only be a file",
            &[("sandboxes", Directory, ""), (sandbox, Directory, ""), (record, Symlink, &outside)],
        ),
        ("only be a file", &[("names", Directory, ""), ("names/a", Symlink, &outside)]),
        ("leads elsewhere", &[("layers", Directory, ""), ("layers/h", Link, &outside)]),
        (
            "hard link",
            &[
                ("layers", Directory, ""),
                ("layers/x", Directory, ""),
                ("layers/x/l", Symlink, &outside),
                ("layers/h", Link, "layers/x/l"),
            ],
        ),
        ("neither file", &[("layers", Directory, ""), ("layers/b", Block, "")]),
        ("no such file", &[("layers/lost", Regular, "")]),
    ];
    assert!(entries.iter().all(|(_, entries)| entries.iter().all(|(_, kind, _)| *kind != Char)));
    for (reason, entries) in entries {
        let file = forged(&machine, &manifest(&machine), |builder| {
            for (path, kind, target) in entries {
                put(builder, path, *kind, target, b"");
            }
        });
        let refused = machine.run(&["restore", &file]);
        assert!(refused.failure(125).contains(reason), "{reason}: {refused:?}");
        assert!(!machine.state().exists() && !machine.path("state.restoring").exists(), "{reason}");
    }
    assert_eq!(std::fs::read_dir(machine.path("outside")).unwrap().count(), 1);
    assert_eq!(
        (
            std::fs::read_to_string(&outside).unwrap().as_str(),
            Path::new(&outside).metadata().unwrap().nlink()
        ),
        ("untouched", 1)
    );
    assert!(!machine.path("escaped").exists());
}

#[test]
fn what_is_no_backup_of_another_form_or_cut_short_is_refused_and_leaves_nothing() {
    let machine = Machine::with_sandbox();
    machine.run(&["backup", "-q", "--sleep", &archive(&machine)]).success();
    let whole = std::fs::read(archive(&machine)).unwrap();
    let newer = json!({ "format": 2, "eyot": "9.9.9" }).to_string();
    let files = [
        ("is no backup", machine.write("f0", [7_u8; 5000])),
        ("is no backup", machine.write("f1", zstd::encode_all(&[0_u8; 1024][..], 0).unwrap())),
        ("eyot 9.9.9 made it", forged(&machine, newer.as_bytes(), |_| {})),
        ("ends too early", machine.write("f2", &whole[..whole.len() / 2])),
        ("ends too early", machine.write("f3", &whole[..whole.len() - 1])),
    ];
    for (reason, file) in files {
        let refused = elsewhere(&machine, "other", &["restore", &file]);
        assert!(refused.failure(125).contains(reason), "{reason}: {refused:?}");
        assert!(!machine.path("other").exists() && !machine.path("other.restoring").exists(), "{reason}");
    }
    let mut flipped = whole.clone();
    let place = flipped.len() - 3;
    flipped[place] ^= 1;
    elsewhere(&machine, "other", &["restore", &machine.write("f4", &flipped)]).failure(125);
    elsewhere(&machine, "other", &["restore", &machine.write("f5", "nothing")]).failure(125);
    assert!(!machine.path("other").exists() && !machine.path("other.restoring").exists());
}

#[test]
fn a_restore_that_is_interrupted_leaves_nothing_and_a_killed_ones_rest_is_removed_by_the_next() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "sh", "-c", "head -c 4000000 /dev/urandom > large"]).success();
    machine.run(&["backup", "-q", "--sleep", &archive(&machine)]).success();
    let whole = std::fs::read(archive(&machine)).unwrap();
    for (signal, code, leaves) in [(Signal::TERM, Some(143), false), (Signal::KILL, None, true)] {
        let into = ["--state", &machine.path_text("other"), "restore", "-"];
        let mut command = machine.command(&into);
        let mut child = machine.spawn(command.stdin(std::process::Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        // All but the end: it waits for that. It has read so much when the pipe has taken it all.
        let (begin, _) = whole.split_at(whole.len() - 100_000);
        std::io::Write::write_all(&mut stdin, begin).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        drop(stdin);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(machine.path("other.restoring").exists(), leaves, "{said}");
        assert!(!machine.path("other").exists());
    }
    elsewhere(&machine, "other", &["restore", "-q", &archive(&machine)]).success();
    assert!(!machine.path("other.restoring").exists());
    assert_eq!(
        elsewhere(&machine, "other", &["exec", "box", "--", "stat", "-c", "%s", "large"]).success(),
        "4000000\n"
    );
    elsewhere(&machine, "other", &["-q", "rm", "--all"]).success();
}

/// Makes folders in each other, from where it is called, with a file at the end. A second call goes
/// there again.
const DEEP: &str = "
import os, sys
os.chdir('/workspace')
for level in range(1500):
    if sys.argv[1] == 'make': os.mkdir('d')
    os.chdir('d')
if sys.argv[1] == 'make': open('end', 'w').write('reached')
print(open('end').read())";

#[test]
fn a_tree_of_1500_folders_in_each_other_comes_back_with_few_descriptors() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "python3", "-c", DEEP, "make"]).success();
    machine.run(&["sleep", "box"]).success();
    let with_few = |arguments: &[&str]| {
        let eyot = machine.command(arguments);
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", "ulimit -n 128 && exec \"$@\"", "sh"])
            .arg(eyot.get_program())
            .args(eyot.get_args());
        command.env_clear().envs(eyot.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Ran::from(command.output().unwrap()).success();
    };
    with_few(&["backup", "-q", &archive(&machine)]);
    with_few(&["--state", &machine.path_text("other"), "restore", "-q", &archive(&machine)]);
    let read = elsewhere(&machine, "other", &["exec", "box", "--", "python3", "-c", DEEP, "look"]);
    assert_eq!(read.success(), "reached\n");
    elsewhere(&machine, "other", &["-q", "rm", "--all"]).success();
}

#[test]
fn what_a_killed_backup_leaves_is_removed_by_the_next_one_and_what_is_in_use_stays() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "sh", "-c", "head -c 40M /dev/urandom > big"]).success();
    machine.run(&["sleep", "box"]).success();
    let left = || {
        let of = |folder: &Path| std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
        let all: Vec<_> = of(&machine.path("")).chain(of(&machine.state())).collect();
        all.into_iter()
            .map(|name| name.into_string().unwrap())
            .filter(|name| name.contains("backup-"))
            .count()
    };
    let mut command = machine.command(&["backup", "-q", &archive(&machine)]);
    let mut child = machine.spawn(&mut command);
    while left() < 2 {
        assert_eq!(child.try_wait().unwrap(), None, "it was done too soon");
        std::thread::yield_now();
    }
    // While it runs, another one takes nothing from it.
    assert_ne!(machine.run(&["backup", "-q", &machine.path_text("second")]).code, None);
    let still_runs = child.try_wait().unwrap().is_none();
    assert!(!still_runs || left() >= 2);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!(!still_runs || left() >= 2);
    machine.run(&["backup", "-q", &machine.path_text("third")]).success();
    assert_eq!(left(), 0);
}
