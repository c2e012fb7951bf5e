//! Calls that must be refused and calls that must not, one sentence each, with the arguments that
//! an attacker or a program would pass.

use std::collections::HashSet;

use super::{REFUSED_CALL, UNKNOWN_CALL, answer, with_high_bits};
use crate::seccomp::filter;
use crate::seccomp::interpreter::{FilterRun, SystemCall, run};
use crate::seccomp::rule::Decision;
use crate::seccomp::syscalls::SYSCALLS;

#[test]
fn a_call_of_another_architecture_is_unknown_whatever_its_number() {
    for arch in [0x4000_0003, 0xC000_00B7, 0x3E, 0, u32::MAX] {
        for number in 0..1024 {
            let call = SystemCall { number, arch, arguments: [0; 6] };
            assert_eq!(run(filter(), &call), FilterRun { decision: UNKNOWN_CALL, steps: 3 }, "{call:x?}");
        }
    }
}

#[test]
fn an_x32_call_is_unknown() {
    for number in (0..1024).map(|number| number | 0x4000_0000) {
        assert_eq!(run(filter(), &SystemCall::new(number, [0; 6])).decision, UNKNOWN_CALL);
    }
}

#[test]
fn a_number_above_the_known_ones_or_in_a_gap_is_unknown() {
    let known: HashSet<u32> = SYSCALLS.iter().map(|&(_, number)| number).collect();
    for number in (0..4096).filter(|number| !known.contains(number)) {
        assert_eq!(run(filter(), &SystemCall::new(number, [0; 6])).decision, UNKNOWN_CALL, "{number}");
    }
}

#[test]
fn an_ioctl_with_high_bits_set_is_still_refused() {
    for command in [0x5412, 0x541C, 0x541D, 0x5423] {
        for command in with_high_bits(command) {
            assert_eq!(answer("ioctl", &[0, command]), REFUSED_CALL, "{command:#x}");
        }
    }
    // TIOCGWINSZ and TIOCGETD.
    assert_eq!(answer("ioctl", &[0, 0x5413]), Decision::Allow);
    assert_eq!(answer("ioctl", &[0, 0x5424]), Decision::Allow);
    assert_eq!(answer("ioctl", &[0x5412, 0x5401, 0x5412]), Decision::Allow);
}

#[test]
fn a_new_namespace_is_refused_and_a_thread_is_not() {
    for bit in [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
        assert_eq!(answer("clone", &[bit | 17]), REFUSED_CALL, "{bit:#x}");
        assert_eq!(answer("unshare", &[bit]), REFUSED_CALL, "{bit:#x}");
    }
    assert_eq!(answer("unshare", &[0x80]), REFUSED_CALL);
    assert_eq!(answer("unshare", &[0x400 | 0x200]), Decision::Allow);
    // What glibc passes for a thread, for fork and for posix_spawn.
    for flags in [0x003D_0F00, 0x0120_0011, 0x4111] {
        assert_eq!(answer("clone", &[flags]), Decision::Allow, "{flags:#x}");
    }
    assert_eq!(answer("clone3", &[]), UNKNOWN_CALL);
    assert_eq!(answer("setns", &[]), REFUSED_CALL);
}

#[test]
fn sockets_are_unix_tcp_udp_ping_and_route_netlink() {
    for allowed in [
        [1, 1, 0],
        [1, 5, 0],
        [2, 1, 6],
        [10, 0x8_0801, 0],
        [2, 2, 17],
        [2, 2, 1],
        [10, 2, 58],
        [10, 0x801, 262],
        [2, 1 << 32 | 1, 1 << 32 | 6],
        [16, 3, 0],
        [16, 0x8_0002, 0],
    ] {
        assert_eq!(answer("socket", &allowed), Decision::Allow, "{allowed:?}");
    }
    for raw in
        [[2, 3, 1], [10, 3, 58], [2, 0x8_0003, 255], [2, 10, 768], [1 << 32 | 2, 3, 1], [2, 1 << 32 | 3, 1]]
    {
        assert_eq!(answer("socket", &raw), REFUSED_CALL, "{raw:?}");
    }
    for family in (0..64).filter(|family| ![1, 2, 10, 16].contains(family)) {
        assert_eq!(answer("socket", &[family, 5, 0]), Decision::Errno(97), "{family}");
        assert_eq!(answer("socketpair", &[family, 5, 0]), Decision::Errno(97), "{family}");
    }
    for protocol in 1..32 {
        assert_eq!(answer("socket", &[16, 3, protocol]), Decision::Errno(93), "{protocol}");
    }
}

