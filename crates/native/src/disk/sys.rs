//! The requests to loop devices that need unsafe code.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
/// Has the device release its file when it is closed for the last time.
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// `struct loop_info64` of <linux/loop.h>.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of <linux/loop.h>.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Returns the number of an unused loop device, which the kernel makes if need be.
pub(super) fn free_number(control: BorrowedFd<'_>) -> io::Result<i32> {
    // SAFETY: this request takes no argument; on another file than the control device it is an error.
    match unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) } {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// Puts a file behind a loop device, until the device is closed and unmounted.
///
/// # Errors
/// `EBUSY` if another process has taken the device first.
pub(super) fn configure(device: BorrowedFd<'_>, image: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain numbers, for which zeroes are valid.
    let mut config: LoopConfig = unsafe { std::mem::zeroed() };
    config.fd = image.as_raw_fd() as u32;
    config.info.flags = LO_FLAGS_AUTOCLEAR;
    // SAFETY: `config` is a live struct laid out as this request reads it; on another file than a loop device the
    // request is an error.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Returns the device and the number of the file behind a loop device.
///
/// # Errors
/// `ENXIO` if there is none.
pub(super) fn file_behind(device: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    // SAFETY: plain numbers, for which zeroes are valid.
    let mut info: LoopInfo = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is a live struct laid out as this request fills it; on another file than a loop device the request is an
    // error.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok((info.device, info.inode)),
    }
}
