//! Names carry nothing out.

use crate::internet::PUBLIC;
use crate::world::{Check, World, cases, ensure, said};

cases! {
    n01_nobody_is_asked_for_a_name_that_is_not_allowed;
    n01_an_address_is_judged_by_the_name_that_the_sandbox_was_told_to_have_it;
    n01_broken_queries_are_answered_or_dropped_and_the_next_is_served;
}

async fn n01_nobody_is_asked_for_a_name_that_is_not_allowed(world: World) -> Check {
    let sandbox = world.sandbox(&["pub.test:80"]).await?;
    let asked =
        "secret1.leak.pub.test/1 secret2.leak.test/1 secret3.leak.test/16 secret4.leak.test/5 pub.test/1";
    let said_by_dns = said(&sandbox, &format!("python3 look_up.py {asked}")).await?;
    let expected = format!(
        "secret1.leak.pub.test/1 5\nsecret2.leak.test/1 5\nsecret3.leak.test/16 5\nsecret4.leak.test/5 5\n\
         pub.test/1 0 {PUBLIC}\n"
    );
    ensure!(said_by_dns == expected, "{said_by_dns}");
    let said_by_proxies = said(&sandbox, "python3 try.py secret5.leak.test secret6.pub.test").await?;
    ensure!(said_by_proxies.matches(" 403 403 2").count() == 2, "{said_by_proxies}");
    ensure!(world.queries("secret")?.is_empty(), "{:?}", world.queries("secret")?);
    Ok(sandbox.destroy().await?)
}

async fn n01_an_address_is_judged_by_the_name_that_the_sandbox_was_told_to_have_it(world: World) -> Check {
    let sandbox = world.sandbox(&["pub.test:80"]).await?;
    let by_address = format!("curl -s -m 30 -o /dev/null -w '%{{http_code}}' http://{PUBLIC}/hello");
    let before = said(&sandbox, &by_address).await?;
    ensure!(before == "403", "{before}");
    said(&sandbox, "python3 look_up.py pub.test/1").await?;
    let after = said(&sandbox, &by_address).await?;
    ensure!(after == "200", "{after}");
    let other_port = said(&sandbox, &by_address.replace("/hello", ":8080/hello")).await?;
    ensure!(other_port == "403", "{other_port}");
    Ok(sandbox.destroy().await?)
}

async fn n01_broken_queries_are_answered_or_dropped_and_the_next_is_served(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let line = "python3 -c 'import os, socket\n\
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                for n in range(500): s.sendto(os.urandom(n % 200), (\"127.0.0.1\", 53))\n\
                t = socket.create_connection((\"127.0.0.1\", 53)); t.sendall(b\"\\xff\\xff\" + bytes(100)); t.close()\n\
                ' && python3 look_up.py pub.test/1";
    let said = said(&sandbox, line).await?;
    ensure!(said == format!("pub.test/1 0 {PUBLIC}\n"), "{said}");
    Ok(sandbox.destroy().await?)
}
