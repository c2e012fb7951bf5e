//! Public addresses are reached.

use crate::internet::{PUBLIC, PUBLIC_V6};
use crate::world::{Check, World, cases, ensure, said};

cases! {
    n01_what_is_public_is_reached_by_name_and_by_address_through_each_proxy;
    n01_ipv6_is_reached_by_name_and_by_address;
    n01_nothing_is_reached_without_the_proxy;
    n01_names_are_resolved_inside_over_udp_and_tcp;
}

async fn n01_what_is_public_is_reached_by_name_and_by_address_through_each_proxy(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    for arguments in [
        "http://pub.test/hello",
        "--proxytunnel http://pub.test/hello",
        "--noproxy '' --proxy socks5h://127.0.0.1:1080 http://pub.test/hello",
        "--noproxy '' --proxy socks5://127.0.0.1:1080 http://index.test/hello",
        "http://93.184.216.34/hello",
        "--proxytunnel http://93.184.216.34:8080/hello",
        "http://cname.pub.test/hello",
        "http://PUB.test./hello",
        "http://mixed.test/hello",
    ] {
        let said = said(&sandbox, &format!("curl -sS -m 30 {arguments}")).await?;
        ensure!(said.starts_with(&format!("hello from {PUBLIC} as ")), "{arguments}: {said}");
    }
    world.ensure_canary_lives()?;
    Ok(sandbox.destroy().await?)
}

async fn n01_ipv6_is_reached_by_name_and_by_address(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    for arguments in [
        "http://six.test/hello".to_owned(),
        format!("http://[{PUBLIC_V6}]/hello"),
        format!("--proxytunnel http://[{PUBLIC_V6}]:8080/hello"),
        format!("--noproxy '' --proxy socks5h://127.0.0.1:1080 http://[{PUBLIC_V6}]/hello"),
    ] {
        let said = said(&sandbox, &format!("curl -sS -m 30 {arguments}")).await?;
        ensure!(said.starts_with(&format!("hello from {PUBLIC_V6}")), "{arguments}: {said}");
    }
    Ok(sandbox.destroy().await?)
}

async fn n01_nothing_is_reached_without_the_proxy(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    for host in [PUBLIC, "[2606:2800:220:1::34]", "10.200.0.2", "10.200.0.1", "pub.test"] {
        let line = format!("curl -sS -m 10 --noproxy '*' http://{host}/direct; echo $?");
        let said = said(&sandbox, &line).await?;
        ensure!(!said.contains("hello") && !said.trim_end().ends_with("\n0"), "{host}: {said}");
    }
    ensure!(world.hits("/direct")?.is_empty(), "something left without the proxy");
    Ok(sandbox.destroy().await?)
}

async fn n01_names_are_resolved_inside_over_udp_and_tcp(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let asked =
        "python3 look_up.py pub.test/1 pub.test/28 cname.pub.test/1 nowhere.test/1 pub.test/16 pub.test/255";
    let expected = format!(
        "pub.test/1 0 {PUBLIC}\npub.test/28 0 {PUBLIC_V6}\ncname.pub.test/1 0 {PUBLIC}\nnowhere.test/1 3\n\
         pub.test/16 0\npub.test/255 4\n"
    );
    for line in [asked.to_owned(), format!("TCP=1 {asked}")] {
        let said = said(&sandbox, &line).await?;
        ensure!(said == expected, "{line}: {said}");
    }
    let line = "python3 -c 'import socket; print(socket.gethostbyname(\"pub.test\"))'";
    let said = said(&sandbox, line).await?;
    ensure!(said == format!("{PUBLIC}\n"), "libc: {said}");
    Ok(sandbox.destroy().await?)
}
