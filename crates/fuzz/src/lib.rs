//! Promises about bytes that reach Eyot from outside its trust: from a guest, a client, an archive,
//! a model that names paths and patterns.
//!
//! Each module is one target: a function that takes bytes and panics when a promise is broken. The
//! fuzzer (`cargo xtask fuzz`) looks for such bytes. The tests run every target over `corpus/`,
//! which holds the inputs that the fuzzer found worth keeping. Random bytes rarely get past a
//! checksum or a handshake, so targets whose input begins with one put it right first.

pub mod client;
pub mod frames;
mod fuzz_folder;
pub mod globs;
pub mod image;
pub mod paths;
pub mod requests;
pub mod tar_in;
mod tarball;

/// Something that can be fuzzed.
#[derive(Debug, Clone, Copy)]
pub struct FuzzTarget {
    /// The name of the module and of its folder in `corpus/`.
    pub name: &'static str,
    /// The promise, in a few words.
    pub about: &'static str,
    /// Panics when the bytes break a promise.
    pub run: fn(&[u8]),
    /// Inputs that say what there is, as real ones look: where a fuzzer begins.
    pub seeds: fn() -> Vec<(&'static str, Vec<u8>)>,
}

/// Every target.
pub const TARGETS: [FuzzTarget; 7] = [
    FuzzTarget {
        name: "frames",
        about: "the decoder of frames and messages, of both ends",
        run: frames::run,
        seeds: frames::seeds,
    },
    FuzzTarget {
        name: "client",
        about: "calls of the host's side, answered by a guest that sends anything",
        run: client::run,
        seeds: client::seeds,
    },
    FuzzTarget {
        name: "requests",
        about: "the guest's handshake and the putting together of requests",
        run: requests::run,
        seeds: requests::seeds,
    },
    FuzzTarget {
        name: "tar_in",
        about: "the guest's unpacking of a tar stream",
        run: tar_in::run,
        seeds: tar_in::seeds,
    },
    FuzzTarget {
        name: "image",
        about: "the host's unpacking of an image's tarball",
        run: image::run,
        seeds: image::seeds,
    },
    FuzzTarget {
        name: "paths",
        about: "the parsing of paths and names",
        run: paths::run,
        seeds: paths::seeds,
    },
    FuzzTarget {
        name: "globs",
        about: "the guest's glob patterns, against a second opinion",
        run: globs::run,
        seeds: globs::seeds,
    },
];

/// The target with that name.
pub fn target(name: &str) -> Option<FuzzTarget> {
    TARGETS.into_iter().find(|target| target.name == name)
}
