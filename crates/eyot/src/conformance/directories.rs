//! Making and listing directories.

use futures_util::future::join_all;

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output};
use crate::files::{CreateDirOptions, FileType};
use crate::sandbox::Sandbox;

const PLAIN: CreateDirOptions = CreateDirOptions { recursive: false };
const RECURSIVE: CreateDirOptions = CreateDirOptions { recursive: true };

cases! {
    a_listing_has_every_name_once_sorted_and_dot_files_too(workspace) needs [];
    a_listing_says_what_each_name_is(workspace) needs [Shell, Symlinks];
    a_listing_has_nothing_of_what_is_below_its_directories(workspace) needs [];
    an_empty_directory_has_no_names(workspace) needs [];
    listing_a_file_is_not_directory_and_a_missing_one_not_found(workspace) needs [];
    a_directory_of_five_thousand_names_is_listed_whole(workspace) needs [Shell];
    a_directory_behind_a_link_is_listed(workspace) needs [Shell, Symlinks];
    a_directory_is_made_once_and_needs_its_parent(workspace) needs [];
    a_recursive_create_makes_parents_and_accepts_what_is_there(workspace) needs [];
    a_file_in_the_way_of_a_directory_is_named_and_kept(workspace) needs [];
    a_recursive_create_accepts_a_link_to_a_directory(workspace) needs [Shell, Symlinks];
    ten_who_make_the_same_tree_all_succeed(workspace) needs [];
    of_ten_who_make_one_directory_one_succeeds(workspace) needs [];
    a_tree_that_is_churned_can_be_listed(workspace) needs [];
}

async fn names(sandbox: &Sandbox, path: &str) -> Check<Vec<String>> {
    Ok(sandbox.list(path).await?.into_iter().map(|entry| entry.name).collect())
}

async fn a_listing_has_every_name_once_sorted_and_dot_files_too(sandbox: Sandbox) -> Check {
    for name in ["b", ".hidden", "a", "B", "..twice", "10", "9", "ä"] {
        sandbox.write(name, "").await?;
    }
    sandbox.create_dir("dir", PLAIN).await?;
    ensure_eq!(names(&sandbox, ".").await?, ["..twice", ".hidden", "10", "9", "B", "a", "b", "dir", "ä"]);
    Ok(())
}

async fn a_listing_says_what_each_name_is(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir d && printf 12345 > f && ln -s d ld && ln -s nowhere dangling && mkfifo p")
        .await?;
    let types = [
        ("d", FileType::Directory),
        ("dangling", FileType::Symlink),
        ("f", FileType::File),
        ("ld", FileType::Symlink),
        ("p", FileType::Other),
    ];
    let listed = sandbox.list(".").await?;
    ensure_eq!(listed.len(), types.len());
    for (entry, (name, file_type)) in listed.iter().zip(types) {
        ensure_eq!(entry.name, name);
        ensure!(entry.file_type.is_none_or(|found| found == file_type), "{entry:?} is no {file_type:?}");
    }
    ensure!(listed[2].size.is_none_or(|size| size == 5), "five bytes are {:?}", listed[2]);
    Ok(())
}

async fn a_listing_has_nothing_of_what_is_below_its_directories(sandbox: Sandbox) -> Check {
    sandbox.write("d/below/f", "").await?;
    ensure_eq!(names(&sandbox, ".").await?, ["d"]);
    ensure_eq!(names(&sandbox, "d").await?, ["below"]);
    Ok(())
}

async fn an_empty_directory_has_no_names(sandbox: Sandbox) -> Check {
    sandbox.create_dir("d", PLAIN).await?;
    ensure!(sandbox.list("d").await?.is_empty(), "an empty directory has names");
    Ok(())
}

async fn listing_a_file_is_not_directory_and_a_missing_one_not_found(sandbox: Sandbox) -> Check {
    sandbox.write("f", "x").await?;
    ensure_fails!(sandbox.list("f").await, NotDirectory);
    ensure_fails!(sandbox.list("f/below").await, NotDirectory);
    ensure_fails!(sandbox.list("missing").await, NotFound);
    Ok(())
}

