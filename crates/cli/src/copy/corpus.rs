//! Copies out of a sandbox, tested with the archives that the fuzzers of the guest's and the
//! images' unpacking have found. This is the third reader of tar streams, and archives that are
//! hostile to the others are hostile to it.

use std::fs;
use std::path::Path;

use super::tree::read_tree;
use super::unpack::TreeUnpacker;

/// The root names of the corpus's archives.
const ROOTS: [&str; 4] = ["d", "x", "l", "there"];
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus");
const MAX_BYTES: u64 = 1 << 20;

fn copy_out(archive: &[u8], root: &str, into: &Path) {
    let Ok(mut unpacker) = TreeUnpacker::new(into) else { panic!("the destination can't be made") };
    let copied = read_tree(archive, root, MAX_BYTES, |entry, content| unpacker.write(&entry, content));
    // Refused or not: nothing may have left the destination.
    drop(copied);
    assert!(unpacker.finish().bytes <= MAX_BYTES);
}

#[test]
fn f4_no_archive_of_the_corpus_is_copied_to_anywhere_but_the_destination() {
    let mut tried = 0;
    for target in ["tar_in", "image"] {
        for entry in fs::read_dir(Path::new(CORPUS).join(target)).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            // The first byte says how the target unpacks.
            for root in ROOTS {
                let outer = tempfile::tempdir().unwrap();
                fs::write(outer.path().join("canary"), "alive").unwrap();
                copy_out(&bytes[1..], root, &outer.path().join("folder"));
                assert_eq!(fs::read_to_string(outer.path().join("canary")).unwrap(), "alive");
                assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 2, "something was made outside");
                tried += 1;
            }
        }
    }
    assert!(tried > 0, "there is no corpus");
}
