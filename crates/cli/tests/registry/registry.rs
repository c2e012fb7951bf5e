//! A registry for one test: started on a free port, filled with images, and stopped with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use eyot_image::Digest;
use eyot_image::testing::TestImage;
use tempfile::TempDir;

/// The password file of a registry with members: `eyot` with `secret`.
const PASSWORDS: &str = "eyot:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
pub const USER: &str = "eyot:secret";

pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

pub struct Registry {
    folder: TempDir,
    server: Child,
    /// The address and port.
    pub host: String,
    log: Arc<Mutex<Vec<String>>>,
    credentials: Option<&'static str>,
}

impl Registry {
    pub fn new() -> Self {
        Self::start(None)
    }

    /// Starts a registry that only members may use.
    pub fn for_members() -> Self {
        Self::start(Some(USER))
    }

    fn start(credentials: Option<&'static str>) -> Self {
        let folder = tempfile::Builder::new().prefix("eyot-registry-").tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("passwords"), PASSWORDS).unwrap();
        let auth = match credentials {
            Some(_) => format!("auth: {{ htpasswd: {{ realm: members, path: {} }} }}\n", at("passwords")),
            None => String::new(),
        };
        let config = format!(
            "version: 0.1\nlog: {{ level: info }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\n\
             http: {{ addr: \"127.0.0.1:0\" }}\n{auth}",
            at("data")
        );
        fs::write(at("config.yml"), config).unwrap();
        let mut server = Command::new("docker-registry")
            .args(["serve", &at("config.yml")])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let listening =
            lines.by_ref().map(Result::unwrap).find(|line| line.contains("listening on")).unwrap();
        let host = listening.split("listening on ").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line))
        });
        Self { folder, server, host, log, credentials }
    }

    /// Returns the reference of an image in this registry.
    pub fn name(&self, image: &str) -> String {
        format!("{}/{image}", self.host)
    }

    /// Pushes an image as `repository:tag`.
    pub fn push(&self, image: &TestImage, name: &str) -> Digest {
        let (repository, tag) = name.split_once(':').unwrap();
        let layout = self.folder.path().join("layout");
        let manifest = image.write_layout(&layout, None).unwrap();
        for blob in fs::read_dir(layout.join("blobs/sha256")).unwrap() {
            self.push_blob(repository, &blob.unwrap().path());
        }
        let file = layout.join("blobs/sha256").join(manifest.hex());
        self.push_manifest(repository, tag, &file, "application/vnd.oci.image.manifest.v1+json");
        self.push_manifest(
            repository,
            &manifest.to_string(),
            &file,
            "application/vnd.oci.image.manifest.v1+json",
        );
        fs::remove_dir_all(layout).unwrap();
        manifest
    }

    /// Pushes an index, as JSON.
    pub fn push_index(&self, name: &str, index: &serde_json::Value) {
        let (repository, tag) = name.split_once(':').unwrap();
        let file = self.folder.path().join("index");
        fs::write(&file, index.to_string()).unwrap();
        self.push_manifest(repository, tag, &file, "application/vnd.oci.image.index.v1+json");
    }

    fn push_blob(&self, repository: &str, file: &std::path::Path) {
        let digest = file.file_name().unwrap().to_str().unwrap();
        let url = format!("http://{}/v2/{repository}/blobs/uploads/", self.host);
        let answer = self.curl(&["-X", "POST", "-D", "-", "-o", "/dev/null", &url]);
        let location =
            answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap().trim().to_owned();
        let data = format!("@{}", file.display());
        let kind = "Content-Type: application/octet-stream";
        self.curl(&[
            "-X",
            "PUT",
            "-H",
            kind,
            "--data-binary",
            &data,
            &format!("{location}&digest=sha256:{digest}"),
        ]);
    }

    fn push_manifest(&self, repository: &str, tag: &str, file: &std::path::Path, kind: &str) {
        let url = format!("http://{}/v2/{repository}/manifests/{tag}", self.host);
        let (kind, data) = (format!("Content-Type: {kind}"), format!("@{}", file.display()));
        self.curl(&["-X", "PUT", "-H", &kind, "--data-binary", &data, &url]);
    }

    fn curl(&self, arguments: &[&str]) -> String {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail-with-body"]).args(arguments);
        if let Some(credentials) = self.credentials {
            curl.args(["-u", credentials]);
        }
        let done = curl.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Returns the path where the registry keeps a blob.
    pub fn blob(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        self.folder.path().join("data/docker/registry/v2/blobs/sha256").join(&hex[..2]).join(hex).join("data")
    }

    /// Returns the statuses of the answers to requests for this blob, without those of `curl`, once
    /// the registry has answered every earlier request.
    pub fn answers(&self, digest: &Digest) -> Vec<u16> {
        let mark = format!("/v2/marked/manifests/{}", eyot::SandboxId::generate());
        let url = format!("http://{}{mark}", self.host);
        Command::new("curl").args(["-sS", "-o", "/dev/null", &url]).output().unwrap();
        loop {
            let log = self.log.lock().unwrap().clone();
            if log.iter().any(|line| line.contains(&mark)) {
                let of_blob = log
                    .iter()
                    .filter(|line| line.contains("response completed") && line.contains("useragent=eyot/"));
                let of_blob = of_blob.filter(|line| line.contains(&format!("/blobs/{digest}")));
                let status =
                    |line: &String| line.split("response.status=").nth(1)?.split(' ').next()?.parse().ok();
                return of_blob.filter_map(status).collect();
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}
