//! Agents' work with files: large files, names in all scripts, trees.

use std::sync::LazyLock;

use eyot::{
    ByteRange, ByteStream, Bytes, CreateDirOptions, GlobOptions, GrepOptions, RemoveOptions, Sandbox,
    SandboxPath, TarInOptions, WriteMode, WriteOptions,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::transcript::{Agent, Check, bytes_of};

const PIECE_BYTES: usize = 1 << 20;
const PIECES: usize = 200;

/// Returns bytes that are the same everywhere: scattered ones, and the number of the piece.
fn piece(number: usize) -> Vec<u8> {
    static SCATTERED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let byte = |n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8;
        (0..PIECE_BYTES as u32).map(byte).collect()
    });
    let mut piece = SCATTERED.clone();
    piece[..8].copy_from_slice(&(number as u64).to_be_bytes());
    piece
}

/// Writes through the handle in one stream, checks inside, and reads back.
pub async fn write_and_read_200_mb(agent: &mut Agent<'_>) -> Check {
    let content: ByteStream = stream::iter(0..PIECES).map(|number| Ok(piece(number).into())).boxed();
    let written = agent.sandbox.write_stream("large/data", content, WriteOptions::default()).await?;
    agent.note(format_args!("written: {written}"));
    agent.run("stat --format='%s %a' large/data; sha256sum large/data").await?;
    let mut back = agent.sandbox.read_stream("large/data", ByteRange::default()).await?;
    let mut read = Vec::new();
    while let Some(bytes) = back.try_next().await? {
        read.extend_from_slice(&bytes);
    }
    let same = read.chunks(PIECE_BYTES).enumerate().all(|(number, found)| found == piece(number));
    agent.note(format_args!("read back: {}, the same: {same}", read.len()));
    let middle = ByteRange { offset: 100 * PIECE_BYTES as u64 - 2, limit: Some(10) };
    let few = bytes_of(agent.sandbox.read_stream("large/data", middle).await?).await?;
    agent.note(format_args!("in the middle: {few:?}"));
    agent.run("head -c 104857600 large/data > half && cmp half large/data; rm -r large half; ls").await
}

/// Names that are composed and decomposed, written right to left, beyond the first plane, with
/// blanks and line ends.
const NAMES: [&str; 8] =
    ["\u{e9}t\u{e9}", "e\u{301}te\u{301}", "日本語", "שלום", "🦀 crab", "line\nend", "-rf", "Ünïcödé.ẞ"];

const LIST_BY_PYTHON: &str = "\
import os
print(ascii(sorted(os.listdir('names'))))
print(os.listdir(b'names/\\xc3\\xa9t\\xc3\\xa9'))
";

/// The handle and programs see the same files.
pub async fn use_names_of_all_scripts(agent: &mut Agent<'_>) -> Check {
    for (number, name) in NAMES.into_iter().enumerate() {
        agent.write(&format!("names/{name}/{name}"), &format!("{number} {name}\n")).await?;
    }
    for entry in agent.sandbox.list("names").await? {
        let text = agent.sandbox.read_text(&format!("names/{0}/{0}", entry.name)).await?;
        agent.note(format_args!("{:?} {:?} {text:?}", entry.name, entry.file_type));
    }
    for pattern in ["**/*日*", "names/*\u{301}*/*"] {
        let found = glob(agent.sandbox, pattern).await?;
        agent.note(found);
    }
    agent.run("ls -A1 --quoting-style=escape names; cat names/日本語/日本語 names/-rf/-rf").await?;
    agent.run_reading("python3 -", LIST_BY_PYTHON).await?;
    agent.run("node -p \"fs.readdirSync('names').length + 'ẞ'.toLowerCase()\"").await?;
    agent.sandbox.rename("names/🦀 crab", "names/🐙").await?;
    agent.run("mkdir 'Grüße' && mv names/🐙 Grüße/ && find Grüße; printf %s ÄÖ | wc -mc").await
}

async fn glob(sandbox: &Sandbox, pattern: &str) -> Check<String> {
    let root = SandboxPath::parse("/workspace")?.into();
    let options = GlobOptions { pattern: pattern.to_owned(), root, hidden: false, max_results: 1000 };
    let found = sandbox.glob(&options).await?;
    Ok(format!("{pattern:?}: {:?} {}", found.paths, found.truncated))
}

/// A long name, links that lead here and nowhere, two names of one file, bits that are not kept.
const MAKE_TREE: &str = "\
mkdir -p t/deep/er t/empty && echo a > t/a && seq 100000 > t/deep/er/many
ln -s ../a t/deep/link && ln -s /nowhere t/dangling && ln t/a t/hard
chmod 750 t/deep && chmod 640 t/deep/er/many && chmod 755 t/a
printf x > \"t/$(printf 'n%.0s' {1..200})\"";

/// Reads a tree out through the handle, writes it elsewhere, and reads it with the sandbox's own
/// tar.
pub async fn move_a_tree_as_tar(agent: &mut Agent<'_>) -> Check {
    agent.run(MAKE_TREE).await?;
    let tar = bytes_of(agent.sandbox.tar_out("t").await?).await?;
    agent.sandbox.write("out.tar", tar.clone()).await?;
    agent.sandbox.create_dir("copy", CreateDirOptions::default()).await?;
    let tar = stream::once(async { Ok(Bytes::from(tar)) }).boxed();
    let entries = agent.sandbox.tar_in("copy", tar, TarInOptions::default()).await?;
    agent.note(format_args!("unpacked: {entries}"));
    agent
        .run_all(&[
            "find copy -type d -printf '%P %m\\n' -o -printf '%P %y %m %s %l\\n' | cut -c1-60 | sort",
            "diff -r --no-dereference t copy/t && echo the same",
            "tar -t -f out.tar | cut -c1-60 | sort",
            "tar -cz -f t.tgz t && mkdir other && tar -xz -f t.tgz -C other",
            "diff -r --no-dereference t other/t && echo the same",
        ])
        .await
}

