//! The reason at the bottom of an error of a library.

use std::error::Error;
use std::io;

use eyot::internal::system_reason;

/// Returns the words of the error at the bottom: the host has no address, or nobody listens there.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let deepest = deepest(error);
    deepest.downcast_ref().map_or_else(|| deepest.to_string(), system_reason)
}

/// Tells whether the system has refused it to this user.
#[cfg(feature = "remote")]
pub(crate) fn is_forbidden(error: &(dyn Error + 'static)) -> bool {
    deepest(error).downcast_ref().map(io::Error::kind) == Some(io::ErrorKind::PermissionDenied)
}

fn deepest<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest
}
