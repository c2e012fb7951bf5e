//! K3: socket families that programs do not need and that have broken kernels.

use crate::check::{Check, cases};
use crate::facts::tried;
use crate::sys;
use crate::world::Stage;

cases! {
    k03_socket_families_beyond_the_allowlist_are_not_supported(stage);
    k03_netlink_beyond_routes_is_not_supported(stage);
    k03_raw_sockets_are_not_permitted(stage);
    k03_rare_transports_can_not_be_reached_through_the_internet_families(stage);
    k03_the_sockets_that_programs_need_work(stage);
}

const UNIX: u64 = 1;
const INET: u64 = 2;
const INET6: u64 = 10;
const NETLINK: u64 = 16;
const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;
const CLOEXEC_AND_NONBLOCK: u64 = 0o2000000 | 0o4000;
/// Families that have a name in the threat table, and where they stand.
const NAMED: [(&str, u64); 7] =
    [("alg", 38), ("packet", 17), ("vsock", 40), ("key", 15), ("xdp", 44), ("rds", 21), ("bluetooth", 31)];
/// The families that engines leave to the kernel, which has them or not: all but `packet`, which
/// needs a capability.
const LEFT_TO_THE_KERNEL: [&str; 18] = [
    "alg",
    "vsock",
    "key",
    "xdp",
    "rds",
    "bluetooth",
    "high_alg",
    "high_vsock",
    "high_key",
    "high_xdp",
    "high_rds",
    "high_bluetooth",
    "pair_alg",
    "pair_vsock",
    "pair_key",
    "pair_xdp",
    "pair_rds",
    "pair_bluetooth",
];
/// Protocols with a history: of streams, then of datagrams and sequenced packets. `SMC` counts as a
/// protocol of `INET` since Linux 6.11.
const RARE: [(&str, u64, u64); 6] = [
    ("sctp", STREAM, 132),
    ("smc", STREAM, 256),
    ("tipc", STREAM, 99),
    ("l2tp", DATAGRAM, 115),
    ("sctp_seqpacket", 5, 132),
    ("dccp", 6, 33),
];

fn socket(family: u64, kind: u64, protocol: u64) -> Result<i64, i32> {
    let descriptor = sys::call(libc::SYS_socket, &[family, kind, protocol])?;
    sys::call(libc::SYS_close, &[descriptor as u64])
}

/// Tries every family, and what of the allowed ones is not allowed.
pub fn probe(_arguments: &[String]) {
    for kind in [STREAM, DATAGRAM, 3, 4, 5] {
        for family in (3..=63).filter(|family| ![INET6, NETLINK].contains(family)) {
            tried(format_args!("family_{family}_{kind}"), socket(family, kind, 0));
        }
        for (name, family) in NAMED {
            tried(format_args!("named_{name}_{kind}"), socket(family, kind | CLOEXEC_AND_NONBLOCK, 0));
            // The kernel drops the upper half of an `int`.
            tried(format_args!("named_high_{name}_{kind}"), socket(family | 1 << 32, kind, 0));
            let mut pair = [0_u8; 8];
            let arguments = [family, kind, 0, sys::buffer(&mut pair)];
            tried(format_args!("named_pair_{name}_{kind}"), sys::call(libc::SYS_socketpair, &arguments));
        }
    }
    for protocol in 1..32 {
        tried(format_args!("netlink_{protocol}"), socket(NETLINK, 3, protocol));
    }
    for (name, family) in [("inet", INET), ("inet6", INET6)] {
        for protocol in [1, 58, 6, 17, 255] {
            tried(format_args!("raw_{name}_{protocol}"), socket(family, 3, protocol));
            tried(
                format_args!("raw_cloexec_{name}_{protocol}"),
                socket(family, 3 | CLOEXEC_AND_NONBLOCK, protocol),
            );
        }
        tried(format_args!("raw_packet_{name}"), socket(family, 10, 0));
        for (transport, kind, protocol) in RARE {
            tried(format_args!("rare_{transport}_{name}"), socket(family, kind, protocol));
        }
        tried(format_args!("needed_tcp_{name}"), socket(family, STREAM | CLOEXEC_AND_NONBLOCK, 0));
        tried(format_args!("needed_tcp_by_number_{name}"), socket(family, STREAM, 6));
        tried(format_args!("needed_udp_{name}"), socket(family, DATAGRAM, 17));
    }
    tried("needed_unix", socket(UNIX, STREAM, 0));
    tried("needed_unix_datagram", socket(UNIX, DATAGRAM, 0));
    tried("needed_routes", socket(NETLINK, 3 | CLOEXEC_AND_NONBLOCK, 0));
}

async fn k03_socket_families_beyond_the_allowlist_are_not_supported(stage: Stage) -> Check {
    if stage.is_native() {
        stage.ensure_refused(("sockets", "family_"), &["EAFNOSUPPORT"], &[]).await?;
    }
    stage.ensure_refused(("sockets", "named_"), &["EAFNOSUPPORT"], &LEFT_TO_THE_KERNEL).await
}

async fn k03_netlink_beyond_routes_is_not_supported(stage: Stage) -> Check {
    stage.ensure_refused(("sockets", "netlink_"), &["EPROTONOSUPPORT"], &[""]).await
}

async fn k03_raw_sockets_are_not_permitted(stage: Stage) -> Check {
    stage.ensure_refused(("sockets", "raw_"), &["EPERM"], &[]).await
}

async fn k03_rare_transports_can_not_be_reached_through_the_internet_families(stage: Stage) -> Check {
    for who in stage.everybody() {
        stage.probe_as(who, &["sockets"]).await?.none_worked("rare_")?;
    }
    Ok(())
}

async fn k03_the_sockets_that_programs_need_work(stage: Stage) -> Check {
    stage.probe(&["sockets"]).await?.each("needed_", &["ok"])
}
