//! `eyot serve` with a certificate, and commands over `https`.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStderr};

use rustix::process::{Pid, Signal, kill_process};

use crate::machine::{Machine, Ran};

#[path = "../../../server/tests/api/authority.rs"]
mod authority;
use authority::{Authority, put, self_signed};

/// A server with a certificate of an authority that only `ca.pem` has.
struct Secured {
    machine: Machine,
    server: Child,
    log: Lines<BufReader<ChildStderr>>,
    url: String,
    key: String,
}

impl Secured {
    fn new() -> Self {
        let authority = Authority::new();
        Self::with(authority.issue(), &authority.pem)
    }

    /// A server with this certificate and key, and the certificate that its clients trust.
    fn with((certificate, key): (String, String), trusted: &str) -> Self {
        let machine = Machine::new();
        let folder = machine.path("tls");
        std::fs::create_dir(&folder).unwrap();
        put(&folder, "cert.pem", &certificate);
        put(&folder, "key.pem", &key);
        machine.write("ca.pem", trusted);
        let key = machine.run(&["keys", "create", "ours", "-q"]).text().trim().to_owned();
        let [certificate, private] = ["tls/cert.pem", "tls/key.pem"].map(|name| machine.path_text(name));
        let serve = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &private];
        let mut server = machine.spawn(&mut machine.command(&serve));
        let log = BufReader::new(server.stderr.take().unwrap()).lines();
        let mut secured = Self { machine, server, log, url: String::new(), key };
        let said = secured.says("serving at");
        secured.url = said.strip_prefix("eyot: serving at ").unwrap().to_owned();
        secured
    }

    /// Returns the next line of the log that has this text.
    fn says(&mut self, text: &str) -> String {
        self.log.by_ref().map(Result::unwrap).find(|line| line.contains(text)).expect("the server has ended")
    }

    fn run(&self, ca: Option<&str>, arguments: &[&str]) -> Ran {
        let mut command = self.machine.command(&[&["--server", self.url.as_str()], arguments].concat());
        command.env("EYOT_API_KEY", &self.key).envs(ca.map(|ca| ("EYOT_CA_CERT", self.machine.path(ca))));
        Ran::from(command.output().unwrap())
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

#[test]
fn commands_over_https_work_with_the_authority_that_is_named_and_with_no_other() {
    let secured = Secured::new();
    assert!(secured.url.starts_with("https://127.0.0.1:"), "{}", secured.url);
    let run = |arguments: &[&str]| secured.run(Some("ca.pem"), arguments);
    assert_eq!(run(&["create", "--name", "box"]).success(), "box\n");
    // By a WebSocket, with input.
    assert_eq!(run(&["exec", "box", "--", "echo", "over TLS"]).success(), "over TLS\n");
    let told = secured.run(None, &["ls"]);
    assert!(
        told.failure(125).contains("can't be trusted: its certificate is signed by an authority"),
        "{told:?}"
    );
    assert!(told.stderr.contains("EYOT_CA_CERT"), "{told:?}");
    secured.machine.write("other.pem", Authority::new().pem);
    assert!(secured.run(Some("other.pem"), &["ls"]).failure(125).contains("can't be trusted"));
    secured.machine.write("none.pem", "nothing");
    assert!(secured.run(Some("none.pem"), &["ls"]).failure(125).contains("BEGIN CERTIFICATE"));
}

#[test]
fn a_certificate_that_signs_itself_is_trusted_where_it_is_named() {
    let (certificate, key) = self_signed(&["localhost", "127.0.0.1"], 4096);
    let secured = Secured::with((certificate.clone(), key), &certificate);
    assert_eq!(secured.run(Some("ca.pem"), &["ls", "-q"]).success(), "");
    // By a WebSocket.
    assert_eq!(secured.run(Some("ca.pem"), &["run", "--", "echo", "over TLS"]).success(), "over TLS\n");
    // Another one of the same name is another one.
    secured.machine.write("other.pem", self_signed(&["localhost", "127.0.0.1"], 4096).0);
    let told = secured.run(Some("other.pem"), &["ls"]);
    assert!(
        told.failure(125).contains("can't be trusted: its certificate signs itself, and is not one"),
        "{told:?}"
    );
}

#[test]
fn a_certificate_that_signs_itself_holds_for_its_names_and_dates_alone() {
    for (names, until, reason) in
        [(["localhost", "192.0.2.1"], 4096, "127.0.0.1"), (["localhost", "127.0.0.1"], 2001, "expired")]
    {
        let (certificate, key) = self_signed(&names, until);
        let secured = Secured::with((certificate.clone(), key), &certificate);
        let told = secured.run(Some("ca.pem"), &["ls"]);
        let sentence = told.failure(125);
        assert!(sentence.contains("can't be trusted") && sentence.contains(reason), "{told:?}");
    }
}

#[test]
fn sighup_has_the_certificate_read_again_and_a_bad_one_is_not_used() {
    let mut secured = Secured::new();
    put(&secured.machine.path("tls"), "cert.pem", "nothing");
    kill_process(Pid::from_child(&secured.server), Signal::HUP).unwrap();
    secured.says("the old certificate stays in use");
    assert_eq!(secured.run(Some("ca.pem"), &["ls", "-q"]).success(), "");
    let other = Authority::new();
    other.issue_into(&secured.machine.path("tls"));
    secured.machine.write("other.pem", &other.pem);
    kill_process(Pid::from_child(&secured.server), Signal::HUP).unwrap();
    secured.says("the certificate was read again");
    assert_eq!(secured.run(Some("other.pem"), &["ls", "-q"]).success(), "");
}

#[test]
fn a_server_that_can_not_be_reached_that_way_is_said_to_be_so() {
    let secured = Secured::new();
    let plain = secured.url.replace("https:", "http:");
    let ran = secured.machine.run(&["--server", &plain, "ls"]);
    assert!(ran.failure(125).contains("this port speaks TLS"), "{ran:?}");
    let nowhere = secured.machine.run(&["--server", "http://no-such-host.invalid:7070", "ls"]);
    assert!(nowhere.failure(125).contains("failed to lookup address"), "{nowhere:?}");
    let closed = secured.machine.run(&["--server", "http://127.0.0.1:1", "ls"]);
    assert!(closed.failure(125).contains("does not answer: connection refused"), "{closed:?}");
}

#[test]
fn a_certificate_without_its_key_a_wrong_one_and_an_open_port_without_tls_are_told_of() {
    let machine = Machine::new();
    let authority = Authority::new();
    let certificate = machine.write("cert.pem", authority.issue().0);
    let other = machine.write("key.pem", authority.issue().1);
    let alone = machine.run(&["serve", "--tls-cert", &certificate]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--tls-key"), "{alone:?}");
    let wrong = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &other];
    let wrong = machine.run(&wrong);
    assert!(wrong.stderr.contains("is not that of the certificate"), "{wrong:?}");
    let mut open = machine.spawn(&mut machine.command(&["serve", "--listen", "0.0.0.0:0"]));
    let mut said = String::new();
    BufReader::new(open.stderr.take().unwrap()).read_line(&mut said).unwrap();
    drop(open.kill());
    drop(open.wait());
    assert!(said.contains("without TLS") && said.contains("--tls-cert"), "{said}");
}
