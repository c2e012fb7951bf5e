//! The names of the attributes that a file has.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::io::Errno;

/// The most bytes that the names of a file's attributes take: `XATTR_LIST_MAX`. No value is longer either.
pub(crate) const XATTR_MAX: usize = 65_536;
/// Nearly no file's names take more.
const USUAL: usize = 1024;

/// Lists the attributes of a file, or of a link itself.
pub(crate) fn attribute_names(path: &Path) -> io::Result<Vec<OsString>> {
    let mut names = vec![0; USUAL];
    let length = match rustix::fs::llistxattr(path, &mut names[..]) {
        Err(Errno::RANGE) => {
            names.resize(XATTR_MAX, 0);
            rustix::fs::llistxattr(path, &mut names[..])?
        }
        length => length?,
    };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsString::from_vec(name.to_vec())).collect())
}
