//! K14: what listens on the host.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use eyot::SandboxId;

use crate::check::{Check, cases, ensure, not_here};
use crate::facts::{note, tried_io};
use crate::world::{Stage, World};

cases! {
    k14_services_on_the_hosts_loopback_are_out_of_reach(stage);
    k14_abstract_sockets_of_the_host_are_out_of_reach(stage);
    k14_a_socket_file_of_the_host_is_out_of_reach(world);
    k14_docker_x11_and_dbus_are_not_there(stage);
    k14_nothing_of_the_callers_environment_is_inside(stage);
    k14_there_is_no_network_interface_but_loopback(stage);
    n01_a_sandbox_without_a_network_reaches_nobody(stage);
}

/// Tries to connect to a port on every loopback address, and to an abstract socket.
pub fn probe(arguments: &[String]) {
    let [port, name] = arguments else { return };
    for address in ["127.0.0.1", "127.0.0.2", "[::1]", "0.0.0.0"] {
        let Ok(address) = format!("{address}:{port}").parse::<SocketAddr>() else { continue };
        tried_io(
            format_args!("loopback_{}", address.ip()),
            TcpStream::connect_timeout(&address, Duration::from_secs(3)),
        );
    }
    for address in ["169.254.169.254:80", "10.0.0.1:80", "192.168.0.1:80", "172.17.0.1:2375", "1.1.1.1:53"] {
        let Ok(parsed) = address.parse::<SocketAddr>() else { continue };
        tried_io(
            format_args!("outside_{address}"),
            TcpStream::connect_timeout(&parsed, Duration::from_secs(3)),
        );
    }
    tried_io(
        "abstract",
        UnixAddr::from_abstract_name(name).and_then(|address| UnixStream::connect_addr(&address)),
    );
    note("done", true);
}

/// Tries to get out by every way that a network has: names, IPv4, IPv6, the link, the host's own
/// addresses with this port behind them.
pub fn leave(arguments: &[String]) {
    let [port, host_addresses @ ..] = arguments else { return };
    let outside = ["1.1.1.1", "169.254.169.254", "10.0.0.1", "192.168.0.1", "172.17.0.1", "255.255.255.255"];
    let outside6 = ["2606:4700:4700::1111", "fd00:ec2::254", "fe80::1", "ff02::1", "::ffff:1.1.1.1"];
    let addresses = outside.into_iter().chain(outside6).chain(host_addresses.iter().map(String::as_str));
    for address in addresses.filter_map(|address| address.parse::<IpAddr>().ok()) {
        for port in [53, 80, port.parse().unwrap_or(443)] {
            let target = SocketAddr::new(address, port);
            let connected = TcpStream::connect_timeout(&target, Duration::from_secs(3));
            tried_io(format_args!("out_tcp_{target}"), connected);
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let sent = UdpSocket::bind(any).and_then(|socket| {
                socket.set_broadcast(true)?;
                socket.send_to(b"let me out", target)
            });
            tried_io(format_args!("out_udp_{target}"), sent);
        }
    }
    tried_io("out_name", ("example.com", 80).to_socket_addrs());
    note("done", true);
}

/// Something on the host that notices who connects.
struct Canary {
    tcp: TcpListener,
    local: UnixListener,
    name: String,
}

impl Canary {
    fn set() -> io::Result<Self> {
        let name = SandboxId::generate().to_string();
        let tcp = TcpListener::bind("0.0.0.0:0")?;
        let local = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&name)?)?;
        tcp.set_nonblocking(true)?;
        local.set_nonblocking(true)?;
        Ok(Self { tcp, local, name })
    }

    /// Checks that the canary notices a connection at all: one of the host itself.
    fn ensure_alive(&self) -> Check {
        TcpStream::connect(("127.0.0.1", self.tcp.local_addr()?.port()))?;
        UnixStream::connect_addr(&UnixAddr::from_abstract_name(&self.name)?)?;
        self.tcp.set_nonblocking(false)?;
        self.tcp.accept()?;
        self.tcp.set_nonblocking(true)?;
        self.local.accept()?;
        Ok(())
    }

    fn ensure_untouched(&self) -> Check {
        ensure!(self.tcp.accept().is_err(), "somebody connected to the host's port");
        ensure!(self.local.accept().is_err(), "somebody connected to the host's abstract socket");
        Ok(())
    }
}

async fn with_a_canary(stage: &Stage, prefix: &str, expected: &[&str]) -> Check {
    let canary = Canary::set()?;
    canary.ensure_alive()?;
    let port = canary.tcp.local_addr()?.port().to_string();
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["host-services", &port, &canary.name]).await?;
        facts.each(prefix, expected)?;
    }
    canary.ensure_untouched()
}

