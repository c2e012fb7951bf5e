//! The differences between the files of two containers, as the Engine's archives have them. All files of both sides are read
//! once, to a digest each, and those with a diff once more.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};

use eyot::internal::{ChangeCollector, TextDiffs};
use eyot::{
    ChangeKind, CompareOptions, ComparedFile, ComparedFileType, FileChange, FileChanges, Result, SandboxPath,
};
use sha2::{Digest, Sha256};
use tar::EntryType;

use super::archive::{ArchiveEntry, fold_archive};
use super::host::Host;

/// The most bytes of content that are read of one side. Whoever fills a sandbox decides how large its files are, holes included.
const MAX_READ_BYTES: u64 = 4 << 30;
/// The most bytes of a file that is read for a diff.
const MAX_DIFFED_BYTES: u64 = 1 << 20;
/// The paths that the Engine and Eyot make in every container, and file systems of the kernel's.
const OWN: [&str; 10] = [
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/.dockerenv",
    "/.eyot-guest",
    "/.eyot-run",
];

/// One side of a comparison: a container, and the paths at which others' files are mounted into it.
pub(crate) struct ComparedContainer {
    pub id: String,
    pub mounted: Vec<String>,
}

/// A file of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexedFile {
    file: ComparedFile,
    /// The digest of a file's content, the target of a link, or the numbers of a device.
    content: Vec<u8>,
}

/// A change, with the path in the bytes that it really has.
type ChangeOfPath = (Vec<u8>, FileChange);

/// The files of one side, by path.
#[derive(Debug, Default)]
struct FileIndex {
    files: BTreeMap<Vec<u8>, IndexedFile>,
    left_out: Vec<String>,
    read_bytes: u64,
}

/// The contents of some files of one side.
#[derive(Default)]
struct WantedContents {
    wanted: BTreeSet<Vec<u8>>,
    contents: HashMap<Vec<u8>, Vec<u8>>,
}

/// Compares what two containers have at a path and below.
pub(crate) async fn compare(
    host: &Host,
    sides: [&ComparedContainer; 2],
    options: &CompareOptions,
) -> Result<FileChanges> {
    let left_out: Vec<String> = OWN.iter().map(|path| (*path).to_owned()).collect();
    let left_out = [left_out, sides[0].mounted.clone(), sides[1].mounted.clone()].concat();
    let index = |side: &ComparedContainer| {
        let index = FileIndex { left_out: left_out.clone(), ..FileIndex::default() };
        let container = side.id.clone();
        async move { fold_archive(host, &container, &options.path, index, FileIndex::add).await }
    };
    let (before, after) = tokio::try_join!(index(sides[0]), index(sides[1]))?;
    let mut texts = TextDiffs::new(options.text);
    let (changes, wanted) = changes(&before.files, &after.files, options, &mut texts);
    let (before, after) =
        tokio::try_join!(contents(host, &sides[0].id, &wanted), contents(host, &sides[1].id, &wanted))?;
    Ok(with_texts(changes, &mut texts, &before, &after))
}

