//! The installed packages that a list of packages needs, by what dpkg knows of them. (apt answers
//! for the versions that it could install, which may need others.)

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::process::output;

/// The fields that dpkg prints for each package: name, version and state, the packages it needs,
/// and those it stands for.
const FORMAT: &str =
    "${Package}\t${binary:Package} ${Version} ${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n";

/// `name version installed` of every package of the list that is installed, and of all that these
/// need.
///
/// # Errors
/// When dpkg can't be asked.
pub fn installed(wanted: &[&str]) -> Result<BTreeSet<String>, String> {
    Ok(closure(&output(Command::new("dpkg-query").args(["-W", "-f", FORMAT]))?, wanted))
}

struct Package<'a> {
    shown: &'a str,
    needs: Vec<&'a str>,
}

fn closure(told: &str, wanted: &[&str]) -> BTreeSet<String> {
    let mut known: BTreeMap<&str, Vec<Package<'_>>> = BTreeMap::new();
    for line in told.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let (name, shown, needs, provides) = (next(), next(), names(next()), names(next()));
        if shown.ends_with(" installed") {
            for name in provides.into_iter().chain([name]) {
                known.entry(name).or_default().push(Package { shown, needs: needs.clone() });
            }
        }
    }
    let (mut found, mut pending) = (BTreeSet::new(), wanted.to_vec());
    while let Some(name) = pending.pop() {
        for package in known.get(name).into_iter().flatten() {
            if found.insert(package.shown.to_owned()) {
                pending.extend(&package.needs);
            }
        }
    }
    found
}

/// The names in a field like `libc6 (>= 2.36), mawk | awk`: every alternative, since what is not
/// installed is not found.
fn names(field: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.trim().find([' ', '(', ':']);
    field
        .split([',', '|'])
        .map(|text| name(text).map_or(text.trim(), |end| &text.trim()[..end]))
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_package_needs_comes_along_by_name_or_by_what_stands_for_it() {
        let told = "gdb\tgdb 13 installed\t, libc6 (>= 2.36), liba:any | libz\t\n\
            libc6\tlibc6:amd64 2.36 installed\t, \t\n\
            b\tb 1 installed\t, \tliba (= 1)\n\
            libz\tlibz 1 config-files\t, \t\n\
            other\tother 1 installed\t, \t\n";
        let expected = ["b 1 installed", "gdb 13 installed", "libc6:amd64 2.36 installed"];
        assert_eq!(closure(told, &["gdb", "nowhere"]), expected.map(str::to_owned).into());
    }
}
