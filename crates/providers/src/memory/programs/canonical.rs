//! Paths without links, `.` and `..`.

use crate::memory::names::shown;
use crate::memory::node::not_found;
use crate::memory::walk::Last;

use super::run::ProgramRun;

/// The parts of a path that may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingParts {
    None,
    Last,
    All,
}

/// The path of what a name leads to, without links.
pub(super) fn canonical(run: &ProgramRun<'_>, name: &str, missing: MissingParts) -> eyot::Result<String> {
    let held = run.hold();
    let found = run.find(&held, name, Last::Follow);
    match found {
        Ok(place) if place.node.is_some() || missing != MissingParts::None => Ok(shown(&place.path())),
        Ok(_) => Err(not_found()),
        Err(error) if missing != MissingParts::All || name.is_empty() => Err(error),
        Err(_) => {
            // The longest part that leads somewhere, and the rest as it is written.
            let path = shown(&run.path(name));
            let mut ends = path.rmatch_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
            let known = ends.find_map(|at| {
                let place = run.find(&held, &path[..at], Last::Follow).ok()?;
                place.node.map(|_| (shown(&place.path()), &path[at..]))
            });
            let (base, rest) = known.unwrap_or((String::new(), path.as_str()));
            Ok(tidy(&format!("{base}/{rest}")))
        }
    }
}

/// A path without `.`, `..` and empty parts, as it is written.
pub(super) fn tidy(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// A path as a directory sees it. Both are without links.
pub(super) fn relative(path: &str, base: &str) -> String {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let (path, base) = (parts(path), parts(base));
    let common = path.iter().zip(&base).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n("..".to_owned(), base.len() - common);
    let all: Vec<String> = up.chain(path[common..].iter().cloned()).collect();
    if all.is_empty() { ".".to_owned() } else { all.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_a_directory_sees_them() {
        assert_eq!(relative("/a/b/c", "/a/d"), "../b/c");
        assert_eq!(relative("/a", "/a"), ".");
        assert_eq!(relative("/", "/a/b"), "../..");
        assert_eq!(tidy("/a/./b/../../../c//"), "/c");
    }
}
