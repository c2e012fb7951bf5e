//! Files and trees between sandboxes.

use eyot::ErrorKind;
use eyot_engine::{SandboxPool, Transfer, Transferred};
use libtest_mimic::{Failed, Trial};

use crate::session::{Session, output};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_file_is_copied_with_its_bits_and_parents_are_made", a_file),
        trial("a_file_replaces_a_file_and_never_lies_inside_a_directory", onto_what_is_there),
        trial("a_tree_is_copied_with_modes_and_links_and_counted", a_tree),
        trial("a_directory_without_recursive_is_refused_and_changes_nothing", not_recursive),
        trial("a_tree_goes_to_a_free_path_or_an_empty_directory", tree_onto_what_is_there),
        trial("a_tree_that_does_not_fit_leaves_the_target_as_it_was", too_large),
        trial("a_tree_is_not_copied_into_itself", into_itself),
        trial("a_tree_is_not_copied_into_itself_by_way_of_a_link_either", into_itself_by_link),
        trial("a_tree_with_closed_directories_is_copied_as_it_is", closed),
        trial("a_tree_that_can_not_be_read_whole_leaves_nothing_in_the_target", unreadable),
        trial("what_is_missing_is_named_with_its_sandbox", missing),
        trial("a_file_of_any_bytes_and_names_of_any_bytes_come_across", any_bytes),
        trial("a_tree_of_many_files_comes_across_whole", many_files),
    ]
}

async fn pool() -> Result<(Session, SandboxPool), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    Ok((session, pool))
}

fn what(from_path: &str, to_path: &str, recursive: bool) -> Transfer {
    Transfer { from_path: from_path.into(), to_path: to_path.into(), recursive }
}

async fn a_file() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let (a, b) = (pool.get("a").await?, pool.get("b").await?);
    output(&a, "printf '#!/bin/sh\\necho ran' > run && chmod 750 run && ln -s run link").await?;
    let done = pool.transfer("a", "b", &what("run", "deep/er/copy", false)).await?;
    ensure(done == Transferred { files: 1, bytes: 18 }, format!("{done:?}"))?;
    ensure(output(&b, "deep/er/copy; stat -c %a deep/er/copy").await? == "ran\n750", "not as it was")?;
    pool.transfer("a", "b", &what("link", "followed", false)).await?;
    ensure(output(&b, "stat -c %F followed").await? == "regular file", "the link was copied")?;
    Ok(pool.close().await?)
}

async fn onto_what_is_there() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let (a, b) = (pool.get("a").await?, pool.get("b").await?);
    a.write("f", "new").await?;
    b.write("f", "the old one, longer").await?;
    pool.transfer("a", "b", &what("f", "f", true)).await?;
    ensure(b.read_text("f").await? == "new", "not replaced")?;
    output(&b, "mkdir d").await?;
    let error = pool.transfer("a", "b", &what("f", "d", false)).await.err().map(|error| error.kind());
    ensure(error == Some(ErrorKind::IsDirectory), format!("{error:?}"))?;
    ensure(
        output(&b, "ls -A d .").await?.lines().filter(|line| line.contains("f")).count() == 1,
        "left over",
    )?;
    Ok(pool.close().await?)
}

const TREE: &str = "mkdir -p t/sub/empty t/bin && printf abc > t/sub/f && printf '#!/bin/sh' > t/bin/run && chmod 755 t/bin/run \
    && chmod 700 t/sub && ln -s ../sub/f t/bin/link && ln -s nowhere t/dangling && ln -s /etc/passwd t/out";
const LISTED: &str = "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort";

async fn a_tree() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let (a, b) = (pool.get("a").await?, pool.get("b").await?);
    output(&a, TREE).await?;
    let done = pool.transfer("a", "b", &what("t", "x/y/moved", true)).await?;
    ensure(done == Transferred { files: 2, bytes: 12 }, format!("{done:?}"))?;
    let (from, to) = (
        output(&a, &format!("cd t && {LISTED}")).await?,
        output(&b, &format!("cd x/y/moved && {LISTED}")).await?,
    );
    ensure(from == to, format!("{from}\n---\n{to}"))?;
    ensure(output(&b, "ls -A x/y").await? == "moved", "something else is left beside it")?;
    Ok(pool.close().await?)
}

