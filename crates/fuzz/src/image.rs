//! Tarballs that are given as images, as any bytes: nothing outside of the layer is touched or
//! read, nothing in it has a set-id bit, and unpacking ends.

use crate::fuzz_folder::{FuzzFolder, Links};
use crate::tarball;

/// Unpacks `data` as an image. With an even first byte its checksums are put right before.
pub fn run(data: &[u8]) {
    let Some((how, archive)) = data.split_first() else {
        return;
    };
    let mut archive = archive.to_vec();
    if how % 2 == 0 {
        tarball::repair(&mut archive);
    }
    let fuzz_folder = FuzzFolder::new(false);
    std::fs::write(fuzz_folder.input(), &archive).expect("the input");
    match eyot_native::unpack_for_fuzzing(&fuzz_folder.input(), &fuzz_folder.folder()) {
        Ok(passwd) => assert!(!passwd.contains("alive"), "a link led to the canary"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    fuzz_folder.assert_untouched();
    fuzz_folder.assert_harmless(Links::Anywhere);
}

/// Returns the fuzzer's starting inputs.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = tarball::seeds(0);
    seeds.extend(tarball::seeds_of_layers(0));
    seeds
}
