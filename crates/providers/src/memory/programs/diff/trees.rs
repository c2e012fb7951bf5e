//! Two directories are compared, name by name.

use std::collections::BTreeMap;

use super::DiffJob;
use super::sides::{DiffSide, SideKind, joined};
use crate::memory::programs::run::Ending;

/// The most directories within one another that are compared.
const MAX_DEPTH: usize = 1000;

/// A step that is still to be done, the next at the end.
enum DiffStep {
    Trees(DiffSide, DiffSide, usize),
    /// A name, and the names of its two sides, if they are there.
    Names(DiffSide, DiffSide, usize, [Option<String>; 2]),
}

impl DiffJob<'_, '_> {
    pub(super) async fn compare_trees(&self, old: &DiffSide, new: &DiffSide) -> Result<i32, Ending> {
        let mut steps = vec![DiffStep::Trees(old.clone(), new.clone(), 0)];
        let mut status = 0;
        while let Some(step) = steps.pop() {
            self.run.breathe().await;
            status = status.max(match step {
                DiffStep::Trees(old, new, depth) => {
                    let pairs = self.pairs_in(&old, &new);
                    let pairs = pairs.into_iter().rev();
                    steps.extend(pairs.map(|names| DiffStep::Names(old.clone(), new.clone(), depth, names)));
                    0
                }
                DiffStep::Names(old, new, depth, names) => {
                    self.compare_entries([&old, &new], &names, depth, &mut steps).await?
                }
            });
        }
        Ok(status)
    }

    /// Pairs the names of two directories, in their order.
    fn pairs_in(&self, old: &DiffSide, new: &DiffSide) -> Vec<[Option<String>; 2]> {
        let mut pairs: BTreeMap<String, [Option<String>; 2]> = BTreeMap::new();
        for (index, side) in [old, new].into_iter().enumerate() {
            for name in self.names_in(side) {
                if self.options.excludes.has(name.as_bytes()) {
                    continue;
                }
                let key = if self.options.ignores_case_of_names { name.to_lowercase() } else { name.clone() };
                pairs.entry(key).or_default()[index] = Some(name);
            }
        }
        let start = self.options.starting_file.as_deref().unwrap_or("");
        pairs.into_iter().filter(|(name, _)| name.as_str() >= start).map(|(_, pair)| pair).collect()
    }

    async fn compare_entries(
        &self,
        within: [&DiffSide; 2],
        names: &[Option<String>; 2],
        depth: usize,
        steps: &mut Vec<DiffStep>,
    ) -> Result<i32, Ending> {
        let [old, new] = [0, 1].map(|index| match (&names[index], &names[1 - index]) {
            (Some(name), _) => self.side(&joined(&within[index].name, name)),
            (None, other) => DiffSide {
                name: joined(&within[index].name, other.as_deref().unwrap_or("")),
                kind: SideKind::Empty,
                modified: std::time::SystemTime::UNIX_EPOCH,
            },
        });
        let options = self.options;
        for (index, name) in names.iter().enumerate() {
            if name.is_none() && !options.missing_is_empty[index] {
                let only = names[1 - index].as_deref().unwrap_or("");
                self.run.print(format!("Only in {}: {only}\n", within[1 - index].name)).await?;
                return Ok(1);
            }
        }
        let is_tree = |side: &DiffSide| side.is_directory() || side.kind == SideKind::Empty;
        if !(is_tree(&old) && is_tree(&new) && (old.is_directory() || new.is_directory())) {
            return self.compare_nodes(old, new).await;
        }
        if !options.is_recursive {
            self.run.print(format!("Common subdirectories: {} and {}\n", old.name, new.name)).await?;
            return Ok(0);
        }
        if depth >= MAX_DEPTH {
            return self.trouble(format!("{}: Too many levels of directories", old.name)).await;
        }
        steps.push(DiffStep::Trees(old, new, depth + 1));
        Ok(0)
    }
}
