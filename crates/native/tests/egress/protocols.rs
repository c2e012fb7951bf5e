//! Clients that send false, confusing or very slow requests.

use crate::world::{Check, World, cases, ensure, said, until_there};
use eyot::StartOptions;

cases! {
    n01_the_request_line_decides_whatever_the_host_header_says;
    n01_a_request_that_two_readers_would_end_differently_carries_no_second_one;
    n01_other_versions_methods_and_commands_of_socks_are_refused_in_their_own_words;
    n01_what_is_no_request_to_a_proxy_is_told_so;
    n01_500_slow_clients_are_bounded_and_others_are_served;
}

async fn n01_the_request_line_decides_whatever_the_host_header_says(world: World) -> Check {
    let sandbox = world.sandbox(&["pub.test"]).await?;
    let request = r"GET http://pub.test/hello HTTP/1.1\r\nHost: ten.test\r\nConnection: close, host\r\n\r\n";
    let answer = said(&sandbox, &format!(r#"PORT=3128 python3 raw.py "{request}""#)).await?;
    ensure!(answer.contains("as pub.test"), "{answer}");
    let request = r"GET http://ten.test/lied HTTP/1.1\r\nHost: pub.test\r\nConnection: close\r\n\r\n";
    let answer = said(&sandbox, &format!(r#"PORT=3128 python3 raw.py "{request}""#)).await?;
    ensure!(answer.contains(" 403 "), "{answer}");
    // Of a refused tunnel pip and others show the first line alone.
    let request = r"CONNECT ten.test:443 HTTP/1.1\r\nHost: ten.test:443\r\n\r\n";
    let answer = said(&sandbox, &format!(r#"PORT=3128 python3 raw.py "{request}""#)).await?;
    let first = answer.lines().next().unwrap_or_default();
    ensure!(first.contains("403 eyot: ") && first.contains("ten.test"), "{answer}");
    let request =
        r"GET http://pub.test@ten.test/lied HTTP/1.1\r\nHost: pub.test\r\nConnection: close\r\n\r\n";
    let answer = said(&sandbox, &format!(r#"PORT=3128 python3 raw.py "{request}""#)).await?;
    ensure!(answer.contains(" 403 ") || answer.contains(" 400 "), "{answer}");
    ensure!(world.hits("/lied")?.is_empty(), "{:?}", world.hits("/lied")?);
    Ok(sandbox.destroy().await?)
}

async fn n01_a_request_that_two_readers_would_end_differently_carries_no_second_one(world: World) -> Check {
    let sandbox = world.sandbox(&["pub.test"]).await?;
    let hidden = r"GET /smuggled HTTP/1.1\r\nHost: pub.test\r\n\r\n";
    // Where both are there the chunks count, the length is not passed on, and the connection ends with the answer.
    for (framing, status) in [
        (r"Content-Length: 5\r\nTransfer-Encoding: chunked", " 404 "),
        (r"Transfer-Encoding: chunked\r\nContent-Length: 5", " 404 "),
        (r"Transfer-Encoding: chunked, identity", " 400 "),
        (r"Transfer-Encoding : chunked", " 400 "),
        (r"Content-Length: 5\r\nContent-Length: 60", " 400 "),
        (r"Content-Length: +5", " 400 "),
    ] {
        let request = format!(
            r"POST http://pub.test/framed HTTP/1.1\r\nHost: pub.test\r\n{framing}\r\n\r\n0\r\n\r\n{hidden}"
        );
        let answer = said(&sandbox, &format!(r#"PORT=3128 python3 raw.py "{request}""#)).await?;
        ensure!(answer.contains(status) && answer.matches("HTTP/1.1").count() == 1, "{framing}: {answer}");
    }
    let request = format!(
        r"POST http://pub.test/framed HTTP/1.1\r\nHost: pub.test\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{hidden}",
        "GET /smuggled HTTP/1.1..Host: pub.test....".len()
    );
    said(&sandbox, &format!(r#"PORT=3128 python3 raw.py "{request}""#)).await?;
    ensure!(world.hits("/smuggled")?.is_empty(), "{:?}", world.hits("/smuggled")?);
    Ok(sandbox.destroy().await?)
}

async fn n01_other_versions_methods_and_commands_of_socks_are_refused_in_their_own_words(
    world: World,
) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    for (what, sent, expected) in [
        ("version 4", r"\x04\x01\x00\x50\x5d\xb8\xd8\x22\x00", r"b'\x00["),
        ("a password alone", r"\x05\x01\x02", r"b'\x05\xff"),
        ("no method at all", r"\x05\x00", r"b'\x05\xff"),
        ("BIND", r"\x05\x01\x00\x05\x02\x00\x01\x5d\xb8\xd8\x22\x00\x50", r"b'\x05\x00\x05\x07"),
        ("UDP ASSOCIATE", r"\x05\x01\x00\x05\x03\x00\x01\x5d\xb8\xd8\x22\x00\x50", r"b'\x05\x00\x05\x07"),
        ("a kind of address", r"\x05\x01\x00\x05\x01\x00\x09\x00\x00", r"b'\x05\x00\x05\x08"),
        ("a name that is none", r"\x05\x01\x00\x05\x01\x00\x03\x03a\x00b\x00\x50", r"b'\x05\x00\x05\x02"),
        ("an empty name", r"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", r"b'\x05\x00\x05\x02"),
    ] {
        let answer = said(&sandbox, &format!(r#"PORT=1080 python3 raw.py '{sent}'"#)).await?;
        ensure!(answer.starts_with(expected), "{what}: {answer}");
    }
    Ok(sandbox.destroy().await?)
}

async fn n01_what_is_no_request_to_a_proxy_is_told_so(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    for (request, status) in [
        (r"GET /hello HTTP/1.1\r\nHost: pub.test\r\nConnection: close\r\n\r\n", " 400 "),
        (r"GET https://pub.test/ HTTP/1.1\r\nHost: pub.test\r\nConnection: close\r\n\r\n", " 400 "),
        (r"GET ftp://pub.test/ HTTP/1.1\r\nHost: pub.test\r\nConnection: close\r\n\r\n", " 400 "),
        (r"CONNECT pub.test HTTP/1.1\r\nHost: pub.test\r\n\r\n", " 400 "),
        (r"CONNECT pub.test:0 HTTP/1.1\r\nHost: pub.test\r\n\r\n", " 400 "),
        (r"CONNECT pub.test:99999 HTTP/1.1\r\nHost: pub.test\r\n\r\n", " 400 "),
        (r"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", " 400 "),
        (r"CONNECT nowhere.test:80 HTTP/1.1\r\nHost: nowhere.test\r\nConnection: close\r\n\r\n", " 502 "),
        (r"CONNECT pub.test:9 HTTP/1.1\r\nHost: pub.test\r\nConnection: close\r\n\r\n", " 502 "),
    ] {
        let answer = said(&sandbox, &format!(r#"PORT=3128 python3 raw.py '{request}' 1"#)).await?;
        ensure!(answer.contains(status), "{request}: {answer}");
    }
    Ok(sandbox.destroy().await?)
}

async fn n01_500_slow_clients_are_bounded_and_others_are_served(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    sandbox.start("python3 crowd.py", StartOptions::default()).await?;
    until_there(&sandbox, "held").await?;
    let answer = said(&sandbox, "curl -sS -m 60 http://pub.test/hello").await?;
    ensure!(answer.starts_with("hello from"), "{answer}");
    let pid = world.egress_pid(&sandbox).await?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse()?;
    ensure!(kib < 128 * 1024, "500 clients take {kib} KiB");
    Ok(sandbox.destroy().await?)
}