impl FileIndex {
    fn add(&mut self, entry: ArchiveEntry<'_>) -> io::Result<()> {
        let ArchiveEntry { path, header, target, content } = entry;
        if self.left_out.iter().any(|left_out| is_at_or_below(&path, left_out.as_bytes())) {
            return Ok(());
        }
        let mode = header.mode()? & 0o7777;
        let indexed = match header.entry_type() {
            // Another name of a file that came before it, unless that one is left out.
            EntryType::Link => match self.files.get(&target) {
                Some(file) => file.clone(),
                None => return Ok(()),
            },
            EntryType::Directory => IndexedFile::new(ComparedFileType::Directory, 0, mode, Vec::new()),
            EntryType::Symlink => IndexedFile::new(ComparedFileType::Symlink, 0, mode, target),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let (size, digest) = self.digest(content)?;
                IndexedFile::new(ComparedFileType::File, size, mode, digest)
            }
            other => {
                let device =
                    [header.device_major(), header.device_minor()].map(|number| number.ok().flatten());
                let kind = format!("{other:?} {device:?}").into_bytes();
                IndexedFile::new(ComparedFileType::Other, 0, mode, kind)
            }
        };
        self.files.insert(path, indexed);
        Ok(())
    }

    fn digest(&mut self, content: &mut dyn Read) -> io::Result<(u64, Vec<u8>)> {
        let (mut digest, mut buffer, mut size) = (Sha256::new(), vec![0; 64 << 10], 0);
        loop {
            let count = content.read(&mut buffer)?;
            if count == 0 {
                return Ok((size, digest.finalize().to_vec()));
            }
            digest.update(&buffer[..count]);
            size += count as u64;
            self.read_bytes += count as u64;
            if self.read_bytes > MAX_READ_BYTES {
                let message =
                    format!("compare files: a side has more than {} GiB there", MAX_READ_BYTES >> 30);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
        }
    }
}

impl IndexedFile {
    fn new(file_type: ComparedFileType, size_bytes: u64, mode: u32, content: Vec<u8>) -> Self {
        Self { file: ComparedFile { file_type, size_bytes, mode }, content }
    }
}

fn is_at_or_below(path: &[u8], top: &[u8]) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Finds what differs, and the paths of which a diff is to be made.
fn changes(
    before: &BTreeMap<Vec<u8>, IndexedFile>,
    after: &BTreeMap<Vec<u8>, IndexedFile>,
    options: &CompareOptions,
    texts: &mut TextDiffs,
) -> (Vec<ChangeOfPath>, BTreeSet<Vec<u8>>) {
    let (mut changes, mut wanted) = (Vec::new(), BTreeSet::new());
    let paths: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let (one, other) = (before.get(path), after.get(path));
        let is_asked_for = path.as_slice() == options.path.as_str().trim_end_matches('/').as_bytes();
        let is_directory = |side: Option<&IndexedFile>| {
            side.is_some_and(|side| side.file.file_type == ComparedFileType::Directory)
        };
        // The directory that was asked for is not in it.
        if one == other || is_asked_for && is_directory(one) && is_directory(other) {
            continue;
        }
        let change = match (one, other) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        let are_files =
            [one, other].into_iter().flatten().all(|side| side.file.file_type == ComparedFileType::File);
        let sizes = [one, other].map(|side| side.map_or(0, |side| side.file.size_bytes));
        if are_files && texts.may_read(sizes) {
            wanted.insert(path.clone());
        }
        let (before, after) = (one.map(|side| side.file.clone()), other.map(|side| side.file.clone()));
        let shown = String::from_utf8_lossy(path).into_owned();
        changes.push((path.clone(), FileChange { path: shown, change, before, after, text: None }));
    }
    (changes, wanted)
}

/// Reads the files of which a diff is to be made.
async fn contents(
    host: &Host,
    container: &str,
    wanted: &BTreeSet<Vec<u8>>,
) -> Result<HashMap<Vec<u8>, Vec<u8>>> {
    let Some(top) = common_directory(wanted) else { return Ok(HashMap::new()) };
    let state = WantedContents { wanted: wanted.clone(), contents: HashMap::new() };
    let read = fold_archive(host, container, &top, state, WantedContents::add).await?;
    Ok(read.contents)
}

impl WantedContents {
    fn add(&mut self, entry: ArchiveEntry<'_>) -> io::Result<()> {
        if !self.wanted.contains(&entry.path) {
            return Ok(());
        }
        let mut content = Vec::new();
        match entry.header.entry_type() {
            EntryType::Link => match self.contents.get(&entry.target) {
                Some(other) => content.clone_from(other),
                None => return Ok(()),
            },
            // What has grown since is no longer what was compared.
            _ => drop(entry.content.take(MAX_DIFFED_BYTES).read_to_end(&mut content)?),
        }
        self.contents.insert(entry.path, content);
        Ok(())
    }
}