async fn a_directory_of_five_thousand_names_is_listed_whole(sandbox: Sandbox) -> Check {
    let long = "n".repeat(100);
    output(
        &sandbox,
        &format!("mkdir d && cd d && i=0; while [ $i -lt 5000 ]; do : > {long}$i; i=$((i+1)); done"),
    )
    .await?;
    let found = names(&sandbox, "d").await?;
    ensure_eq!(found.len(), 5000);
    ensure!(found.is_sorted() && found.iter().all(|name| name.starts_with(&long)), "the names are wrong");
    Ok(())
}

async fn a_directory_behind_a_link_is_listed(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "").await?;
    output(&sandbox, "ln -s d l").await?;
    ensure_eq!(names(&sandbox, "l").await?, ["f"]);
    Ok(())
}

async fn a_directory_is_made_once_and_needs_its_parent(sandbox: Sandbox) -> Check {
    sandbox.create_dir("d", PLAIN).await?;
    ensure_fails!(sandbox.create_dir("d", PLAIN).await, AlreadyExists);
    ensure_fails!(sandbox.create_dir(".", PLAIN).await, AlreadyExists);
    ensure_fails!(sandbox.create_dir("missing/d", PLAIN).await, NotFound);
    ensure_eq!(names(&sandbox, ".").await?, ["d"]);
    Ok(())
}

async fn a_recursive_create_makes_parents_and_accepts_what_is_there(sandbox: Sandbox) -> Check {
    for _ in 0..2 {
        sandbox.create_dir("a/b/c", RECURSIVE).await?;
        sandbox.write("a/b/kept", "x").await?;
    }
    sandbox.create_dir(".", RECURSIVE).await?;
    sandbox.create_dir("/", RECURSIVE).await?;
    ensure_eq!(names(&sandbox, "a/b").await?, ["c", "kept"]);
    Ok(())
}

async fn a_file_in_the_way_of_a_directory_is_named_and_kept(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    for options in [PLAIN, RECURSIVE] {
        ensure_fails!(sandbox.create_dir("f", options).await, AlreadyExists);
        ensure_fails!(sandbox.create_dir("f/d", options).await, NotDirectory);
    }
    ensure_eq!(sandbox.read_text("f").await?, "kept");
    Ok(())
}

async fn a_recursive_create_accepts_a_link_to_a_directory(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir real && ln -s real link").await?;
    sandbox.create_dir("link", RECURSIVE).await?;
    sandbox.create_dir("link/below", RECURSIVE).await?;
    ensure_eq!(names(&sandbox, "real").await?, ["below"]);
    ensure_fails!(sandbox.create_dir("link", PLAIN).await, AlreadyExists);
    Ok(())
}

async fn ten_who_make_the_same_tree_all_succeed(sandbox: Sandbox) -> Check {
    for made in join_all((0..10).map(|_| sandbox.create_dir("a/b/c/d/e", RECURSIVE))).await {
        made?;
    }
    ensure!(sandbox.stat("a/b/c/d/e").await?.is_directory, "the tree is not there");
    Ok(())
}

async fn of_ten_who_make_one_directory_one_succeeds(sandbox: Sandbox) -> Check {
    let all = join_all((0..10).map(|_| sandbox.create_dir("d", PLAIN))).await;
    ensure_eq!(all.iter().filter(|made| made.is_ok()).count(), 1);
    for refused in all.into_iter().filter(Result::is_err) {
        ensure_fails!(refused, AlreadyExists);
    }
    Ok(())
}

async fn a_tree_that_is_churned_can_be_listed(sandbox: Sandbox) -> Check {
    sandbox.write("d/stays", "").await?;
    let churning = async {
        for round in 0..100 {
            let name = format!("d/{round}");
            sandbox.write(&name, "").await?;
            sandbox.remove(&name, Default::default()).await?;
        }
        Check::Ok(())
    };
    let listing = async {
        for _ in 0..100 {
            let found = names(&sandbox, "d").await?;
            ensure!(found.iter().any(|name| name == "stays"), "what stays is missing among {found:?}");
        }
        Check::Ok(())
    };
    let (churned, listed) = tokio::join!(churning, listing);
    churned.and(listed)
}
