//! Attacks on the guest from inside a container, by root (without capabilities) and by another
//! user. After each attempt the guest must still answer. (K7 of the threats. Where a spec leaves
//! root its capabilities, `isolation()` says that the guest can be reached.)

use eyot::{ExecOptions, Sandbox, SandboxSpec};

use crate::check::{Check, ensure, ensure_eq, output, with_sandbox};
use crate::engine::{DEBIAN, TestEngine, spec, tests};

tests! {
    k07_nobody_inside_reaches_the_guests_sockets(DEBIAN);
    k07_nobody_inside_moves_the_guests_directories_away_or_writes_its_program(DEBIAN);
    k07_the_guest_of_a_container_survives_every_signal(DEBIAN);
    k07_the_memory_and_the_variables_of_a_containers_guest_can_not_be_read(DEBIAN);
    k07_the_limits_of_a_containers_guest_can_not_be_changed(DEBIAN);
    k07_the_secret_of_a_sandbox_is_nowhere_inside(DEBIAN);
    k11_the_kernel_kills_a_command_before_the_guest_when_memory_is_short(DEBIAN);
    k07_of_each_capability_that_root_keeps_it_is_told_whether_it_reaches_the_guest(DEBIAN);
    k07_root_that_ends_every_new_stream_harms_no_stream_that_is_open(DEBIAN);
    k12_nobody_inside_holds_or_gains_a_capability(DEBIAN);
    k12_what_root_keeps_by_request_is_told_and_so_is_what_that_means_for_the_guest(DEBIAN);
}

const USERS: [&str; 2] = ["0", "1000:1000"];

