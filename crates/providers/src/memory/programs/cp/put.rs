//! One file, link or fifo is put to its target.

use std::time::SystemTime;

use eyot::{Error, ErrorKind, Result};

use super::super::quoting::quoted;
use super::super::run::reason;
use super::super::target::Pair;
use super::CopyRun;
use crate::memory::content::FileContent;
use crate::memory::files::HeldFiles;
use crate::memory::names::bytes_of;
use crate::memory::node::{FileNode, NodeContent, NodeId, NodeKind};
use crate::memory::place::Place;
use crate::memory::walk::Last;

/// A source as it was found.
pub(super) struct CopySource {
    pub id: Option<NodeId>,
    pub names: Vec<Vec<u8>>,
    pub content: SourceContent,
    pub mode: u32,
    pub modified: SystemTime,
    pub links: u32,
}

pub(super) enum SourceContent {
    File(FileContent),
    Unreadable(&'static str),
    Directory(Vec<Vec<u8>>),
    Link(Vec<u8>),
    Fifo,
    Device,
}

impl CopySource {
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Self {
        Self {
            id: None,
            names: Vec::new(),
            content: SourceContent::File(bytes.into()),
            mode: 0o644,
            modified: SystemTime::now(),
            links: 1,
        }
    }
}

fn failed(what: &str, to: &str, error: &Error) -> String {
    match error.kind() {
        ErrorKind::Quota => format!("error writing {}: {}", quoted(to), reason(error)),
        _ => format!("cannot create {what} {}: {}", quoted(to), reason(error)),
    }
}

impl CopyRun<'_, '_> {
    /// Puts one thing to its target.
    ///
    /// # Errors
    /// The words of what failed.
    pub(super) fn put(&mut self, source: &CopySource, pair: &Pair) -> std::result::Result<NodeId, String> {
        let run = self.run;
        let mut held = run.hold();
        let several = source.id.filter(|_| source.links > 1 && self.options.keeps_hard_links);
        let first = several.and_then(|id| self.linked.get(&id).cloned());
        if self.options.makes_hard_links || first.is_some() {
            let linked = self.put_hard_link(&mut held, first.as_deref().unwrap_or(&pair.from), &pair.to);
            return linked.map_err(|error| failed("hard link", &pair.to, &error));
        }
        if let Some(id) = several {
            self.linked.insert(id, pair.to.clone());
        }
        let (what, put) = match &source.content {
            _ if self.options.makes_links => ("symbolic link", self.put_new_link(&mut held, pair)?),
            SourceContent::Link(target) => {
                let node = FileNode::new(NodeContent::Link(target.clone()), 0o777);
                ("symbolic link", self.put_new(&mut held, &pair.to, node))
            }
            SourceContent::Fifo => {
                let node = FileNode::new(NodeContent::Fifo(Vec::new()), run.masked(source.mode & 0o7777));
                ("fifo", self.put_new(&mut held, &pair.to, node))
            }
            SourceContent::File(content) => {
                ("regular file", self.put_file(&mut held, content, source.mode, &pair.to))
            }
            SourceContent::Unreadable(why) => {
                return Err(format!("cannot open {} for reading: {why}", quoted(&pair.from)));
            }
            SourceContent::Device | SourceContent::Directory(_) => {
                let to = quoted(&pair.to);
                return Err(format!("cannot create special file {to}: Operation not permitted"));
            }
        };
        let id = put.map_err(|error| failed(what, &pair.to, &error))?;
        self.keep_facts(held.tree.node_mut(id), source);
        Ok(id)
    }

    /// Makes a place free: what is there goes.
    fn cleared(&self, held: &mut HeldFiles<'_>, to: &str) -> Result<Place> {
        let place = self.run.find(held, to, Last::Keep)?;
        if place.node.is_some() {
            held.remove(&place)?;
        }
        Ok(Place { node: None, ..place })
    }

    fn put_hard_link(&self, held: &mut HeldFiles<'_>, from: &str, to: &str) -> Result<NodeId> {
        let place = self.cleared(held, to)?;
        let id = self.run.find(held, from, Last::Keep)?.found()?;
        held.tree.link(id, &place)?;
        Ok(id)
    }

    fn put_new_link(
        &self,
        held: &mut HeldFiles<'_>,
        pair: &Pair,
    ) -> std::result::Result<Result<NodeId>, String> {
        if !pair.from.starts_with('/') && pair.to.contains('/') {
            return Err(format!("{}: can make relative symbolic links only in current directory", pair.to));
        }
        let target = bytes_of(pair.from.as_ref()).into_owned();
        Ok(self.put_new(held, &pair.to, FileNode::new(NodeContent::Link(target), 0o777)))
    }

    fn put_new(&self, held: &mut HeldFiles<'_>, to: &str, node: FileNode) -> Result<NodeId> {
        let place = self.cleared(held, to)?;
        held.add(&place, node)
    }

    fn put_file(
        &self,
        held: &mut HeldFiles<'_>,
        content: &FileContent,
        mode: u32,
        to: &str,
    ) -> Result<NodeId> {
        if self.options.removes_first {
            self.cleared(held, to)?;
        }
        let place = self.run.find(held, to, Last::Follow)?;
        let content = (!self.options.copies_no_data).then(|| content.clone());
        match (place.node, content) {
            (Some(id), None) => Ok(id),
            (Some(id), Some(content)) => held.overwrite(&place, id, content).map(|()| id),
            (None, content) => {
                let content = NodeContent::File(content.unwrap_or_default());
                held.add(&place, FileNode::new(content, self.run.masked(mode & 0o7777)))
            }
        }
    }

    fn keep_facts(&self, node: &mut FileNode, source: &CopySource) {
        if self.options.keeps_mode && node.kind() != NodeKind::Link {
            node.mode = source.mode & 0o7777;
        }
        if self.options.keeps_times {
            node.modified = source.modified;
        }
    }
}
