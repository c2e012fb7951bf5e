use eyot::{ErrorKind, ExecOptions};

use crate::scripted::Scripted;

#[tokio::test]
async fn a_driver_only_ever_gets_absolute_normalised_paths() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    sandbox.stat("a/./b//../c/").await.unwrap();
    sandbox.stat("/../x").await.unwrap();
    sandbox.list(".").await.unwrap();
    sandbox.rename("a", "/b/").await.unwrap();
    let asked = driver.log.lines();
    assert_eq!(asked[1..], ["stat /workspace/a/c", "stat /x", "list /workspace", "rename /workspace/a /b"]);
}

#[tokio::test]
async fn a_path_that_cannot_be_is_refused_without_asking_the_driver() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let long = "n".repeat(300);
    for path in ["", "a\0b", long.as_str()] {
        assert_eq!(sandbox.read(path).await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(sandbox.write(path, "x").await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(driver.log.lines(), ["create"]);
}

#[tokio::test]
async fn a_command_gets_the_working_directory_itself_or_one_resolved_against_it() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    for (cwd, expected) in
        [(None, "/workspace"), (Some(""), "/workspace"), (Some(".."), "/"), (Some("data"), "/workspace/data")]
    {
        let options = ExecOptions { cwd: cwd.map(str::to_owned), ..ExecOptions::default() };
        let run = tokio::spawn({
            let sandbox = sandbox.clone();
            async move { sandbox.exec("true", options).await }
        });
        let command = commands.recv().await.unwrap();
        assert_eq!(
            (command.request.cwd.path.as_str(), command.request.cwd.beneath.as_ref()),
            (expected, None)
        );
        command.exit(0);
        assert!(run.await.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn an_error_says_what_was_done_where_and_keeps_its_kind() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    driver
        .writes
        .lock()
        .unwrap()
        .extend([ErrorKind::IsDirectory, ErrorKind::IsDirectory].map(crate::scripted::error));
    let error = sandbox.write("a.txt", "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IsDirectory);
    let name = sandbox.name();
    assert_eq!(
        error.to_string(),
        format!("write file `/workspace/a.txt` in sandbox `{name}`: as the test wants it")
    );
}
