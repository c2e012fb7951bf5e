//! The node of the stand-in: a Pod is a process tree in namespaces of its own (mount, pid, network, ipc,
//! uts), whose first process is the real guest, as the user and without privileges as the Pod asks. Its
//! address is one of loopback.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use eyot_guest::protocol::pod::GUEST_PORT;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::store::Store;

/// Makes the root of a Pod and becomes its first process. The arguments: a folder, the working directory, the
/// guest, the host name, the user.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs -o mode=0755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/workspace" "$1/home"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
chmod 0777 "$1/workspace" "$1/home"
cd "$1/root"
mkdir -p ".$2" home/user .eyot-guest
mount --bind "$1/workspace" ".$2"
[ "$2" = /home/user ] || mount --bind "$1/home" home/user
cp "$3" .eyot-guest/eyot-guest
chmod 0555 .eyot-guest/eyot-guest
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=1777 tmpfs tmp
ip link set lo up
hostname "$4"
echo "$4" > etc/hostname
exec chroot . setpriv --reuid "$5" --regid "$5" --clear-groups --pdeathsig KILL --no-new-privs --bounding-set=-all --inh-caps=-all \
    /.eyot-guest/eyot-guest pod
"#;

/// The number of the next Pod.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A node.
pub struct Kubelet {
    store: Arc<Store>,
    folder: tempfile::TempDir,
    /// The time that a Pod takes until it runs.
    pub delay: std::sync::Mutex<Duration>,
    /// The process that waits for the last Pod that was started.
    last_started: AtomicU32,
}

impl Kubelet {
    pub fn new(store: Arc<Store>) -> Self {
        let folder = tempfile::tempdir().expect("a folder for Pods");
        fs::write(folder.path().join("guest"), eyot_guest::PROGRAM).expect("room for the guest");
        Self { store, folder, delay: std::sync::Mutex::default(), last_started: AtomicU32::new(0) }
    }

    /// Runs a Pod until it ends or is deleted.
    pub async fn run(self: Arc<Self>, pod: Value) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if pod["spec"]["containers"][0]["image"] == json!("missing:1") {
            let waiting = json!({ "reason": "ErrImagePull", "message": "failed to pull image \"missing:1\": not found" });
            self.report(&name, &pod, "Pending", None, &json!({ "waiting": waiting }));
            self.until_deleted(&pod).await;
        } else {
            let delay = *self.delay.lock().expect("no case panics while it holds it");
            tokio::time::sleep(delay).await;
            self.run_process(&name, &pod).await;
        }
        self.store.forget("pods", &name, &pod["metadata"]["uid"]);
    }

    async fn run_process(&self, name: &str, pod: &Value) {
        let (number, address, listener) = own_address().await;
        let root = self.folder.path().join(number.to_string());
        fs::create_dir(&root).expect("a folder for a Pod");
        let mut child = self.start(pod, &root).expect("a process for a Pod");
        self.last_started.store(child.id().unwrap_or_default(), Ordering::Relaxed);
        let forwarding = tokio::spawn(forward(listener, child.id().unwrap_or_default()));
        self.report(
            name,
            pod,
            "Running",
            Some(address),
            &json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } }),
        );
        tokio::select! {
            ended = child.wait() => {
                forwarding.abort();
                let code = ended.map_or(1, |ended| ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or(0)));
                let (phase, reason) = if code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
                let terminated = json!({ "terminated": { "exitCode": code, "reason": reason } });
                self.report(name, pod, phase, Some(address), &terminated);
                self.until_deleted(pod).await;
            }
            () = self.until_deleted(pod) => {
                end(&mut child).await.expect("a process that can be killed");
                forwarding.abort();
            }
        }
        // Its mounts went with its namespace.
        drop(fs::remove_dir(&root));
    }

    /// Freezes the guest of the last Pod that was started.
    pub fn freeze_last(&self) -> io::Result<()> {
        let guest = first_process(self.last_started.load(Ordering::Relaxed));
        let guest = guest.ok_or_else(|| io::Error::other("there is no guest"))?;
        Ok(kill_process(guest, Signal::STOP)?)
    }

    fn start(&self, pod: &Value, root: &std::path::Path) -> io::Result<Child> {
        let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--uts",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            SCRIPT,
            "sh",
        ]);
        command
            .arg(root)
            .arg(text(&container["volumeMounts"][0]["mountPath"]))
            .arg(self.folder.path().join("guest"));
        command.arg(text(&spec["hostname"])).arg(spec["securityContext"]["runAsUser"].to_string());
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        for variable in container["env"].as_array().into_iter().flatten() {
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("metadata.uid") => text(&pod["metadata"]["uid"]),
                _ => text(&variable["value"]),
            };
            command.env(text(&variable["name"]), value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true).spawn()
    }

    fn report(&self, name: &str, pod: &Value, phase: &str, address: Option<Ipv4Addr>, state: &Value) {
        let status = json!({
            "phase": phase, "podIP": address.map(|address| address.to_string()),
            "containerStatuses": [{
                "name": "sandbox", "image": pod["spec"]["containers"][0]["image"], "imageID": "", "ready": phase == "Running",
                "restartCount": 0, "state": state,
            }],
        });
        let uid = &pod["metadata"]["uid"];
        self.store.change("pods", name, |now| {
            if now["metadata"]["uid"] == *uid {
                now["status"] = status;
            }
        });
    }

    async fn until_deleted(&self, pod: &Value) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let is_deleted = |_: &u64| {
            let now =
                self.store.get("pods", name).filter(|now| now["metadata"]["uid"] == pod["metadata"]["uid"]);
            now.is_none_or(|now| !now["metadata"]["deletionTimestamp"].is_null())
        };
        self.store
            .versions()
            .wait_for(is_deleted)
            .await
            .map(drop)
            .expect("the store lives as long as its node");
    }
}

