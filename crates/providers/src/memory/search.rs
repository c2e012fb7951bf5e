//! GlobWalk and grep over files in memory, by the same rules as the guest's.

use std::io::BufReader;

use eyot::{Error, GlobOptions, GlobResult, GrepMatch, GrepOptions, GrepResult, Result};
use eyot_guest::glob_pattern::{MatchProgress, Pattern, PatternError};
use eyot_guest::line_search::{Bounds, MAX_ANSWER_BYTES, Matcher, Search, SearchHalt};
use tokio_util::sync::CancellationToken;

use super::content::FileContent;
use super::files::MemoryFiles;
use super::names::{FileName, joined, shown};
use super::node::{FileAccess, NodeContent, NodeId};
use super::tree::FileTree;
use super::walk::Last;

fn refused(error: PatternError) -> Error {
    Error::new(eyot::ErrorKind::Invalid, error.0)
}

/// Finds files and links whose path matches.
pub(super) fn glob(files: &MemoryFiles, options: &GlobOptions) -> Result<GlobResult> {
    let pattern = Pattern::new(&options.pattern, options.hidden).map_err(refused)?;
    let inner = files.lock();
    let root = inner.find(&options.root, Last::Follow)?.found()?;
    inner.tree.entries(root)?;
    inner.tree.node(root).check(FileAccess::Read)?;
    let base = options.root.path.as_str().trim_end_matches('/').to_owned();
    let mut glob = GlobWalk {
        tree: &inner.tree,
        pattern,
        base,
        bytes: 0,
        left: options.max_results,
        found: GlobResult::default(),
    };
    let start = glob.pattern.start();
    glob.directory(root, &mut Vec::new(), &start);
    glob.found.paths.sort();
    Ok(glob.found)
}

struct GlobWalk<'a> {
    tree: &'a FileTree,
    pattern: Pattern,
    base: String,
    bytes: usize,
    left: u32,
    found: GlobResult,
}

impl GlobWalk<'_> {
    /// Goes through a directory and those below it in which something can match.
    fn directory(&mut self, id: NodeId, names: &mut Vec<FileName>, progress: &MatchProgress) {
        let tree = self.tree;
        let node = tree.node(id);
        let (Ok(entries), Ok(())) = (tree.entries(id), node.check(FileAccess::Read)) else { return };
        for (name, id) in entries {
            if self.found.truncated {
                return;
            }
            let is_directory = tree.node(*id).is_directory();
            names.push(name.clone());
            if is_directory {
                let inside = self.pattern.enter(progress, name);
                if !inside.is_dead() {
                    self.directory(*id, names, &inside);
                }
            } else if self.pattern.matches(progress, name) {
                self.add(names);
            }
            names.pop();
        }
    }

    fn add(&mut self, names: &[FileName]) {
        let path = format!("{}/{}", self.base, shown(&joined(names)));
        self.bytes += path.len() + 5;
        if self.left == 0 || self.bytes > MAX_ANSWER_BYTES {
            self.found.truncated = true;
            return;
        }
        self.left -= 1;
        self.found.paths.push(path);
    }
}

/// Finds lines that match, sorted by path and line. It goes on until `stop` is cancelled.
pub(super) fn grep(
    files: &MemoryFiles,
    options: &GrepOptions,
    stop: &CancellationToken,
) -> Result<GrepResult> {
    let matcher =
        Matcher::new(&options.pattern, options.literal, options.ignore_case, options.include.as_deref());
    let bounds = Bounds { max_matches: options.max_matches, max_line_bytes: options.max_line_bytes };
    let mut search = Search::new(matcher.map_err(refused)?, bounds);
    for (path, content) in searched(files, options, &search.matcher)? {
        match search.file(&path, BufReader::new(content.reader()), &|| stop.is_cancelled()) {
            Ok(()) => {}
            Err(SearchHalt::Stopped) => return Err(Error::new(eyot::ErrorKind::Cancelled, "cancelled")),
            Err(SearchHalt::Unreadable(error)) => return Err(Error::host("search a file in memory", error)),
        }
        if search.found.truncated {
            break;
        }
    }
    let matches = search.found.matches.into_iter().map(|line| GrepMatch {
        path: line.path,
        line_number: line.line_number,
        line: line.line,
        line_truncated: line.line_truncated,
    });
    Ok(GrepResult { matches: matches.collect(), truncated: search.found.truncated })
}

/// Lists the files to search with what is in them now. Nothing is copied.
fn searched(
    files: &MemoryFiles,
    options: &GrepOptions,
    matcher: &Matcher,
) -> Result<Vec<(String, FileContent)>> {
    let inner = files.lock();
    let root = inner.find(&options.root, Last::Follow)?.found()?;
    let base = options.root.path.as_str().trim_end_matches('/');
    if !inner.tree.node(root).is_directory() {
        let content = inner.content_of(root)?;
        let name = options.root.path.file_name().as_bytes();
        return Ok(if matcher.wants(name, name) { vec![(base.to_owned(), content)] } else { Vec::new() });
    }
    inner.tree.node(root).check(FileAccess::Read)?;
    let mut all: Vec<(Vec<u8>, FileContent)> = inner
        .tree
        .below(root)
        .filter_map(|(names, id)| {
            let node = inner.tree.node(id);
            let path = joined(&names);
            let name = names.last().map_or(&b""[..], Vec::as_slice);
            match &node.content {
                NodeContent::File(content)
                    if node.check(FileAccess::Read).is_ok() && matcher.wants(&path, name) =>
                {
                    Some((path, content.clone()))
                }
                _ => None,
            }
        })
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(all.into_iter().map(|(path, content)| (format!("{base}/{}", shown(&path)), content)).collect())
}