/// Runs an attack as root and as another user. The sandbox must still answer, on a new stream and
/// on the old one.
async fn attacked(engine: &TestEngine, test: impl AsyncFn(&Sandbox) -> Check) -> Check {
    for user in USERS {
        let wanted = SandboxSpec { user: Some(user.to_owned()), ..spec(DEBIAN) };
        with_sandbox(engine, wanted, async |sandbox| {
            test(sandbox).await?;
            ensure_eq!(output(sandbox, "echo alive").await?, "alive");
            let again = Sandbox::open(&*engine.provider, sandbox.name().as_str()).await?;
            ensure_eq!(output(&again, "echo alive").await?, "alive");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn is_root(sandbox: &Sandbox) -> Check<bool> {
    Ok(output(sandbox, "id -u").await? == "0")
}

/// Runs a Python program and returns its output.
async fn python(sandbox: &Sandbox, program: &str) -> Check<String> {
    let result =
        sandbox.exec(eyot::Command::argv(["python3", "-c", program]), ExecOptions::default()).await?;
    ensure!(result.success(), "{:?}: {}", result.outcome, result.stderr_text());
    Ok(result.stdout_text().trim_end().to_owned())
}

async fn k07_nobody_inside_reaches_the_guests_sockets(engine: TestEngine) -> Check {
    attacked(&engine, async |sandbox| {
        let tried = "import os, socket\n\
            for name in ['guest.sock', 'maker.sock', 'other.sock']:\n\
            \x20   path = '/.eyot-run/' + name\n\
            \x20   for what, attempt in [\n\
            \x20       ('connect', lambda: socket.socket(socket.AF_UNIX).connect(path)),\n\
            \x20       ('bind', lambda: socket.socket(socket.AF_UNIX).bind(path)),\n\
            \x20       ('remove', lambda: os.unlink(path)),\n\
            \x20       ('list', lambda: os.listdir('/.eyot-run')),\n\
            \x20       ('open', lambda: os.chmod('/.eyot-run', 0o777))]:\n\
            \x20       try: attempt(); print(what, 'worked on', name)\n\
            \x20       except PermissionError: pass";
        ensure_eq!(python(sandbox, tried).await?, "");
        Ok(())
    })
    .await
}

async fn k07_nobody_inside_moves_the_guests_directories_away_or_writes_its_program(
    engine: TestEngine,
) -> Check {
    attacked(&engine, async |sandbox| {
        let tried = "import os\n\
            for what, attempt in [\n\
            \x20   ('rename', lambda: os.rename('/.eyot-guest', '/elsewhere')),\n\
            \x20   ('rename', lambda: os.rename('/.eyot-run', '/elsewhere')),\n\
            \x20   ('remove', lambda: os.rmdir('/.eyot-run')),\n\
            \x20   ('unlink', lambda: os.unlink('/.eyot-guest/eyot-guest')),\n\
            \x20   ('write', lambda: open('/.eyot-guest/eyot-guest', 'r+b')),\n\
            \x20   ('write', lambda: open('/proc/1/exe', 'r+b')),\n\
            \x20   ('make', lambda: open('/.eyot-guest/x', 'w'))]:\n\
            \x20   try: attempt(); print(what, 'worked')\n\
            \x20   except OSError: pass";
        ensure_eq!(python(sandbox, tried).await?, "");
        Ok(())
    })
    .await
}

async fn k07_the_guest_of_a_container_survives_every_signal(engine: TestEngine) -> Check {
    attacked(&engine, async |sandbox| {
        let tried = "import os\n\
            for number in range(0, 65):\n\
            \x20   try: os.kill(1, number); print(number, 'was sent')\n\
            \x20   except (PermissionError, OSError): pass";
        ensure_eq!(python(sandbox, tried).await?, "");
        Ok(())
    })
    .await
}

async fn k07_the_memory_and_the_variables_of_a_containers_guest_can_not_be_read(engine: TestEngine) -> Check {
    attacked(&engine, async |sandbox| {
        let tried = "import os, ctypes\n\
            for name in ['mem', 'environ', 'maps', 'fd', 'root', 'cwd', 'exe', 'auxv', 'stack', 'io']:\n\
            \x20   path = '/proc/1/' + name\n\
            \x20   try:\n\
            \x20       print(name, os.listdir(path) if name in ('fd', 'root', 'cwd') else open(path, 'rb').read(8))\n\
            \x20   except (PermissionError, OSError): pass\n\
            libc = ctypes.CDLL(None, use_errno=True)\n\
            if libc.ptrace(16, 1, 0, 0) == 0: print('traced')";
        let found = python(sandbox, tried).await?;
        // Root may count the descriptors of a process that can't be dumped; where they lead it is not told.
        ensure!(found.is_empty() || (is_root(sandbox).await? && found.starts_with("fd [")), "{found}");
        Ok(())
    })
    .await
}

async fn k07_the_limits_of_a_containers_guest_can_not_be_changed(engine: TestEngine) -> Check {
    attacked(&engine, async |sandbox| {
        let tried = "import os, resource\n\
            for what, attempt in [\n\
            \x20   ('prlimit', lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))),\n\
            \x20   ('affinity', lambda: os.sched_setaffinity(1, [0])),\n\
            \x20   ('priority', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)),\n\
            \x20   ('oom', lambda: open('/proc/1/oom_score_adj', 'w').write('1000'))]:\n\
            \x20   try: attempt(); print(what, 'worked')\n\
            \x20   except (PermissionError, OSError): pass";
        let found = python(sandbox, tried).await?;
        // Root may make the kernel kill the guest first when memory is short; that ends its own sandbox, which can be woken.
        ensure!(found.is_empty() || (is_root(sandbox).await? && found == "oom worked"), "{found}");
        Ok(())
    })
    .await
}

async fn k07_the_secret_of_a_sandbox_is_nowhere_inside(engine: TestEngine) -> Check {
    attacked(&engine, async |sandbox| {
        let said = output(
            sandbox,
            "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; env; hostname",
        )
        .await?;
        ensure!(!said.contains("secret") && !said.contains("nonce") && !said.contains("dev.eyot"), "{said}");
        Ok(())
    })
    .await
}

async fn k11_the_kernel_kills_a_command_before_the_guest_when_memory_is_short(engine: TestEngine) -> Check {
    attacked(&engine, async |sandbox| {
        for user in [None, Some("nobody")] {
            let found =
                crate::check::output_as(sandbox, user, "cat /proc/self/oom_score_adj /proc/1/oom_score_adj")
                    .await;
            let found = found?;
            let scores: Vec<i32> = found.lines().filter_map(|line| line.parse().ok()).collect();
            ensure!(
                scores.len() == 2 && scores[0] > scores[1],
                "a command of {user:?} and the guest: {found}"
            );
        }
        Ok(())
    })
    .await
}

async fn k12_nobody_inside_holds_or_gains_a_capability(engine: TestEngine) -> Check {
    let mut loose = spec(DEBIAN);
    loose.security.no_new_privileges = false;
    for wanted in [spec(DEBIAN), loose] {
        with_sandbox(&engine, wanted, async |sandbox| {
            // A copy of cat with the setuid bit, run by another user.
            output(sandbox, "cp /bin/cat /usr/local/bin/suid && chmod 4755 /usr/local/bin/suid").await?;
            for (user, line) in
                [(None, "grep Cap /proc/self/status"), (Some("nobody"), "suid /proc/self/status | grep Cap")]
            {
                let status = crate::check::output_as(sandbox, user, line).await?;
                let held = status.lines().filter(|line| !line.ends_with("0000000000000000")).count();
                ensure_eq!(held, 0);
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn k12_what_root_keeps_by_request_is_told_and_so_is_what_that_means_for_the_guest(
    engine: TestEngine,
) -> Check {
    let mut kept = spec(DEBIAN);
    kept.security.drop_capabilities = vec!["NET_RAW".to_owned()];
    with_sandbox(&engine, kept, async |sandbox| {
        let isolation = sandbox.isolation();
        ensure!(isolation.capabilities.contains(&"CAP_CHOWN".to_owned()), "{:?}", isolation.capabilities);
        ensure!(!isolation.capabilities.contains(&"CAP_NET_RAW".to_owned()), "{:?}", isolation.capabilities);
        ensure!(!isolation.guest_out_of_reach, "the guest is said to be out of reach");
        output(sandbox, "touch f && chown 1000 f && [ $(stat -c %u f) = 1000 ]").await?;
        let others =
            crate::check::output_as(sandbox, Some("nobody"), "grep CapEff /proc/self/status").await?;
        ensure!(others.ends_with("0000000000000000"), "{others}");
        Ok(())
    })
    .await
}

/// The capabilities that the Engine leaves to root if nothing is dropped.
const CAPABILITIES: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SYS_CHROOT",
    "MKNOD",
    "AUDIT_WRITE",
    "SETFCAP",
];

/// Tries every way to reach the guest or the directory of its sockets, each in a process of its
/// own. Prints those that worked.
const REACHES: &str = r"
import ctypes, os, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0: raise OSError(ctypes.get_errno())
def opened():
    os.chmod('/.eyot-run', 0o777)
def taken():
    os.chown('/.eyot-run', 0, 0)
def posed():
    os.chmod('/.eyot-run', 0o777)
    socket.socket(socket.AF_UNIX).bind('/.eyot-run/false.sock')
def as_guest():
    os.setuid(65533)
    os.listdir('/.eyot-run')
def in_group():
    os.setgid(65533)
    os.listdir('/.eyot-run')
def granted():
    # cap_dac_override=ep, for whoever runs it.
    os.system('cp /usr/bin/ls /tmp/granted')
    os.setxattr('/tmp/granted', 'security.capability', bytes.fromhex('0100000202000000000000000000000000000000'))
    if os.spawnv(os.P_WAIT, '/tmp/granted', ['ls', '/.eyot-run']) != 0: raise OSError()
attempts = {
    'list': lambda: os.listdir('/.eyot-run'), 'open': opened, 'take': taken, 'pose': posed, 'become': as_guest,
    'group': in_group, 'grant': granted,
    'signal': lambda: os.kill(1, 0), 'trace': lambda: check(libc.ptrace(16, 1, 0, 0)),
    'memory': lambda: open('/proc/1/mem', 'rb').read(1), 'variables': lambda: open('/proc/1/environ', 'rb').read(1),
    'limits': lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)),
    'program': lambda: open('/.eyot-guest/eyot-guest', 'r+b')}
for name, attempt in attempts.items():
    child = os.fork()
    if child == 0:
        try: attempt()
        except BaseException: os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0: print(name, end=' ')
";

async fn k07_of_each_capability_that_root_keeps_it_is_told_whether_it_reaches_the_guest(
    engine: TestEngine,
) -> Check {
    for kept in [None].into_iter().chain(CAPABILITIES.map(Some)) {
        let mut wanted = spec(DEBIAN);
        let dropped = CAPABILITIES.into_iter().filter(|name| Some(*name) != kept);
        wanted.security.drop_capabilities = dropped.map(str::to_owned).collect();
        // Without it a program may gain what its file grants.
        wanted.security.no_new_privileges = false;
        with_sandbox(&engine, wanted, async |sandbox| {
            let worked = python(sandbox, REACHES).await?;
            let told = sandbox.isolation().guest_out_of_reach;
            ensure!(told == worked.is_empty(), "{kept:?} reaches the guest by `{worked}`, told: {told}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Ends streams: a new one begins as a process of root's, and root may end its own processes.
const ENDS_STREAMS: &str = r"
import os
print('begun', flush=True)
own = {os.getpid(), os.getppid(), 1}
while True:
    for name in os.listdir('/proc'):
        if name.isdigit() and int(name) not in own:
            try: os.kill(int(name), 9)
            except OSError: pass
";

async fn k07_root_that_ends_every_new_stream_harms_no_stream_that_is_open(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(DEBIAN), async |sandbox| {
        sandbox.write("note", "kept").await?;
        let attack = eyot::Command::argv(["python3", "-c", ENDS_STREAMS]);
        let attacker = sandbox.start(attack, eyot::StartOptions::default()).await?;
        for _ in 0..5 {
            match Sandbox::open(&*engine.provider, sandbox.name().as_str()).await {
                Ok(opened) => ensure_eq!(opened.read_text("note").await?, "kept"),
                Err(error) => ensure!(error.kind() == eyot::ErrorKind::Unavailable, "{error}"),
            }
            ensure_eq!(sandbox.read_text("note").await?, "kept");
        }
        sandbox.kill(attacker.id, None).await?;
        sandbox.wait(attacker.id).await?;
        let again = Sandbox::open(&*engine.provider, sandbox.name().as_str()).await?;
        ensure_eq!(output(&again, "cat note").await?, "kept");
        Ok(())
    })
    .await
}
