//! Obstacles to making namespaces and to mounting in them.

use rustix::io::Errno;

use super::cause::{ANY_STEP, Cause, Severity};
use super::facts::Facts;
use super::failure::MAKE_THE_IMAGE;
use super::finding::Reason;
use super::profile;
use crate::host_ranges::STEP as NOTE_RANGES;

const CREATE: &str = "create the namespaces";
const MAP_USER: &str = "map the user";
const MAP_IDS: &str = "map the ids";
const MOUNT_PROC: &str = "mount /proc";
const SHOW_PROGRAMS: &str = "overlay the host's programs";

/// The steps at which a security module first shows that allows user namespaces, but nothing in
/// them.
const FIRST_STEPS: &[&str] = &[
    NOTE_RANGES,
    CREATE,
    MAP_USER,
    MAP_IDS,
    "make mounts private",
    "bind a host path",
    "mount the root overlay",
    SHOW_PROGRAMS,
    MOUNT_PROC,
];
const MOUNTS: &[&str] = &[
    "make mounts private",
    "bind a host path",
    "mount the root overlay",
    SHOW_PROGRAMS,
    "make device nodes",
    MOUNT_PROC,
    "mount /dev/pts",
    "mount a tmpfs",
    "mask a path",
    "cover what /proc tells of the host",
    "make a path read-only",
    "pivot the root",
];
/// The steps that need a range of ids.
const GIVING_IDS: &[&str] =
    &[NOTE_RANGES, MAP_IDS, MAKE_THE_IMAGE, "prepare its directory", "bind a host path"];
const REFUSED: &[Errno] = &[Errno::PERM, Errno::ACCESS];

const fn error(
    subject: &'static str,
    name: &'static str,
    steps: &'static [&'static str],
    errnos: &'static [Errno],
    shows: fn(&Facts) -> Option<Reason>,
) -> Cause {
    Cause { subject, name, severity: Severity::Error, needs_failure: false, steps, errnos, shows }
}

/// Marks a cause that the facts alone do not show.
const fn behind_a_failure(cause: Cause) -> Cause {
    Cause { needs_failure: true, ..cause }
}

const USER: &str = "user-namespaces";
const MOUNTING: &str = "mounts";

/// The causes, the most certain first.
pub(super) const CAUSES: &[Cause] = &[
    error(USER, "not-built-in", &[CREATE], &[Errno::INVAL, Errno::NOSYS, Errno::PERM], not_built_in),
    error(USER, "unprivileged-userns-clone", &[CREATE], REFUSED, switched_off_by_debian),
    error(USER, "max-user-namespaces", &[CREATE], &[Errno::NOSPC, Errno::USERS], none_allowed),
    error(USER, "apparmor", FIRST_STEPS, REFUSED, apparmor),
    error(USER, "chroot", &[CREATE], REFUSED, chroot),
    error("ids", "inner-root", GIVING_IDS, &[], inner_root),
    error("ids", "root-without-capabilities", FIRST_STEPS, REFUSED, weak_root),
    error(MOUNTING, "masked-proc", &[MOUNT_PROC], REFUSED, masked_proc),
    behind_a_failure(error(USER, "seccomp-filter", &[CREATE], REFUSED_BY_FILTERS, filtered)),
    behind_a_failure(error(USER, "used-up", &[CREATE], &[Errno::NOSPC, Errno::USERS], used_up)),
    behind_a_failure(error("ids", "no-notes", &[NOTE_RANGES], &[], no_notes)),
    behind_a_failure(error(MOUNTING, "selinux", MOUNTS, &[Errno::ACCESS], selinux)),
    behind_a_failure(error(MOUNTING, "seccomp-filter", MOUNTS, REFUSED_BY_FILTERS, mounts_filtered)),
    behind_a_failure(error(
        MOUNTING,
        "no-overlayfs",
        &["mount the root overlay", SHOW_PROGRAMS],
        &[Errno::NODEV],
        no_overlay,
    )),
    behind_a_failure(error(MOUNTING, "programs-stacked", &[SHOW_PROGRAMS], &[Errno::INVAL], cannot_overlay)),
    error("seccomp", "no-seccomp", &["install the seccomp filter"], &[], no_seccomp),
    Cause { severity: Severity::Warn, ..error("landlock", "no-landlock", &[], &[], no_landlock) },
    behind_a_failure(error(USER, "refused", &[CREATE], REFUSED, refused)),
    error("proc", "no-proc", ANY_STEP, &[Errno::NOENT], no_proc),
];

/// The error numbers that seccomp filters answer with. Many use ENOSYS, so that a C library falls
/// back to an older call.
const REFUSED_BY_FILTERS: &[Errno] = &[Errno::PERM, Errno::ACCESS, Errno::NOSYS];

fn sysctl(assignment: &str) -> String {
    format!("sudo sysctl -w {assignment}")
}

fn not_built_in(facts: &Facts) -> Option<Reason> {
    (facts.proc && !facts.user_namespaces).then(|| {
        let why = "user namespaces are not built into this kernel (CONFIG_USER_NS)";
        Reason::new(why, "sudo apt-get install linux-image-amd64 && sudo reboot")
    })
}

fn switched_off_by_debian(facts: &Facts) -> Option<Reason> {
    let off = facts.setting("kernel.unprivileged_userns_clone") == Some(0) && !facts.admin;
    off.then(|| {
        let why =
            "user namespaces are switched off for ordinary users (kernel.unprivileged_userns_clone is 0)";
        Reason::new(why, sysctl("kernel.unprivileged_userns_clone=1"))
    })
}

