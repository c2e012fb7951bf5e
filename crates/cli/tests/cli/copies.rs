//! Copies on write of a folder of the host, as somebody uses them: the loop of docs/branching.md, with a real repository.

use std::path::Path;
use std::process::Command;

use super::machine::{Machine, Ran};

/// Runs a program on the host, which must succeed.
#[track_caller]
fn on_host(folder: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-ec", line]).current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{line}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

const COMMIT: &str = "git -c user.name=t -c user.email=t@localhost commit -qam";

/// A machine with a repository whose test fails.
fn machine() -> (Machine, std::path::PathBuf) {
    let machine = Machine::new();
    machine.write("repo/sum.sh", "expr $1 - $2\n");
    machine.write("repo/test.sh", "test \"$(sh sum.sh 4 5)\" = 9 && test \"$(sh sum.sh 0 7)\" = 7\n");
    let repo = machine.path("repo");
    on_host(&repo, &format!("git init -q && git add . && {COMMIT} first"));
    (machine, repo)
}

fn patch_and_test(machine: &Machine, name: &str, patch: &str) -> Ran {
    let line = format!("{patch} && sh test.sh && {COMMIT} {name}");
    machine.run(&["exec", name, "--cwd", "/workspace", "--", "sh", "-ec", &line])
}

#[test]
fn three_patches_of_a_repository_are_tried_at_once_and_the_best_one_is_applied() {
    let (machine, repo) = machine();
    let mount = format!("{}:/workspace:cow", repo.display());
    machine.run(&["--quiet", "create", "dev", "--mount", &mount]).success();
    machine.run(&["exec", "dev", "--", "git", "-C", "/workspace", "status", "--short"]).success();
    machine.run(&["snapshot", "dev", "--name", "start"]).success();
    assert_eq!(machine.run(&["fork", "start", "-n", "3"]).success(), "dev-1\ndev-2\ndev-3\n");
    let patches = [
        ("dev-1", "echo 'expr $1 \\* $2' > sum.sh"),
        ("dev-2", "echo 'expr $1 + $2' > sum.sh"),
        ("dev-3", "echo 'echo $(($1 + $2))' > sum.sh"),
    ];
    let codes = std::thread::scope(|scope| {
        let tried = patches.map(|(name, patch)| {
            let machine = &machine;
            scope.spawn(move || patch_and_test(machine, name, patch).code)
        });
        tried.map(|tried| tried.join().unwrap())
    });
    assert_eq!(codes, [Some(1), Some(0), Some(0)]);
    let texts = machine.run(&["diff", "start", "dev-2", "--path", "/workspace/sum.sh", "--text"]).success();
    assert!(texts.contains("-expr $1 - $2\n+expr $1 + $2\n"), "{texts}");
    assert_eq!(on_host(&repo, "cat sum.sh"), "expr $1 - $2\n", "the folder was written to");

    let foreseen = machine.run(&["apply", "dev-2", "--dry-run", "--json"]).json();
    assert_eq!((&foreseen["applied"], &foreseen["conflicts"]), (&false.into(), &serde_json::json!([])));
    assert_eq!(on_host(&repo, "git log --format=%s"), "first\n");
    let applied = machine.run(&["apply", "dev-2"]).success();
    assert!(applied.contains("C /workspace/sum.sh\n"), "{applied}");
    // The repository is the owner's own, and whole.
    assert_eq!(
        on_host(&repo, "sh test.sh; git fsck; git log --format=%s; git status --short"),
        "dev-2\nfirst\n"
    );
    let again = machine.run(&["apply", "dev-2"]);
    assert!(again.code == Some(0) && again.stderr.contains("nothing to apply"), "{again:?}");

    let refused = machine.run(&["apply", "dev-3"]);
    let said = refused.failure(125);
    assert!(said.contains("/workspace/sum.sh") && said.contains("nothing was applied"), "{said}");
    assert_eq!(on_host(&repo, "cat sum.sh; git status --short"), "expr $1 + $2\n");
    let told = machine.run(&["apply", "dev-3", "--dry-run"]);
    assert!(
        told.code == Some(1) && told.text().contains("conflict /workspace/sum.sh: the host changed it"),
        "{told:?}"
    );

    // The host goes on by itself.
    std::fs::write(repo.join("sum.sh"), "expr $2 + $1\n").unwrap();
    machine.run(&["exec", "dev-2", "--", "sh", "-c", "echo '# more' >> /workspace/sum.sh"]).success();
    let refused = machine.run(&["apply", "dev-2", "/workspace"]);
    let said = refused.failure(125);
    assert!(said.contains("`/workspace/sum.sh` (the host changed it)"), "{said}");
    assert_eq!(on_host(&repo, "cat sum.sh"), "expr $2 + $1\n");
}

#[test]
fn a_copy_is_spelled_alike_by_both_options_and_shown_as_one() {
    let (machine, repo) = machine();
    let mount = format!("{}:/mnt/copy:cow", repo.display());
    machine.run(&["--quiet", "create", "one", "-v", &mount]).success();
    machine.run(&["--quiet", "create", "other", "--mount", &mount]).success();
    for name in ["one", "other"] {
        let shown = machine.run(&["inspect", name]).success();
        assert!(shown.contains("on /mnt/copy (a copy on write)"), "{shown}");
    }
    let refused = machine.run(&["apply", "one", "/mnt/other"]);
    let said = refused.failure(125);
    assert!(said.contains("/mnt/copy"), "{said}");
    machine.run(&["create", "plain"]).success();
    let refused = machine.run(&["apply", "plain"]);
    let said = refused.failure(125);
    assert!(said.contains("SRC:DST:cow"), "{said}");
}

#[test]
fn a_provider_without_copies_refuses_one_before_anything_is_made() {
    let (machine, repo) = machine();
    let mount = format!("{}:/mnt/copy:cow", repo.display());
    let refused = machine.run(&["--provider", "memory", "run", "--mount", &mount, "--", "true"]);
    let said = refused.failure(125);
    assert!(said.contains("mounts.cow"), "{said}");
}

#[test]
fn a_copy_comes_back_from_a_backup_and_can_be_applied_there() {
    let (machine, repo) = machine();
    let mount = format!("{}:/mnt/copy:cow", repo.display());
    let (archive, other) = (machine.path_text("state.tar.zst"), machine.path_text("other"));
    machine.run(&["--quiet", "create", "dev", "--mount", &mount]).success();
    machine.run(&["exec", "dev", "--", "sh", "-ec", "cd /mnt/copy; rm test.sh; ln -s sum.sh link"]).success();
    machine.run(&["snapshot", "dev", "--name", "kept"]).success();
    machine.run(&["exec", "dev", "--", "sh", "-ec", "cd /mnt/copy; echo '# more' >> sum.sh"]).success();
    machine.run(&["backup", "-q", "--sleep", &archive]).success();
    machine.run(&["--state", &other, "restore", "-q", &archive]).success();
    let there = |arguments: &[&str]| machine.run(&[&["--state", &other], arguments].concat());
    let shown = there(&["exec", "dev", "--", "sh", "-ec", "cd /mnt/copy; ls; cat link"]).success();
    assert_eq!(shown, "link\nsum.sh\nexpr $1 - $2\n# more\n");
    assert_eq!(
        there(&["apply", "dev"]).success(),
        "A /mnt/copy/link\nC /mnt/copy/sum.sh\nD /mnt/copy/test.sh\n"
    );
    assert_eq!(on_host(&repo, "ls; cat link"), "link\nsum.sh\nexpr $1 - $2\n# more\n");
    there(&["rm", "--all", "-q"]).success();
}

/// Lists the files of a folder with their content.
fn listing(folder: &Path) -> String {
    on_host(folder, "find . -type d -printf '%p %m\\n' -o -printf '%p %m ' -exec cat {} \\; | sort")
}

#[test]
fn an_apply_that_is_killed_leaves_the_folder_as_it_was_or_as_it_was_to_be() {
    let machine = Machine::new();
    let folder = machine.path("folder");
    let mount = format!("{}:/mnt/copy:cow", folder.display());
    let change =
        "cd /mnt/copy; for f in 1 2 3 4 5 6 7 8 9; do echo new > $f; done; rm -r d; mkdir e; echo e > e/f";
    for (round, delay_ms) in [30, 60, 90, 120, 150, 200].into_iter().enumerate() {
        std::fs::create_dir(&folder).unwrap();
        on_host(&folder, "mkdir d; for f in 1 2 3 4 5 6 7 8 9 d/a d/b; do echo old > $f; done");
        machine.run(&["--quiet", "create", "dev", "--mount", &mount]).success();
        machine.run(&["exec", "dev", "--", "sh", "-ec", change]).success();
        let before = listing(&folder);
        let mut apply = machine.spawn(&mut machine.command(&["apply", "dev"]));
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        apply.kill().unwrap();
        apply.wait().unwrap();
        if round % 2 == 0 {
            machine.run(&["exec", "dev", "--", "true"]).success();
        } else {
            machine.run(&["rm", "dev", "-q"]).success();
        }
        let (after, names) = (listing(&folder), on_host(&folder, "ls -A | tr '\\n' ' '"));
        let is_whole = names == "1 2 3 4 5 6 7 8 9 e " && after.matches("new").count() == 9;
        assert!(after == before || is_whole, "killed after {delay_ms} ms: {after}");
        if round % 2 == 0 {
            machine.run(&["apply", "dev"]).text();
            assert_eq!(listing(&folder).matches("new").count(), 9, "killed after {delay_ms} ms");
            machine.run(&["rm", "dev", "-q"]).success();
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
