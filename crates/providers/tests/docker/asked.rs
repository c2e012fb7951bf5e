//! The requests to the Engine: Anvia's create options, inspected on the Engine's side.

use eyot::{Enforcement, Limits, NetworkMode, PullPolicy, Sandbox, SandboxSpec, WorkspaceSpec};
use eyot_image::{AllowedImages, ImageName};
use eyot_providers::docker::{DockerOptions, DockerProvider};

use crate::check::{Check, docker, ensure, ensure_eq, inspected, output, refused, until, with_sandbox};
use crate::engine::{BUSYBOX, DEBIAN, TestEngine, spec, state, tests};

tests! {
    anvia_the_defaults_are_no_network_no_capabilities_no_new_privileges_and_no_limits(BUSYBOX);
    anvia_a_session_is_a_container_and_a_volume_that_go_together(BUSYBOX);
    anvia_labels_and_metadata_are_the_containers(BUSYBOX);
    anvia_limits_become_the_engines(BUSYBOX);
    anvia_a_persistent_workspace_stays_or_goes_as_it_was_asked(BUSYBOX);
    anvia_a_port_is_published_on_loopback_alone_and_in_the_order_of_the_request(DEBIAN);
    anvia_ports_without_a_network_are_refused_before_the_engine_is_asked(BUSYBOX);
    anvia_networks_are_none_bridge_host_and_by_name(BUSYBOX);
    anvia_a_read_only_root_can_not_be_written_to_and_the_workspace_can(BUSYBOX);
    anvia_a_create_that_fails_leaves_nothing(BUSYBOX);
    a_runtime_is_passed_on_and_told_and_one_that_is_not_there_is_refused(BUSYBOX);
    names_that_the_sandbox_knows_and_directories_in_memory(BUSYBOX);
    a_user_who_is_not_in_the_image_is_refused_by_name_and_taken_by_number(BUSYBOX);
    what_docker_does_not_do_is_refused(BUSYBOX);
    a6_an_image_that_is_not_allowed_is_not_fetched_and_one_that_is_there_is_used(BUSYBOX);
}

/// Checks that an Engine fetches only images that the operator has allowed, whatever a client
/// names.
async fn a6_an_image_that_is_not_allowed_is_not_fetched_and_one_that_is_there_is_used(
    engine: TestEngine,
) -> Check {
    // An Engine speaks to loopback without TLS.
    let registry = std::net::TcpListener::bind("127.0.0.1:0")?;
    registry.set_nonblocking(true)?;
    let named = format!("{}/eyot-test/none:1", registry.local_addr()?);
    let allowed = ImageName::parse("eyot-test-allowed:1")?;
    let options = DockerOptions {
        fetched: Some(AllowedImages::new([allowed], Vec::new())),
        ..DockerOptions::node(state())
    };
    let clients = DockerProvider::new(options);
    for pull in [PullPolicy::Missing, PullPolicy::Always] {
        let mut wanted = spec(&named);
        wanted.container.pull = pull;
        let error = refused!(Sandbox::create(&*clients, wanted).await, NotFound);
        ensure!(error.hint().is_some_and(|hint| hint.contains("[images]")), "{error:?}");
    }
    let asked = registry.accept().map(|_| ()).map_err(|error| error.kind());
    ensure_eq!(asked, Err(std::io::ErrorKind::WouldBlock));
    let mut wanted = spec(BUSYBOX);
    wanted.container.pull = PullPolicy::Missing;
    let sandbox = Sandbox::create(&*clients, wanted).await?;
    sandbox.destroy().await?;
    // Somebody who uses the Engine directly may have it fetch anything: the canary is one.
    let mut wanted = spec(&named);
    wanted.container.pull = PullPolicy::Missing;
    let create = Sandbox::create(&*engine.provider, wanted);
    let registry = tokio::net::TcpListener::from_std(registry)?;
    tokio::select! {
        asked = registry.accept() => drop(asked?),
        created = create => ensure!(created.is_ok(), "the registry was not asked: {created:?}"),
    }
    Ok(())
}