fn none_allowed(facts: &Facts) -> Option<Reason> {
    (facts.setting("user.max_user_namespaces") == Some(0)).then(|| {
        let why = "user namespaces are switched off (user.max_user_namespaces is 0)";
        Reason::new(why, sysctl("user.max_user_namespaces=65536"))
    })
}

/// A profile with the permission `userns` lifts the restriction. This process then runs under the
/// profile's name.
fn apparmor(facts: &Facts) -> Option<Reason> {
    let restricts = facts.setting("kernel.apparmor_restrict_unprivileged_userns") == Some(1);
    let unconfined = facts.apparmor_profile.as_deref().is_none_or(|profile| profile == "unconfined");
    (restricts && unconfined && !facts.admin).then(|| {
        let why = "AppArmor refuses user namespaces to programs without a profile \
                   (kernel.apparmor_restrict_unprivileged_userns is 1, as on Ubuntu 24.04)";
        Reason::new(why, profile::install_command(&facts.program))
    })
}

fn chroot(facts: &Facts) -> Option<Reason> {
    facts.chroot.then(|| Reason {
        why: "this process is in a chroot, where the kernel refuses user namespaces".to_owned(),
        fix: None,
    })
}

fn no_notes(_facts: &Facts) -> Option<Reason> {
    let why = "the host ids of root's sandboxes are noted in a folder of /run that only root may enter, \
               and it can't be made";
    Some(Reason { why: why.to_owned(), fix: None })
}

fn inner_root(facts: &Facts) -> Option<Reason> {
    (facts.uid == 0 && facts.proc && !facts.every_id).then(|| Reason {
        why: "root here is root of a user namespace, which has no range of ids to give to a sandbox; \
              an ordinary user can make sandboxes here"
            .to_owned(),
        fix: Some(facts.container_advice().unwrap_or_else(AS_A_USER)),
    })
}

const AS_A_USER: fn() -> String =
    || "setpriv --reuid=1000 --regid=1000 --clear-groups eyot doctor".to_owned();

fn weak_root(facts: &Facts) -> Option<Reason> {
    (facts.uid == 0 && facts.every_id && !facts.admin).then(|| Reason {
        why: "root here lacks CAP_SYS_ADMIN, as in a container".to_owned(),
        fix: Some(facts.container_advice().unwrap_or_else(AS_A_USER)),
    })
}

fn masked_proc(facts: &Facts) -> Option<Reason> {
    facts.proc_masked.then(|| Reason {
        why:
            "parts of /proc are masked, as in a container, so the kernel refuses a sandbox a /proc of its own"
                .to_owned(),
        fix: facts.container_advice().or_else(|| Some("sudo umount -R /proc/*".to_owned())),
    })
}

fn filtered(facts: &Facts) -> Option<Reason> {
    facts.seccomp_filtered.then(|| Reason {
        why: "a seccomp filter on this process refuses namespaces: a container's, or `RestrictNamespaces=` of a service"
            .to_owned(),
        fix: facts.container_advice(),
    })
}

fn mounts_filtered(facts: &Facts) -> Option<Reason> {
    facts.seccomp_filtered.then(|| Reason {
        why: "a seccomp filter on this process refuses mounts, as a container's does".to_owned(),
        fix: facts.container_advice(),
    })
}

fn used_up(_facts: &Facts) -> Option<Reason> {
    let why = "no more user namespaces are allowed here: their limit is reached (user.max_user_namespaces, of this \
               or of an outer namespace), or they are nested 32 deep";
    Some(Reason::new(why, sysctl("user.max_user_namespaces=65536")))
}

fn selinux(facts: &Facts) -> Option<Reason> {
    facts.selinux_enforcing.then(|| {
        let fix = "sudo ausearch -m avc -ts recent | audit2allow -M eyot && sudo semodule -i eyot.pp";
        Reason::new("SELinux's policy refuses it", fix)
    })
}

fn no_overlay(_facts: &Facts) -> Option<Reason> {
    Some(Reason::new("this kernel has no overlayfs", "sudo modprobe overlay"))
}

fn cannot_overlay(_facts: &Facts) -> Option<Reason> {
    let why = "the kernel makes no overlay over the file system of the host's programs: overlays are stacked two deep \
               there already, or it is of a kind that overlays refuse";
    Some(Reason { why: why.to_owned(), fix: Some("findmnt --submounts --target /usr".to_owned()) })
}

fn no_seccomp(facts: &Facts) -> Option<Reason> {
    (facts.proc && !facts.seccomp).then(|| {
        let why = "seccomp filters are not built into this kernel (CONFIG_SECCOMP_FILTER)";
        Reason::new(why, "sudo apt-get install linux-image-amd64 && sudo reboot")
    })
}

fn no_landlock(facts: &Facts) -> Option<Reason> {
    (facts.landlock_abi < 2).then(|| {
        let why = "Landlock is not there (ABI 2 of Linux 5.19, switched on at boot): sandboxes do without it";
        let fix = "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT lsm=landlock,lockdown,yama,apparmor,bpf\"' \
                   | sudo tee /etc/default/grub.d/landlock.cfg && sudo update-grub && sudo reboot";
        Reason::new(why, fix)
    })
}

fn refused(_facts: &Facts) -> Option<Reason> {
    Some(Reason {
        why: "something refuses user namespaces to this process: a security module, or the setting of a kernel \
              that is not known here"
            .to_owned(),
        fix: Some("sudo dmesg | tail".to_owned()),
    })
}

fn no_proc(facts: &Facts) -> Option<Reason> {
    (!facts.proc).then(|| Reason::new("/proc is not mounted here", "sudo mount -t proc proc /proc"))
}