const MAKE_SOURCES: &str = "\
mkdir -p src/a/b .git node_modules/x
for n in 1 2 3; do echo \"fn main_$n() {} // TODO: Größe $n\" > src/a/f$n.rs; done
echo 'todo' > src/a/b/n.txt
echo TODO > .git/hidden
printf 'TODO\\0binary' > src/bin
ln -s a src/loop
seq 5000 > src/lines";

/// Searches through the handle, as its tools do, and by programs.
pub async fn search_a_tree(agent: &mut Agent<'_>) -> Check {
    agent.run(MAKE_SOURCES).await?;
    for pattern in ["**/*.rs", "src/*", "*", "**/{n,f1}.*", "src/**/[!f]*"] {
        let found = glob(agent.sandbox, pattern).await?;
        agent.note(found);
    }
    grep(agent, "TODO", false, None).await?;
    grep(agent, "todo", true, Some("*.txt")).await?;
    grep(agent, r"Größe \d$", false, None).await?;
    grep(agent, "^49.9$", false, None).await?;
    agent.run("grep -rn --include='*.rs' TODO src | sort; find . -name '*.txt' | xargs wc -c").await
}

async fn grep(agent: &mut Agent<'_>, pattern: &str, ignore_case: bool, include: Option<&str>) -> Check {
    let options = GrepOptions {
        pattern: pattern.to_owned(),
        literal: false,
        ignore_case,
        root: SandboxPath::parse("/workspace/src")?.into(),
        include: include.map(str::to_owned),
        max_matches: 5,
        max_line_bytes: 30,
    };
    let found = agent.sandbox.grep(&options).await?;
    agent.note(format_args!("{pattern}: truncated: {}", found.truncated));
    for line in found.matches {
        let cut = if line.line_truncated { "…" } else { "" };
        agent.note(format_args!("{}:{}:{}{cut}", line.path, line.line_number, line.line));
    }
    Ok(())
}

/// Changes files through the handle, and looks at them by programs.
pub async fn move_and_remove_files(agent: &mut Agent<'_>) -> Check {
    let sandbox = agent.sandbox;
    agent.write("a/b/c/one", "1").await?;
    let append = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
    sandbox.write_with("log", "first\n", append).await?;
    sandbox.write_with("log", "second\n", append).await?;
    sandbox.write_with("run", "#!/bin/sh\n", WriteOptions { permissions: Some(0o700), ..append }).await?;
    sandbox.rename("a/b", "moved").await?;
    sandbox.create_dir("d/e/f", CreateDirOptions { recursive: true }).await?;
    agent.run("find . -printf '%p %y %m\\n' | sort; cat log").await?;
    agent.run("echo changed >> moved/c/one; ln -s moved/c/one link").await?;
    let stat = sandbox.stat("link").await?;
    agent.note(format_args!("{} {:?} {:?} {:?}", stat.is_file, stat.is_symbolic_link, stat.size, stat.mode));
    refuse(agent).await;
    sandbox.remove("d", RemoveOptions { recursive: true, force: false }).await?;
    sandbox.remove("link", RemoveOptions::default()).await?;
    sandbox.remove("link", RemoveOptions { recursive: false, force: true }).await?;
    agent.run("find . | sort").await
}

/// Notes the errors of impossible operations.
async fn refuse(agent: &mut Agent<'_>) {
    let sandbox = agent.sandbox;
    let new = WriteOptions { mode: WriteMode::CreateNew, ..WriteOptions::default() };
    let refused = [
        told(sandbox.read("missing/file").await),
        told(sandbox.read("d").await),
        told(sandbox.write("d", "x").await),
        told(sandbox.write("log/x", "x").await),
        told(sandbox.write_with("log", "x", new).await),
        told(sandbox.remove("d", RemoveOptions::default()).await),
        told(sandbox.remove("missing", RemoveOptions::default()).await),
        told(sandbox.create_dir("d", CreateDirOptions::default()).await),
        told(sandbox.rename("missing", "x").await),
        told(sandbox.list("log").await),
    ];
    for said in refused {
        agent.note_without_name(&said);
    }
}

/// Returns the error of an operation that must fail.
fn told<T>(result: eyot::Result<T>) -> String {
    match result {
        Ok(_) => "it succeeded".to_owned(),
        Err(error) => format!("{}: {error}", error.kind()),
    }
}

/// The user is an ordinary one: the system's files belong to others.
pub async fn meet_the_limits_of_a_user(agent: &mut Agent<'_>) -> Check {
    agent
        .run_all(&[
            "id; touch /etc/x; touch /usr/bin/x; echo x > /etc/passwd; cat /etc/shadow",
            "umask; touch mine && chmod 0 mine && cat mine; stat --format='%U %G %a' mine . /home/user /tmp",
            "chown root mine; mkdir locked && touch locked/f && chmod 555 locked && rm locked/f; rm -f mine; ls",
            "mount -t tmpfs none /mnt 2>&1 | head -1; mknod null c 1 3; kill -9 1; unshare --user true",
            "su -c true < /dev/null 2>&1 | tail -1; ls -ld /root | cut -c1-10",
            "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status",
            "for place in /tmp ~ /dev/shm /var/tmp; do echo $place > $place/x && cat $place/x; done",
        ])
        .await?;
    let refused =
        [told(agent.sandbox.write("/etc/motd", "x").await), told(agent.sandbox.read("/etc/shadow").await)];
    for said in refused {
        agent.note_without_name(&said);
    }
    Ok(())
}
