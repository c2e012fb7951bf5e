//! A seccomp filter for a child process, as container engines use one.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A system call that is refused, and its errno.
pub type Refusal = (i64, i32);

const LOAD_NUMBER: libc::sock_filter = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
const ALLOW: libc::sock_filter = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const ERRNO: u32 = 0x0005_0000;

/// Makes the command, and everything that it starts, run under a filter that refuses these calls.
pub fn refuse_calls(command: &mut Command, refusals: &[Refusal]) {
    let mut filter = vec![LOAD_NUMBER];
    for (number, errno) in refusals {
        let number = u32::try_from(*number).unwrap_or(u32::MAX);
        filter.push(libc::sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: number });
        filter.push(libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: ERRNO | errno.unsigned_abs() });
    }
    filter.push(ALLOW);
    // SAFETY: between fork and exec `install` makes two system calls and allocates nothing.
    unsafe { command.pre_exec(move || install(&filter)) };
}

fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: no pointers; the program describes `length` live instructions, which the kernel copies.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if installed { Ok(()) } else { Err(io::Error::last_os_error()) }
}
