//! An npm project: its root, its installed packages, and its package manager.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::errors::Failure;

/// Package managers by their lock files, with the command that adds a package.
const INSTALLERS: [(&str, &str); 4] = [
    ("pnpm-lock.yaml", "pnpm add"),
    ("yarn.lock", "yarn add"),
    ("bun.lock", "bun add"),
    ("bun.lockb", "bun add"),
];

/// An npm project.
pub struct Project {
    /// The folder of its `package.json`.
    pub root: PathBuf,
}

impl Project {
    /// Finds the project that a folder belongs to.
    pub fn around(folder: &Path) -> Result<Self, Failure> {
        let folder = fs::canonicalize(folder)
            .map_err(|error| Failure::host(format!("look for a project in `{}`", folder.display()), error))?;
        let root = folder.ancestors().find(|folder| folder.join("package.json").is_file());
        let none = || {
            Failure::usage(format!("`{}` is in no project: there is no package.json", folder.display()))
                .hint("name the project's folder, or make one with `npm init`")
        };
        Ok(Self { root: root.ok_or_else(none)?.to_owned() })
    }

    /// Returns the version of a package as programs of the project find it.
    pub fn installed(&self, package: &str) -> Option<String> {
        let text = fs::read_to_string(self.package_file(&format!("{package}/package.json"))?).ok()?;
        let package: Value = serde_json::from_str(&text).ok()?;
        Some(package.get("version")?.as_str()?.to_owned())
    }

    /// Returns the path of a file in the packages that programs of the project find.
    pub fn package_file(&self, file: &str) -> Option<PathBuf> {
        let places = self.root.ancestors().map(|folder| folder.join("node_modules").join(file));
        places.into_iter().find(|place| place.is_file())
    }

    /// Returns the command that installs these packages: names of the registry, or archives.
    pub fn install_line(&self, packages: &[&str]) -> String {
        let lock = |name: &str| self.root.ancestors().any(|folder| folder.join(name).is_file());
        let installer =
            INSTALLERS.iter().find(|(name, _)| lock(name)).map_or("npm install", |(_, line)| line);
        format!("{installer} {}", packages.join(" "))
    }
}
