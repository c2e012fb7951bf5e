//! F3: names that parsers stumble over.

use eyot::ErrorKind;

use crate::check::{Check, Failure, cases, ensure, ensure_eq, ensure_fails};
use crate::world::Stage;

cases! {
    f03_names_that_can_not_be_are_refused(stage);
    f03_odd_names_are_written_listed_and_read_as_they_are(stage);
    f03_a_name_that_is_not_text_is_listed_with_its_bytes(stage);
    f03_names_that_look_alike_are_different_files(stage);
    f03_a_path_is_not_read_as_an_option_or_a_pattern(stage);
}

async fn f03_names_that_can_not_be_are_refused(stage: Stage) -> Check {
    let sandbox = &stage.sandbox;
    let long_name = "n".repeat(300);
    let long_path = "d/".repeat(2_500);
    for path in ["", "a\0b", long_path.as_str()] {
        ensure_fails!(sandbox.read(path).await, Invalid);
        ensure_fails!(sandbox.write(path, "x").await, Invalid);
        ensure_fails!(sandbox.list(path).await, Invalid);
    }
    ensure_fails!(sandbox.write(&long_name, "x").await, Invalid);
    ensure_fails!(sandbox.read(&long_name).await, Invalid | NotFound);
    let workspace = sandbox.workspace();
    for path in ["..", "../x", "a/../../x", "/etc/passwd", "/workspace/x", "/"] {
        match workspace.read_file(path).await {
            Ok(_) => return Err(Failure::Broken(format!("`{path}` was read beneath the workspace"))),
            Err(error) => ensure!(
                [ErrorKind::Invalid, ErrorKind::Permission].contains(&error.kind()),
                "`{path}`: {} {error}",
                error.kind()
            ),
        }
        ensure!(workspace.write_file(path, "x").await.is_err(), "`{path}` was written beneath the workspace");
    }
    // Not confined: `..` stops at the root.
    ensure!(sandbox.read_text("../../../../etc/passwd").await?.contains("user:"), "`..` went astray");
    Ok(())
}

const ODD: [&str; 14] = [
    "new\nline",
    "quo'te",
    "dou\"ble",
    "back\\slash",
    " space ",
    "tab\t",
    "$(reboot)",
    "`id`",
    "*",
    "[a]",
    "{a,b}",
    "\u{202e}gnp.exe",
    "..hidden",
    "\u{1b}[31m",
];

async fn f03_odd_names_are_written_listed_and_read_as_they_are(stage: Stage) -> Check {
    for name in ODD {
        stage.sandbox.write(&format!("odd/{name}"), name).await?;
    }
    let mut expected: Vec<&str> = ODD.to_vec();
    expected.sort_unstable();
    let listed: Vec<String> = stage.sandbox.list("odd").await?.into_iter().map(|entry| entry.name).collect();
    ensure_eq!(listed, expected);
    for name in ODD {
        ensure_eq!(stage.sandbox.read_text(&format!("odd/{name}")).await?, name);
    }
    ensure_eq!(stage.output("ls -A odd | wc -l").await?, format!("{}", ODD.len() + 1));
    Ok(())
}

async fn f03_a_name_that_is_not_text_is_listed_with_its_bytes(stage: Stage) -> Check {
    stage.output("mkdir raw; touch raw/$'\\xff\\xfe' raw/plain").await?;
    let listed = stage.sandbox.list("raw").await?;
    let raw: Vec<_> = listed.iter().filter_map(|entry| entry.name_bytes.clone()).collect();
    ensure_eq!(raw, vec![vec![0xff, 0xfe]]);
    ensure!(listed.iter().any(|entry| entry.name == "plain" && entry.name_bytes.is_none()), "{listed:?}");
    Ok(())
}

async fn f03_names_that_look_alike_are_different_files(stage: Stage) -> Check {
    // Case twins, and the same letter composed and decomposed.
    for name in ["File", "file", "FILE", "\u{e9}", "e\u{301}", "\u{212b}", "\u{c5}"] {
        stage.sandbox.write(&format!("alike/{name}"), name).await?;
    }
    ensure_eq!(stage.sandbox.list("alike").await?.len(), 7);
    for name in ["File", "file", "\u{e9}", "e\u{301}"] {
        ensure_eq!(stage.sandbox.read_text(&format!("alike/{name}")).await?, name);
    }
    Ok(())
}

async fn f03_a_path_is_not_read_as_an_option_or_a_pattern(stage: Stage) -> Check {
    stage.output("mkdir keep; touch keep/a keep/b").await?;
    for path in ["-rf", "--help", "~", "keep/*"] {
        stage.sandbox.write(path, "x").await?;
        stage.sandbox.remove(path, eyot::RemoveOptions::default()).await?;
    }
    ensure_eq!(stage.output("ls keep").await?, "a\nb");
    Ok(())
}
