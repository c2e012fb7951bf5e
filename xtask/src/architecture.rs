//! The rules of ARCHITECTURE.md that a program can check.

use crate::process::{cargo, output};
use crate::source::{self, Source, Token};
use crate::{documents, error_text, floors, memory_build, names, openings, rules, targets, threats};

/// Checks every rule, and says all that is wrong at once.
pub fn check() -> Result<(), String> {
    let sources = source::all()?;
    let known = packages_of(&["--workspace"])?;
    let mut wrong = forbidden_dependencies(&known)?;
    for source in &sources {
        wrong.extend(unsafe_outside_sys(source));
        wrong.extend(dropped_results(source));
        wrong.extend(targets::ignored_without_a_tier(&source.path, &source.text));
    }
    wrong.extend(threats::check(&sources)?);
    wrong.extend(rules::without_a_test(&sources)?);
    wrong.extend(targets::check()?);
    wrong.extend(documents::check()?);
    wrong.extend(openings::check(&sources));
    wrong.extend(names::check(&sources)?);
    wrong.extend(error_text::check(&sources));
    wrong.extend(floors::check(&sources)?);
    wrong.extend(memory_build::check(&sources, &known)?);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("the architecture's rules are broken:\n  {}", wrong.join("\n  ")))
}

/// The packages that a package must not depend on, directly or not.
struct Forbidden {
    package: &'static str,
    folder: &'static str,
    packages: &'static [&'static str],
}

/// The contract knows no provider, no HTTP and no database, the engine and the tools know no provider and no HTTP; the server
/// knows no provider. Without a feature the table of providers brings none.
const FORBIDDEN: &[Forbidden] = &[
    Forbidden {
        package: "eyot",
        folder: "eyot",
        packages: &[
            "axum",
            "bollard",
            "eyot-engine",
            "eyot-guest",
            "eyot-image",
            "eyot-native",
            "eyot-providers",
            "eyot-server",
            "eyot-tools",
            "http",
            "hyper",
            "notify",
            "reqwest",
            "rmcp",
            "rusqlite",
        ],
    },
    Forbidden {
        package: "eyot-engine",
        folder: "engine",
        packages: &["axum", "eyot-guest", "eyot-image", "eyot-tools", "http", "hyper"],
    },
    Forbidden {
        package: "eyot-tools",
        folder: "tools",
        packages: &["axum", "eyot-guest", "eyot-image", "eyot-providers", "eyot-server", "http", "hyper"],
    },
    Forbidden {
        package: "eyot-providers",
        folder: "providers",
        packages: &["bollard", "eyot-guest", "eyot-image", "eyot-native", "reqwest"],
    },
    Forbidden {
        package: "eyot-server",
        folder: "server",
        packages: &["bollard", "eyot-guest", "eyot-image", "eyot-native", "eyot-providers"],
    },
];

fn forbidden_dependencies(known: &[String]) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for rule in FORBIDDEN {
        wrong.extend(broken(rule, &packages_of(&["-p", rule.package])?, known));
    }
    Ok(wrong)
}

/// Returns what these packages depend on, with themselves.
fn packages_of(selected: &[&str]) -> Result<Vec<String>, String> {
    let tree =
        output(cargo().args(["tree", "-q"]).args(selected).args(["-e", "normal", "--prefix", "none"]))?;
    Ok(names(&tree))
}

