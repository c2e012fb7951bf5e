//! Every unsafe block of the attacker: raw system calls, which std would refuse, or do something
//! else for.

use std::ffi::CStr;
use std::io;

/// Makes a system call with these arguments, whatever they mean. Pointers are given as
/// [`address`]es.
pub fn call(number: i64, arguments: &[u64]) -> Result<i64, i32> {
    let mut padded = [0_u64; 6];
    padded[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f] = padded;
    // SAFETY: the attacker is a process of its own that does nothing else; the calls that it tries
    // are to be refused, and those that are carried out get addresses of live buffers of the size
    // that they want.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    match result {
        -1 => Err(last_errno()),
        value => Ok(value),
    }
}

/// A string's address, for [`call`].
pub fn address(text: &CStr) -> u64 {
    text.as_ptr() as u64
}

/// A buffer's address, for [`call`].
pub fn buffer(bytes: &mut [u8]) -> u64 {
    bytes.as_mut_ptr() as u64
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// `clone` with these flags, as `fork` does it: the child ends at once, and is waited for.
pub fn clone(flags: u64) -> Result<(), i32> {
    match call(libc::SYS_clone, &[flags | libc::SIGCHLD as u64])? {
        0 => exit(0),
        child => {
            wait(child as i32);
            Ok(())
        }
    }
}

/// A child that does this and ends with what it returns.
pub fn fork(child: impl FnOnce() -> i32) -> Result<i32, i32> {
    // SAFETY: the attacker has one thread, so the child finds no lock held.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => exit(child()),
        pid => Ok(pid),
    }
}

/// Waits for a child, and says how it ended (as `waitpid` does).
pub fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is live.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == -1 && last_errno() == libc::EINTR {}
    status
}

/// Ends this process without anything that would run at exit.
pub fn exit(code: i32) -> ! {
    // SAFETY: no pointers; it does not return.
    unsafe { libc::_exit(code) }
}

/// Waits for a signal, for ever.
pub fn pause() -> ! {
    loop {
        // SAFETY: no pointers.
        unsafe { libc::pause() };
    }
}

/// Ignores this signal from here on.
pub fn ignore(signal: i32) {
    // SAFETY: `SIG_IGN` is a disposition, no function of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// A 32-bit system call (`int 0x80`) with this number and without arguments.
#[cfg(target_arch = "x86_64")]
pub fn call_32(number: u32) -> Result<i64, i32> {
    let result: i32;
    // SAFETY: calls without arguments touch no memory; every register that the entry may change is
    // named.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") number => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nostack)
        );
    }
    match result {
        -4095..0 => Err(-result),
        value => Ok(value.into()),
    }
}
