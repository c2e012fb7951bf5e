//! Which module uses which: read off the `crate::`, `super::` and `self::` paths of production code.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Kind, Source, Token};

/// A module: the names from the crate's root, which itself is empty.
pub type Module = Vec<String>;

/// A use of one module by its sibling, in the folder that both are in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The folder: the crate, and the modules down to the siblings, between slashes.
    pub folder: String,
    /// The sibling that uses.
    pub from: String,
    /// The sibling that is used.
    pub to: String,
}

/// Returns the uses between siblings in all crates, and how many paths make each.
pub fn edges(sources: &[Source]) -> BTreeMap<Edge, usize> {
    let mut found = BTreeMap::new();
    let production = sources.iter().filter(|source| source.is_production() && !source.path.contains("/bin/"));
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in production {
        crates.entry(source.package()).or_default().push(source);
    }
    for (name, sources) in crates {
        let parsed: Vec<(Module, Vec<Token>)> =
            sources.iter().map(|source| (module(&source.path), source.production())).collect();
        let known = Known::new(&parsed);
        for (module, tokens) in &parsed {
            for path in paths(tokens, module) {
                let Some(edge) = edge(name, module, &known.resolve(&path)) else { continue };
                *found.entry(edge).or_default() += 1;
            }
        }
    }
    found
}

/// Returns the module that a file is: `crates/x/src/a/b.rs` is `a::b`.
fn module(path: &str) -> Module {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let names = inside.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut names: Module = names.collect();
    if names.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        names.pop();
    }
    names
}

fn edge(name: &str, from: &[String], to: &[String]) -> Option<Edge> {
    let together = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let (from_name, to_name) = (from.get(together)?, to.get(together)?);
    let mut folder = vec![name.to_owned()];
    folder.extend_from_slice(&from[..together]);
    Some(Edge { folder: folder.join("/"), from: from_name.clone(), to: to_name.clone() })
}

/// The modules of a crate, and what each passes on from others by `use`.
struct Known {
    modules: BTreeSet<Module>,
    passed_on: BTreeMap<(Module, String), Module>,
}

impl Known {
    fn new(parsed: &[(Module, Vec<Token>)]) -> Self {
        let modules = parsed.iter().map(|(module, _)| module.clone()).collect();
        let mut known = Self { modules, passed_on: BTreeMap::new() };
        for (module, tokens) in parsed {
            for path in uses(tokens, module) {
                let Some((name, parents)) = path.split_last() else { continue };
                let from = known.resolve(parents);
                if from != *module {
                    known.passed_on.insert((module.clone(), name.clone()), from);
                }
            }
        }
        known
    }

    /// Returns the module that a path leads to: as far as its names are modules, and on where a module passes a name on.
    fn resolve(&self, path: &[String]) -> Module {
        let mut module = Module::new();
        for name in path {
            let mut inside = module.clone();
            inside.push(name.clone());
            if self.modules.contains(&inside) {
                module = inside;
            } else {
                return self.passed_on.get(&(module.clone(), name.clone())).cloned().unwrap_or(module);
            }
        }
        module
    }
}

/// Returns every path of a file that begins with `crate`, `super` or `self`, from the crate's root.
fn paths(tokens: &[Token], module: &[String]) -> Vec<Module> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let begins = ["crate", "super", "self"].iter().any(|word| tokens[at].is(word));
        let is_inside = at > 0 && tokens[at - 1].is(":");
        if begins && !is_inside && is_step(tokens, at + 1) {
            tree(tokens, at, module, &mut found);
        }
    }
    found
}

/// Returns what a file takes by `use`, from the crate's root; a first name that is no keyword may be a child.
fn uses(tokens: &[Token], module: &[String]) -> Vec<Module> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].is("use") && tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Word) {
            tree(tokens, at + 1, module, &mut found);
        }
    }
    found
}

fn is_step(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.is(":")) && tokens.get(at + 1).is_some_and(|token| token.is(":"))
}

/// Reads a path or a tree of paths that begins at `at`.
fn tree(tokens: &[Token], at: usize, module: &[String], found: &mut Vec<Module>) {
    let mut base = module.to_vec();
    let mut at = at;
    loop {
        match tokens[at].text.as_str() {
            "crate" => base.clear(),
            "super" => {
                base.pop();
            }
            "self" => {}
            _ => break,
        }
        if !is_step(tokens, at + 1) {
            return;
        }
        at += 3;
    }
    branch(tokens, at, &base, found);
}

/// Reads what follows a prefix, and returns the index behind it.
fn branch(tokens: &[Token], at: usize, base: &[String], found: &mut Vec<Module>) -> usize {
    let Some(token) = tokens.get(at) else { return at };
    if token.is("{") {
        let mut at = at + 1;
        while at < tokens.len() && !tokens[at].is("}") {
            at = if tokens[at].is(",") { at + 1 } else { branch(tokens, at, base, found).max(at + 1) };
        }
        return at + 1;
    }
    if token.kind != Kind::Word {
        found.push(base.to_vec());
        return at;
    }
    let mut path = base.to_vec();
    if !token.is("self") {
        path.push(token.text.clone());
    }
    if is_step(tokens, at + 1)
        && tokens.get(at + 3).is_some_and(|next| next.kind == Kind::Word || next.is("{"))
    {
        return branch(tokens, at + 3, &path, found);
    }
    found.push(path);
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(&format!("crates/x/src/{path}"), text)).collect();
        let edges = edges(&sources);
        edges.keys().map(|edge| format!("{}: {} -> {}", edge.folder, edge.from, edge.to)).collect()
    }

    #[test]
    fn paths_and_trees_of_paths_are_followed_to_the_module_that_has_the_name() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d; pub use b::Bee;"),
            ("a.rs", "use crate::{Bee, c::{self, Sea}};\nfn f() { crate::d::g() }"),
            ("b.rs", ""),
            ("c.rs", ""),
            ("d.rs", "#[cfg(test)]\nmod tests { use crate::a; }"),
        ];
        assert_eq!(of(&files), ["x: a -> b", "x: a -> c", "x: a -> d"]);
    }

    #[test]
    fn siblings_below_a_folder_are_told_there_and_parents_are_not_siblings() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod one; mod two; pub use two::Two;"),
            ("a/one.rs", "use super::two::T;\nuse super::super::b::B;\nuse super::Own;"),
            ("a/two.rs", ""),
            ("b.rs", "use crate::a::Two;"),
        ];
        assert_eq!(of(&files), ["x: a -> b", "x: b -> a", "x/a: one -> two"]);
    }
}
