//! The differences between two trees that do not change any more.

use eyot::internal::{ChangeCollector, TextDiffs};
use eyot::{ChangeKind, CompareOptions, ComparedFile, ComparedFileType, FileChange, FileChanges};

use super::frozen::FrozenFiles;
use super::names::{FileName, joined, shown};
use super::node::{FileNode, NodeContent, NodeId, NodeKind};

/// The most bytes of content that one comparison reads, holes included. What is not read counts as changed.
const MAX_READ_BYTES: u64 = 4 << 30;

/// A name that is to be looked at, on both sides.
struct ComparedName {
    names: Vec<FileName>,
    from: Option<NodeId>,
    to: Option<NodeId>,
}

/// Compares two trees. Takes as long as it takes to read what differs.
pub(super) fn compare(from: &FrozenFiles, to: &FrozenFiles, options: &CompareOptions) -> FileChanges {
    let top = &options.path;
    let mut changes = ChangeCollector::default();
    let mut texts = TextDiffs::new(options.text);
    let mut readable = MAX_READ_BYTES;
    let names: Vec<FileName> = top
        .as_str()
        .split('/')
        .filter(|name| !name.is_empty())
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let [first, second] = [from, to].map(|side| descend(side, &names));
    let mut left = if names.is_empty() || is_directory(from, first) && is_directory(to, second) {
        children(from, to, &ComparedName { names, from: first, to: second })
    } else {
        vec![ComparedName { names, from: first, to: second }]
    };
    while let Some(next) = left.pop() {
        if let Some(change) = change(from, to, &next, &mut readable) {
            let sides = [next.from.and_then(|id| from.node(id)), next.to.and_then(|id| to.node(id))];
            let text = text(&mut texts, &change.path, sides);
            if !changes.add(FileChange { text, ..change }) {
                break;
            }
        }
        left.extend(children(from, to, &next));
    }
    changes.finish()
}

/// Goes down to what a tree has under these names. Links are not followed.
fn descend(side: &FrozenFiles, names: &[FileName]) -> Option<NodeId> {
    names.iter().try_fold(side.root(), |id, name| side.entry(id, name))
}

fn is_directory(side: &FrozenFiles, id: Option<NodeId>) -> bool {
    id.and_then(|id| side.node(id)).is_some_and(FileNode::is_directory)
}

/// Lists the names that a directory has on either side.
fn children(from: &FrozenFiles, to: &FrozenFiles, parent: &ComparedName) -> Vec<ComparedName> {
    let entry = |side: &FrozenFiles, id: Option<NodeId>, name: &[u8]| id.and_then(|id| side.entry(id, name));
    let names = |side, id: Option<NodeId>| names_of(side, id);
    let mut all = [names(from, parent.from), names(to, parent.to)].concat();
    all.sort_unstable();
    all.dedup();
    let child = |name: FileName| ComparedName {
        from: entry(from, parent.from, &name),
        to: entry(to, parent.to, &name),
        names: [parent.names.as_slice(), &[name]].concat(),
    };
    all.into_iter().map(child).collect()
}

fn names_of(side: &FrozenFiles, id: Option<NodeId>) -> Vec<FileName> {
    id.into_iter().flat_map(|id| side.entries(id)).map(|(name, _)| name.clone()).collect()
}

fn change(
    from: &FrozenFiles,
    to: &FrozenFiles,
    name: &ComparedName,
    readable: &mut u64,
) -> Option<FileChange> {
    let before = name.from.and_then(|id| from.node(id));
    let after = name.to.and_then(|id| to.node(id));
    let change = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Removed,
        (Some(one), Some(other)) if is_same(one, other, readable) => return None,
        (Some(_), Some(_)) => ChangeKind::Changed,
    };
    let path = format!("/{}", shown(&joined(&name.names)));
    let (before, after) = (before.map(compared_file), after.map(compared_file));
    Some(FileChange { path, change, before, after, text: None })
}

/// Makes the diff of a file, if it is asked for and can be had.
fn text(texts: &mut TextDiffs, path: &str, sides: [Option<&FileNode>; 2]) -> Option<String> {
    if sides.iter().flatten().any(|node| node.kind() != NodeKind::File) {
        return None;
    }
    let sizes = sides.map(|side| side.map_or(0, FileNode::size));
    if !texts.may_read(sizes) {
        return None;
    }
    let bytes = |side: Option<&FileNode>| match &side?.content {
        NodeContent::File(content) => Some(content.whole()),
        _ => None,
    };
    let [before, after] = sides.map(bytes);
    texts.diff(path, before.as_deref(), after.as_deref())
}

fn is_same(one: &FileNode, other: &FileNode, readable: &mut u64) -> bool {
    if compared_file(one) != compared_file(other) {
        return false;
    }
    match (&one.content, &other.content) {
        (NodeContent::File(one), NodeContent::File(other)) => one.is_same(other, readable).unwrap_or(false),
        (NodeContent::Link(one), NodeContent::Link(other)) => one == other,
        (NodeContent::Device(one), NodeContent::Device(other)) => one == other,
        (NodeContent::Directory(_), NodeContent::Directory(_)) => true,
        // What waits in a fifo is no content of it.
        (NodeContent::Fifo(_), NodeContent::Fifo(_)) => true,
        _ => false,
    }
}

fn compared_file(node: &FileNode) -> ComparedFile {
    let file_type = match node.kind() {
        NodeKind::File => ComparedFileType::File,
        NodeKind::Directory => ComparedFileType::Directory,
        NodeKind::Link => ComparedFileType::Symlink,
        NodeKind::Fifo | NodeKind::Device => ComparedFileType::Other,
    };
    let size_bytes = if file_type == ComparedFileType::File { node.size() } else { 0 };
    ComparedFile { file_type, size_bytes, mode: node.mode & 0o7777 }
}
