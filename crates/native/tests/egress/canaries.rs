//! Addresses that are not public are not reached, however they are spelt, resolved or redirected
//! to.

use crate::network::{OWN_ADDRESS, OWN_V6};
use crate::world::{Check, World, cases, ensure, said};

cases! {
    n01_no_spelling_of_an_address_that_is_not_public_is_let_through;
    n01_no_name_that_leads_to_an_address_that_is_not_public_is_let_through;
    n01_names_are_told_without_addresses_that_are_not_public;
    n01_a_name_that_changes_its_address_is_judged_by_the_address_that_is_dialled;
    n01_a_redirect_to_an_address_that_is_not_public_is_refused;
}

/// Tries every host by each protocol, on the port of the host's canary and on the internet's.
async fn ensure_refused(world: &World, hosts: &[&str]) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    for port in [world.canary_port()?, 80] {
        let line = format!("PORT={port} python3 try.py '{}'", hosts.join("' '"));
        let said = said(&sandbox, &line).await?;
        ensure!(said.lines().count() == hosts.len(), "{said}");
        for (host, line) in hosts.iter().zip(said.lines()) {
            // A client's bad request is as good as a refusal.
            let by_http = |status: &str| ["400", "403"].contains(&status);
            let words: Vec<&str> = line.split_whitespace().collect();
            let refused = words.len() == 4 && by_http(words[1]) && by_http(words[2]) && words[3] == "2";
            ensure!(refused, "{host}: {line}");
        }
    }
    world.ensure_canary_lives()?;
    for canary in ["10.200.0.", "192.168.7.7", "100.64.0.9", "169.254.169.254", "fd00:200:"] {
        let hits = world.hits(canary)?;
        ensure!(hits.iter().all(|hit| hit.contains("/opened")), "{canary} was reached: {hits:?}");
    }
    Ok(sandbox.destroy().await?)
}

async fn n01_no_spelling_of_an_address_that_is_not_public_is_let_through(world: World) -> Check {
    let own_v6 = format!("[{OWN_V6}]");
    let hosts = [
        "127.0.0.1",
        "127.8.9.10",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        OWN_ADDRESS,
        "[::ffff:10.200.0.1]",
        &own_v6,
        "10.200.0.2",
        "172.16.0.1",
        "192.168.7.7",
        "100.64.0.9",
        "169.254.169.254",
        "169.254.1.1",
        "[fd00:200::2]",
        "[fe80::1]",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
    ];
    ensure_refused(&world, &hosts).await
}

async fn n01_no_name_that_leads_to_an_address_that_is_not_public_is_let_through(world: World) -> Check {
    let hosts = [
        "localhost",
        "LOCALHOST",
        "loop.test",
        "ten.test",
        "own.test",
        "zero.test",
        "mapped.test",
        "meta.test",
        "unique.test",
        "cname-to.test",
    ];
    ensure_refused(&world, &hosts).await
}

async fn n01_names_are_told_without_addresses_that_are_not_public(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let asked = "loop.test/1 loop.test/28 ten.test/1 own.test/1 zero.test/1 mapped.test/28 cname-to.test/1 mixed.test/1";
    let said = said(&sandbox, &format!("python3 look_up.py {asked}")).await?;
    let expected = "loop.test/1 5\nloop.test/28 5\nten.test/1 5\nown.test/1 5\nzero.test/1 5\nmapped.test/28 5\n\
                    cname-to.test/1 5\nmixed.test/1 0 93.184.216.34\n";
    ensure!(said == expected, "{said}");
    Ok(sandbox.destroy().await?)
}

async fn n01_a_name_that_changes_its_address_is_judged_by_the_address_that_is_dialled(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let line =
        "for n in 1 2 3; do curl -s -m 30 -o /dev/null -w '%{http_code} ' http://rebind.test/hello; done";
    let said = said(&sandbox, line).await?;
    ensure!(said.trim_end().ends_with("403"), "{said}");
    ensure!(!said.contains("502") && !said.contains("000"), "{said}");
    world.ensure_canary_lives()?;
    Ok(sandbox.destroy().await?)
}

async fn n01_a_redirect_to_an_address_that_is_not_public_is_refused(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let said = said(&sandbox, "curl -sS -m 30 -L http://pub.test/redirect").await?;
    ensure!(said.contains("it is a metadata service's address"), "{said}");
    ensure!(world.hits("/redirected")?.is_empty(), "the metadata service was reached");
    Ok(sandbox.destroy().await?)
}
