//! `sandbox_create` and its choice of images.

use std::collections::BTreeMap;

use eyot_engine::PoolOptions;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::session::Session;
use crate::{ensure, ensure_eq, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("without_an_image_the_pool_s_default_is_used_and_the_answer_says_which", default_image),
        trial("node_22_is_used_where_the_pool_has_an_image_of_that_name", preferred),
        trial("an_image_that_is_named_and_not_there_is_refused_with_what_to_do", unknown),
        trial("k9_no_model_reads_the_host_by_naming_a_path_as_an_image", host_paths),
        trial("of_many_who_make_one_sandbox_at_once_none_is_told_of_a_difference", at_once),
        trial("a_sandbox_that_is_there_stays_and_the_answer_says_in_what_it_differs", again),
    ]
}

fn with_images(images: &[(&str, &str)]) -> Result<Session, Failed> {
    let images: BTreeMap<_, _> =
        images.iter().map(|(name, image)| ((*name).to_owned(), (*image).to_owned())).collect();
    Session::with(PoolOptions { images, ..PoolOptions::default() })
}

async fn default_image() -> Result<(), Failed> {
    let session = Session::new()?;
    let made = session.ok("sandbox_create", json!({ "sandbox": "a", "image": null })).await?;
    ensure_eq(made, json!({ "sandbox": "a", "created": true, "image": "host" }))?;
    session.close().await
}

async fn preferred() -> Result<(), Failed> {
    let session = with_images(&[("node:22", "host")])?;
    let made = session.ok("sandbox_create", json!({ "sandbox": "a" })).await?;
    ensure_eq(made, json!({ "sandbox": "a", "created": true, "image": "node:22" }))?;
    session.close().await
}

async fn unknown() -> Result<(), Failed> {
    let session = with_images(&[("mine", "host")])?;
    let said = session.refusal("sandbox_create", json!({ "sandbox": "a", "image": "python:3.12" })).await?;
    ensure(said.starts_with("there is no image `python:3.12`"), &said)?;
    ensure(said.contains("hint: there are: `mine`;") && said.contains("`images`"), &said)?;
    ensure_eq(session.ok("sandbox_list", json!({})).await?, json!({ "sandboxes": [] }))?;
    session.close().await
}

async fn host_paths() -> Result<(), Failed> {
    let session = Session::new()?;
    let here = std::env::current_dir()?;
    let relative = std::fs::read_dir(&here)?.next().ok_or("an empty directory")??.file_name();
    let relative = relative.to_string_lossy().into_owned();
    let paths = ["/", "/etc", "/root", "/nosuchthing", "..", "./src", "~", "a/../../etc", relative.as_str()];
    for image in paths {
        let said = session.refusal("sandbox_create", json!({ "sandbox": "a", "image": image })).await?;
        let rest = said.replacen(&format!("`{image}`"), "", 1);
        let other = session.refusal("sandbox_create", json!({ "sandbox": "a", "image": "no-such" })).await?;
        ensure_eq(rest, other.replacen("`no-such`", "", 1))?;
    }
    session.close().await
}

async fn again() -> Result<(), Failed> {
    let session = with_images(&[("mine", "host")])?;
    session.ok("sandbox_create", json!({ "sandbox": "a", "sleep_after_ms": 5_000_000.0 })).await?;
    session.ok("write_file", json!({ "sandbox": "a", "path": "kept", "content": "" })).await?;
    let same = session.ok("sandbox_create", json!({ "sandbox": "a" })).await?;
    ensure_eq(same, json!({ "sandbox": "a", "created": false, "image": "host" }))?;
    let other = session.ok("sandbox_create", json!({ "sandbox": "a", "image": "mine" })).await?;
    let differs = json!({ "sandbox": "a", "created": false, "image": "host", "differs": ["image"] });
    ensure_eq(other, differs)?;
    let files = session.ok("glob", json!({ "sandbox": "a", "pattern": "*" })).await?;
    ensure_eq(files, json!({ "files": ["kept"] }))?;
    session.close().await
}

async fn at_once() -> Result<(), Failed> {
    let session = Session::new()?;
    for round in 0..10 {
        let name = format!("a{round}");
        let calls = (0..8).map(|_| session.ok("sandbox_create", json!({ "sandbox": name })));
        let mut made = 0;
        for answer in futures_util::future::join_all(calls).await {
            let answer = answer?;
            made += usize::from(answer["created"] == true);
            ensure(answer.get("differs").is_none(), answer)?;
        }
        ensure_eq(made, 1)?;
    }
    session.close().await
}
