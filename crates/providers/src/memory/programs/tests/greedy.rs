//! Programs of ours whose work or memory would grow far beyond their input.

use std::time::{Duration, Instant};

use eyot::Outcome;

use super::{run, run_all};

/// Busy machines are late.
const SOON: Duration = Duration::from_secs(4);

#[tokio::test]
async fn paste_looks_at_each_of_many_files_once() {
    let began = Instant::now();
    let ended = run("echo 1 >f; paste -s $(yes f | head -n 20000) | wc -l").await;
    assert_eq!(ended, (Outcome::Exited(0), "20000\n".to_owned(), String::new()));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_standard_input_of_paste_is_shared_by_all_who_name_it() {
    let [shared, serial] = run_all(["seq 4 | paste - -", "seq 2 >f; seq 3 | paste -s - f -"]).await;
    assert_eq!(shared.1, "1\t2\n3\t4\n");
    assert_eq!(serial.1, "1\t2\t3\n1\t2\n\n");
}

#[tokio::test]
async fn cut_writes_while_it_cuts() {
    // Two hundred gigabytes.
    let fields = "head -c 2000000 /dev/zero | tr '\\0' : >f; big=$(head -c 100000 /dev/zero | tr '\\0' x);";
    let bytes = "$(printf '%s,' {1..3000..2})1";
    let began = Instant::now();
    let all = run_all([
        format!("{fields} cut -d: -f1- --output-delimiter=\"$big\" f"),
        format!("{fields} cut -b{bytes} --output-delimiter=\"$big\" f"),
    ])
    .await;
    for (outcome, ..) in all {
        assert_eq!(outcome, Outcome::Exited(1));
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_file_that_is_named_often_takes_no_more_memory_than_there_is() {
    let [sort, list] =
        run_all(["truncate -s 256M f; sort f f f", "printf 'f\\0f\\0f\\0' | sort --files0-from=-"]).await;
    let refused = "sort: cannot read: f: Cannot allocate memory\n";
    assert_eq!((sort.2.as_str(), list.2.as_str()), (refused, refused));
}

/// A function of the shell that repeats a text as `$x`.
const TIMES: &str = "times() { x=$1; for _ in $(seq $2); do x=$x$x; done; };";

#[tokio::test]
async fn tr_reads_long_sets_once() {
    let began = Instant::now();
    let [classes, open, repeats] = run_all([
        format!("{TIMES} times [:lower:] 13; lower=$x; times [:upper:] 13; printf aB | tr $lower $x"),
        format!("{TIMES} times [: 15; printf [: | tr $x x"),
        format!("{TIMES} set -f; times '[a*' 15; printf '[a*' | tr $x x"),
    ])
    .await;
    assert_eq!((classes.1.as_str(), open.1.as_str(), repeats.1.as_str()), ("AB", "xx", "xxx"));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test]
async fn long_scripts_of_sed_are_read_once() {
    let began = Instant::now();
    let [parts, text] = run_all([
        format!("{TIMES} times '\\xff' 14; echo x | sed \"s/$x//\" 2>/dev/null"),
        format!("{TIMES} times '\\x41' 14; echo x | sed \"a$x\" | wc -c"),
    ])
    .await;
    // The pattern is too long for the interpreter.
    assert_eq!((parts.0, text.1.as_str()), (Outcome::Exited(1), "16389\n"));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}
