use eyot::{
    Capability, Error, ErrorKind, ExecOptions, IdleAction, Sandbox, SandboxName, SandboxProvider, SandboxSpec,
};

use crate::scripted::{Provider, Scripted, error};

fn named(name: &str) -> SandboxSpec {
    SandboxSpec { name: Some(SandboxName::parse(name).unwrap()), ..SandboxSpec::default() }
}

#[tokio::test]
async fn after_a_destroy_every_clone_refuses_everything_before_it_looks_at_paths() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let clone = sandbox.clone();
    sandbox.destroy().await.unwrap();
    sandbox.destroy().await.unwrap();
    let failures: Vec<Error> = vec![
        clone.read("a\0").await.unwrap_err(),
        clone.write("", "x").await.unwrap_err(),
        clone.exec(" ", ExecOptions::default()).await.unwrap_err(),
        clone.exec_stream("x", ExecOptions::default()).await.err().unwrap(),
        clone.processes().await.unwrap_err(),
        clone.dial(0).await.err().unwrap(),
        clone.workspace().read_file("/etc/passwd").await.unwrap_err(),
    ];
    for failure in failures {
        assert_eq!(failure.kind(), ErrorKind::Destroyed);
        assert_eq!(failure.to_string(), format!("sandbox `{}` has been destroyed", sandbox.name()));
    }
    assert_eq!(driver.log.lines(), ["create", "destroy"]);
}

#[tokio::test]
async fn a_bad_spec_never_reaches_the_provider() {
    let driver = Scripted::new(&[]);
    let spec = SandboxSpec { image: Some(" ".into()), ..SandboxSpec::default() };
    for result in [
        Sandbox::create(&Provider::of(&driver), spec.clone()).await.err(),
        Sandbox::get_or_create(&Provider::of(&driver), spec).await.err(),
    ] {
        assert_eq!(result.unwrap().kind(), ErrorKind::Invalid);
    }
    assert!(driver.log.lines().is_empty());
}

#[tokio::test]
async fn a_create_that_the_provider_refuses_destroys_nothing() {
    let driver = Scripted::new(&[]);
    let provider = Provider::of(&driver);
    provider.creates.lock().unwrap().push_back(error(ErrorKind::AlreadyExists));
    assert_eq!(Sandbox::create(&provider, named("a")).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(driver.log.lines(), ["create"]);
}

#[tokio::test]
async fn get_or_create_opens_what_is_there_and_makes_what_is_not() {
    let driver = Scripted::new(&[]);
    let provider = Provider::of(&driver);
    let (found, made) = Sandbox::get_or_create(&provider, named("a")).await.unwrap();
    assert_eq!((found.name().as_str(), made), ("a", false));
    provider.opens.lock().unwrap().push_back(error(ErrorKind::NotFound));
    let (_, made) = Sandbox::get_or_create(&provider, named("a")).await.unwrap();
    assert!(made);
    let (_, made) = Sandbox::get_or_create(&provider, SandboxSpec::default()).await.unwrap();
    assert!(made);
    assert_eq!(driver.log.lines(), ["open a", "open a", "create", "create"]);
}

#[tokio::test]
async fn get_or_create_wakes_what_sleeps() {
    let driver = Scripted::new(&[Capability::Sleep]);
    let provider = Provider::of(&driver);
    provider.opens.lock().unwrap().push_back(Error::sleeping("a"));
    let (found, made) = Sandbox::get_or_create(&provider, named("a")).await.unwrap();
    assert_eq!((found.name().as_str(), made), ("a", false));
    assert_eq!(driver.log.lines(), ["open a", "wake a"]);
}

#[tokio::test]
async fn a_sleep_that_the_provider_does_not_know_is_refused_before_anything_is_made() {
    let driver = Scripted::new(&[]);
    let mut spec = named("a");
    spec.lifecycle.on_idle = IdleAction::Sleep;
    let refused = Sandbox::create(&Provider::of(&driver), spec).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(refused.to_string(), "scripted does not support create with \"lifecycle.on_idle: sleep\"");
    let refused = Provider::of(&driver).sleep("a").await.unwrap_err();
    assert_eq!(refused.to_string(), "scripted does not support sleep");
    assert!(driver.log.lines().is_empty());
}

#[tokio::test]
async fn get_or_create_opens_what_somebody_else_made_meanwhile() {
    let driver = Scripted::new(&[]);
    let provider = Provider::of(&driver);
    provider.opens.lock().unwrap().push_back(error(ErrorKind::NotFound));
    provider.creates.lock().unwrap().push_back(error(ErrorKind::AlreadyExists));
    let (_, made) = Sandbox::get_or_create(&provider, named("a")).await.unwrap();
    assert!(!made);
    assert_eq!(driver.log.lines(), ["open a", "create", "open a"]);
}

#[tokio::test(start_paused = true)]
async fn get_or_create_gives_up_on_a_name_that_keeps_vanishing() {
    let driver = Scripted::new(&[]);
    let provider = Provider::of(&driver);
    for _ in 0..10_000 {
        provider.opens.lock().unwrap().push_back(error(ErrorKind::NotFound));
        provider.creates.lock().unwrap().push_back(error(ErrorKind::AlreadyExists));
    }
    let failed = Sandbox::get_or_create(&provider, named("a")).await.unwrap_err();
    // It was patient for a while, and no longer.
    let tries = driver.log.count("create");
    assert!(failed.kind() == ErrorKind::Conflict && (10..10_000).contains(&tries), "{failed} after {tries}");
}
