//! The rows of the threat table that a host can be tried for, as `SECURITY.md` has them. What is
//! not here (N2 to N8) is tried elsewhere: it needs a server, or a guest that lies.

/// A row of the threat table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The id, such as `K11`.
    pub id: &'static str,
    /// The threat, in the words of `SECURITY.md`.
    pub title: &'static str,
}

const fn row(id: &'static str, title: &'static str) -> Row {
    Row { id, title }
}

/// The rows, in the table's order.
pub const ROWS: [Row; 33] = [
    row("K1", "new namespaces from inside; entering others'"),
    row("K2", "mounts, file handles"),
    row("K3", "socket families beyond INET, INET6, UNIX, route netlink; raw sockets"),
    row("K4", "io_uring, bpf, keys, unknown calls, personalities"),
    row("K5", "x32 and ia32 system calls"),
    row("K6", "typing into a terminal (TIOCSTI, TIOCLINUX)"),
    row("K7", "the guest: its program, memory, signals, limits"),
    row("K8", "inherited descriptors, working directory"),
    row("K9", "what `/proc` tells of the host; writing below `/proc/sys`"),
    row("K10", "cgroup files"),
    row("K11", "bombs: processes, threads, descriptors, memory, disk, inotify, terminals, files, depth"),
    row("K12", "setuid programs, file capabilities, sudo"),
    row("K13", "what a command leaves behind"),
    row("K14", "the host's services: loopback, abstract and named sockets"),
    row("K15", "siblings"),
    row("K16", "a step of the set-up that fails"),
    row("K17", "owners and privileges of files that a sandbox leaves on the host"),
    row("K18", "what the kernel counts per user, or for the whole host"),
    row("K19", "inodes that the host or a sibling also uses: sockets, notifications, locks"),
    row("F1", "links out of the workspace, swapped during the call"),
    row("F2", "FIFOs, sockets, devices as files"),
    row("F3", "odd names"),
    row("F4", "hostile archives"),
    row("F5", "endless and huge files"),
    row("F6", "regex and glob bombs, churning trees"),
    row("F7", "several writers of one file"),
    row("E1", "floods, readers that never read, bytes that are no text"),
    row("E2", "deadlines at their edges"),
    row("E3", "cancelling before, during, at the end"),
    row("E4", "huge commands, arguments, environments"),
    row("E5", "the sandbox dies in the middle of a call"),
    row("E6", "200 commands at once"),
    row("N1", "leaving a sandbox without a network"),
];

/// The row that a case belongs to: `k07_the_guest_survives_every_signal` belongs to K7.
pub fn row_of(case: &str) -> Option<Row> {
    let (id, _) = case.split_once('_')?;
    let (letter, number) = id.split_at_checked(1)?;
    let number: u32 = number.parse().ok()?;
    let id = format!("{}{number}", letter.to_uppercase());
    ROWS.into_iter().find(|row| row.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_belongs_to_a_row_and_every_row_has_a_case() {
        let cases = crate::cases();
        let rows: Vec<&str> = cases.iter().map(|case| row_of(case.name).expect(case.name).id).collect();
        for row in ROWS {
            assert!(rows.contains(&row.id), "no case of {}", row.id);
        }
    }

    #[test]
    fn the_rows_are_those_of_the_security_page() {
        let page = include_str!("../../../SECURITY.md");
        for row in ROWS {
            let line = format!("| {} | {}", row.id, row.title.split(['(', ':']).next().unwrap_or_default());
            assert!(page.contains(line.trim_end()), "`{line}` is not in SECURITY.md");
        }
    }
}