async fn anvia_the_defaults_are_no_network_no_capabilities_no_new_privileges_and_no_limits(
    engine: TestEngine,
) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let limits =
            inspected(sandbox, "{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}}")?;
        ensure!(limits == "0 0 <nil>" || limits == "0 0 <no value>" || limits == "0 0 0", "limits: {limits}");
        ensure_eq!(inspected(sandbox, "{{.HostConfig.NetworkMode}}")?, "none");
        let status = output(sandbox, "cat /proc/self/status").await?;
        for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"] {
            ensure!(status.contains(line), "no `{line}` in {status}");
        }
        ensure!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
        let isolation = sandbox.isolation();
        ensure!(isolation.capabilities.is_empty() && isolation.no_new_privileges, "{isolation:?}");
        ensure_eq!((isolation.network, isolation.limits.memory), (NetworkMode::None, Enforcement::None));
        ensure!(
            isolation.guest_out_of_reach && isolation.seccomp && isolation.shares_host_kernel,
            "{isolation:?}"
        );
        Ok(())
    })
    .await
}

async fn anvia_a_session_is_a_container_and_a_volume_that_go_together(engine: TestEngine) -> Check {
    let volume = with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let volume = inspected(
            sandbox,
            "{{range .Mounts}}{{if eq .Destination \"/workspace\"}}{{.Name}}{{end}}{{end}}",
        )?;
        ensure!(docker(&["volume", "inspect", &volume]).is_ok(), "no volume `{volume}`");
        ensure_eq!(output(sandbox, "pwd").await?, "/workspace");
        Ok(volume)
    })
    .await?;
    ensure!(docker(&["volume", "inspect", &volume]).is_err(), "the volume outlived its sandbox");
    Ok(())
}

async fn anvia_labels_and_metadata_are_the_containers(engine: TestEngine) -> Check {
    let mut wanted = spec(BUSYBOX);
    wanted.labels.insert("team".to_owned(), "red".to_owned());
    wanted.metadata.insert("ticket".to_owned(), "ä 42".to_owned());
    with_sandbox(&engine, wanted, async |sandbox| {
        ensure_eq!(inspected(sandbox, "{{index .Config.Labels \"team\"}}")?, "red");
        ensure_eq!(inspected(sandbox, "{{index .Config.Labels \"dev.eyot.metadata.ticket\"}}")?, "ä 42");
        ensure_eq!(inspected(sandbox, "{{index .Config.Labels \"dev.eyot.id\"}}")?, sandbox.id().as_str());
        Ok(())
    })
    .await
}

async fn anvia_limits_become_the_engines(engine: TestEngine) -> Check {
    let limits = Limits { memory_mib: Some(64), cpus: Some(0.5), pids: Some(40), ..Limits::default() };
    with_sandbox(&engine, SandboxSpec { limits, ..spec(BUSYBOX) }, async |sandbox| {
        let memory = (64 << 20).to_string();
        ensure_eq!(
            inspected(sandbox, "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}}")?,
            format!("{memory} {memory}")
        );
        ensure_eq!(inspected(sandbox, "{{.HostConfig.NanoCpus}}")?, "500000000");
        let held = sandbox.isolation().limits;
        for held in [held.memory, held.cpus, held.pids] {
            ensure_eq!(held, Enforcement::Cgroup);
        }
        Ok(())
    })
    .await
}

async fn anvia_a_persistent_workspace_stays_or_goes_as_it_was_asked(engine: TestEngine) -> Check {
    let id = format!("eyot-test-stays-{}", std::process::id());
    let wanted = |goes| {
        let workspace = WorkspaceSpec::Persistent { id: id.clone(), destroy_on_session_destroy: goes };
        SandboxSpec { workspace, ..spec(BUSYBOX) }
    };
    let volume = format!("eyot-workspace-{id}");
    with_sandbox(&engine, wanted(false), async |sandbox| Ok(sandbox.write("note", "kept").await?)).await?;
    ensure!(docker(&["volume", "inspect", &volume]).is_ok(), "the workspace went with its sandbox");
    // A create that fails does not take along what was there before.
    let failing = SandboxSpec { user: Some("nobody-of-that-name".to_owned()), ..wanted(true) };
    ensure!(Sandbox::create(&*engine.provider, failing).await.is_err(), "a user who is not there");
    with_sandbox(&engine, wanted(true), async |sandbox| {
        ensure_eq!(sandbox.read_text("note").await?, "kept");
        Ok(())
    })
    .await?;
    ensure!(docker(&["volume", "inspect", &volume]).is_err(), "the workspace is still there");
    Ok(())
}

