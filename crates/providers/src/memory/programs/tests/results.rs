//! Results that the real programs give, where ours would give others.

use eyot::{Command, Outcome};

use super::{run, run_all};

#[tokio::test]
async fn the_name_of_the_sandbox_is_told_wherever_a_program_asks() {
    let scripts = [
        "hostname",
        "echo \"${NO_SUCH:-$(hostname)}\"",
        ": \"${NAME:=$(uname -n)}\"; echo \"$NAME\"",
        "trap hostname EXIT",
        "cat <<E\n$(uname -n)\nE",
        "name[$(uname -n >name)0]=1; cat name",
        "echo $(( $(hostname >name; echo 1) )) >one; cat name",
        "cat < <(hostname)",
        "case $(hostname) in localhost) echo wrong ;; *) hostname ;; esac",
        "[[ $(hostname) != localhost ]] && hostname",
    ];
    let all = run_all(scripts).await;
    assert_ne!(all[0].1, "localhost\n");
    for (script, (_, printed, _)) in scripts.iter().zip(&all) {
        assert_eq!(*printed, all[0].1, "{script}");
    }
}

#[tokio::test]
async fn bytes_of_an_archive_are_left_alone() {
    let [archive, text] = run_all(["lss 2>err.log; tar c err.log", "cat err.log"]).await;
    assert!(archive.1.contains("lss: command not found. Did you mean"), "{archive:?}");
    assert_eq!(text.1, "bash: line 1: lss: command not found\n");
}

#[tokio::test]
async fn a_device_gives_as_many_bytes_as_are_asked_for() {
    let [random, zero, none] = run_all([
        "head -c 5000000 /dev/urandom | wc -c",
        "head -c 70M /dev/zero | wc -c",
        "head -c 5 /dev/null | wc -c",
    ])
    .await;
    assert_eq!([random.1, zero.1, none.1], ["5000000\n", "73400320\n", "0\n"]);
}

#[tokio::test]
async fn quoted_words_before_a_redirection_are_kept_in_shells_that_a_script_calls() {
    let many =
        "echo 1 >f; for i in 1; do ".to_owned() + &"echo '{}' >g; ".repeat(17) + "awk '{print}' <f; done";
    let [shell, option, evaluated, many] = run_all([
        "echo 1 >f; bash -c \"awk '{print}' <f\"",
        "echo 1 >f; sh -e -c \"awk '{print}' <f\"",
        "echo 1 >f; eval \"awk '{print}' <f\"",
        many.as_str(),
    ])
    .await;
    assert_eq!([shell.1, option.1, evaluated.1, many.1], ["1\n"; 4]);
}

#[tokio::test]
async fn a_search_for_a_program_does_not_find_itself() {
    assert_eq!(run("pgrep -f server.js").await, (Outcome::Exited(1), String::new(), String::new()));
}

#[tokio::test]
async fn a_new_file_has_the_mode_that_the_mask_leaves() {
    let ended = run("umask 077; seq 2 | sort -o s; seq 2 | uniq - u; stat -c %a s u").await;
    assert_eq!(ended.1, "600\n600\n");
}

#[tokio::test]
async fn the_size_of_a_large_file_is_told_without_reading_it() {
    let ended = run("truncate -s 1G big; wc -c big; echo 1 >small; wc -c small; wc -c <small").await;
    assert_eq!(ended.1, "1073741824 big\n2 small\n2\n");
}

#[tokio::test]
async fn the_programs_are_listed_however_their_directory_is_named() {
    let [plain, up, link, linked, inside] = run_all([
        "ls /bin",
        "ls /usr/../bin",
        "ln -s /bin b; ls b/",
        "cd /usr; ls ../bin",
        "ls /etc/../bin/.",
    ])
    .await;
    assert!(plain.1.contains("\nsed\n"), "{plain:?}");
    for other in [up, link, linked, inside] {
        assert_eq!(other, plain);
    }
}

#[tokio::test]
async fn what_runs_in_the_background_prints_as_it_goes_and_keeps_its_status() {
    const HAND_OVER: &str = "until [ -e there ]; do sleep 0.01; done; echo b; touch go; wait $!; echo $?";
    let handed = |command: &str| format!("rm -f there go; {command} & {HAND_OVER}");
    for (script, expected) in [
        (
            handed("(echo a; touch there; until [ -e go ]; do sleep 0.01; done; echo c; exit 3)"),
            "a\nb\nc\n3\n",
        ),
        (handed("{ echo a; touch there; until [ -e go ]; do sleep 0.01; done; false; }"), "a\nb\n1\n"),
        ("set -euo pipefail; (sleep 0.01; exit 4) & wait $! || echo $?".to_owned(), "4\n"),
        ("set -e; (sleep 0.01; false; echo not) & wait $! || echo $?".to_owned(), "1\n"),
        ("sleep 9 & kill $!; wait $!; echo $?".to_owned(), "143\n"),
        (
            "touch n1; for i in 3 2 1; do (until [ -e n$i ]; do sleep 0.01; done; echo $i; touch n$((i+1))) & done; \
             wait; echo all"
                .to_owned(),
            "1\n2\n3\nall\n",
        ),
        ("(sleep 0.01; cat) <<E & wait\ntext\nE".to_owned(), "text\n"),
        ("x=1; (sleep 0.01; x=2; echo $x) & wait; echo $x".to_owned(), "2\n1\n"),
        ("yes | (sleep 0.01; head -n 1) & wait".to_owned(), "y\n"),
        ("echo a & echo b & wait; echo c".to_owned(), "a\nb\nc\n"),
    ] {
        assert_eq!(run(&script).await.1, expected, "{script}");
    }
    let script = handed("(echo a; touch there; until [ -e go ]; do sleep 0.01; done; exit 3)");
    let [called] = run_all([Command::argv(["/bin/sh", "-c", &script])]).await;
    assert_eq!(called.1, "a\nb\n3\n");
}
