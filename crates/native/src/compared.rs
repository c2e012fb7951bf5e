//! The differences between the files of two sides that lie over the same image. Only what the layers that they do not share
//! have touched is looked at. What an ordinary user can't read, since the sandbox has closed it, counts as changed.

use std::ffi::CString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use eyot::internal::{ChangeCollector, TextDiffs};
use eyot::{ChangeKind, ComparedFile, ComparedFileType, FileChange, FileChanges};
use rustix::fs::{FileType, Stat};

use crate::merged_layers::{MAX_NAMES, MergedDirectory, MergedLayers, ShownName, joined};

/// Folders that the sandbox mounts onto, and files that name it: each sandbox has its own.
pub(crate) const OWN: [&str; 7] =
    ["dev", "proc", "sys", "run", "etc/hosts", "etc/hostname", "etc/resolv.conf"];

/// The most bytes of content that one comparison reads. Whoever fills a sandbox decides how large its files are, holes
/// included. What is not read counts as changed.
const MAX_READ_BYTES: u64 = 4 << 30;

/// Two sides that are compared: all that they have, or what they have at one mount.
pub(crate) struct ComparedPart {
    pub from: MergedLayers,
    pub to: MergedLayers,
    /// The mount point, relative to the root.
    pub point: PathBuf,
    /// Only what lies here and below, relative to the mount point.
    pub top: PathBuf,
}

/// Two sides that are compared.
struct LayerComparison<'a> {
    from: &'a MergedLayers,
    to: &'a MergedLayers,
    point: &'a Path,
    /// The number of the topmost layers of each side that the other does not have.
    own: [usize; 2],
    changes: ChangeCollector,
    /// The bytes of content that may still be read.
    readable_bytes: u64,
    /// The diffs of texts.
    texts: TextDiffs,
    /// The directories that are still to be looked at.
    left: Vec<ComparedDirectory>,
}

/// A directory that is to be looked at.
struct ComparedDirectory {
    path: PathBuf,
    from: Vec<usize>,
    to: Vec<usize>,
    /// Every name counts, not only those that a layer of one side has.
    whole: bool,
    /// The directory on each side.
    sides: [Option<ComparedFile>; 2],
    /// It is among the changes.
    is_told: bool,
}

/// The bounds and results that all parts of a comparison share.
struct ComparisonTotals {
    changes: ChangeCollector,
    readable_bytes: u64,
    texts: TextDiffs,
}

/// Compares the parts of two sides. Blocks for as long as it takes to read what differs.
pub(crate) fn compare(parts: &[ComparedPart], text: bool) -> io::Result<FileChanges> {
    let mut totals = ComparisonTotals {
        changes: ChangeCollector::default(),
        readable_bytes: MAX_READ_BYTES,
        texts: TextDiffs::new(text),
    };
    for part in parts {
        totals = compare_part(part, totals)?;
    }
    Ok(totals.changes.finish())
}

fn compare_part(part: &ComparedPart, totals: ComparisonTotals) -> io::Result<ComparisonTotals> {
    let ComparedPart { from, to, point, top } = part;
    let own = [from.own_layers(to), to.own_layers(from)];
    let root = ComparedDirectory {
        path: PathBuf::new(),
        from: from.places(),
        to: to.places(),
        whole: false,
        sides: [None, None],
        is_told: false,
    };
    if own == [0, 0] {
        return Ok(totals);
    }
    let ComparisonTotals { changes, readable_bytes, texts } = totals;
    let mut comparison =
        LayerComparison { from, to, point, own, changes, readable_bytes, texts, left: Vec::new() };
    comparison.descend(root, top)?;
    while !comparison.changes.is_full()
        && let Some(directory) = comparison.left.pop()
    {
        comparison.look_into(&directory)?;
    }
    let LayerComparison { changes, readable_bytes, texts, .. } = comparison;
    Ok(ComparisonTotals { changes, readable_bytes, texts })
}

