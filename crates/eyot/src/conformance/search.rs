//! Finding files by a pattern and lines by an expression.

use super::beneath::{glob, grep};
use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output, promptly};
use crate::path::ConfinedPath;
use crate::sandbox::Sandbox;
use crate::search::{GlobOptions, GrepOptions, GrepResult};

cases! {
    glob_stars_and_question_marks_stay_within_a_segment(workspace) needs [Glob];
    glob_two_stars_cross_segments(workspace) needs [Glob];
    glob_knows_sets_and_alternatives(workspace) needs [Glob];
    glob_finds_hidden_names_only_when_asked_or_spelt_out(workspace) needs [Glob];
    glob_finds_files_and_links_sorted_and_no_directories(workspace) needs [Glob, Shell, Symlinks];
    glob_says_when_there_were_more(workspace) needs [Glob];
    glob_refuses_a_pattern_that_can_t_be_read(workspace) needs [Glob];
    glob_below_what_is_missing_or_a_file_fails(workspace) needs [Glob];
    grep_finds_lines_with_file_and_number(workspace) needs [Grep];
    grep_takes_a_literal_as_it_stands(workspace) needs [Grep];
    grep_ignores_case_when_asked(workspace) needs [Grep];
    grep_searches_only_what_is_included(workspace) needs [Grep];
    grep_searches_a_single_file_and_hidden_ones(workspace) needs [Grep];
    grep_says_when_there_were_more(workspace) needs [Grep];
    grep_cuts_a_long_line_at_a_character_and_says_so(workspace) needs [Grep];
    grep_leaves_binary_files_out(workspace) needs [Grep];
    grep_refuses_an_expression_that_can_t_be_read(workspace) needs [Grep];
    grep_of_what_is_missing_is_not_found(workspace) needs [Grep];
    f2_grep_and_glob_pass_over_fifos_and_loops_of_links(workspace) needs [Grep, Glob, Shell, Symlinks];
    f6_an_expression_that_backtracks_elsewhere_ends_promptly(workspace) needs [Grep];
}

fn here(sandbox: &Sandbox, path: &str) -> Check<ConfinedPath> {
    Ok(sandbox.resolve_path(path)?.into())
}

async fn with_files(sandbox: &Sandbox, files: &[(&str, &str)]) -> Check {
    for (path, content) in files {
        sandbox.write(path, content.to_string()).await?;
    }
    Ok(())
}

/// Returns what a pattern finds, relative to the working directory.
async fn found(sandbox: &Sandbox, pattern: &str) -> Check<Vec<String>> {
    relative(sandbox, &glob(here(sandbox, ".")?, pattern)).await
}

async fn relative(sandbox: &Sandbox, options: &GlobOptions) -> Check<Vec<String>> {
    let found = sandbox.glob(options).await?;
    let prefix = format!("{}/", sandbox.cwd());
    Ok(found.paths.iter().map(|path| path.strip_prefix(&prefix).unwrap_or(path).to_owned()).collect())
}

/// `name:number:line` of everything that matched.
fn lines(sandbox: &Sandbox, result: &GrepResult) -> Vec<String> {
    let prefix = format!("{}/", sandbox.cwd());
    let shown = |path: &str| path.strip_prefix(&prefix).unwrap_or(path).to_owned();
    result
        .matches
        .iter()
        .map(|line| format!("{}:{}:{}", shown(&line.path), line.line_number, line.line))
        .collect()
}

async fn glob_stars_and_question_marks_stay_within_a_segment(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("a.rs", ""), ("ab.rs", ""), ("d/c.rs", ""), ("d/e/f.rs", ""), ("g.txt", "")])
        .await?;
    ensure_eq!(found(&sandbox, "*.rs").await?, ["a.rs", "ab.rs"]);
    ensure_eq!(found(&sandbox, "?.rs").await?, ["a.rs"]);
    ensure_eq!(found(&sandbox, "*/*.rs").await?, ["d/c.rs"]);
    ensure_eq!(found(&sandbox, "d/c.rs").await?, ["d/c.rs"]);
    ensure_eq!(found(&sandbox, "d*rs").await?, [""; 0]);
    Ok(())
}

async fn glob_two_stars_cross_segments(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("a.rs", ""), ("d/b.rs", ""), ("d/e/c.rs", ""), ("d/e/c.txt", "")]).await?;
    ensure_eq!(found(&sandbox, "**/*.rs").await?, ["a.rs", "d/b.rs", "d/e/c.rs"]);
    ensure_eq!(found(&sandbox, "d/**/*.rs").await?, ["d/b.rs", "d/e/c.rs"]);
    ensure_eq!(found(&sandbox, "d/**").await?, ["d/b.rs", "d/e/c.rs", "d/e/c.txt"]);
    ensure_eq!(found(&sandbox, "**").await?.len(), 4);
    ensure_eq!(found(&sandbox, "**/e/*").await?, ["d/e/c.rs", "d/e/c.txt"]);
    Ok(())
}

