//! The Rust programs of the documents compile when they are copied: none has lines that only rustdoc hides, and the page about
//! Rust and that about providers name every crate that their programs use under `[dependencies]`.

use std::collections::BTreeSet;

/// The pages whose programs come with their dependencies.
pub const WITH_DEPENDENCIES: [&str; 2] = ["docs/rust.md", "docs/writing-a-provider.md"];

/// Returns the lines of Rust programs that rustdoc hides and a copy has.
pub fn hidden_lines(page: &str) -> Vec<String> {
    let lines = blocks(page, "rust").into_iter().flatten();
    let hidden = lines.filter(|line| *line == "#" || line.starts_with("# "));
    hidden.map(|line| format!("a copy of the program has the line `{line}`, which is no Rust")).collect()
}

/// Returns the crates that Rust programs use and no block `[dependencies]` names.
pub fn unnamed_crates(page: &str) -> Vec<String> {
    let manifest = blocks(page, "toml").into_iter().flatten();
    let names = manifest.filter_map(|line| line.split_once(" = "));
    let named: BTreeSet<String> = names.map(|(name, _)| name.replace('-', "_")).collect();
    let used: BTreeSet<&str> = blocks(page, "rust").into_iter().flatten().flat_map(crates).collect();
    let unnamed = used.into_iter().filter(|name| !named.contains(*name));
    unnamed.map(|name| format!("`{name}` is used and not under `[dependencies]`")).collect()
}

/// Returns the lines of each block of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let parts = page.split("\n```").skip(1).step_by(2);
    let of_language = parts.filter(|block| {
        let info = block.lines().next().unwrap_or_default();
        info.split(',').next() == Some(language)
    });
    of_language.map(|block| block.lines().skip(1).collect()).collect()
}

/// Returns the crates at the beginning of a line's paths.
fn crates(line: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    line.match_indices("::").filter_map(move |(end, _)| {
        let before = &line[..end];
        let name = before.rsplit(|letter| !is_of_name(letter)).next()?;
        let begins = !before.strip_suffix(name)?.ends_with("::");
        let is_crate = name.starts_with(|letter: char| letter.is_ascii_lowercase());
        (begins && is_crate && !["clippy", "crate", "self", "std", "super"].contains(&name)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_rustdoc_hides_is_told_and_an_attribute_is_not() {
        let page =
            "# A\n```rust,no_run\n#[tokio::main]\n# async fn example() {\n#\n```\n```console\n# ls\n```\n";
        let of = |line: &str| format!("a copy of the program has the line `{line}`, which is no Rust");
        assert_eq!(hidden_lines(page), [of("# async fn example() {"), of("#")]);
    }

    #[test]
    fn a_crate_that_is_used_and_not_named_is_told() {
        let program = "```rust\nuse std::io;\nuse a_b::c::D;\nfn f(x: e::F) { D::new(g::h()) }\n```\n";
        assert_eq!(crates("use a_b::c::D; e::F").collect::<Vec<_>>(), ["a_b", "e"]);
        let page =
            format!("# A\n```toml\n[dependencies]\na-b = \"1\"\ne = {{ path = \"e\" }}\n```\n{program}");
        assert_eq!(unnamed_crates(&page), ["`g` is used and not under `[dependencies]`"]);
        assert_eq!(unnamed_crates(&format!("# A\n{program}")).len(), 3);
    }
}
