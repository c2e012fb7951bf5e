//! The namespaces and the cable.
//!
//! Root makes one pair of network and mount namespaces for the host's side. An ordinary user makes
//! the same inside a user namespace, is root there to lay the cable, and then enters another user
//! namespace as an ordinary user again.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use crate::internet::{NAME_SERVER, OTHER_ADDRESSES, PUBLIC_V6};

/// The variable with the part of the test that a process plays.
pub const ROLE: &str = "EYOT_EGRESS_ROLE";
/// The variable with the folder that all parts share.
pub const SHARED: &str = "EYOT_EGRESS_SHARED";
/// The variable that marks a test begun by an ordinary user, who appears as root in the namespace
/// with the cable.
const ORDINARY: &str = "EYOT_EGRESS_ORDINARY";

/// The address of the host's side, which is private.
pub const OWN_ADDRESS: &str = "10.200.0.1";
/// The IPv6 address of the host's side.
pub const OWN_V6: &str = "fd00:200::1";

/// Runs the test in namespaces, and returns its exit code. The error says why there can be no
/// namespaces.
pub fn enter() -> Result<ExitCode, String> {
    for program in ["unshare", "ip", "mount"] {
        let folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
        if !folders.iter().any(|folder| Path::new(folder).join(program).exists()) {
            return Err(format!("{program} is not installed"));
        }
    }
    let ordinary = !rustix::process::geteuid().is_root();
    let tried = unshare(ordinary).arg("true").output().map_err(|error| error.to_string())?;
    if !tried.status.success() {
        let reason = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        return Err(format!("no network namespace can be made: {reason}"));
    }
    let shared = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut test = unshare(ordinary);
    test.arg(own_path()).args(std::env::args_os().skip(1));
    test.env(ROLE, "network").env(SHARED, shared.path());
    if ordinary {
        test.env(ORDINARY, "1");
    }
    let status = test.status().map_err(|error| error.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn unshare(ordinary: bool) -> Command {
    let mut unshare = Command::new("unshare");
    if ordinary {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(["--net", "--mount", "--propagation", "private", "--"]);
    unshare
}

fn own_path() -> std::path::PathBuf {
    std::env::current_exe().expect("the test knows its own path")
}

/// Lays the cable, then continues as the host's side.
pub fn main() -> ExitCode {
    let shared = std::env::var(SHARED).expect("the shared folder is named");
    let internet = lay_cable(Path::new(&shared));
    let mut host = match std::env::var(ORDINARY) {
        Ok(_) => {
            let mut unshare = Command::new("unshare");
            unshare.args(["--user", "--map-user=1000", "--map-group=1000", "--"]).arg(own_path());
            unshare
        }
        Err(_) => Command::new(own_path()),
    };
    let status = host.args(std::env::args_os().skip(1)).env(ROLE, "host").status();
    drop(internet);
    if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The process at the other end of the cable. It ends when this is dropped.
struct Internet(Child);

impl Drop for Internet {
    fn drop(&mut self) {
        self.0.kill().expect("the internet can be killed");
        self.0.wait().expect("the internet can be waited for");
    }
}

fn lay_cable(shared: &Path) -> Internet {
    ip("link set lo up");
    ip("link add up0 type veth peer name down0");
    let mut internet = Command::new("unshare");
    internet.args(["--net", "--"]).arg(own_path()).env(ROLE, "internet");
    let mut internet = Internet(
        internet.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the internet can be started"),
    );
    let mut said = BufReader::new(internet.0.stdout.take().expect("its output is a pipe")).lines();
    assert_eq!(said.next().expect("it says something").expect("it can be read"), "here");
    ip(&format!("link set down0 netns {}", internet.0.id()));
    ip(&format!("addr add {OWN_ADDRESS}/24 dev up0"));
    ip(&format!("-6 addr add {OWN_V6}/64 dev up0 nodad"));
    ip("link set up0 up");
    let mut orders = internet.0.stdin.take().expect("its input is a pipe");
    orders.write_all(b"go\n").expect("it reads");
    assert_eq!(said.next().expect("it says something").expect("it can be read"), "ready");
    internet.0.stdin = Some(orders);
    ip(&format!("route add default via {NAME_SERVER}"));
    ip("-6 route add default via fd00:200::2");
    let settings = shared.join("resolv.conf");
    std::fs::write(&settings, format!("nameserver {NAME_SERVER}\noptions timeout:2 attempts:2\n"))
        .expect("the settings can be written");
    let mut mount = Command::new("mount");
    run(mount.arg("--bind").arg(&settings).arg("/etc/resolv.conf"));
    internet
}

/// Gives the internet's end its addresses.
pub fn configure_internet() {
    ip("link set lo up");
    ip(&format!("addr add {NAME_SERVER}/24 dev down0"));
    ip("-6 addr add fd00:200::2/64 dev down0 nodad");
    ip("link set down0 up");
    for address in OTHER_ADDRESSES {
        ip(&format!("addr add {address}/32 dev lo"));
    }
    ip(&format!("-6 addr add {PUBLIC_V6}/128 dev lo nodad"));
}

fn ip(arguments: &str) {
    run(Command::new("ip").args(arguments.split_whitespace()));
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} failed");
}
