//! Anvia's view: relative paths only, with their sentences; text, listings and pages as it has them.

use std::sync::Arc;

use super::Fixture;
use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, need_program, output, with_spec};
use super::read::with_file_limit;
use crate::error::Error;
use crate::files::{CreateDirOptions, FileType, RemoveOptions};
use crate::sandbox::Sandbox;
use crate::workspace::{PageOptions, TextPage, TruncatedBy, Workspace, WorkspaceExec};

cases! {
    a_workspace_path_that_is_no_relative_one_is_refused_with_its_sentence(workspace) needs [Beneath];
    a_workspace_file_is_not_the_workspace_itself(workspace) needs [Beneath];
    a_backslash_in_a_workspace_path_is_a_slash(workspace) needs [Beneath];
    a_workspace_path_is_normalised_before_it_is_judged(workspace) needs [Beneath];
    a_workspace_file_is_read_as_it_was_written(workspace) needs [Beneath];
    workspace_text_drops_a_byte_order_mark_and_replaces_what_is_not_utf_8(workspace) needs [Beneath];
    reading_a_workspace_file_that_is_missing_or_a_directory_fails(workspace) needs [Beneath];
    a_workspace_write_makes_parents_and_keeps_the_executable_bit(workspace) needs [Beneath, Shell];
    a_workspace_file_beyond_the_limit_is_too_large_either_way(fixture) needs [Beneath];
    a_workspace_listing_has_paths_types_and_sizes(workspace) needs [Beneath, Shell, Symlinks];
    a_workspace_listing_of_a_subdirectory_has_paths_from_the_workspace(workspace) needs [Beneath];
    a_workspace_listing_of_a_file_is_empty_and_of_what_is_missing_not_found(workspace) needs [Beneath];
    a_name_with_a_newline_is_one_entry_of_a_workspace_listing(workspace) needs [Beneath];
    a_workspace_directory_is_made_renamed_and_removed(workspace) needs [Beneath];
    a_workspace_command_takes_its_arguments_as_they_are(workspace) needs [Beneath, Argv];
    a_page_that_is_cut_by_lines_says_where_to_go_on(workspace) needs [Beneath];
    a_page_that_ends_with_the_file_is_not_cut(workspace) needs [Beneath];
    a_page_past_the_end_and_of_an_empty_file_is_empty(workspace) needs [Beneath];
    a_page_keeps_its_line_ends(workspace) needs [Beneath];
    a_page_that_is_cut_by_bytes_ends_at_a_whole_character(workspace) needs [Beneath];
    a_page_goes_on_after_a_cut_by_bytes_only_at_a_line_s_end(workspace) needs [Beneath];
    following_the_pages_gives_the_whole_file(workspace) needs [Beneath];
    a_page_of_zero_lines_or_bytes_or_from_line_zero_is_invalid(workspace) needs [Beneath];
    a_page_of_what_is_no_regular_file_fails(workspace) needs [Beneath];
    a_page_is_not_held_to_the_limit_on_files(fixture) needs [Beneath];
    f5_a_line_that_a_huge_sparse_file_does_not_have_is_looked_for_until_the_deadline(fixture) needs [Beneath, Shell];
}

fn is(error: Result<(), Error>, sentence: &str) -> Check {
    let found = error.as_ref().err().map(ToString::to_string).unwrap_or_default();
    ensure_fails!(error, Invalid);
    ensure_eq!(found.to_lowercase(), sentence.to_lowercase());
    Ok(())
}

async fn a_workspace_path_that_is_no_relative_one_is_refused_with_its_sentence(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let sentences = [
        ("", "sandbox path cannot be empty"),
        ("a\0b", "sandbox path cannot contain null bytes"),
        ("/etc/passwd", "sandbox path must be relative: /etc/passwd"),
        ("\\etc", "sandbox path must be relative: \\etc"),
        ("..", "sandbox path cannot leave the workspace: .."),
        ("a/../../x", "sandbox path cannot leave the workspace: a/../../x"),
    ];
    for (path, sentence) in sentences {
        is(workspace.read_file(path).await.map(drop), sentence)?;
        is(workspace.read_text_file(path).await.map(drop), sentence)?;
        is(workspace.write_file(path, "x").await, sentence)?;
        is(workspace.list_files(path).await.map(drop), sentence)?;
        is(workspace.stat(path).await.map(drop), sentence)?;
        is(workspace.exists(path).await.map(drop), sentence)?;
        is(workspace.create_dir(path, CreateDirOptions::default()).await, sentence)?;
        is(workspace.remove(path, RemoveOptions::default()).await, sentence)?;
        is(workspace.rename(path, "x").await, sentence)?;
        is(workspace.read_text_file_page(path, PageOptions::default()).await.map(drop), sentence)?;
        let exec =
            WorkspaceExec { command: "true".into(), cwd: Some(path.into()), ..WorkspaceExec::default() };
        is(workspace.exec(exec).await.map(drop), sentence)?;
    }
    ensure!(sandbox.list(".").await?.is_empty(), "a refused path made something");
    Ok(())
}