async fn anvia_a_port_is_published_on_loopback_alone_and_in_the_order_of_the_request(
    engine: TestEngine,
) -> Check {
    let mut wanted = SandboxSpec { network: NetworkMode::Bridge, ..spec(DEBIAN) };
    wanted.container.ports = vec![8001, 8000];
    with_sandbox(&engine, wanted, async |sandbox| {
        let published = sandbox.published_ports().await?;
        ensure_eq!(published.iter().map(|one| one.port).collect::<Vec<_>>(), [8001, 8000]);
        for one in &published {
            let bound = docker(&["port", &format!("eyot-{}", sandbox.name()), &format!("{}/tcp", one.port)])?;
            ensure_eq!(bound, format!("127.0.0.1:{}", one.host_port));
        }
        sandbox.write("index.html", "served").await?;
        sandbox.start("python3 -m http.server 8000 --bind 0.0.0.0", eyot::StartOptions::default()).await?;
        let port = published[1].host_port;
        crate::check::until("an answer on the published port", async || {
            Ok(fetched(port).await.is_ok_and(|answer| answer.ends_with("served")))
        })
        .await
    })
    .await
}

async fn fetched(port: u16) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn anvia_ports_without_a_network_are_refused_before_the_engine_is_asked(engine: TestEngine) -> Check {
    for network in [NetworkMode::None, NetworkMode::Host] {
        let mut wanted = SandboxSpec { network, ..spec(BUSYBOX) };
        wanted.container.ports = vec![80];
        let error = refused!(Sandbox::create(&*engine.provider, wanted).await, Invalid);
        ensure!(error.to_string().starts_with("`container.ports`"), "{error}");
    }
    Ok(())
}

async fn anvia_networks_are_none_bridge_host_and_by_name(engine: TestEngine) -> Check {
    let name = format!("eyot-test-{}", std::process::id());
    docker(&["network", "create", "--internal", &name])?;
    let mut by_name = SandboxSpec { network: NetworkMode::Bridge, ..spec(BUSYBOX) };
    by_name.container.network = Some(name.clone());
    let with = |network| SandboxSpec { network, ..spec(BUSYBOX) };
    let cases = [
        (with(NetworkMode::Egress), "bridge", NetworkMode::Bridge),
        (with(NetworkMode::Bridge), "bridge", NetworkMode::Bridge),
        (with(NetworkMode::Host), "host", NetworkMode::Host),
        (by_name, name.as_str(), NetworkMode::Bridge),
    ];
    let mut came_to = Ok(());
    for (wanted, mode, told) in cases {
        let tried = with_sandbox(&engine, wanted, async |sandbox| {
            ensure_eq!(inspected(sandbox, "{{.HostConfig.NetworkMode}}")?, mode);
            ensure_eq!(sandbox.isolation().network, told);
            Ok(())
        });
        came_to = came_to.and(tried.await);
    }
    docker(&["network", "rm", &name])?;
    let mut nowhere = with(NetworkMode::Bridge);
    nowhere.container.network = Some("eyot-test-no-such-network".to_owned());
    ensure!(Sandbox::create(&*engine.provider, nowhere).await.is_err(), "a network that is not there");
    came_to
}

async fn anvia_a_read_only_root_can_not_be_written_to_and_the_workspace_can(engine: TestEngine) -> Check {
    let mut wanted = spec(BUSYBOX);
    wanted.security.readonly_rootfs = true;
    with_sandbox(&engine, wanted, async |sandbox| {
        let result = sandbox.exec("touch /bin/x", eyot::ExecOptions::default()).await?;
        ensure!(result.stderr_text().contains("Read-only"), "{result:?}");
        output(sandbox, "touch x /tmp/x /var/tmp/x /run/x /dev/shm/x ~/x").await?;
        ensure!(sandbox.isolation().readonly_rootfs, "it is not told");
        Ok(())
    })
    .await
}