/// Takes an address that no other Pod has, of this cluster or of another one on this machine.
async fn own_address() -> (u32, Ipv4Addr, TcpListener) {
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let [_, high, middle, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(127, 100 + high, middle, low);
        if let Ok(listener) = TcpListener::bind((address, GUEST_PORT)).await {
            return (number, address, listener);
        }
    }
}

/// Returns the first process of a Pod, by the one that waits for it.
fn first_process(id: u32) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().next().and_then(|text| text.parse().ok()).and_then(Pid::from_raw)
}

/// Kills the first process of a Pod, and returns when all of them have ended.
async fn end(child: &mut Child) -> io::Result<()> {
    match first_process(child.id().unwrap_or_default()) {
        Some(first) => drop(kill_process(first, Signal::KILL)),
        // It has not begun, or is over.
        None => child.start_kill()?,
    }
    child.wait().await.map(drop)
}

/// Carries connections to the port of a Pod's address into its network.
async fn forward(listener: TcpListener, process: u32) {
    while let Ok((mut outside, _)) = listener.accept().await {
        tokio::spawn(async move {
            if let Ok(mut inside) = connect_inside(process, GUEST_PORT).await {
                drop(tokio::io::copy_bidirectional(&mut outside, &mut inside).await);
            }
        });
    }
}

/// Connects to a port of loopback in the network namespace of a process.
pub async fn connect_inside(process: u32, port: u16) -> io::Result<TcpStream> {
    let connecting = tokio::task::spawn_blocking(move || {
        // A thread that has changed its namespace is used for nothing else.
        std::thread::spawn(move || enter_and_connect(process, port)).join().expect("a thread that ends")
    });
    let stream = connecting.await.map_err(io::Error::other)??;
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}

fn enter_and_connect(process: u32, port: u16) -> io::Result<std::net::TcpStream> {
    let own = fs::read_link("/proc/thread-self/ns/net")?;
    if fs::read_link(format!("/proc/{process}/ns/net"))? == own {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let namespace = File::open(format!("/proc/{process}/ns/net"))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))
}
