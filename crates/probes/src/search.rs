//! F6: patterns and trees that were made to never end.

use eyot::{ConfinedPath, ErrorKind, GlobOptions, GrepOptions, SandboxPath, StartOptions};
use futures_util::StreamExt;

use crate::check::{Check, cases, ensure, ensure_eq, promptly};
use crate::world::Stage;

cases! {
    f06_regular_expressions_that_explode_elsewhere_end_here(stage);
    f06_globs_that_explode_elsewhere_end_here(stage);
    f06_loops_of_links_and_special_files_are_walked_once(stage);
    f06_a_tree_that_changes_all_the_time_is_searched_listed_and_packed_to_an_end(stage);
    f06_one_endless_line_is_cut(stage);
}

fn grep_for(pattern: &str) -> Check<GrepOptions> {
    Ok(GrepOptions {
        pattern: pattern.to_owned(),
        literal: false,
        ignore_case: true,
        root: workspace()?,
        include: None,
        max_matches: 100,
        max_line_bytes: 500,
    })
}

fn workspace() -> Check<ConfinedPath> {
    Ok(SandboxPath::parse("/workspace")?.into())
}

async fn f06_regular_expressions_that_explode_elsewhere_end_here(stage: Stage) -> Check {
    stage.sandbox.write("a", format!("{}!\n", "a".repeat(20_000))).await?;
    let patterns = [
        "(a+)+$".to_owned(),
        "(a|a)*$".to_owned(),
        "(a*)*b".to_owned(),
        "(.*)(.*)(.*)(.*)(.*)[^a]$".to_owned(),
        format!("{}{}", "a?".repeat(100), "a".repeat(100)),
        "a{1000}{1000}{1000}".to_owned(),
        "(((a{100}){100}){100}){100}".to_owned(),
        "\\w{1000}{100}".to_owned(),
        "(".repeat(1_000),
        format!("{}a{}", "(".repeat(500), ")".repeat(500)),
        "[".to_owned(),
        "x".repeat(1 << 16),
        "(?i)\\p{L}{500}".to_owned(),
    ];
    for pattern in patterns {
        if let Err(error) = promptly("a grep", stage.sandbox.grep(&grep_for(&pattern)?)).await? {
            let kind = error.kind();
            let typed = [ErrorKind::Invalid, ErrorKind::TooLarge].contains(&kind);
            let shown: String = pattern.chars().take(40).collect();
            ensure!(typed, "{shown}: {kind} {error}");
        }
    }
    stage.still_works().await
}

async fn f06_globs_that_explode_elsewhere_end_here(stage: Stage) -> Check {
    let name = "a".repeat(200);
    stage.sandbox.write(&name, "x").await?;
    stage.output("mkdir -p $(printf 'd/%.0s' $(seq 1 50))").await?;
    let patterns = [
        "a*".repeat(60) + "b",
        "**/".repeat(40) + "x",
        "{a,b}".repeat(30),
        "{".repeat(200) + &"}".repeat(200),
        "[".repeat(100),
        "[!".to_owned(),
        "*".repeat(10_000),
        "{a,{a,{a,{a,b}}}}".repeat(8),
    ];
    for pattern in patterns {
        let options =
            GlobOptions { pattern: pattern.clone(), root: workspace()?, hidden: true, max_results: 100 };
        if let Err(error) = promptly("a glob", stage.sandbox.glob(&options)).await? {
            let typed = [ErrorKind::Invalid, ErrorKind::TooLarge].contains(&error.kind());
            let shown: String = pattern.chars().take(40).collect();
            ensure!(typed, "{shown}: {} {error}", error.kind());
        }
    }
    stage.still_works().await
}

async fn f06_loops_of_links_and_special_files_are_walked_once(stage: Stage) -> Check {
    stage
        .output(
            "mkdir d; ln -s .. d/up; ln -s / d/root; ln -s /proc d/proc; mkfifo d/fifo; echo needle > d/file",
        )
        .await?;
    let found = promptly("a grep", stage.sandbox.grep(&grep_for("needle")?)).await??;
    let paths: Vec<&str> = found.matches.iter().map(|found| found.path.as_str()).collect();
    ensure_eq!(paths, ["/workspace/d/file"]);
    let options =
        GlobOptions { pattern: "**".to_owned(), root: workspace()?, hidden: true, max_results: 10_000 };
    let found = promptly("a glob", stage.sandbox.glob(&options)).await??;
    ensure!(found.paths.len() <= 6, "{:?}", found.paths);
    // Files that never end, and every link of `/proc` that leads to the root.
    let everything = GrepOptions {
        root: SandboxPath::parse("/proc")?.into(),
        max_matches: 1,
        ..grep_for("needle-in-no-file")?
    };
    let searched = tokio::time::timeout(crate::check::hang(), stage.sandbox.grep(&everything)).await;
    if let Ok(Err(error)) = searched {
        ensure!(error.kind() != ErrorKind::Internal, "{error}");
    }
    stage.still_works().await
}

async fn f06_a_tree_that_changes_all_the_time_is_searched_listed_and_packed_to_an_end(stage: Stage) -> Check {
    let line = "while :; do mkdir -p t/a/b/c; echo needle > t/a/b/c/f; echo x > t/x; mv t u; rm -rf u; done";
    let churn = stage.sandbox.start(line, StartOptions::default()).await?.id;
    for _ in 0..60 {
        let mut results = Vec::new();
        results.push(promptly("a grep", stage.sandbox.grep(&grep_for("needle")?)).await?.map(drop));
        let options =
            GlobOptions { pattern: "**/f".to_owned(), root: workspace()?, hidden: true, max_results: 100 };
        results.push(promptly("a glob", stage.sandbox.glob(&options)).await?.map(drop));
        results.push(promptly("a list", stage.sandbox.list("/workspace")).await?.map(drop));
        results.push(promptly("a pack", pack(&stage)).await?);
        for error in results.into_iter().filter_map(Result::err) {
            let kinds = [ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::NotDirectory];
            ensure!(kinds.contains(&error.kind()), "{} {error}", error.kind());
        }
    }
    stage.sandbox.kill(churn, None).await?;
    Ok(())
}

async fn pack(stage: &Stage) -> eyot::Result<()> {
    let mut bytes = stage.sandbox.tar_out("/workspace").await?;
    while let Some(piece) = bytes.next().await {
        piece?;
    }
    Ok(())
}

async fn f06_one_endless_line_is_cut(stage: Stage) -> Check {
    stage.output("head -c 32M /dev/zero | tr '\\0' 'x' > line; echo needle >> line").await?;
    let found = promptly("a grep", stage.sandbox.grep(&grep_for("needle")?)).await??;
    for found in &found.matches {
        ensure!(found.line.len() <= 500 && found.line_truncated, "{} bytes", found.line.len());
    }
    stage.still_works().await
}
