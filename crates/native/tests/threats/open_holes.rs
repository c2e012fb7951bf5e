//! Cases that are known not to hold yet. They are tried like all others: while they fail they show as ignored
//! with the hole as the reason, and as soon as they hold they fail, so that they are taken off this list.

/// The case, and what is open.
const OPEN: [(&str, &str); 3] = [
    (
        "k07_inner_root_can_not_change_the_guest_through_proc",
        "open hole: inner root owns the guest's files in /proc (oom_score_adj, autogroup)",
    ),
    (
        "k12_no_setuid_program_can_be_left_in_a_folder_of_the_host",
        "open hole: nothing keeps setuid bits out of a writable mount",
    ),
    (
        "k12_inner_root_leaves_nothing_of_the_hosts_root_in_a_folder_of_the_host",
        "open hole: in a writable mount inner root's files belong to the host's root",
    ),
];

/// What is open about a case.
pub fn of(case: &str) -> Option<&'static str> {
    OPEN.iter().find(|(name, _)| *name == case).map(|(_, hole)| *hole)
}
