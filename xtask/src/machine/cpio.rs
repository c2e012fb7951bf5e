//! The archive that a kernel unpacks before it starts its first program: cpio in the format `newc`,
//! which is an ASCII header, a name and the content for each file, each padded to four bytes. See
//! `Documentation/driver-api/early-userspace/buffer-format.rst`.

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive that is being written.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds an empty directory.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// Adds a file that may be executed.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, (0, 0), content);
    }

    /// Adds a character device by its numbers.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// The archive with its end mark.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file of less than 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a path of less than 4 GiB");
        // Inode, mode, uid, gid, links, time, size, device (2), device of the node (2), size of the
        // name, checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_padded_to_four_bytes_and_the_end_is_marked() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.program("init", b"12345");
        archive.device("dev/console", 5, 1);
        let bytes = archive.finish();
        assert!(bytes.starts_with(b"070701") && bytes.len() % 4 == 0);
        let text = String::from_utf8_lossy(&bytes).replace('\0', ".");
        assert_eq!(text.matches("070701").count(), 4);
        assert!(text.contains("init.") && text.contains("12345...070701"), "{text}");
        // The console's numbers, and the size of its name with the NUL at its end.
        assert!(text.contains("00000005000000010000000c00000000dev/console."), "{text}");
        assert!(text.trim_end_matches('.').ends_with("TRAILER!!!"), "{text}");
    }
}