#[test]
fn a_protocol_that_programs_hardly_use_is_not_supported() {
    // SCTP, SMC, L2TP, UDP-Lite, and usual ones with the wrong type.
    let unusual = [[1, 132], [1, 256], [2, 115], [2, 136], [1, 1], [1, 17], [2, 6], [2, 262]];
    for [kind, protocol] in unusual {
        for protocol in with_high_bits(protocol) {
            for family in [2, 10] {
                let arguments = [family, kind, protocol];
                assert_eq!(answer("socket", &arguments), Decision::Errno(93), "{arguments:x?}");
            }
        }
    }
}

#[test]
fn personality_may_only_change_what_uname_says_and_randomisation() {
    for harmless in [0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0x4_0008, 0xFFFF_FFFF] {
        assert_eq!(answer("personality", &[harmless]), Decision::Allow, "{harmless:#x}");
    }
    // READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, ADDR_COMPAT_LAYOUT, PER_SVR4.
    for other in [0x0040_0000, 0x0010_0000, 0x0020_0000, 0x0410_0001, 0xFFFF_FFFE] {
        assert_eq!(answer("personality", &[other]), REFUSED_CALL, "{other:#x}");
    }
}

#[test]
fn pid_1_is_out_of_reach_of_limits_and_scheduling() {
    let on_pid_1: [(&str, &[u64]); 9] = [
        ("prlimit64", &[1, 7, 0x1000]),
        ("prlimit64", &[1 << 32 | 1, 7, 1 << 32]),
        ("sched_setaffinity", &[1]),
        ("sched_setscheduler", &[0xFFFF_FFFF_0000_0001]),
        ("sched_setparam", &[1]),
        ("sched_setattr", &[1]),
        ("setpriority", &[0, 1, 19]),
        ("setpriority", &[2, 1000, 19]),
        ("ioprio_set", &[1, 1]),
    ];
    for (name, arguments) in on_pid_1 {
        assert_eq!(answer(name, arguments), REFUSED_CALL, "{name} {arguments:x?}");
    }
    for own in [0, 2, 1000] {
        assert_eq!(answer("sched_setaffinity", &[own]), Decision::Allow);
        assert_eq!(answer("setpriority", &[0, own, 19]), Decision::Allow);
        assert_eq!(answer("ioprio_set", &[1, own]), Decision::Allow);
    }
    assert_eq!(answer("ioprio_set", &[3, 1000]), REFUSED_CALL);
}

#[test]
fn only_ones_own_limits_are_changed_and_others_can_still_be_read() {
    assert_eq!(answer("prlimit64", &[0, 7, 0x1000]), Decision::Allow);
    for other in [1, 2, 1000] {
        assert_eq!(answer("prlimit64", &[other, 7, 0x1000]), REFUSED_CALL);
        assert_eq!(answer("prlimit64", &[other, 7, 0, 0x1000]), Decision::Allow);
    }
}

#[test]
fn the_limit_of_core_files_stays_whatever_a_program_is_told() {
    assert_eq!(answer("setrlimit", &[4, 0x1000]), Decision::Errno(0));
    assert_eq!(answer("setrlimit", &[7, 0x1000]), Decision::Allow);
    assert_eq!(answer("prlimit64", &[0, 4, 0x1000]), Decision::Errno(0));
    assert_eq!(answer("prlimit64", &[0, 4, 1 << 32]), Decision::Errno(0));
    assert_eq!(answer("prlimit64", &[0, 1 << 32 | 4, 0x1000, 0x2000]), REFUSED_CALL);
    assert_eq!(answer("prlimit64", &[0, 4, 0, 0x2000]), Decision::Allow);
    assert_eq!(answer("prlimit64", &[1, 4, 0x1000]), REFUSED_CALL);
}

#[test]
fn no_device_can_be_made_and_a_fifo_can() {
    for device in [0o020_600, 0o060_600, 0o022_600, 0xFFFF_0000 | 0o020_600] {
        assert_eq!(answer("mknod", &[0, device]), REFUSED_CALL, "{device:o}");
        assert_eq!(answer("mknodat", &[0, 0, device]), REFUSED_CALL, "{device:o}");
    }
    for other in [0o644, 0o100_644, 0o010_600, 0o140_700] {
        assert_eq!(answer("mknod", &[0, other]), Decision::Allow, "{other:o}");
    }
}

#[test]
fn how_a_file_is_opened_and_its_mode_are_free() {
    let opening: [(&str, &[u64]); 5] = [
        ("openat2", &[]),
        ("openat", &[0, 0, 0x41, 0o4755]),
        ("creat", &[0, 0o2755]),
        ("fchmodat", &[0, 0, 0o6777]),
        ("mknod", &[0, 0o104_755]),
    ];
    for (name, arguments) in opening {
        assert_eq!(answer(name, arguments), Decision::Allow, "{name} {arguments:x?}");
    }
}
