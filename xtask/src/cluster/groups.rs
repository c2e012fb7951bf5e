//! The control groups of the cluster, one below each group of this process. The kubelet makes its own in them.

use std::fs;
use std::path::{Path, PathBuf};

const MOUNTED: &str = "/sys/fs/cgroup";
/// The beginning of a group's name; the number of the task that made it follows.
const PREFIX: &str = "eyot-cluster-";

/// Groups that are removed, with all below them, when this is dropped.
pub struct ClusterGroups(Vec<Group>);

struct Group {
    /// The options with which its hierarchy is mounted.
    options: String,
    folder: PathBuf,
}

impl ClusterGroups {
    /// Makes them in every hierarchy of version 1.
    pub fn make() -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup")
            .map_err(|error| format!("read the own groups: {error}"))?;
        let hierarchies = hierarchies(&own);
        if !hierarchies.iter().any(|(options, _)| options == "memory") {
            return Err(
                "the host has control groups of version 2 alone; the cluster was only tried with version 1"
                    .to_owned(),
            );
        }
        let mut made = Self(Vec::new());
        for (options, path) in hierarchies {
            let mounted = Path::new(MOUNTED).join(options.trim_start_matches("none,name="));
            let parent = mounted.join(path.trim_start_matches('/'));
            remove_abandoned(&parent);
            let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
            fs::create_dir(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
            let is_of_processors = options == "cpuset";
            made.0.push(Group { options, folder: folder.clone() });
            if is_of_processors {
                give_processors(&folder)
                    .map_err(|error| format!("give {} processors: {error}", folder.display()))?;
            }
        }
        Ok(made)
    }

    /// Returns the groups' folders.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|group| group.folder.as_path())
    }

    /// Returns the options of the hierarchies, each a word.
    pub fn controllers(&self) -> String {
        self.0.iter().map(|group| group.options.as_str()).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the hierarchies of version 1, as they are mounted, with this process's path in each.
fn hierarchies(own: &str) -> Vec<(String, String)> {
    let parts = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        Some((parts.next()?, parts.next()?, parts.next()?))
    });
    let of_first = parts.filter(|(number, names, _)| *number != "0" && !names.is_empty());
    of_first
        .map(|(_, names, path)| {
            let options = if names.starts_with("name=") { format!("none,{names}") } else { names.to_owned() };
            (options, path.to_owned())
        })
        .collect()
}

/// A group of processors has none at first, and what is made below it would have none either.
fn give_processors(group: &Path) -> std::io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let of_parent = fs::read(group.join("..").join(file))?;
        fs::write(group.join(file), of_parent)?;
    }
    fs::write(group.join("cgroup.clone_children"), "1")
}

impl Drop for ClusterGroups {
    fn drop(&mut self) {
        for Group { folder, .. } in &self.0 {
            if let Err(error) = remove(folder) {
                eprintln!("xtask: remove the control group {}: {error}", folder.display());
            }
        }
    }
}

/// Removes the groups of tasks that were killed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let task = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if task.is_some_and(|task| !Path::new("/proc").join(task).exists())
            && let Err(error) = remove(&entry.path())
        {
            eprintln!("xtask: remove the control group {}: {error}", entry.path().display());
        }
    }
}

/// Removes a group, those below it first. Their processes have ended.
fn remove(group: &Path) -> std::io::Result<()> {
    for below in fs::read_dir(group)?.flatten().filter(|entry| entry.path().is_dir()) {
        remove(&below.path())?;
    }
    fs::remove_dir(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_told_with_their_options_and_without_that_of_version_2() {
        let own = "9:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/\n0::/x\n";
        let told = hierarchies(own);
        let options: Vec<&str> = told.iter().map(|(options, _)| options.as_str()).collect();
        assert_eq!(options, ["none,name=systemd", "memory", "cpu,cpuacct"]);
        assert_eq!(told[1].1, "/a/b");
    }
}