async fn a_workspace_file_is_not_the_workspace_itself(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    for path in [".", "./", "a/.."] {
        let sentence = "sandbox path must refer to a file or directory inside the workspace";
        let error =
            workspace.write_file(path, "x").await.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(error.starts_with(sentence), "`{error}` does not begin with `{sentence}`");
        ensure_fails!(workspace.read_file(path).await, Invalid);
        ensure_fails!(workspace.remove(path, RemoveOptions { recursive: true, force: true }).await, Invalid);
        ensure!(workspace.list_files(path).await?.is_empty(), "`{path}` has entries");
    }
    Ok(())
}

async fn a_backslash_in_a_workspace_path_is_a_slash(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_file("a\\b.txt", "x").await?;
    ensure_eq!(workspace.read_text_file("a/b.txt").await?, "x");
    ensure_eq!(sandbox.list(".").await?[0].name, "a");
    Ok(())
}

async fn a_workspace_path_is_normalised_before_it_is_judged(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_file("safe/../x", "1").await?;
    workspace.write_file("a//b", "2").await?;
    workspace.write_file("...", "3").await?;
    for (path, content) in [("./x", "1"), ("a/./b", "2"), ("a/../...", "3")] {
        ensure_eq!(workspace.read_text_file(path).await?, content);
    }
    Ok(())
}

async fn a_workspace_file_is_read_as_it_was_written(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let bytes: Vec<u8> = (0..=255).collect();
    workspace.write_file("f", bytes.clone()).await?;
    ensure!(workspace.read_file("f").await? == bytes, "the bytes are not the ones that were written");
    workspace.write_text_file("t", "grüß 😀\n").await?;
    ensure_eq!(workspace.read_text_file("t").await?, "grüß 😀\n");
    ensure_eq!(sandbox.read_text("t").await?, "grüß 😀\n");
    Ok(())
}

async fn workspace_text_drops_a_byte_order_mark_and_replaces_what_is_not_utf_8(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_file("f", &b"\xef\xbb\xbfcaf\xe9\xef\xbb\xbf"[..]).await?;
    ensure_eq!(workspace.read_text_file("f").await?, "caf\u{fffd}\u{feff}");
    let page = workspace.read_text_file_page("f", PageOptions::default()).await?;
    ensure_eq!(page.content, "caf\u{fffd}\u{feff}");
    ensure_eq!(workspace.read_file("f").await?.len(), 10);
    Ok(())
}

async fn reading_a_workspace_file_that_is_missing_or_a_directory_fails(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.create_dir("d", CreateDirOptions::default()).await?;
    ensure_fails!(workspace.read_file("missing").await, NotFound);
    ensure_fails!(workspace.read_text_file("missing/below").await, NotFound);
    ensure_fails!(workspace.read_file("d").await, IsDirectory);
    ensure_fails!(workspace.write_file("d", "x").await, IsDirectory);
    ensure!(workspace.list_files("d").await?.is_empty(), "the write went into the directory");
    Ok(())
}

async fn a_workspace_write_makes_parents_and_keeps_the_executable_bit(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_file("a/b/run", "#!/bin/sh\necho old\n").await?;
    output(&sandbox, "chmod 755 a/b/run").await?;
    workspace.write_file("a/b/run", "#!/bin/sh\necho new\n").await?;
    ensure_eq!(output(&sandbox, "a/b/run").await?, "new");
    Ok(())
}

async fn a_workspace_file_beyond_the_limit_is_too_large_either_way(fixture: Arc<dyn Fixture>) -> Check {
    let spec = with_file_limit(&*fixture, 10);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let workspace = sandbox.workspace();
        workspace.write_file("edge", "1234567890").await?;
        ensure_eq!(workspace.read_file("edge").await?.len(), 10);
        ensure_fails!(workspace.write_file("d/beyond", "12345678901").await, TooLarge);
        ensure!(!workspace.exists("d").await?, "a refused write made its parent");
        Ok(())
    })
    .await
}