async fn glob_knows_sets_and_alternatives(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("a1.js", ""), ("a2.ts", ""), ("b3.js", ""), ("c.py", ""), ("x[1]", "")]).await?;
    ensure_eq!(found(&sandbox, "[ab]*.js").await?, ["a1.js", "b3.js"]);
    ensure_eq!(found(&sandbox, "a[0-9].*").await?, ["a1.js", "a2.ts"]);
    ensure_eq!(found(&sandbox, "[!a]*.*").await?, ["b3.js", "c.py"]);
    ensure_eq!(found(&sandbox, "*.{js,ts}").await?, ["a1.js", "a2.ts", "b3.js"]);
    ensure_eq!(found(&sandbox, r"x\[1\]").await?, ["x[1]"]);
    Ok(())
}

async fn glob_finds_hidden_names_only_when_asked_or_spelt_out(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[(".env", ""), (".git/config", ""), ("a", ""), ("d/.x", "")]).await?;
    ensure_eq!(found(&sandbox, "**").await?, ["a"]);
    ensure_eq!(found(&sandbox, ".*").await?, [".env"]);
    ensure_eq!(found(&sandbox, ".git/*").await?, [".git/config"]);
    let every = GlobOptions { hidden: true, ..glob(here(&sandbox, ".")?, "**") };
    ensure_eq!(relative(&sandbox, &every).await?, [".env", ".git/config", "a", "d/.x"]);
    Ok(())
}

async fn glob_finds_files_and_links_sorted_and_no_directories(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("b", ""), ("a/f", ""), ("a.x", ""), ("B", "")]).await?;
    output(&sandbox, "ln -s a link && ln -s nowhere dangling && mkdir empty").await?;
    let mut paths = found(&sandbox, "**").await?;
    ensure!(paths.is_sorted(), "{paths:?} is not sorted");
    paths.sort();
    ensure_eq!(paths, ["B", "a.x", "a/f", "b", "dangling", "link"]);
    let absolute = sandbox.glob(&glob(here(&sandbox, "a")?, "*")).await?;
    ensure_eq!(absolute.paths, [format!("{}/a/f", sandbox.cwd())]);
    Ok(())
}

async fn glob_says_when_there_were_more(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("a", ""), ("b", ""), ("c", "")]).await?;
    for (max_results, paths, truncated) in [(2, 2, true), (3, 3, false), (4, 3, false), (0, 0, true)] {
        let options = GlobOptions { max_results, ..glob(here(&sandbox, ".")?, "*") };
        let found = sandbox.glob(&options).await?;
        ensure_eq!((found.paths.len(), found.truncated), (paths, truncated));
    }
    Ok(())
}

async fn glob_refuses_a_pattern_that_can_t_be_read(sandbox: Sandbox) -> Check {
    for pattern in ["", "[a", "{a", "/etc/*", "../*", "a/../../b"] {
        ensure_fails!(sandbox.glob(&glob(here(&sandbox, ".")?, pattern)).await, Invalid);
    }
    Ok(())
}

async fn glob_below_what_is_missing_or_a_file_fails(sandbox: Sandbox) -> Check {
    sandbox.write("f", "").await?;
    ensure_fails!(sandbox.glob(&glob(here(&sandbox, "missing")?, "*")).await, NotFound);
    ensure_fails!(sandbox.glob(&glob(here(&sandbox, "f")?, "*")).await, NotDirectory);
    Ok(())
}

async fn grep_finds_lines_with_file_and_number(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("b", "no\nfn one() {}\r\nfn two"), ("a/c", "\nfn three\n"), ("d", "nothing")])
        .await?;
    let found = sandbox.grep(&grep(here(&sandbox, ".")?, r"^fn \w+")).await?;
    let shown = lines(&sandbox, &found);
    ensure_eq!(
        shown.iter().map(|line| line.trim_end()).collect::<Vec<_>>(),
        ["a/c:2:fn three", "b:2:fn one() {}", "b:3:fn two"]
    );
    ensure!(!found.truncated && found.matches.iter().all(|line| !line.line_truncated), "{found:?}");
    Ok(())
}

async fn grep_takes_a_literal_as_it_stands(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("f", "a.b(c\naxb(c\n")]).await?;
    let options = GrepOptions { literal: true, ..grep(here(&sandbox, ".")?, "a.b(c") };
    ensure_eq!(lines(&sandbox, &sandbox.grep(&options).await?), ["f:1:a.b(c"]);
    Ok(())
}

async fn grep_ignores_case_when_asked(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("f", "TODO\ntodo\nÄrger\närger\n")]).await?;
    let exact = grep(here(&sandbox, ".")?, "todo|ärger");
    ensure_eq!(lines(&sandbox, &sandbox.grep(&exact).await?), ["f:2:todo", "f:4:ärger"]);
    let either = GrepOptions { ignore_case: true, ..exact };
    ensure_eq!(sandbox.grep(&either).await?.matches.len(), 4);
    Ok(())
}