async fn not_recursive() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    output(&pool.get("a").await?, TREE).await?;
    let error = pool.transfer("a", "b", &what("t", "t", false)).await.err().ok_or("it was copied")?;
    ensure(
        error.kind() == ErrorKind::IsDirectory && format!("{error:?}").contains("recursive"),
        format!("{error:?}"),
    )?;
    ensure(output(&pool.get("b").await?, "ls -A").await?.is_empty(), "something was made")?;
    Ok(pool.close().await?)
}

async fn tree_onto_what_is_there() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let b = pool.get("b").await?;
    output(&pool.get("a").await?, TREE).await?;
    output(&b, "mkdir empty full && echo mine > full/mine && echo mine > file").await?;
    pool.transfer("a", "b", &what("t", "empty", true)).await?;
    ensure(b.read_text("empty/sub/f").await? == "abc", "not in the empty one")?;
    for taken in ["full", "file"] {
        let error = pool.transfer("a", "b", &what("t", taken, true)).await.err().map(|error| error.kind());
        ensure(error == Some(ErrorKind::AlreadyExists), format!("{taken}: {error:?}"))?;
    }
    ensure(output(&b, "cat full/mine file; ls -A").await? == "mine\nmine\nempty\nfile\nfull", "changed")?;
    Ok(pool.close().await?)
}

async fn too_large() -> Result<(), Failed> {
    let session = Session::new()?;
    let mut options = eyot_engine::PoolOptions::default();
    options.template.limits.max_file_bytes = Some(1000);
    let small = session.pool_with(options)?;
    let large = session.pool("large")?;
    let (from, to) = (large.get("a").await?, small.get("b").await?);
    from.write("big", vec![0; 5000]).await?;
    to.write("f", "old").await?;
    let error =
        eyot_engine::transfer(&from, &to, &what("big", "f", false)).await.err().map(|error| error.kind());
    ensure(error == Some(ErrorKind::TooLarge), format!("{error:?}"))?;
    ensure(to.read_text("f").await? == "old" && output(&to, "ls -A").await? == "f", "changed")?;
    output(&from, "mkdir -p t && echo x > t/f").await?;
    output(&to, "mkdir shut && chmod 500 shut").await?;
    let error =
        eyot_engine::transfer(&from, &to, &what("t", "shut/t", true)).await.err().map(|error| error.kind());
    ensure(error == Some(ErrorKind::Permission), format!("{error:?}"))?;
    ensure(output(&to, "ls -A . shut").await? == ".:\nf\nshut\n\nshut:", "left over")?;
    small.close().await?;
    Ok(large.close().await?)
}

async fn into_itself() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let a = pool.get("a").await?;
    output(&a, TREE).await?;
    for target in ["t/inside", "t", "t/../t/x"] {
        let error = pool.transfer("a", "a", &what("t", target, true)).await.err().map(|error| error.kind());
        ensure(error == Some(ErrorKind::Invalid), format!("{target}: {error:?}"))?;
    }
    pool.transfer("a", "a", &what("t", "t2", true)).await?;
    ensure(output(&a, "diff -r --no-dereference t t2 && ls").await? == "t\nt2", "not alike")?;
    for (from, to) in [("/", "r"), ("t", "/")] {
        let error = pool.transfer("a", "a", &what(from, to, true)).await.err().map(|error| error.kind());
        ensure(error == Some(ErrorKind::Invalid), format!("{from} {to}: {error:?}"))?;
    }
    Ok(pool.close().await?)
}

async fn into_itself_by_link() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let a = pool.get("a").await?;
    output(
        &a,
        &format!("{TREE} && ln -s t/sub way && mkdir -p t/{0}/{0} && ln -s t/{0}/{0} long", "n".repeat(90)),
    )
    .await?;
    let before = output(&a, "find t | sort").await?;
    for target in ["way/x", "way/x/y/z", "long/x"] {
        let error = pool.transfer("a", "a", &what("t", target, true)).await.err().ok_or("it was copied")?;
        let said = "`to_path` must not lie inside of the directory that is copied";
        ensure(error.to_string() == said, format!("{target}: {error}"))?;
    }
    let after = output(&a, "find t | sort").await?;
    ensure(after == before, format!("{before}\n---\n{after}"))?;
    Ok(pool.close().await?)
}