async fn k14_services_on_the_hosts_loopback_are_out_of_reach(stage: Stage) -> Check {
    // Without IPv6 (99: EADDRNOTAVAIL) no service is there at all.
    let refused: &[&str] = if stage.is_native() { &["ECONNREFUSED"] } else { &["ECONNREFUSED", "errno99"] };
    with_a_canary(&stage, "loopback_", refused).await?;
    with_a_canary(&stage, "outside_", &["ENETUNREACH"]).await
}

async fn k14_abstract_sockets_of_the_host_are_out_of_reach(stage: Stage) -> Check {
    // EPERM: Landlock refuses first.
    with_a_canary(&stage, "abstract", &["ECONNREFUSED", "EPERM"]).await
}

async fn k14_a_socket_file_of_the_host_is_out_of_reach(world: Arc<World>) -> Check {
    let stage = world.stage_of(world.plain_spec()).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("service.sock");
    let _listening: UnixListener = UnixListener::bind(&path)?;
    let own = stage.directory().map(|directory| directory.join("guest.sock")).unwrap_or_default();
    let found = stage.sh(&format!("ls {} {}", path.display(), own.display())).await?;
    ensure!(!found.success() && found.stdout.is_empty(), "{}", found.stdout_text());
    stage.end().await
}

async fn k14_docker_x11_and_dbus_are_not_there(stage: Stage) -> Check {
    let paths = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/tmp/.X11-unix",
        "/run/dbus/system_bus_socket",
        "/run/user",
        "/run/systemd/private",
        "/run/snapd.socket",
        "/dev/log",
        "/run/nscd/socket",
        "/run/uuidd/request",
    ];
    for who in stage.everybody() {
        let line = format!("for path in {}; do [ -e $path ] && echo $path; done; true", paths.join(" "));
        let found = stage.sh_as(who, &line).await?.stdout_text();
        ensure!(found.is_empty(), "{who} finds {found}");
    }
    Ok(())
}

async fn k14_nothing_of_the_callers_environment_is_inside(stage: Stage) -> Check {
    const KNOWN: [&str; 12] =
        ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "TZ", "SHLVL", "OLDPWD", "_", "TERM"];
    // Of the image `host`.
    const SET_BY_THE_IMAGE: [&str; 2] = ["PIP_BREAK_SYSTEM_PACKAGES=1", "PYTHONUNBUFFERED=1"];
    if std::env::vars_os().count() <= 3 {
        return not_here("the caller has no environment that could show");
    }
    for who in stage.everybody() {
        let listed = stage.sh_as(who, "env").await?.stdout_text();
        for line in listed.lines().filter(|line| !SET_BY_THE_IMAGE.contains(line)) {
            let name = line.split('=').next().unwrap_or_default();
            ensure!(KNOWN.contains(&name), "{who} has `{name}`");
        }
        let path = listed.lines().find(|line| line.starts_with("PATH=")).unwrap_or_default();
        // A container's is its image's.
        ensure!(path.contains("/home/user/.local/bin") || !stage.is_native(), "{path}");
        ensure!(!path.contains(".cargo"), "{path}");
    }
    Ok(())
}

async fn k14_there_is_no_network_interface_but_loopback(stage: Stage) -> Check {
    let interfaces = stage.output("tail -n +3 /proc/net/dev | cut -d: -f1").await?;
    ensure!(interfaces.trim() == "lo", "there are: {interfaces}");
    let routes = stage.output("tail -n +2 /proc/net/route").await?;
    ensure!(routes.is_empty(), "there are routes: {routes}");
    let sockets =
        stage.output("cat /proc/net/unix /proc/net/tcp | grep -vc '^Num\\|local_address' || true").await?;
    ensure!(sockets.parse::<u32>().is_ok_and(|count| count < 8), "sockets of others show: {sockets}");
    Ok(())
}

/// The addresses of the host that its own traffic comes from; none where it has no network.
fn host_addresses() -> Vec<String> {
    let routes = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let source = |(any, target): (&str, &str)| {
        let socket = UdpSocket::bind(any).ok()?;
        // Connecting a datagram socket sends nothing.
        socket.connect(target).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    routes.into_iter().filter_map(source).collect()
}

async fn n01_a_sandbox_without_a_network_reaches_nobody(stage: Stage) -> Check {
    let canary = Canary::set()?;
    canary.ensure_alive()?;
    let mut arguments = vec!["leave-network".to_owned(), canary.tcp.local_addr()?.port().to_string()];
    arguments.extend(host_addresses());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &arguments).await?;
        facts.is("done", "true")?;
        facts.none_worked("out_")?;
        facts.each("out_tcp_1.1.1.1", &["ENETUNREACH"])?;
    }
    canary.ensure_untouched()
}
