//! Users that a command added: a call can name a user who is in the sandbox's own `/etc/passwd` at
//! that time. Root inside can replace that file by anything.

use std::path::Path;
use std::time::Duration;

use eyot::{ErrorKind, ExecOptions, ExecResult, Sandbox, SandboxProvider, SandboxSpec};
use libtest_mimic::{Failed, Trial};

use crate::state::State;
use crate::{ensure, of_root, trial};

/// The longest look-up on a loaded machine. One that waits for the writer of a FIFO or for
/// `/proc/kmsg` would never end.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn trials() -> Vec<Trial> {
    let root = |trial| of_root(trial, "needs a range of ids, which root has");
    let adduser = root(trial("debian_s_adduser_makes_a_user_who_runs_commands", adduser));
    let adduser = if Path::new("/usr/sbin/adduser").exists() {
        adduser
    } else {
        adduser.with_kind("adduser is not installed").with_ignored_flag(true)
    };
    vec![
        adduser,
        root(trial("whatever_root_puts_in_place_of_passwd_a_look_up_ends_and_known_users_stay", traps)),
        root(trial("no_line_of_passwd_gives_an_id_outside_the_range_or_the_guest_s", ids)),
        root(trial("a_user_made_later_has_no_capability_and_root_by_another_name_has_root_s", capabilities)),
        root(trial("a_user_made_later_is_there_after_a_sleep", woken)),
    ]
}

async fn run(sandbox: &Sandbox, user: &str, line: &str) -> eyot::Result<ExecResult> {
    let options = ExecOptions { user: Some(user.to_owned()), ..ExecOptions::default() };
    let running = sandbox.exec(line, options);
    tokio::time::timeout(PATIENCE, running).await.unwrap_or_else(|_| panic!("`{line}` as {user} hangs"))
}

async fn output(sandbox: &Sandbox, user: &str, line: &str) -> Result<String, Failed> {
    let result = run(sandbox, user, line).await?;
    ensure(result.success(), format!("`{line}` as {user}: {result:?}"))?;
    Ok(result.stdout_text().trim_end().to_owned())
}

async fn adduser() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    output(&sandbox, "root", "adduser --disabled-password --gecos '' ada").await?;
    output(&sandbox, "root", "useradd --create-home grace").await?;
    for name in ["ada", "grace"] {
        let seen = output(&sandbox, name, "echo $(id -un) $HOME; cd; touch made").await?;
        ensure(seen == format!("{name} /home/{name}"), seen)?;
    }
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn traps() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    for trap in [
        "mkfifo /etc/passwd",
        "mkfifo /srv/trap && ln -s /srv/trap /etc/passwd",
        "mkdir /etc/passwd",
        "ln -s passwd /etc/passwd",
        "ln -s /nowhere /etc/passwd",
        "ln -s ../../../../../../etc/shadow /etc/passwd",
        "ln -s /dev/zero /etc/passwd",
        "ln -s /dev/ptmx /etc/passwd",
        "ln -s /proc/kmsg /etc/passwd",
        "ln -s /proc/1/mem /etc/passwd",
        "ln -s /proc/self/fd/3 /etc/passwd",
        "truncate -s 100G /etc/passwd",
        "truncate -s 1M /etc/passwd",
        "head -c 1048576 /dev/zero | tr '\\0' : > /etc/passwd",
        "yes a:x:7:7::/: | head -c 1048576 > /etc/passwd",
        "head -c 1048576 /dev/urandom > /etc/passwd",
        "printf 'later:x:4321:4321::/ho\\0me:/bin/sh\\n' > /etc/passwd",
    ] {
        output(&sandbox, "root", &format!("rm -rf /etc/passwd && {trap}")).await?;
        let refused = run(&sandbox, "later", "true").await.err().ok_or(format!("somebody after `{trap}`"))?;
        let kind = refused.kind();
        ensure(matches!(kind, ErrorKind::NotFound | ErrorKind::Invalid), format!("`{trap}`: {refused}"))?;
        ensure(output(&sandbox, "user", "echo $HOME").await? == "/home/user", "the user is gone")?;
    }
    output(&sandbox, "root", "rm -rf /etc/passwd /etc/group && mkfifo /etc/group").await?;
    output(&sandbox, "root", "echo later:x:4321:4321::/:/bin/sh > /etc/passwd").await?;
    let refused = run(&sandbox, "later:staff", "true").await.err().ok_or("a group of a FIFO")?;
    ensure(refused.to_string().contains("`/etc/group`: is a fifo"), &refused)?;
    ensure(output(&sandbox, "later", "echo $HOME").await? == "/", "a group's trap keeps the user out")?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn ids() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    for (line, allowed) in [
        ("65532:65535", true),
        ("65533:1", false),
        ("65535:1", false),
        ("65536:1", false),
        ("1:65536", false),
        ("4294967295:1", false),
        ("1:4294967295", false),
    ] {
        output(&sandbox, "root", &format!("echo later:x:{line}::/:/bin/sh > /etc/passwd")).await?;
        match (run(&sandbox, "later", "echo $UID").await, allowed) {
            (Ok(result), true) => ensure(result.stdout_text() == "65532\n", format!("{line}: {result:?}"))?,
            (Err(error), false) => {
                let says = "are not among those of this sandbox";
                ensure(
                    error.kind() == ErrorKind::NotFound && error.to_string().contains(says),
                    format!("{line}: {error}"),
                )?;
            }
            (other, _) => return Err(format!("{line}: {other:?}").into()),
        }
    }
    for number in ["65533", "65536", "4294967295", "4294967296", "-1", "1:65536", "01:x"] {
        let error = run(&sandbox, number, "true").await.err().ok_or(format!("{number} is somebody"))?;
        ensure(error.kind() == ErrorKind::NotFound, format!("{number}: {error}"))?;
    }
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn capabilities() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let lines = "later:x:4321:4321::/:/bin/sh\\ntoor:x:0:0::/root:/bin/sh\\n";
    output(&sandbox, "root", &format!("printf '{lines}' >> /etc/passwd")).await?;
    let effective = "grep -E '^Cap(Eff|Prm|Inh|Amb|Bnd)' /proc/self/status";
    let root = output(&sandbox, "root", effective).await?;
    ensure(output(&sandbox, "toor", effective).await? == root, "toor is another root")?;
    let own = output(&sandbox, "user", effective).await?;
    ensure(own != root && output(&sandbox, "later", effective).await? == own, "later is no ordinary user")?;
    ensure(own.contains("CapEff:\t0000000000000000"), own)?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn woken() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    output(&sandbox, "root", "echo later:x:4321:4321::/:/bin/sh >> /etc/passwd").await?;
    let id = sandbox.id().to_string();
    provider.sleep(&id).await?;
    let woken = Sandbox::wake(&*provider, &id).await?;
    ensure(output(&woken, "later", "echo $UID").await? == "4321", "nobody of that name")?;
    woken.destroy().await?;
    state.assert_empty()
}
