//! The system call filter for commands of a sandbox that has a writable folder of the host or a
//! persistent workspace: no command in it, root's included, can give a file the setuid or the
//! setgid bit. On the host such a file would give its owner's rights to whoever runs it. The
//! sandbox's own filter can't do this: the guest is under it too, and needs `openat2`, whose mode
//! no filter can see. `mkdir` is not looked at, because the kernel takes these bits from its mode.

use std::sync::LazyLock;

use libc::{sock_filter, sock_fprog};

const SETUID_SETGID: u32 = 0o6000;
/// `O_CREAT`, and the bit of `O_TMPFILE` that is its own: without them the mode is not looked at.
const CREATES: u32 = 0o100 | 0o20_000_000;

/// A call whose mode is looked at: its number, which argument is the mode, and which has the flags
/// of an open.
const CALLS: [(libc::c_long, u32, Option<u32>); 9] = [
    (libc::SYS_chmod, 1, None),
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (libc::SYS_fchmodat2, 2, None),
    (libc::SYS_creat, 1, None),
    (libc::SYS_mknod, 1, None),
    (libc::SYS_mknodat, 2, None),
    (libc::SYS_open, 2, Some(1)),
    (libc::SYS_openat, 3, Some(2)),
];

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUALS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const HAS_ANY: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The filter, ready for `seccomp(2)`. Other tables of calls (ia32, x32) are the sandbox's own
/// filter's to refuse.
pub fn program() -> sock_fprog {
    static FILTER: LazyLock<Vec<sock_filter>> = LazyLock::new(filter);
    sock_fprog { len: FILTER.len() as u16, filter: FILTER.as_ptr().cast_mut() }
}

fn filter() -> Vec<sock_filter> {
    let mut filter = vec![plain(LOAD, 0)];
    for (number, mode, flags) in CALLS {
        let block = block(mode, flags);
        filter.push(jump(EQUALS, number as u32, 0, block.len() as u8));
        filter.extend(block);
    }
    filter.push(jump(EQUALS, libc::SYS_openat2 as u32, 0, 1));
    filter.push(refuse(libc::ENOSYS));
    filter.push(allow());
    filter
}

fn block(mode: u32, flags: Option<u32>) -> Vec<sock_filter> {
    let mut block = Vec::new();
    if let Some(flags) = flags {
        block.extend([plain(LOAD, argument(flags)), jump(HAS_ANY, CREATES, 1, 0), allow()]);
    }
    block.extend([
        plain(LOAD, argument(mode)),
        jump(HAS_ANY, SETUID_SETGID, 0, 1),
        refuse(libc::EPERM),
        allow(),
    ]);
    block
}

/// Returns the offset of the lower half of an argument in `seccomp_data`.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const fn plain(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const fn refuse(errno: i32) -> sock_filter {
    plain(RETURN, libc::SECCOMP_RET_ERRNO | errno as u32)
}

const fn allow() -> sock_filter {
    plain(RETURN, libc::SECCOMP_RET_ALLOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_small_and_ends_with_an_answer() {
        let filter = filter();
        assert!(
            filter.len() < 70 && filter.last().is_some_and(|last| last.code == RETURN),
            "{}",
            filter.len()
        );
    }
}
