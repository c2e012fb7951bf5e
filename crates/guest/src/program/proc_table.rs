//! The processes in `/proc`: their ancestry, and their use of resources.

use std::fs;
use std::io::Read;

/// The resources of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcStat {
    /// The parent.
    pub parent: i32,
    /// The letter of the state; `Z` has ended and waits for its parent.
    pub state: u8,
    /// The process's own processor time in clock ticks.
    pub own_ticks: u64,
    /// That of the children it has waited for.
    pub reaped_ticks: u64,
    /// Resident memory in pages.
    pub resident_pages: u64,
}

/// The children of a process, by whichever thread they were made.
pub fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(parse_children(&list)),
            // A thread may have ended meanwhile. A kernel without this file has none for us either.
            Err(_) if has_children_files() => {}
            Err(_) => return children_by_scan(pid),
        }
    }
    found
}

/// Every process below this one, each after its parent.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The processes below this one that have work to do: they run, or wait for a processor or a disk.
/// Each with the processor time that it has had, in nanoseconds, if that is known. At most `most`
/// are looked at, and of each only its first thread, so that this is quick whatever runs.
pub fn at_work_below(pid: i32, most: usize) -> Vec<(i32, Option<u64>)> {
    let mut found = children_of_first_thread(pid);
    let mut at_work = Vec::new();
    let mut next = 0;
    while let Some(pid) = found.get(next).copied().filter(|_| next < most) {
        if stat(pid).is_some_and(|stat| matches!(stat.state, b'R' | b'D')) {
            at_work.push((pid, processor_time_ns(pid)));
        }
        found.extend(children_of_first_thread(pid));
        next += 1;
    }
    at_work
}

/// Returns the processor time of a process's first thread, if the kernel counts that.
fn processor_time_ns(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the tracers of a process's threads, as far as they can be seen from here. A tracer may
/// be a single thread of a process.
pub fn tracers(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    // A name may hold any byte.
    let statuses = threads.flatten().filter_map(|thread| fs::read(thread.path().join("status")).ok());
    statuses.filter_map(|status| parse_tracer(&status)).collect()
}

/// Tells whether a process, or the one a thread belongs to, is below another.
pub fn descends_from(pid: i32, ancestor: i32) -> bool {
    let mut parents = std::iter::successors(Some(pid), |pid| stat(*pid).map(|stat| stat.parent)).skip(1);
    parents.find(|parent| *parent == ancestor || *parent <= 0) == Some(ancestor)
}

/// Returns the resources of a process, if it is there.
pub fn stat(pid: i32) -> Option<ProcStat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns the effective user id of a process.
pub fn user(pid: i32) -> Option<u32> {
    // A name may hold any byte.
    parse_user(&fs::read(format!("/proc/{pid}/status")).ok()?)
}

/// A process's command line as text, at most so many bytes of it; `None` for one that has none any
/// more.
pub fn command_line(pid: i32, most: usize) -> Option<String> {
    let mut line = Vec::new();
    fs::File::open(format!("/proc/{pid}/cmdline")).ok()?.take(most as u64).read_to_end(&mut line).ok()?;
    let end = line.iter().rposition(|byte| *byte != 0)? + 1;
    let words: Vec<&[u8]> = line[..end].split(|byte| *byte == 0).collect();
    Some(String::from_utf8_lossy(&words.join(&b' ')).into_owned())
}

/// A process's name in brackets.
pub fn name(pid: i32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("[{}]", String::from_utf8_lossy(&name).trim_end_matches('\n')))
}

fn children_of_first_thread(pid: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    list.map(|list| parse_children(&list).collect()).unwrap_or_default()
}

fn parse_children(list: &str) -> impl Iterator<Item = i32> {
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

fn has_children_files() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

fn children_by_scan(pid: i32) -> Vec<i32> {
    let mut found = all();
    found.retain(|candidate| stat(*candidate).is_some_and(|stat| stat.parent == pid));
    found
}

/// Every process that can be seen from here.
pub fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn parse_tracer(status: &[u8]) -> Option<i32> {
    // The kernel writes line breaks in the name as `\n`, so no name looks like a separate line.
    let mut lines = status.split(|byte| *byte == b'\n');
    let number = lines.find_map(|line| line.strip_prefix(b"TracerPid:"))?;
    std::str::from_utf8(number).ok()?.trim().parse().ok().filter(|pid| *pid > 0)
}

fn parse_user(status: &[u8]) -> Option<u32> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let numbers = lines.find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(numbers).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Parses a line of `stat`. The name stands in brackets and may hold anything, brackets included.
/// After the last bracket there are only numbers.
fn parse_stat(line: &[u8]) -> Option<ProcStat> {
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&line[after_name..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(ProcStat {
        parent: fields.get(1)?.parse().ok()?,
        state: *fields.first()?.as_bytes().first()?,
        own_ticks: number(11)? + number(12)?,
        reaped_ticks: number(13)? + number(14)?,
        resident_pages: number(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_confuse_the_numbers() {
        let line = b"42 (a) b) S 7 42 42 0 -1 0 0 0 0 0 10 5 20 2 20 0 1 0 99 1000 33 18446744073709551615";
        let expected =
            ProcStat { parent: 7, state: b'S', own_ticks: 15, reaped_ticks: 22, resident_pages: 33 };
        assert_eq!(parse_stat(line), Some(expected));
    }

    #[test]
    fn the_effective_user_is_found_and_a_name_is_none() {
        assert_eq!(parse_user(b"Name:\tUid:\\nUid:\t9\nUid:\t1000\t7\t0\t0\n"), Some(7));
    }

    #[test]
    fn a_tracer_is_found_and_a_name_is_none() {
        let line = b"Name:\tTracerPid:\\nTracerPid:\t9\nState:\tZ (zombie)\nTracerPid:\t7\nUid:\t0\n";
        assert_eq!(parse_tracer(line), Some(7));
        assert_eq!(parse_tracer(b"Name:\tsh\nTracerPid:\t0\n"), None);
    }

    #[test]
    fn a_child_descends_from_its_parent_and_not_the_other_way_round() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (me, pid) = (std::process::id() as i32, child.id() as i32);
        assert!(descends_from(pid, me) && !descends_from(me, pid) && !descends_from(me, me));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn who_computes_has_work_and_who_sleeps_has_none() {
        for (line, has_work) in [("while :; do :; done", true), ("sleep 60; :", false)] {
            let line = format!("({line}) & wait");
            let mut shell = std::process::Command::new("sh").args(["-c", &line]).spawn().unwrap();
            let pid = shell.id() as i32;
            // One that is about to sleep has work for a moment.
            while descendants(pid).is_empty() || at_work_below(pid, 1000).is_empty() == has_work {
                std::thread::yield_now();
            }
            for process in descendants(pid) {
                crate::program::sys::kill(process, libc::SIGKILL).unwrap();
            }
            shell.wait().unwrap();
        }
    }

    #[test]
    fn both_ways_of_finding_children_agree() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (me, pid) = (std::process::id() as i32, child.id() as i32);
        assert!(children(me).contains(&pid) && children_by_scan(me).contains(&pid));
        assert!(descendants(me).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