/// Transfers folders without write permission, as Go's module cache has them.
async fn closed() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let (a, b) = (pool.get("a").await?, pool.get("b").await?);
    output(&a, "mkdir -p t/in/er && echo x > t/in/er/f && chmod 444 t/in/er/f && chmod -R a-w t").await?;
    pool.transfer("a", "b", &what("t", "x/t", true)).await?;
    let (from, to) = (
        output(&a, "cd t && find . -printf '%P %y %m\n' | sort").await?,
        output(&b, "cd x/t && find . -printf '%P %y %m\n' | sort").await?,
    );
    ensure(from == to, format!("{from}\n---\n{to}"))?;
    ensure(output(&b, "ls -A . x").await? == ".:\nx\n\nx:\nt", "left over")?;
    Ok(pool.close().await?)
}

async fn unreadable() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let (a, b) = (pool.get("a").await?, pool.get("b").await?);
    output(&a, "mkdir -p t/a/b t/z && echo x > t/a/b/f && chmod 500 t/a/b t/a && echo x > t/z/secret && chmod 0 t/z/secret").await?;
    let error =
        pool.transfer("a", "b", &what("t", "new/parents/t", true)).await.err().ok_or("it was copied")?;
    ensure(
        error.kind() == ErrorKind::Permission && error.to_string().contains("z/secret"),
        error.to_string(),
    )?;
    ensure(output(&b, "ls -A").await?.is_empty(), output(&b, "ls -lAR").await?)?;
    Ok(pool.close().await?)
}

async fn missing() -> Result<(), Failed> {
    let (session, pool) = pool().await?;
    let error = pool.transfer("a", "b", &what("none", "x", true)).await.err().ok_or("it was copied")?;
    ensure(error.kind() == ErrorKind::NotFound && error.to_string().contains("`a`"), error.to_string())?;
    ensure(session.count()? == 0, "a sandbox was made for a slip")?;
    pool.get("a").await?;
    let error = pool.transfer("a", "b", &what("none", "x", true)).await.err().ok_or("it was copied")?;
    ensure(error.kind() == ErrorKind::NotFound && error.to_string().contains("none"), error.to_string())?;
    ensure(pool.list().await?.len() == 1, "a sandbox was made")?;
    Ok(pool.close().await?)
}

async fn any_bytes() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let (a, b) = (pool.get("a").await?, pool.get("b").await?);
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    a.write("f \n'\"$x", bytes.clone()).await?;
    pool.transfer("a", "b", &what("f \n'\"$x", "-rf *", false)).await?;
    ensure(b.read("-rf *").await? == bytes, "not the same bytes")?;
    output(&a, "mkdir t && printf x > \"$(printf 't/\\377\\nname')\"").await?;
    let done = pool.transfer("a", "b", &what("t", "t", true)).await?;
    ensure(done == Transferred { files: 1, bytes: 1 }, format!("{done:?}"))?;
    ensure(output(&b, "cd t && ls -A | od -An -tx1").await?.contains("ff 0a 6e"), "another name")?;
    Ok(pool.close().await?)
}

async fn many_files() -> Result<(), Failed> {
    let (_session, pool) = pool().await?;
    let (a, b) = (pool.get("a").await?, pool.get("b").await?);
    output(&a, "mkdir t && cd t && for d in $(seq 20); do mkdir $d; for f in $(seq 50); do echo $d/$f > $d/$f; done; done").await?;
    let done = pool.transfer("a", "b", &what("t", "t", true)).await?;
    ensure(done.files == 1000, format!("{done:?}"))?;
    let sum = "cd t && find . -type f | sort | xargs cat | sha256sum";
    ensure(output(&a, sum).await? == output(&b, sum).await?, "not the same")?;
    Ok(pool.close().await?)
}