async fn a_workspace_listing_has_paths_types_and_sizes(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    output(
        &sandbox,
        "printf 12345 > f && mkdir d && ln -s f l && ln -s nowhere dangling && mkfifo p && : > .dot",
    )
    .await?;
    let listed = workspace.list_files(".").await?;
    let facts: Vec<(&str, FileType)> =
        listed.iter().map(|entry| (entry.path.as_str(), entry.file_type)).collect();
    ensure_eq!(
        facts,
        [
            (".dot", FileType::File),
            ("d", FileType::Directory),
            ("dangling", FileType::Symlink),
            ("f", FileType::File),
            ("l", FileType::Symlink),
            ("p", FileType::Other),
        ]
    );
    ensure_eq!((listed[0].size, listed[3].size), (Some(0), Some(5)));
    Ok(())
}

async fn a_workspace_listing_of_a_subdirectory_has_paths_from_the_workspace(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_file("a/b/f", "x").await?;
    workspace.write_file("a/b/g/below", "x").await?;
    let listed = workspace.list_files("./a/b/").await?;
    let paths: Vec<&str> = listed.iter().map(|entry| entry.path.as_str()).collect();
    ensure_eq!(paths, ["a/b/f", "a/b/g"]);
    Ok(())
}

async fn a_workspace_listing_of_a_file_is_empty_and_of_what_is_missing_not_found(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_file("f", "x").await?;
    ensure!(workspace.list_files("f").await?.is_empty(), "a file has entries");
    ensure_fails!(workspace.list_files("missing").await, NotFound);
    Ok(())
}

async fn a_name_with_a_newline_is_one_entry_of_a_workspace_listing(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_file("d/x\nforged", "").await?;
    workspace.write_file("d/tab\tf\t5", "").await?;
    let listed = workspace.list_files("d").await?;
    let paths: Vec<&str> = listed.iter().map(|entry| entry.path.as_str()).collect();
    ensure_eq!(paths, ["d/tab\tf\t5", "d/x\nforged"]);
    Ok(())
}

async fn a_workspace_directory_is_made_renamed_and_removed(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.create_dir("a/b", CreateDirOptions { recursive: true }).await?;
    ensure!(workspace.stat("a/b").await?.is_directory, "`a/b` is no directory");
    workspace.rename("a", "c").await?;
    ensure!(workspace.exists("c/b").await? && !workspace.exists("a").await?, "the rename did something else");
    workspace.remove("c", RemoveOptions { recursive: true, force: false }).await?;
    ensure!(workspace.list_files(".").await?.is_empty(), "something is left");
    Ok(())
}

async fn a_workspace_command_takes_its_arguments_as_they_are(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let args = ["%s|", "$HOME", "a b", "*", "`id`", "'"].map(str::to_owned).to_vec();
    let exec = WorkspaceExec { command: "printf".to_owned(), args, ..WorkspaceExec::default() };
    let result = workspace.exec(exec).await?;
    ensure_eq!((result.exit_code, result.stdout.as_str()), (0, "$HOME|a b|*|`id`|'|"));
    // It has no input: it reads end of file at once.
    let result =
        workspace.exec(WorkspaceExec { command: "cat".to_owned(), ..WorkspaceExec::default() }).await?;
    ensure_eq!((result.exit_code, result.stdout.as_str(), result.timed_out), (0, "", false));
    Ok(())
}

async fn page(workspace: &Workspace, content: &str, options: PageOptions) -> Check<TextPage> {
    workspace.write_text_file("page", content).await?;
    Ok(workspace.read_text_file_page("page", options).await?)
}

fn lines(start_line: u64, line_count: u64) -> PageOptions {
    PageOptions { start_line, line_count, ..PageOptions::default() }
}

fn bytes(max_bytes: u64) -> PageOptions {
    PageOptions { max_bytes, ..PageOptions::default() }
}

/// Content, last line, next line, and what cut it.
fn facts(page: &TextPage) -> (&str, Option<u64>, Option<u64>, Option<TruncatedBy>) {
    (&page.content, page.end_line, page.next_start_line, page.truncated_by)
}

async fn a_page_that_is_cut_by_lines_says_where_to_go_on(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let first = page(&workspace, "one\ntwo\nthree\nfour\n", lines(1, 2)).await?;
    ensure_eq!(facts(&first), ("one\ntwo\n", Some(2), Some(3), Some(TruncatedBy::Lines)));
    ensure!(first.truncated && first.start_line == 1, "{first:?}");
    let second = page(&workspace, "one\ntwo\nthree\nfour\n", lines(3, 1)).await?;
    ensure_eq!(facts(&second), ("three\n", Some(3), Some(4), Some(TruncatedBy::Lines)));
    ensure_eq!(second.start_line, 3);
    Ok(())
}

async fn a_page_that_ends_with_the_file_is_not_cut(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    for content in ["one\ntwo\n", "one\ntwo"] {
        let exact = page(&workspace, content, lines(1, 2)).await?;
        ensure_eq!(facts(&exact), (content, Some(2), None, None));
        ensure!(!exact.truncated, "{exact:?}");
    }
    ensure_eq!(facts(&page(&workspace, "one\ntwo", bytes(7)).await?), ("one\ntwo", Some(2), None, None));
    Ok(())
}

