//! Images other than `host`: a directory and a rootfs tarball, made here from the host's own shell and its libraries.

use std::fs;
use std::path::Path;
use std::process::Command;

use eyot::{ErrorKind, ExecOptions, Sandbox, SandboxSpec};
use libtest_mimic::{Failed, Trial};

use crate::state::State;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_directory_is_an_image_that_is_never_written_to", directory),
        trial("a_rootfs_tarball_is_an_image", tarball),
        trial("an_image_that_is_nowhere_is_not_found_and_leaves_nothing", nowhere),
        trial("a_tarball_that_is_none_is_refused_and_leaves_nothing", rubbish),
        trial("an_image_that_shows_the_state_folder_is_refused", shows_state),
        trial("a_link_in_an_image_never_reads_a_file_of_the_host", linked_passwd),
        trial("an_image_whose_passwd_is_a_fifo_is_refused_and_does_not_hang", fifo_passwd),
    ]
}

/// Makes a root file system with a shell, `cat`, `ls`, and nothing else.
pub fn make_rootfs(root: &Path) -> Result<(), Failed> {
    for folder in ["bin", "etc", "root", "lib64"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")?;
    fs::write(root.join("etc/release"), "tiny\n")?;
    for program in ["/bin/sh", "/bin/cat", "/bin/ls"] {
        fs::copy(program, root.join(&program[1..]))?;
        let libraries = Command::new("ldd").arg(program).output()?;
        let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
        for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            let target = root.join(&library[1..]);
            fs::create_dir_all(target.parent().ok_or("a library at the root")?)?;
            fs::copy(library, target)?;
        }
    }
    Ok(())
}

async fn try_image(state: &State, image: &Path) -> Result<(), Failed> {
    let provider = state.provider()?;
    let image = Some(image.to_string_lossy().into_owned());
    let sandbox = Sandbox::create(&*provider, SandboxSpec { image, ..SandboxSpec::default() }).await?;
    let script = "cat /etc/release; echo x > /etc/release; cat /etc/release; echo $HOME $USER; echo y > ~/y; ls / | cat";
    let result = sandbox.exec(script, ExecOptions::default()).await?;
    let output = result.stdout_text();
    let root = rustix::process::geteuid().is_root();
    // In a range the image's files are inner root's; alone, they are the caller's, who is the inner user.
    let wanted = if root { "tiny\ntiny\n" } else { "tiny\nx\n" };
    ensure(output.starts_with(wanted), format!("{result:?}"))?;
    ensure(output.contains("/home/user user\n") && output.contains("workspace\n"), output.clone())?;
    ensure(!output.contains("usr\n"), format!("the host's /usr is there: {output}"))?;
    if root {
        let options = ExecOptions { user: Some("root".into()), ..ExecOptions::default() };
        let result = sandbox.exec("echo z > /etc/release && cat /etc/release; echo $HOME", options).await?;
        ensure(result.stdout_text() == "z\n/root\n", format!("as root: {result:?}"))?;
    }
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn directory() -> Result<(), Failed> {
    let (state, folder) = (State::new()?, tempfile::tempdir()?);
    let root = folder.path().join("root");
    make_rootfs(&root)?;
    try_image(&state, &root).await?;
    ensure(fs::read_to_string(root.join("etc/release"))? == "tiny\n", "the image was written to")
}

async fn tarball() -> Result<(), Failed> {
    let (state, folder) = (State::new()?, tempfile::tempdir()?);
    let root = folder.path().join("root");
    make_rootfs(&root)?;
    let tar = folder.path().join("rootfs.tar.gz");
    let made = Command::new("tar").arg("-czf").arg(&tar).arg("-C").arg(&root).arg(".").status()?;
    ensure(made.success(), "tar failed")?;
    try_image(&state, &tar).await?;
    try_image(&state, &tar).await
}

async fn refusal(state: &State, image: &str) -> Result<eyot::Error, Failed> {
    let provider = state.provider()?;
    let spec = SandboxSpec { image: Some(image.to_owned()), ..SandboxSpec::default() };
    let error = Sandbox::create(&*provider, spec).await.err().ok_or("the create succeeded")?;
    state.assert_empty()?;
    Ok(error)
}

async fn nowhere() -> Result<(), Failed> {
    let state = State::new()?;
    for image in ["node:22", "/nonexistent/rootfs.tar"] {
        let error = refusal(&state, image).await?;
        ensure(error.kind() == ErrorKind::NotFound, format!("{image}: {error}"))?;
    }
    Ok(())
}

async fn rubbish() -> Result<(), Failed> {
    let (state, folder) = (State::new()?, tempfile::tempdir()?);
    let file = folder.path().join("rootfs.tar");
    fs::write(&file, "this is no tarball".repeat(100))?;
    let error = refusal(&state, &file.to_string_lossy()).await?;
    ensure(error.kind() == ErrorKind::Invalid, error.to_string())?;
    ensure(fs::read_dir(state.path().join("layers"))?.count() == 0, "a half-unpacked layer is left")
}

async fn shows_state() -> Result<(), Failed> {
    let state = State::new()?;
    fs::create_dir_all(state.path().join("workspaces/bin"))?;
    let above = state.path().parent().ok_or("a state folder at the root")?.to_path_buf();
    fs::create_dir(above.join("bin"))?;
    let link = above.join("link");
    std::os::unix::fs::symlink(state.path().join("workspaces"), &link)?;
    for image in [above, state.path().join("workspaces"), link] {
        let error = refusal(&state, &image.to_string_lossy()).await?;
        let named = error.to_string().contains("image") && error.to_string().contains("state folder");
        ensure(error.kind() == ErrorKind::Invalid && named, format!("{}: {error}", image.display()))?;
    }
    Ok(())
}

async fn linked_passwd() -> Result<(), Failed> {
    let (state, folder) = (State::new()?, tempfile::tempdir()?);
    let root = folder.path().join("root");
    make_rootfs(&root)?;
    // Without the default user, whose line is then added to a copy of the file.
    let secret = folder.path().join("secret");
    fs::write(&secret, "secret:x:7:7::/:/bin/sh\n")?;
    fs::remove_file(root.join("etc/passwd"))?;
    for file in ["passwd", "group"] {
        std::os::unix::fs::symlink(&secret, root.join("etc").join(file))?;
    }
    let provider = state.provider()?;
    let image = Some(root.to_string_lossy().into_owned());
    let sandbox = Sandbox::create(&*provider, SandboxSpec { image, ..SandboxSpec::default() }).await?;
    let result = sandbox.exec("cat /etc/passwd /etc/group", ExecOptions::default()).await?;
    let output = result.stdout_text();
    ensure(output.contains("user:x:1000") && !output.contains("secret"), format!("{result:?}"))?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn fifo_passwd() -> Result<(), Failed> {
    let (state, folder) = (State::new()?, tempfile::tempdir()?);
    let root = folder.path().join("root");
    make_rootfs(&root)?;
    fs::remove_file(root.join("etc/passwd"))?;
    let made = Command::new("mkfifo").arg(root.join("etc/passwd")).status()?;
    ensure(made.success(), "mkfifo failed")?;
    let error = refusal(&state, &root.to_string_lossy()).await?;
    ensure(error.kind() == ErrorKind::Invalid && error.to_string().contains("users"), error.to_string())
}
