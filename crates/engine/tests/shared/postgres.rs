//! A PostgreSQL server of the tests: Debian's programs, a folder of its own, a unix socket and no port.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use eyot_engine::store::{DatabaseUrl, Store};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// Where Debian has a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user that root runs it as: it refuses root.
const NOBODY: u32 = 65534;
const USER: &str = "eyot";
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A server that runs. It ends with this.
pub struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    process: Mutex<Child>,
    next: AtomicU32,
}

/// A database of a case.
pub struct TestDatabase<'a> {
    server: &'a Postgres,
    pub url: DatabaseUrl,
    name: String,
}

impl Postgres {
    /// Starts one; `None`: its programs are not installed.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap();
        if is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = folder.path().join("data");
        let mut initdb = as_user(&programs.join("initdb"));
        initdb.args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D"]).arg(&data);
        let made = initdb.current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let process = Mutex::new(run(&programs, folder.path()));
        let server = Self { folder, programs, process, next: AtomicU32::new(0) };
        server.await_it();
        Some(server)
    }

    /// Makes a database.
    pub fn database(&self) -> TestDatabase<'_> {
        let name = format!("case{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.client_of("postgres", async |client| {
            client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        });
        TestDatabase { server: self, url: DatabaseUrl::parse(&self.url(&name)).unwrap(), name }
    }

    /// Ends it at once, and starts it again.
    pub fn restart(&self) {
        let mut process = self.process.lock().unwrap();
        end(&process);
        process.wait().unwrap();
        *process = run(&self.programs, self.folder.path());
        drop(process);
        self.await_it();
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgresql://{USER}@{folder}/{database}")
    }

    fn await_it(&self) {
        let given_up = Instant::now() + PATIENCE;
        while !self.answers() {
            assert!(
                Instant::now() < given_up,
                "{}",
                fs::read_to_string(self.folder.path().join("log")).unwrap()
            );
            thread::sleep(PAUSE);
        }
    }

    fn answers(&self) -> bool {
        let url = self.url("postgres");
        runtime().block_on(async { tokio_postgres::connect(&url, NoTls).await.is_ok() })
    }

    fn client_of(&self, database: &str, work: impl AsyncFnOnce(&Client)) {
        runtime().block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url(database), NoTls).await.unwrap();
            let polled = tokio::spawn(connection);
            work(&client).await;
            drop(client);
            polled.await.unwrap().unwrap();
        });
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut process = self.process.lock().unwrap();
        end(&process);
        process.wait().unwrap();
    }
}

impl TestDatabase<'_> {
    /// Opens a store, as another server does.
    pub fn store(&self) -> std::sync::Arc<Store> {
        Store::in_database(&self.url).unwrap()
    }

    /// Runs statements past the store.
    pub fn sql(&self, statements: &str) {
        self.server.client_of(&self.name, async |client| client.batch_execute(statements).await.unwrap());
    }

    /// Opens a store of a server that has been there for long, while the others have been silent for too long.
    pub fn store_that_outlived_the_others(&self) -> std::sync::Arc<Store> {
        self.sql("UPDATE servers SET seen_ms = seen_ms - 31000");
        let store = self.store();
        let latest = "(SELECT max(since_ms) FROM servers)";
        self.sql(&format!("UPDATE servers SET since_ms = since_ms - 31000 WHERE since_ms = {latest}"));
        store
    }
}

fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?.flatten().map(|entry| entry.path().join("bin"));
    versions.filter(|programs| programs.join("postgres").is_file()).max()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn as_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn run(programs: &Path, folder: &Path) -> Child {
    let mut postgres = as_user(&programs.join("postgres"));
    postgres.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    postgres.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"]);
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    postgres.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// Has it end at once, without waiting for its clients.
fn end(process: &Child) {
    let process = rustix::process::Pid::from_child(process);
    rustix::process::kill_process(process, rustix::process::Signal::QUIT).unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
