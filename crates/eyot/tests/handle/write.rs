use bytes::Bytes;
use eyot::{Capability, ErrorKind, Limits, SandboxSpec, WriteMode, WriteOptions};
use futures_util::{StreamExt, stream};

use crate::scripted::{Scripted, error};

#[tokio::test]
async fn a_write_that_succeeds_is_one_write_and_no_directory() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    sandbox.write("a/b.txt", "hi").await.unwrap();
    assert_eq!(driver.log.lines()[1..], ["write /workspace/a/b.txt", "wrote hi limit None"]);
}

#[tokio::test]
async fn a_write_that_fails_makes_the_parent_and_is_tried_exactly_once_more() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    driver.writes.lock().unwrap().push_back(error(ErrorKind::Internal));
    driver.create_dirs.lock().unwrap().push_back(error(ErrorKind::Permission));
    sandbox.write("/a.txt", "hi").await.unwrap();
    let asked = ["write /a.txt", "mkdir / recursive=true", "write /a.txt", "wrote hi limit None"];
    assert_eq!(driver.log.lines()[1..], asked);
}

#[tokio::test]
async fn the_error_of_the_second_write_is_the_one_that_is_returned() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    driver.writes.lock().unwrap().extend([error(ErrorKind::NotFound), error(ErrorKind::Quota)]);
    assert_eq!(sandbox.write("a/b", "hi").await.unwrap_err().kind(), ErrorKind::Quota);
    assert_eq!(driver.log.count("write "), 2);
}

#[tokio::test]
async fn a_refusal_that_promises_that_nothing_changed_makes_no_directory() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    for kind in [ErrorKind::TooLarge, ErrorKind::Destroyed, ErrorKind::Unsupported] {
        driver.writes.lock().unwrap().push_back(error(kind));
        assert_eq!(sandbox.write("a/b", "hi").await.unwrap_err().kind(), kind);
    }
    assert_eq!(driver.log.count("mkdir"), 0);
}

#[tokio::test]
async fn a_stream_is_written_again_from_its_beginning() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    driver.writes.lock().unwrap().push_back(error(ErrorKind::NotFound));
    let content = stream::iter(["one ", "two"].map(|piece| Ok(Bytes::from(piece)))).boxed();
    assert_eq!(sandbox.write_stream("a/b", content, WriteOptions::default()).await.unwrap(), 7);
    assert_eq!(driver.log.count("mkdir"), 1);
    assert_eq!(driver.log.count("wrote one two"), 1);
}

#[tokio::test]
async fn a_stream_that_failed_is_not_tried_again_and_its_error_is_returned() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let content = stream::iter([Ok(Bytes::from("one")), Err(error(ErrorKind::Conflict))]).boxed();
    let failed = sandbox.write_stream("a", content, WriteOptions::default()).await.unwrap_err();
    assert_eq!((failed.kind(), driver.log.count("write ")), (ErrorKind::Conflict, 1));
}

#[tokio::test]
async fn a_stream_of_which_too_much_is_gone_is_not_tried_again() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    driver.writes.lock().unwrap().push_back(error(ErrorKind::NotFound));
    let content = stream::iter((0..3).map(|_| Ok(Bytes::from(vec![b'x'; 1 << 19])))).boxed();
    let failed = sandbox.write_stream("a/b", content, WriteOptions::default()).await.unwrap_err();
    assert_eq!((failed.kind(), driver.log.count("write ")), (ErrorKind::NotFound, 1));
}

#[tokio::test]
async fn a_file_beyond_the_limit_is_refused_before_anything_is_touched() {
    let driver = Scripted::new(&[]);
    let limits = Limits { max_file_bytes: Some(4), ..Limits::default() };
    let sandbox = driver.sandbox_of(SandboxSpec { limits, ..SandboxSpec::default() }).await;
    assert_eq!(sandbox.write("a", "12345").await.unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(driver.log.lines(), ["create"]);
    let stricter = WriteOptions { max_file_bytes: Some(2), ..WriteOptions::default() };
    assert_eq!(sandbox.write_with("a", "123", stricter).await.unwrap_err().kind(), ErrorKind::TooLarge);
    sandbox.write("a", "1234").await.unwrap();
    assert_eq!(driver.log.count("wrote 1234 limit Some(4)"), 1);
}

#[tokio::test]
async fn a_read_stops_where_it_passes_the_limit() {
    let driver = Scripted::new(&[]);
    let limits = Limits { max_file_bytes: Some(6), ..Limits::default() };
    let sandbox = driver.sandbox_of(SandboxSpec { limits, ..SandboxSpec::default() }).await;
    *driver.file.lock().unwrap() = Bytes::from("123456");
    assert_eq!(sandbox.read("a").await.unwrap(), "123456");
    *driver.file.lock().unwrap() = Bytes::from("1234567");
    assert_eq!(sandbox.read("a").await.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_read_with_replacement_characters() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    *driver.file.lock().unwrap() = Bytes::from(&b"ok\xff\xc3\xa4"[..]);
    assert_eq!(sandbox.read_text("a").await.unwrap(), "ok\u{fffd}ä");
}

#[tokio::test]
async fn an_append_is_refused_where_the_provider_has_none() {
    let driver = Scripted::new(&[Capability::Append]);
    let sandbox = driver.sandbox().await;
    let options = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
    let refused = sandbox.write_with("a", "x", options).await.unwrap_err();
    assert_eq!(refused.to_string(), "scripted does not support write with \"append\"");
    assert_eq!(driver.log.lines(), ["create"]);
}