/// Returns the packages of a tree as `cargo tree` prints it.
fn names(tree: &str) -> Vec<String> {
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Says which forbidden packages are there, and which of them exist nowhere in the workspace: those
/// forbid nothing.
fn broken(rule: &Forbidden, depended_on: &[String], known: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in rule.packages {
        if depended_on.iter().any(|name| name == package) {
            wrong.push(format!("crates/{} depends on {package}", rule.folder));
        }
        if !known.iter().any(|name| name == package) {
            wrong.push(format!("crates/{} is forbidden {package}, which is no package here", rule.folder));
        }
    }
    wrong
}

fn unsafe_outside_sys(source: &Source) -> Option<String> {
    let allowed = source.path.ends_with("/sys.rs") || source.path.contains("/sys/");
    let is_unsafe = |pair: &[Token]| {
        pair[0].is("unsafe") && ["{", "fn", "impl", "extern"].iter().any(|next| pair[1].is(next))
    };
    let found = source.tokens.windows(2).find(|pair| is_unsafe(pair)).filter(|_| !allowed)?;
    Some(format!("{}:{}: unsafe code outside of sys.rs", source.path, found[0].line))
}

/// Finds results that are thrown away: `let _ = …`, `_ = …`, `drop(call(…))`, and `….ok();` as a
/// statement.
fn dropped_results(source: &Source) -> Vec<String> {
    if !source.path.starts_with("crates/native/src") {
        return Vec::new();
    }
    let tokens = source.production();
    let dropped = (0..tokens.len()).filter(|at| drops(&tokens, *at));
    dropped.map(|at| format!("{}:{}: a result is dropped", source.path, tokens[at].line)).collect()
}

fn drops(tokens: &[Token], at: usize) -> bool {
    let is = |ahead: usize, text: &str| tokens.get(at + ahead).is_some_and(|token| token.is(text));
    let begins = at == 0 || [";", "{", "}"].iter().any(|before| tokens[at - 1].is(before));
    let named = |ahead: usize| is(ahead, "_") && is(ahead + 1, "=") && !is(ahead + 2, ">");
    if is(0, "let") && named(1) || begins && named(0) {
        return true;
    }
    if is(0, "drop") && is(1, "(") && !(at > 0 && tokens[at - 1].is("fn")) {
        let end = source::closing(tokens, at + 1);
        return tokens[at + 2..end].iter().any(|token| token.is("("));
    }
    is(0, ".") && is(1, "ok") && is(2, "(") && is(3, ")") && is(4, ";") && is_statement(tokens, at)
}

/// Returns `true` if nothing takes the value of the expression that reaches `at`: its statement
/// begins with no `let`, no `return` and no assignment.
fn is_statement(tokens: &[Token], at: usize) -> bool {
    let start = tokens[..at].iter().rposition(|token| [";", "{", "}"].iter().any(|mark| token.is(mark)));
    let statement = &tokens[start.map_or(0, |start| start + 1)..at];
    !statement.iter().any(|token| ["let", "return", "="].iter().any(|word| token.is(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_forbidden_package_is_told_and_so_is_one_that_exists_nowhere() {
        let rule = Forbidden { package: "eyot", folder: "eyot", packages: &["hyper", "libc-"] };
        let known = texts(&["hyper", "libc"]);
        assert_eq!(
            broken(&rule, &texts(&["libc", "hyper"]), &known),
            ["crates/eyot depends on hyper", "crates/eyot is forbidden libc-, which is no package here"]
        );
    }

    #[test]
    fn unsafe_code_stands_in_sys_alone() {
        let text = "/// unsafe {\nfn a() { \"unsafe {\"; unsafe { b() } }";
        assert!(unsafe_outside_sys(&Source::new("crates/x/src/a.rs", text)).is_some());
        for path in ["crates/x/src/sys.rs", "crates/x/src/sys/a.rs"] {
            assert!(unsafe_outside_sys(&Source::new(path, text)).is_none(), "{path}");
        }
        assert!(unsafe_outside_sys(&Source::new("crates/x/src/a.rs", "// unsafe {\n\"unsafe {\"")).is_none());
    }

    #[test]
    fn a_result_is_not_dropped_in_whichever_way() {
        let of = |line: &str| {
            let text = format!("fn f() {{ {line} }}");
            dropped_results(&Source::new("crates/native/src/a.rs", &text)).len()
        };
        for line in ["let _ = write(a);", "_ = write(a);", "drop(write(a));", "write(a, b).ok();"] {
            assert_eq!(of(line), 1, "{line}");
        }
        for line in
            ["let _turn = lock();", "drop(lock);", "let a = b().ok();", "match a { _ => {} }", "a?.b();"]
        {
            assert_eq!(of(line), 0, "{line}");
        }
    }
}