impl LayerComparison<'_> {
    /// Goes down to the directory `top`, and begins there. A leaf at its end is compared alone.
    fn descend(&mut self, root: ComparedDirectory, top: &Path) -> io::Result<()> {
        let mut directory = root;
        for part in top.iter() {
            // The directories on the way are not asked for.
            self.changes.clear();
            let name = CString::new(std::os::unix::ffi::OsStrExt::as_bytes(part))?;
            let opened = self.open(&directory)?;
            self.look_at(&directory, &opened, &name)?;
            let Some(below) = self.left.pop() else { return Ok(()) };
            directory = below;
        }
        self.left.push(directory);
        Ok(())
    }

    /// Returns a path as the sandbox knows it.
    fn shown(&self, path: &Path) -> String {
        format!("/{}", self.point.join(path).display())
    }

    fn look_into(&mut self, directory: &ComparedDirectory) -> io::Result<()> {
        match self.look_at_all(directory) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.note_closed(directory);
                Ok(())
            }
            looked => looked,
        }
    }

    fn look_at_all(&mut self, directory: &ComparedDirectory) -> io::Result<()> {
        let opened = self.open(directory)?;
        let ends = if directory.whole { [usize::MAX; 2] } else { self.own };
        let mut names = Vec::new();
        let has_all = opened[0].add_names(ends[0], &mut names, MAX_NAMES)?
            && opened[1].add_names(ends[1], &mut names, MAX_NAMES)?;
        names.sort_unstable();
        names.dedup();
        for name in &names {
            if self.changes.is_full() {
                return Ok(());
            }
            self.look_at(directory, &opened, name)?;
        }
        if !has_all {
            self.changes.cut();
        }
        Ok(())
    }

    /// Tells of a directory that can't be looked into.
    fn note_closed(&mut self, directory: &ComparedDirectory) {
        if !directory.is_told {
            let [before, after] = directory.sides.clone();
            let path = self.shown(&directory.path);
            self.changes.add(FileChange { path, change: ChangeKind::Changed, before, after, text: None });
        }
    }

    /// Opens a directory on both sides.
    fn open(&self, directory: &ComparedDirectory) -> io::Result<[MergedDirectory; 2]> {
        let ComparedDirectory { path, from, to, .. } = directory;
        Ok([self.from.directory(path, from)?, self.to.directory(path, to)?])
    }

    /// Compares one name of a directory, and notes what is below for later.
    fn look_at(
        &mut self,
        directory: &ComparedDirectory,
        opened: &[MergedDirectory; 2],
        name: &CString,
    ) -> io::Result<()> {
        let path = joined(&directory.path, name);
        if OWN.iter().any(|own| self.point.join(&path) == Path::new(own)) {
            return Ok(());
        }
        let (from, to) = (opened[0].look(name)?, opened[1].look(name)?);
        let (before, after) = (compared(&from), compared(&to));
        let change = match (&before, &after) {
            (None, None) => None,
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Removed),
            (Some(one), Some(other)) if one != other => Some(ChangeKind::Changed),
            _ => (!self.has_same_content(&path, &from, &to)?).then_some(ChangeKind::Changed),
        };
        let has_changed = change.is_some();
        if let Some(change) = change {
            let shown = self.shown(&path);
            let text = self.text(&shown, &path, &from, &to)?;
            let (before, after) = (before.clone(), after.clone());
            self.changes.add(FileChange { path: shown, change, before, after, text });
        }
        let below = ComparedDirectory {
            path,
            from: Vec::new(),
            to: Vec::new(),
            whole: directory.whole,
            sides: [before, after],
            is_told: has_changed,
        };
        self.note_below(below, from, to);
        Ok(())
    }

    /// Notes a directory for later, if the layers that the sides do not share have touched it.
    fn note_below(&mut self, directory: ComparedDirectory, from: ShownName, to: ShownName) {
        let (from, from_hides) = places(from, self.own[0]);
        let (to, to_hides) = places(to, self.own[1]);
        let is_one_sided = from.is_empty() != to.is_empty();
        if from.is_empty() && to.is_empty() {
            return;
        }
        let whole = directory.whole || from_hides || to_hides || (directory.is_told && is_one_sided);
        let is_own = |places: &[usize], own: usize| places.iter().any(|place| *place < own);
        if whole || is_own(&from, self.own[0]) || is_own(&to, self.own[1]) {
            self.left.push(ComparedDirectory { from, to, whole, ..directory });
        }
    }

    /// Makes the diff of a file, if it is asked for and can be had.
    fn text(
        &mut self,
        shown: &str,
        path: &Path,
        from: &ShownName,
        to: &ShownName,
    ) -> io::Result<Option<String>> {
        let sizes = [from, to].map(file_size);
        let is_other =
            |side: &ShownName, size: Option<u64>| size.is_none() && !matches!(side, ShownName::Nothing);
        if is_other(from, sizes[0])
            || is_other(to, sizes[1])
            || !self.texts.may_read(sizes.map(Option::unwrap_or_default))
        {
            return Ok(None);
        }
        let before = content(self.from, path, from, sizes[0])?;
        let after = content(self.to, path, to, sizes[1])?;
        if before.is_some() != sizes[0].is_some() || after.is_some() != sizes[1].is_some() {
            return Ok(None);
        }
        Ok(self.texts.diff(shown, before.as_deref(), after.as_deref()))
    }

    /// Takes the bytes of a file off those that may be read; `false`: they are too many.
    fn may_read(&mut self, bytes: u64) -> bool {
        let left = self.readable_bytes.checked_sub(bytes);
        self.readable_bytes = left.unwrap_or(self.readable_bytes);
        left.is_some()
    }

    /// Tells whether two leaves of the same kind, size and mode have the same content.
    fn has_same_content(&mut self, path: &Path, from: &ShownName, to: &ShownName) -> io::Result<bool> {
        let (ShownName::Leaf { place: one, stat }, ShownName::Leaf { place: other, stat: stat_after }) =
            (from, to)
        else {
            return Ok(true);
        };
        if (stat.st_dev, stat.st_ino) == (stat_after.st_dev, stat_after.st_ino) {
            return Ok(true);
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Ok(self.from.target(*one, path)? == self.to.target(*other, path)?),
            FileType::RegularFile if !self.may_read(stat.st_size.unsigned_abs()) => Ok(false),
            FileType::RegularFile => match (self.from.file(*one, path)?, self.to.file(*other, path)?) {
                (Some(one), Some(other)) => same_bytes(one, other, stat.st_size.unsigned_abs()),
                _ => Ok(false),
            },
            _ => Ok(stat.st_rdev == stat_after.st_rdev),
        }
    }
}

