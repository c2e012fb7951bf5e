//! Names of files: everything that the kernel allows, and a typed refusal of the rest.

use std::sync::Arc;

use super::Fixture;
use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, in_a_workspace, output};
use crate::files::{CreateDirOptions, RemoveOptions};
use crate::path::{MAX_NAME_BYTES, MAX_PATH_BYTES};
use crate::sandbox::Sandbox;

cases! {
    f3_an_empty_path_is_invalid_everywhere(workspace) needs [];
    f3_a_path_with_a_null_byte_is_invalid_everywhere(workspace) needs [];
    f3_a_name_of_255_bytes_works_and_one_of_256_is_invalid(workspace) needs [];
    f3_a_path_of_4095_bytes_works_and_one_of_4096_is_invalid(fixture) needs [];
    f3_newlines_quotes_and_every_other_odd_name_work(workspace) needs [];
    f3_names_that_differ_in_case_or_composition_are_different_files(workspace) needs [];
    f3_a_name_that_is_not_utf_8_is_listed_with_its_bytes(workspace) needs [Shell];
}

/// Every operation that takes a path must call `path` invalid.
async fn is_invalid_everywhere(sandbox: &Sandbox, path: &str) -> Check {
    ensure_fails!(sandbox.resolve_path(path), Invalid);
    ensure_fails!(sandbox.read(path).await, Invalid);
    ensure_fails!(sandbox.write(path, "x").await, Invalid);
    ensure_fails!(sandbox.stat(path).await, Invalid);
    ensure_fails!(sandbox.exists(path).await, Invalid);
    ensure_fails!(sandbox.list(path).await, Invalid);
    ensure_fails!(sandbox.create_dir(path, CreateDirOptions { recursive: true }).await, Invalid);
    ensure_fails!(sandbox.remove(path, RemoveOptions { recursive: true, force: true }).await, Invalid);
    ensure_fails!(sandbox.rename(path, "x").await, Invalid);
    ensure_fails!(sandbox.rename("x", path).await, Invalid);
    Ok(())
}

async fn f3_an_empty_path_is_invalid_everywhere(sandbox: Sandbox) -> Check {
    sandbox.write("x", "kept").await?;
    is_invalid_everywhere(&sandbox, "").await?;
    ensure_eq!(sandbox.read_text("x").await?, "kept");
    Ok(())
}

async fn f3_a_path_with_a_null_byte_is_invalid_everywhere(sandbox: Sandbox) -> Check {
    sandbox.write("x", "kept").await?;
    is_invalid_everywhere(&sandbox, "x\0y").await?;
    ensure_eq!(sandbox.read_text("x").await?, "kept");
    Ok(())
}

async fn f3_a_name_of_255_bytes_works_and_one_of_256_is_invalid(sandbox: Sandbox) -> Check {
    let longest = "n".repeat(MAX_NAME_BYTES);
    sandbox.write(&longest, "x").await?;
    ensure_eq!(sandbox.read_text(&longest).await?, "x");
    ensure_eq!(sandbox.list(".").await?[0].name, longest);
    is_invalid_everywhere(&sandbox, &"n".repeat(MAX_NAME_BYTES + 1)).await?;
    // 86 characters of three bytes each: what counts is bytes.
    is_invalid_everywhere(&sandbox, &"€".repeat(86)).await
}

/// A path below a directory, `bytes` long in all.
fn long_path(directory: &str, bytes: usize) -> String {
    let mut deep = directory.to_owned();
    while deep.len() + 2 * (MAX_NAME_BYTES + 1) < bytes {
        deep = format!("{deep}/{}", "d".repeat(MAX_NAME_BYTES));
    }
    let left = bytes - deep.len() - 2;
    format!("{deep}/{}/{}", "e".repeat(left / 2), "f".repeat(left - left / 2))
}

async fn f3_a_path_of_4095_bytes_works_and_one_of_4096_is_invalid(fixture: Arc<dyn Fixture>) -> Check {
    let most = fixture.max_path_bytes().min(MAX_PATH_BYTES);
    in_a_workspace(fixture, async |sandbox: Sandbox| {
        let deep = long_path(sandbox.cwd().as_str(), most);
        ensure_eq!(deep.len(), most);
        sandbox.write(&deep, "x").await?;
        ensure_eq!(sandbox.read_text(&deep).await?, "x");
        ensure!(sandbox.stat(&deep).await?.is_file, "the deepest file is none");
        let longest = long_path(sandbox.cwd().as_str(), MAX_PATH_BYTES);
        if most < MAX_PATH_BYTES {
            ensure_fails!(sandbox.write(&longest, "x").await, Invalid);
            ensure_fails!(sandbox.read(&longest).await, Invalid | NotFound);
        }
        is_invalid_everywhere(&sandbox, &format!("{longest}f")).await?;
        for entry in sandbox.list(".").await? {
            sandbox.remove(&entry.name, RemoveOptions { recursive: true, force: false }).await?;
        }
        ensure!(sandbox.list(".").await?.is_empty(), "the deep tree is still there");
        Ok(())
    })
    .await
}

async fn f3_newlines_quotes_and_every_other_odd_name_work(sandbox: Sandbox) -> Check {
    let names = [
        "new\nline",
        "tab\there",
        "'single'",
        "\"double\"",
        "back\\slash",
        "$HOME `id` $(id)",
        "-rf",
        "--",
        "*?[a]{b,c}",
        " space ",
        "...",
        "~",
        "#",
        "\u{1b}[31m",
        "\r",
        "ünï😀",
        "a:b;c|d&e<f>",
    ];
    for name in names {
        sandbox.write(name, name).await?;
    }
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let listed: Vec<String> = sandbox.list(".").await?.into_iter().map(|entry| entry.name).collect();
    ensure_eq!(listed, sorted);
    for name in names {
        ensure_eq!(sandbox.read_text(name).await?, name);
        ensure!(sandbox.stat(name).await?.is_file, "{name:?} is no file");
        sandbox.rename(name, &format!("{name}2")).await?;
        sandbox.remove(&format!("{name}2"), RemoveOptions::default()).await?;
    }
    ensure!(sandbox.list(".").await?.is_empty(), "something is left");
    Ok(())
}

async fn f3_names_that_differ_in_case_or_composition_are_different_files(sandbox: Sandbox) -> Check {
    let names = ["Readme", "README", "readme", "caf\u{e9}", "cafe\u{301}"];
    for name in names {
        sandbox.write(name, name).await?;
    }
    for name in names {
        ensure_eq!(sandbox.read_text(name).await?, name);
    }
    ensure_eq!(sandbox.list(".").await?.len(), names.len());
    Ok(())
}

async fn f3_a_name_that_is_not_utf_8_is_listed_with_its_bytes(sandbox: Sandbox) -> Check {
    output(&sandbox, r#"echo x > "$(printf 'bad\377name')" && echo y > good"#).await?;
    let listed = sandbox.list(".").await?;
    ensure_eq!(listed.len(), 2);
    ensure_eq!(listed[0].name, "bad\u{fffd}name");
    ensure_eq!(listed[0].name_bytes.as_deref(), Some(&b"bad\xffname"[..]));
    ensure_eq!((listed[1].name.as_str(), listed[1].name_bytes.as_deref()), ("good", None));
    Ok(())
}
