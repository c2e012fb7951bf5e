//! `preview`: the address that it prints leads to the sandbox's port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::machine::Machine;

/// `eyot serve` without keys on a free port of loopback.
struct Server {
    child: Child,
    url: String,
    /// Held open, since the server ends if it cannot write to it.
    _stderr: BufReader<std::process::ChildStderr>,
}

impl Server {
    fn start(machine: &Machine) -> Self {
        let mut child =
            machine.spawn(&mut machine.command(&["serve", "--no-keys", "--listen", "127.0.0.1:0"]));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let url =
            line.trim().strip_prefix("eyot: serving at ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, url, _stderr: stderr }
    }

    fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Requests an address on loopback, whatever a resolver says about its host name.
    fn get(&self, url: &str, line: &str) -> String {
        let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(self.authority()).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{line}\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if kill_process(Pid::from_child(&self.child), Signal::TERM).is_ok() {
            drop(self.child.wait());
        }
    }
}

#[test]
fn an_address_leads_to_the_port_below_a_name_of_its_own_and_below_a_path() {
    let machine = Machine::new();
    let server = Server::start(&machine);
    let eyot = |arguments: &[&str]| machine.run(&[&["--server", &server.url], arguments].concat());
    eyot(&["create", "--name", "web"]).success();
    eyot(&["exec", "web", "--", "sh", "-c", "echo hello > index.html"]).success();
    let early = eyot(&["preview", "web", "8000"]);
    assert!(early.stderr.contains("nothing listens on port 8000 of `web` yet"), "{early:?}");
    assert_eq!(early.code, Some(0), "{early:?}");
    eyot(&["start", "web", "--", "python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"]).success();
    let listens = "until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";
    eyot(&["exec", "web", "--", "bash", "-c", listens]).success();

    let ready = eyot(&["preview", "web", "8000"]);
    assert!(!ready.stderr.contains("nothing listens"), "{ready:?}");
    let host = ready.success();
    assert!(host.starts_with("http://8000-sb-") && host.contains(".localhost:"), "{host}");
    let path = eyot(&["preview", "web", "8000", "--path"]).success();
    assert!(path.starts_with(&format!("{}/preview/sb_", server.url)), "{path}");
    for url in [host.trim(), path.trim()] {
        let first = server.get(url, "Accept: text/html");
        assert!(first.starts_with("HTTP/1.1 303 "), "{first}");
        let cookie = first.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let seen = server.get(url.split('?').next().unwrap(), &format!("Cookie: {cookie}"));
        assert!(seen.starts_with("HTTP/1.1 200 ") && seen.ends_with("hello\n"), "{seen}");
    }

    let told: Value = serde_json::from_str(&eyot(&["--json", "preview", "web", "8000"]).success()).unwrap();
    let header = format!("{}: {}", told["header"].as_str().unwrap(), told["token"].as_str().unwrap());
    assert!(
        server.get(told["url"].as_str().unwrap().split('?').next().unwrap(), &header).ends_with("hello\n")
    );
    eyot(&["rm", "web"]).success();
    assert!(server.get(path.trim(), "").starts_with("HTTP/1.1 410 "));
}

#[test]
fn without_a_server_it_says_what_opens_a_port_here() {
    let machine = Machine::new();
    let refused = machine.run(&["preview", "web", "8000"]);
    assert!(refused.failure(2).contains("eyot browse"), "{refused:?}");
}