/// Returns the size of a regular file; of anything else none.
fn file_size(shown: &ShownName) -> Option<u64> {
    match shown {
        ShownName::Leaf { stat, .. } if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Some(stat.st_size.unsigned_abs())
        }
        _ => None,
    }
}

/// Reads a regular file, no more of it than it had when it was looked at.
fn content(
    side: &MergedLayers,
    path: &Path,
    shown: &ShownName,
    size: Option<u64>,
) -> io::Result<Option<Vec<u8>>> {
    let (ShownName::Leaf { place, .. }, Some(size)) = (shown, size) else { return Ok(None) };
    let Some(file) = side.file(*place, path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Returns the layers of a directory, and whether one of the `own` topmost hides those below.
fn places(shown: ShownName, own: usize) -> (Vec<usize>, bool) {
    match shown {
        ShownName::Directory { places, hidden_by, .. } => {
            (places, hidden_by.is_some_and(|place| place < own))
        }
        ShownName::Nothing | ShownName::Leaf { .. } => (Vec::new(), false),
    }
}

fn compared(shown: &ShownName) -> Option<ComparedFile> {
    let (ShownName::Leaf { stat, .. } | ShownName::Directory { stat, .. }) = shown else { return None };
    Some(compared_file(stat))
}

fn compared_file(stat: &Stat) -> ComparedFile {
    let file_type = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => ComparedFileType::File,
        FileType::Directory => ComparedFileType::Directory,
        FileType::Symlink => ComparedFileType::Symlink,
        _ => ComparedFileType::Other,
    };
    let size = if file_type == ComparedFileType::File { stat.st_size } else { 0 };
    ComparedFile { file_type, size_bytes: size.unsigned_abs(), mode: stat.st_mode & 0o7777 }
}

fn same_bytes(one: impl Read, other: impl Read, size: u64) -> io::Result<bool> {
    const PIECE_BYTES: usize = 64 << 10;
    // A file of a sandbox that runs may grow meanwhile.
    let (mut one, mut other) = (one.take(size), other.take(size));
    let mut pieces = [vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]];
    loop {
        let [first, second] = &mut pieces;
        let read = one.read(first)?;
        if read == 0 {
            return Ok(other.read(&mut second[..1])? == 0);
        }
        match other.read_exact(&mut second[..read]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if first[..read] != second[..read] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    /// Makes a directory of `depth` directories with names of 200 bytes, and a file at the end.
    fn make_deep(top: &Path, depth: usize, text: &str) {
        fs::create_dir(top).unwrap();
        let mut at = rustix::fs::openat(rustix::fs::CWD, top, OFlags::DIRECTORY, Mode::empty()).unwrap();
        let name = "d".repeat(200);
        for _ in 0..depth {
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, &name, OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        let file = rustix::fs::openat(&at, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
        rustix::io::write(&file, text.as_bytes()).unwrap();
    }

    fn part(paths: &[PathBuf; 2]) -> ComparedPart {
        let [from, to] = paths.clone().map(|path| MergedLayers::open(vec![path]).unwrap());
        ComparedPart { from, to, point: PathBuf::new(), top: PathBuf::new() }
    }

    #[test]
    fn what_lies_deeper_than_one_path_reaches_is_compared() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one", "other"].map(|name| folder.path().join(name));
        for (path, text) in paths.iter().zip(["1", "2"]) {
            make_deep(path, 45, text);
        }
        let found = compare(&[part(&paths)], true).unwrap();
        let [change] = &found.changes[..] else { panic!("{found:?}") };
        assert!(change.path.len() == 45 * 201 + 2 && change.path.ends_with("d/f"), "{change:?}");
        assert!(change.text.as_deref().is_some_and(|text| text.contains("-1")), "{change:?}");
    }

    #[test]
    fn no_more_names_of_a_directory_are_taken_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        ["a", "b", "c"].iter().for_each(|name| drop(fs::File::create(folder.path().join(name)).unwrap()));
        let layers = MergedLayers::open(vec![folder.path().to_owned()]).unwrap();
        let directory = layers.directory(Path::new(""), &[0]).unwrap();
        for (most, has_all) in [(3, true), (2, false)] {
            let mut names = Vec::new();
            assert_eq!(directory.add_names(usize::MAX, &mut names, most).unwrap(), has_all);
            assert_eq!(names.len(), most);
        }
    }

    #[test]
    fn content_is_read_up_to_the_limit_and_what_is_larger_counts_as_changed() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one", "other"].map(|name| folder.path().join(name));
        for (path, sizes) in paths.iter().zip([[MAX_READ_BYTES + 1, 3], [MAX_READ_BYTES + 1, 3]]) {
            fs::create_dir(path).unwrap();
            for (name, size) in ["huge", "small"].into_iter().zip(sizes) {
                fs::File::create(path.join(name)).unwrap().set_len(size).unwrap();
            }
        }
        let found = compare(&[part(&paths)], false).unwrap();
        assert_eq!(found.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["/huge"]);
        let [one, other] = paths.map(|path| MergedLayers::open(vec![path]).unwrap());
        let (own, point) = ([1, 1], Path::new(""));
        let (changes, left) = (ChangeCollector::default(), Vec::new());
        let (readable_bytes, texts) = (MAX_READ_BYTES, TextDiffs::new(false));
        let mut edge =
            LayerComparison { from: &one, to: &other, point, own, changes, readable_bytes, texts, left };
        assert!(edge.may_read(MAX_READ_BYTES) && !edge.may_read(1) && edge.may_read(0));
    }
}
