//! Programs of ours whose work or memory would grow far beyond their input.

use std::time::{Duration, Instant};

use eyot::Outcome;

use super::{run, run_all};

/// Busy machines are late.
const SOON: Duration = Duration::from_secs(2);

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
