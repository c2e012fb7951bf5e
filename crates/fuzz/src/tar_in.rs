//! Archives that the guest unpacks, as any bytes. Nothing outside of the folder is touched, no link
//! is followed, and nothing but files, directories and links is made, within the limits. If the
//! folder confines, no link in it leads out.

use eyot_guest::program::fuzzing;
use eyot_guest::protocol::Location;

use crate::fuzz_folder::{FuzzFolder, Links};
use crate::tarball;

const MAX_BYTES: u64 = 64 << 10;
const MAX_ENTRIES: u64 = 40;

/// The bit of the input's first byte for a folder that confines.
const CONFINED: u8 = 1;
/// The bit of the input's first byte for checksums that stay as they are.
const AS_IT_IS: u8 = 2;

/// Unpacks `data`; the bits of its first byte say how.
pub fn run(data: &[u8]) {
    let Some((how, archive)) = data.split_first() else {
        return;
    };
    let mut archive = archive.to_vec();
    if how & AS_IT_IS == 0 {
        tarball::repair(&mut archive);
    }
    let fuzz_folder = FuzzFolder::new(true);
    let folder = fuzz_folder.folder().to_str().expect("a path in UTF-8").to_owned();
    let confined = how & CONFINED != 0;
    let location = Location { path: folder.clone(), beneath: confined.then_some(folder) };
    let size = usize::from(how >> 2) * 16 + 1;
    match fuzzing::tar_in(location, &archive, size, MAX_BYTES, MAX_ENTRIES) {
        Ok(entries) => assert!(entries <= MAX_ENTRIES, "{entries} entries were made"),
        Err(refusal) => assert!(!refusal.message.is_empty() && refusal.kind != "internal", "{refusal:?}"),
    }
    fuzz_folder.assert_untouched();
    fuzz_folder.assert_harmless(if confined { Links::Inside } else { Links::Anywhere });
}

/// Returns the fuzzer's starting inputs.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    tarball::seeds(0xfc | CONFINED)
}
