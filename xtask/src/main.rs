//! Tasks of this repository: test it, check it. `cargo xtask` explains.

mod architecture;
mod check;
mod cluster;
mod documents;
mod engine;
mod error_text;
mod floors;
mod fuzz;
mod images;
mod jobs;
mod log;
mod machine;
mod memory_build;
mod names;
mod openings;
mod packages;
mod phases;
mod process;
mod programs;
mod rules;
mod scratch;
mod sdks;
mod soak;
mod source;
mod targets;
mod test;
mod tested;
mod threats;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <task>

  test [job...] build everything and run every test; as root, install what the tests need (apt), and run the
                sandbox tests a second time as an ordinary user. With names, only those jobs and what they need:
                `quick` (what makes no sandboxes), `probes/threats`, \"client python\".
  soak [threats] [floods] [kills] [docker] [images] [load] [fuzz] [machine] [cluster]
                the tests that take too long for `test`: all of them in about an hour, or the parts that are named
  check [--rules | --shrink]
                the rules of ARCHITECTURE.md; without `--rules` also formatting, lints and documentation. `--shrink`
                takes out of xtask/names.txt what is no longer needed
  machine [--filter TEXT] [--program NAME] [--as root|user|delegated|manager] [--minutes N]
                the sandbox tests under cgroup v2 and Debian's kernel, in a virtual machine; `soak` runs a part of them
  fuzz [--seconds N] [target...]
                the decoders, unpackers and parsers under libFuzzer, 600 s each unless said otherwise, and what reached
                something new is added to the corpus. docs/testing.md says more.
  cluster [-- COMMAND [ARGUMENT...]]
                a Kubernetes cluster of one node for the tests of its provider, as root: runs a command in its network, with
                KUBECONFIG and kubectl, or runs until Enter. Kubernetes is built of Debian's source the first time
  engine        a Docker Engine for the tests of the Docker provider, if none answers, and the images that they use
  floors        prints which module uses which sibling: for those who change xtask/floors.txt
  threats       writes docs/threats.md, the tests of each threat, anew; `check` compares it
  web [--check]
                builds the page from web/ into crates/server/web-dist, or says whether what is there is what is built.
                Installs by npm into web/.
  sdks [anvia] [typescript] [python] [document] [web]
                the clients' tests with LangChain, Inspect and Flue as they are published, and the API's document under
                schemathesis, on a server of this build, and the page in chromium; part of the tests. Installs by pip and npm into the target folder
                and sdks/typescript; as root, what they need of apt.
  help          this text";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let done = match task.as_str() {
        "test" => test::run(&arguments),
        "check" => check::run(&arguments),
        "machine" => machine::run(&arguments),
        "fuzz" => fuzz::run(&arguments),
        "cluster" => cluster::task(&arguments),
        "engine" => engine::run(),
        "sdks" => sdks::run(&arguments),
        "soak" => soak::run(&arguments),
        "floors" => floors::run(),
        "threats" => threats::run(),
        "web" => web::run(&arguments),
        "help" | "--help" | "-h" | "" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("there is no task `{other}`\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