async fn grep_searches_only_what_is_included(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("a.rs", "x"), ("a.txt", "x"), ("src/b.rs", "x"), ("src/deep/c.rs", "x")]).await?;
    let including = async |include: &str| {
        let options = GrepOptions { include: Some(include.to_owned()), ..grep(here(&sandbox, ".")?, "x") };
        Check::Ok(lines(&sandbox, &sandbox.grep(&options).await?))
    };
    ensure_eq!(including("*.rs").await?, ["a.rs:1:x", "src/b.rs:1:x", "src/deep/c.rs:1:x"]);
    ensure_eq!(including("src/*.rs").await?, ["src/b.rs:1:x"]);
    ensure_eq!(including("*.{txt,md}").await?, ["a.txt:1:x"]);
    let unreadable = GrepOptions { include: Some("[".to_owned()), ..grep(here(&sandbox, ".")?, "x") };
    ensure_fails!(sandbox.grep(&unreadable).await, Invalid);
    Ok(())
}

async fn grep_searches_a_single_file_and_hidden_ones(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("f", "x\ny\n"), (".hidden", "y")]).await?;
    ensure_eq!(lines(&sandbox, &sandbox.grep(&grep(here(&sandbox, "f")?, "y")).await?), ["f:2:y"]);
    let found = sandbox.grep(&grep(here(&sandbox, ".")?, "y")).await?;
    ensure_eq!(lines(&sandbox, &found), [".hidden:1:y", "f:2:y"]);
    Ok(())
}

async fn grep_says_when_there_were_more(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("f", "x\nx\nx\n")]).await?;
    for (max_matches, matches, truncated) in [(2, 2, true), (3, 3, false), (100, 3, false)] {
        let options = GrepOptions { max_matches, ..grep(here(&sandbox, ".")?, "x") };
        let found = sandbox.grep(&options).await?;
        ensure_eq!((found.matches.len(), found.truncated), (matches, truncated));
    }
    Ok(())
}

async fn grep_cuts_a_long_line_at_a_character_and_says_so(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("f", "ab😀cdef\nabcdef\n")]).await?;
    let options = GrepOptions { max_line_bytes: 5, ..grep(here(&sandbox, ".")?, "ab") };
    let found = sandbox.grep(&options).await?;
    let cut: Vec<(&str, bool)> =
        found.matches.iter().map(|found| (found.line.as_str(), found.line_truncated)).collect();
    ensure_eq!(cut, [("ab", true), ("abcde", true)]);
    let whole = GrepOptions { max_line_bytes: 6, ..grep(here(&sandbox, ".")?, "abcdef") };
    ensure!(!sandbox.grep(&whole).await?.matches[0].line_truncated, "a line of exactly the limit is cut");
    Ok(())
}

async fn grep_leaves_binary_files_out(sandbox: Sandbox) -> Check {
    sandbox.write("binary", &b"needle\0needle\n"[..]).await?;
    sandbox.write("latin", &b"needle caf\xe9\n"[..]).await?;
    let found = sandbox.grep(&grep(here(&sandbox, ".")?, "needle")).await?;
    ensure_eq!(lines(&sandbox, &found), ["latin:1:needle caf\u{fffd}"]);
    Ok(())
}

async fn grep_refuses_an_expression_that_can_t_be_read(sandbox: Sandbox) -> Check {
    for pattern in ["(", "[a", "*", r"(?P<"] {
        ensure_fails!(sandbox.grep(&grep(here(&sandbox, ".")?, pattern)).await, Invalid);
    }
    Ok(())
}

async fn grep_of_what_is_missing_is_not_found(sandbox: Sandbox) -> Check {
    ensure_fails!(sandbox.grep(&grep(here(&sandbox, "missing")?, "x")).await, NotFound);
    Ok(())
}

async fn f2_grep_and_glob_pass_over_fifos_and_loops_of_links(sandbox: Sandbox) -> Check {
    with_files(&sandbox, &[("d/f", "needle")]).await?;
    output(&sandbox, "mkfifo d/fifo && ln -s .. d/up && ln -s loop d/loop && ln -s /dev/zero d/zero").await?;
    let found = promptly("a grep", sandbox.grep(&grep(here(&sandbox, ".")?, "needle"))).await??;
    ensure_eq!(lines(&sandbox, &found), ["d/f:1:needle"]);
    let found = promptly("a glob", sandbox.glob(&glob(here(&sandbox, ".")?, "**/f"))).await??;
    ensure_eq!(found.paths.len(), 1);
    Ok(())
}

async fn f6_an_expression_that_backtracks_elsewhere_ends_promptly(sandbox: Sandbox) -> Check {
    sandbox.write("f", "a".repeat(50_000)).await?;
    let found = promptly("a grep", sandbox.grep(&grep(here(&sandbox, ".")?, "(a+)+$|(a|aa)+b"))).await??;
    ensure_eq!(found.matches.len(), 1);
    ensure_fails!(
        promptly("a grep", sandbox.grep(&grep(here(&sandbox, ".")?, "((a{100}){100}){100}"))).await?,
        Invalid
    );
    Ok(())
}