async fn anvia_a_create_that_fails_leaves_nothing(engine: TestEngine) -> Check {
    let mut wanted =
        SandboxSpec { name: Some(eyot::SandboxName::parse("eyot-test-fails")?), ..spec(BUSYBOX) };
    wanted.manifest.files =
        [("file", "x"), ("file/below", "x")].map(|(path, text)| (path.to_owned(), text.into())).into();
    let volumes = docker(&["volume", "ls", "-q", "--filter", "label=dev.eyot.schema"])?;
    ensure!(Sandbox::create(&*engine.provider, wanted).await.is_err(), "a file below a file");
    ensure!(
        docker(&["ps", "-aq", "--filter", "name=eyot-eyot-test-fails"])?.is_empty(),
        "its container is left"
    );
    // Others make and remove theirs at the same time: what is looked for is one that nobody uses, and that stays.
    let unused = ["volume", "ls", "-q", "--filter", "label=dev.eyot.schema", "--filter", "dangling=true"];
    until("the end of its volumes", async || {
        let dangling = docker(&unused)?;
        let mut left = dangling.lines().filter(|name| !name.starts_with("eyot-"));
        Ok(left.all(|name| volumes.contains(name)))
    })
    .await
}

async fn a_runtime_is_passed_on_and_told_and_one_that_is_not_there_is_refused(engine: TestEngine) -> Check {
    let with = |runtime: &str| {
        let mut wanted = spec(BUSYBOX);
        wanted.container.runtime = Some(runtime.to_owned());
        wanted
    };
    with_sandbox(&engine, with("runc"), async |sandbox| {
        ensure_eq!(sandbox.isolation().runtime.as_deref(), Some("runc"));
        ensure_eq!(inspected(sandbox, "{{.HostConfig.Runtime}}")?, "runc");
        Ok(())
    })
    .await?;
    let error = refused!(Sandbox::create(&*engine.provider, with("eyot-test-none")).await, Invalid);
    ensure!(error.to_string().contains("runc"), "it does not say which there are: {error}");
    Ok(())
}

async fn names_that_the_sandbox_knows_and_directories_in_memory(engine: TestEngine) -> Check {
    let mut wanted = SandboxSpec { network: NetworkMode::Bridge, ..spec(BUSYBOX) };
    wanted.container.extra_hosts.insert("db.test".to_owned(), "10.9.8.7".parse().map_err(|_| "an address")?);
    wanted.container.tmpfs_mib.insert(eyot::SandboxPath::parse("/scratch")?, 8);
    with_sandbox(&engine, wanted, async |sandbox| {
        ensure!(
            output(sandbox, "cat /etc/hosts").await?.contains("10.9.8.7\tdb.test"),
            "the name is not known"
        );
        output(sandbox, "grep -q ' /scratch tmpfs' /proc/mounts && touch /scratch/x").await?;
        Ok(())
    })
    .await
}

async fn a_user_who_is_not_in_the_image_is_refused_by_name_and_taken_by_number(engine: TestEngine) -> Check {
    let with = |user: &str| SandboxSpec { user: Some(user.to_owned()), ..spec(BUSYBOX) };
    let error = refused!(Sandbox::create(&*engine.provider, with("nobody-of-that-name")).await, Invalid);
    ensure!(error.to_string().contains("there is no user `nobody-of-that-name`"), "{error}");
    with_sandbox(&engine, with("4711:4712"), async |sandbox| {
        ensure_eq!(output(sandbox, "id -u; id -g; touch mine").await?, "4711\n4712");
        Ok(())
    })
    .await
}

async fn what_docker_does_not_do_is_refused(engine: TestEngine) -> Check {
    let mount = eyot::Mount {
        source: "/srv".into(),
        target: eyot::SandboxPath::parse("/mnt/x")?,
        writable: false,
        cow: false,
    };
    refused!(
        Sandbox::create(&*engine.provider, SandboxSpec { mounts: vec![mount], ..spec(BUSYBOX) }).await,
        Unsupported
    );
    let mut ruled = SandboxSpec { network: NetworkMode::Egress, ..spec(BUSYBOX) };
    ruled.egress.allow = vec!["example.com".parse().map_err(|_| "a rule")?];
    refused!(Sandbox::create(&*engine.provider, ruled).await, Unsupported);
    let mut required = spec(BUSYBOX);
    required.require = [eyot::Requirement::OwnKernel].into();
    refused!(Sandbox::create(&*engine.provider, required).await, Unsupported);
    Ok(())
}