/// Returns the lowest directory that has all of these paths in it.
fn common_directory(paths: &BTreeSet<Vec<u8>>) -> Option<SandboxPath> {
    let (first, last) = (paths.first()?, paths.last()?);
    // They are sorted, so what these two have in common all have.
    let same = first.iter().zip(last).take_while(|(one, other)| one == other).count();
    let end = first[..same.min(first.len())].iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let text = std::str::from_utf8(&first[..end]).ok().filter(|text| !text.is_empty()).unwrap_or("/");
    SandboxPath::parse(text).ok()
}

fn with_texts(
    changes: Vec<ChangeOfPath>,
    texts: &mut TextDiffs,
    before: &HashMap<Vec<u8>, Vec<u8>>,
    after: &HashMap<Vec<u8>, Vec<u8>>,
) -> FileChanges {
    let mut collected = ChangeCollector::default();
    for (path, change) in changes {
        let sides = [before.get(&path), after.get(&path)].map(|side| side.map(Vec::as_slice));
        let is_read = sides.iter().any(Option::is_some)
            && sides[0].is_some() == change.before.is_some()
            && sides[1].is_some() == change.after.is_some();
        let text = if is_read { texts.diff(&change.path, sides[0], sides[1]) } else { None };
        if !collected.add(FileChange { text, ..change }) {
            break;
        }
    }
    collected.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(files: &[(&str, ComparedFileType, &str)]) -> BTreeMap<Vec<u8>, IndexedFile> {
        let indexed = |(path, kind, content): &(&str, ComparedFileType, &str)| {
            (
                path.as_bytes().to_vec(),
                IndexedFile::new(*kind, content.len() as u64, 0o644, content.as_bytes().to_vec()),
            )
        };
        files.iter().map(indexed).collect()
    }

    #[test]
    fn what_is_on_one_side_only_or_differs_is_a_change_and_texts_are_wanted_of_files() {
        use ComparedFileType::{Directory, File, Symlink};
        let before = index(&[
            ("/w", Directory, ""),
            ("/w/a", File, "1"),
            ("/w/gone", Symlink, "x"),
            ("/w/same", File, "s"),
        ]);
        let after = index(&[
            ("/w", Directory, ""),
            ("/w/a", File, "2"),
            ("/w/new", Directory, ""),
            ("/w/same", File, "s"),
        ]);
        let options = CompareOptions { path: SandboxPath::parse("/w").unwrap(), text: true };
        let (found, wanted) = changes(&before, &after, &options, &mut TextDiffs::new(true));
        let found: Vec<_> = found.into_iter().map(|(_, change)| (change.change, change.path)).collect();
        let expected = [
            (ChangeKind::Changed, "/w/a".to_owned()),
            (ChangeKind::Removed, "/w/gone".to_owned()),
            (ChangeKind::Added, "/w/new".to_owned()),
        ];
        assert_eq!(found, expected);
        assert_eq!(wanted, BTreeSet::from([b"/w/a".to_vec()]));
    }

    #[test]
    fn the_lowest_directory_with_all_paths_is_found() {
        for (paths, top) in [
            (&["/w/a"][..], "/w"),
            (&["/w/a", "/w/ab"], "/w"),
            (&["/w/d/a", "/w/e"], "/w"),
            (&["/a", "/w/e"], "/"),
            (&["/w/a/b", "/w/a/c/d"], "/w/a"),
        ] {
            let paths: BTreeSet<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
            assert_eq!(common_directory(&paths).unwrap().as_str(), top, "{paths:?}");
        }
        assert!(common_directory(&BTreeSet::new()).is_none());
    }

    #[test]
    fn what_is_left_out_is_a_path_and_all_below_it() {
        assert!(is_at_or_below(b"/proc", b"/proc") && is_at_or_below(b"/proc/1", b"/proc"));
        assert!(!is_at_or_below(b"/processes", b"/proc"));
    }
}
