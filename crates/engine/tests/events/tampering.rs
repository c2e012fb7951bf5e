//! Whatever is done to the lines behind the log's back shows, with the number of the event and what is wrong.

use std::fs;

use eyot::ErrorKind;

use crate::log::Scene;

#[test]
fn a_changed_line_is_found() {
    let scene = Scene::with(5);
    scene.edit(1, |lines| lines[2] = lines[2].replace("it was idle", "it was late"));
    let broken = scene.broken();
    assert_eq!(broken.seq, 3);
    assert_eq!(
        broken.to_string(),
        "event 3 was changed: its line does not have the hash that it names (00000000000000000001.jsonl, line 3)"
    );
    assert_eq!(scene.log.verify().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_removed_line_is_found() {
    let scene = Scene::with(5);
    scene.edit(1, |lines| drop(lines.remove(2)));
    assert_eq!(
        scene.broken().to_string().split(" (").next(),
        Some("event 3 is missing: event 4 stands in its place")
    );
}

#[test]
fn removed_lines_at_the_end_are_found() {
    let scene = Scene::with(5);
    scene.edit(1, |lines| lines.truncate(4));
    assert_eq!(scene.broken().to_string(), "event 5 is missing at the end of the log");
    scene.edit(1, |lines| lines.truncate(2));
    assert_eq!(scene.broken().to_string(), "event 3 and all to event 5 are missing at the end of the log");
    fs::remove_file(scene.segment(1)).unwrap();
    assert_eq!(scene.broken().to_string(), "event 1 and all to event 5 are missing at the end of the log");
}

#[test]
fn lines_that_were_removed_at_the_end_stay_missing_when_the_log_goes_on() {
    let scene = Scene::with(5);
    scene.edit(1, |lines| lines.truncate(3));
    scene.slept(1);
    assert_eq!(scene.numbers(), [1, 2, 3, 6, 7], "the note and the event, after what the log knew of");
    assert_eq!(scene.broken().to_string(), "event 4 and all before event 6 are missing (or were moved)");
}

#[test]
fn a_line_that_was_cut_short_after_it_was_whole_is_found() {
    let scene = Scene::with(3);
    let text = fs::read_to_string(scene.segment(1)).unwrap();
    fs::write(scene.segment(1), &text[..text.len() - 20]).unwrap();
    assert_eq!(scene.broken().to_string(), "event 3 is cut short (00000000000000000001.jsonl, line 3)");
    scene.slept(1);
    assert_eq!(scene.broken().seq, 3);
}

#[test]
fn removed_lines_and_segments_at_the_beginning_are_found() {
    let scene = Scene::new(10, 16);
    scene.slept(25);
    let first = fs::read(scene.segment(1)).unwrap();
    scene.edit(1, |lines| drop(lines.remove(0)));
    assert_eq!(scene.broken().seq, 1);
    fs::remove_file(scene.segment(1)).unwrap();
    assert_eq!(scene.broken().to_string(), "event 1 and all before event 11 are missing (or were moved)");
    fs::write(scene.segment(1), first).unwrap();
    fs::remove_file(scene.segment(11)).unwrap();
    assert_eq!(scene.broken().to_string(), "event 11 and all before event 21 are missing (or were moved)");
}

#[test]
fn lines_in_another_order_are_found() {
    let scene = Scene::with(5);
    scene.edit(1, |lines| lines.swap(1, 3));
    let broken = scene.broken();
    assert_eq!((broken.seq, broken.place.map(|(_, line)| line)), (2, Some(2)));
}

#[test]
fn an_inserted_line_is_found_wherever_it_comes_from() {
    let scene = Scene::with(5);
    let whole = scene.lines(1);
    scene.edit(1, |lines| lines.insert(3, lines[1].clone()));
    assert!(scene.broken().to_string().starts_with("event 4 is not there: event 2 stands in its place"));
    scene.set_lines(1, &whole);
    scene.edit(1, |lines| lines.insert(3, "{\"seq\":4}".to_owned()));
    assert!(
        scene.broken().to_string().starts_with("event 4 is missing: what stands in its place is no event")
    );
    scene.set_lines(1, &whole);
    scene.edit(1, |lines| lines.insert(0, String::new()));
    assert_eq!(scene.broken().seq, 1);
}

/// A log with as many events, whose lines are all good in themselves.
fn another_log() -> Scene {
    let scene = Scene::with(0);
    for _ in 0..5 {
        scene.slept_because("it was tired");
    }
    scene
}

#[test]
fn a_line_of_another_log_is_found_though_its_own_hash_is_right() {
    let (scene, other) = (Scene::with(5), another_log());
    let strange = other.lines(1);
    scene.edit(1, |lines| lines[2].clone_from(&strange[2]));
    let broken = scene.broken();
    assert_eq!(broken.seq, 3);
    assert!(broken.what.starts_with("does not follow the event before it"), "{broken}");
}

#[test]
fn a_chain_that_was_computed_anew_is_found_by_its_last_hash() {
    let (scene, other) = (Scene::with(5), another_log());
    let strange = other.lines(1);
    scene.set_lines(1, &strange);
    let broken = scene.broken();
    assert_eq!(
        (broken.seq, broken.what.starts_with("is not the one that was appended")),
        (5, true),
        "{broken}"
    );
}

#[test]
fn a_whole_line_at_the_end_that_is_no_event_is_found_now_and_later() {
    let scene = Scene::with(3);
    scene.scribble(1, "I was here\n");
    assert_eq!(scene.broken().seq, 4);
    scene.slept(1);
    assert_eq!(scene.broken().seq, 4);
}

#[test]
fn a_line_without_end_does_not_stop_the_log() {
    let scene = Scene::with(3);
    scene.scribble(1, &"x".repeat(2 << 20));
    scene.slept(1);
    assert_eq!(scene.broken().seq, 4);
}

#[test]
fn a_head_that_is_missing_is_found_now_and_when_the_log_has_gone_on() {
    let scene = Scene::with(3);
    fs::remove_file(scene.file("head")).unwrap();
    assert!(
        scene.broken().to_string().contains("the file `head`, which says where the log ends, is missing")
    );
    scene.slept(3);
    assert_eq!(scene.numbers(), [1, 2, 3, 5, 6, 7, 8], "a number that stays free, a note, and the events");
    assert_eq!(
        scene.broken().to_string(),
        "event 4 and any that followed it may be missing: the file `head`, which said where the log ended, was lost"
    );
}

/// Ways to do away with the end of a log, its head included.
const LOSSES: [&str; 5] =
    ["last lines", "all lines of the last segment", "last segment", "the head's text", "the head's sense"];

fn lose(scene: &Scene, what: &str) {
    let last = *scene.segments().last().unwrap();
    match what {
        "all lines of the last segment" => fs::write(scene.segment(last), "").unwrap(),
        "last segment" => fs::remove_file(scene.segment(last)).unwrap(),
        _ => scene.edit(last, |lines| lines.truncate(2)),
    }
    match what {
        "the head's text" => fs::write(scene.file("head"), "").unwrap(),
        "the head's sense" => fs::write(scene.file("head"), "{}").unwrap(),
        _ => fs::remove_file(scene.file("head")).unwrap(),
    }
}

#[test]
fn an_end_that_was_removed_with_the_head_shows_however_the_log_goes_on() {
    for what in LOSSES {
        let scene = Scene::new(10, 16);
        scene.slept(25);
        lose(&scene, what);
        scene.broken();
        for later in 0..30 {
            scene.slept(1);
            let broken = scene.broken();
            assert!(broken.what.contains("may be missing"), "{what}, {later} later: {broken}");
        }
        let numbers = scene.numbers();
        assert!(numbers.is_sorted() && !numbers.contains(&scene.broken().seq), "{what}: {numbers:?}");
        let told = scene.all().iter().any(|event| event.reason.contains("`head` was missing"));
        assert!(told, "{what}: no event tells of it");
    }
}

#[test]
fn an_end_that_was_removed_without_the_head_shows_however_the_log_goes_on() {
    for (what, keep) in [("lines", 2), ("all lines", 0), ("the segment", usize::MAX)] {
        let scene = Scene::new(10, 16);
        scene.slept(25);
        let last = *scene.segments().last().unwrap();
        match keep {
            usize::MAX => fs::remove_file(scene.segment(last)).unwrap(),
            keep => scene.edit(last, |lines| lines.truncate(keep)),
        }
        for _ in 0..30 {
            scene.slept(1);
            let seq = scene.broken().seq;
            assert_eq!(seq, last + if keep == usize::MAX { 0 } else { keep as u64 }, "{what}");
        }
    }
}

#[test]
fn a_process_that_was_killed_at_its_very_first_event_leaves_no_fault() {
    let scene = Scene::with(0);
    // It had made the file, and nothing else.
    fs::write(scene.file("head"), "").unwrap();
    scene.slept(2);
    assert_eq!((scene.numbers(), scene.holds().last_seq), (vec![1, 2], 2));
    // It had written the line, and not yet said so.
    let scene = Scene::with(1);
    let head =
        r#"{"first_seq":1,"seq":0,"hash":"HASH","segment":1,"bytes":0}"#.replace("HASH", &"0".repeat(64));
    fs::write(scene.file("head"), head).unwrap();
    scene.slept(1);
    assert_eq!((scene.numbers(), scene.holds().last_seq), (vec![1, 2], 2));
}

#[test]
fn reading_a_line_that_is_no_event_is_one_sentence_that_names_the_event_and_the_way_on() {
    let scene = Scene::with(3);
    scene.edit(1, |lines| lines[1] = "nonsense".to_owned());
    let error = scene.log.read(1, 10).unwrap_err();
    assert_eq!(error.to_string(), "read the event log: event 2 can't be read");
    assert!(error.hint().unwrap().contains("eyot events --verify"));
}