async fn a_page_past_the_end_and_of_an_empty_file_is_empty(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let past = page(&workspace, "one\n", lines(9, 5)).await?;
    ensure_eq!(facts(&past), ("", None, None, None));
    ensure!(!past.truncated && past.start_line == 9, "{past:?}");
    ensure_eq!(facts(&page(&workspace, "", lines(1, 5)).await?), ("", None, None, None));
    Ok(())
}

async fn a_page_keeps_its_line_ends(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let found = page(&workspace, "one\r\ntwo\r\n\r\nlast\rend", lines(2, 2)).await?;
    ensure_eq!(facts(&found), ("two\r\n\r\n", Some(3), Some(4), Some(TruncatedBy::Lines)));
    Ok(())
}

async fn a_page_that_is_cut_by_bytes_ends_at_a_whole_character(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    for max_bytes in 3..=6 {
        let cut = page(&workspace, "abc😀def\nnext\n", bytes(max_bytes)).await?;
        ensure_eq!(facts(&cut), ("abc", Some(1), None, Some(TruncatedBy::Bytes)));
    }
    let cut = page(&workspace, "abc😀def\nnext\n", bytes(7)).await?;
    ensure_eq!(facts(&cut), ("abc😀", Some(1), None, Some(TruncatedBy::Bytes)));
    Ok(())
}

async fn a_page_goes_on_after_a_cut_by_bytes_only_at_a_line_s_end(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let at_end = page(&workspace, "one\ntwo\nthree\n", bytes(4)).await?;
    ensure_eq!(facts(&at_end), ("one\n", Some(1), Some(2), Some(TruncatedBy::Bytes)));
    let inside = page(&workspace, "one\ntwo\nthree\n", bytes(6)).await?;
    ensure_eq!(facts(&inside), ("one\ntw", Some(2), None, Some(TruncatedBy::Bytes)));
    Ok(())
}

async fn following_the_pages_gives_the_whole_file(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    let content: String = (0..2000).map(|number| format!("line {number} ü\n")).collect();
    workspace.write_text_file("f", &content).await?;
    let (mut whole, mut next, mut pages) = (String::new(), Some(1), 0);
    while let Some(start) = next {
        let page = workspace.read_text_file_page("f", lines(start, 300)).await?;
        whole += &page.content;
        pages += 1;
        next = page.next_start_line;
    }
    ensure!(whole == content, "the pages are not the file");
    ensure_eq!(pages, 7);
    let first = workspace.read_text_file_page("f", PageOptions::default()).await?;
    ensure_eq!((first.end_line, first.next_start_line), (Some(500), Some(501)));
    Ok(())
}

async fn a_page_of_zero_lines_or_bytes_or_from_line_zero_is_invalid(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.write_text_file("f", "x\n").await?;
    for options in [lines(0, 1), lines(1, 0), bytes(0)] {
        ensure_fails!(workspace.read_text_file_page("f", options).await, Invalid);
    }
    Ok(())
}

async fn a_page_of_what_is_no_regular_file_fails(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    workspace.create_dir("d", CreateDirOptions::default()).await?;
    ensure_fails!(workspace.read_text_file_page("d", PageOptions::default()).await, IsDirectory);
    ensure_fails!(workspace.read_text_file_page("missing", PageOptions::default()).await, NotFound);
    Ok(())
}

async fn a_page_is_not_held_to_the_limit_on_files(fixture: Arc<dyn Fixture>) -> Check {
    let spec = with_file_limit(&*fixture, 10);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        super::read::write_unlimited(&sandbox, "large", 1000).await?;
        let workspace = sandbox.workspace();
        ensure_fails!(workspace.read_file("large").await, TooLarge);
        let page = workspace.read_text_file_page("large", bytes(100)).await?;
        ensure_eq!(facts(&page), ("x".repeat(100).as_str(), Some(1), None, Some(TruncatedBy::Bytes)));
        Ok(())
    })
    .await
}

async fn f5_a_line_that_a_huge_sparse_file_does_not_have_is_looked_for_until_the_deadline(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let mut spec = fixture.spec();
    spec.limits.timeout_ms = Some(2_000);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        need_program(&sandbox, "truncate").await?;
        output(&sandbox, "truncate -s 2199023255552 sparse").await?;
        let second = PageOptions { start_line: 2, ..PageOptions::default() };
        ensure_fails!(sandbox.workspace().read_text_file_page("sparse", second).await, Timeout);
        Ok(())
    })
    .await
}
