//! Images of the store: names such as `app:1`, layers below a sandbox's own files, and the image's
//! wishes.

use std::fs;
use std::path::PathBuf;

use eyot::{ErrorKind, ExecOptions, Mount, PullPolicy, Sandbox, SandboxPath, SandboxProvider, SandboxSpec};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_image::testing::{TestImage, TestLayer};
use eyot_image::{ImageName, ImageStore, ImportOptions, NoProgress};
use eyot_native::{image_store, image_uses};
use eyot_tools::{ToolContext, handle_tool_call, toolset};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::images::make_rootfs;
use crate::state::State;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("an_image_of_the_store_shows_its_layers_as_one_and_is_never_written_to", layers),
        trial("what_the_image_wishes_counts_where_the_spec_leaves_it_open", wishes),
        trial("the_image_s_user_runs_commands_where_there_is_a_range_of_users", users),
        trial("an_image_of_127_layers_can_be_used_and_one_of_more_can_not", many_layers),
        trial("a_sandbox_wakes_over_its_layers_whatever_has_become_of_the_image_s_name", woken),
        trial("no_layer_is_removed_below_a_sandbox_that_is_being_made", removal_race),
        trial("a_pool_s_sandbox_starts_in_its_home_whatever_the_image_says_and_node_22_is_preferred", pools),
        trial("k12_a_setuid_program_of_an_image_has_no_such_bit", setuid),
        trial("an_image_that_is_absent_says_how_to_get_it", absent),
        trial("without_anywhere_to_pull_from_a_pull_for_every_create_is_refused", pull_from_nowhere),
        trial("no_link_of_any_layer_reads_a_file_of_the_host", links),
        trial("a_mount_can_lie_over_a_folder_that_only_a_lower_layer_has", mounts),
        trial("the_folders_above_a_mount_stay_as_they_are_without_it", above_a_mount),
    ]
}

/// A state folder's store with one image in it.
struct Stored {
    state: State,
    folder: tempfile::TempDir,
}

impl Stored {
    fn new() -> Result<Self, Failed> {
        Ok(Self { state: State::new()?, folder: tempfile::tempdir()? })
    }

    /// Makes the lowest layer of every image here: a shell and a few programs.
    fn system(&self) -> Result<TestLayer, Failed> {
        let root = self.folder.path().join("root");
        if !root.exists() {
            make_rootfs(&root)?;
        }
        Ok(TestLayer::default().tree(&root)?)
    }

    fn store(&self) -> ImageStore {
        image_store(&self.state.path())
    }

    fn put(&self, image: &TestImage, name: &str) -> Result<(), Failed> {
        let layout = self.folder.path().join("layout");
        image.write_layout(&layout, None)?;
        let options = ImportOptions { name: Some(ImageName::parse(name)?), ..ImportOptions::default() };
        self.store().import(&layout, &options, &NoProgress)?;
        Ok(fs::remove_dir_all(layout)?)
    }

    async fn create(&self, spec: SandboxSpec) -> Result<Sandbox, Failed> {
        let provider = self.state.provider()?;
        let image = spec.image.clone().or_else(|| Some("app:1".to_owned()));
        Ok(Sandbox::create(&*provider, SandboxSpec { image, ..spec }).await?)
    }

    fn uses(&self) -> Result<Vec<eyot_image::ImageUse>, eyot::Error> {
        image_uses(&self.state.path(), &|_| None)
    }
}

async fn output(sandbox: &Sandbox, line: &str) -> Result<String, Failed> {
    let result = sandbox.exec(line, ExecOptions::default()).await?;
    Ok(format!("{}{}", result.stdout_text(), result.stderr_text()))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

async fn layers() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let below = TestLayer::default().file("data/gone", "x").file("data/kept", "kept").file("hidden/f", "x");
    let above = TestLayer::default()
        .file("data/.wh.gone", "")
        .file("hidden/.wh..wh..opq", "")
        .file("hidden/g", "g")
        .file("one", "same")
        .entry(tar::EntryType::Link, "two", "one", 0o644, b"")
        .file("etc/release", "above\n");
    stored.put(&TestImage::new(&[stored.system()?, below, above]), "app:1")?;
    let sandbox = stored.create(SandboxSpec::default()).await?;
    let listed = output(&sandbox, "cat /etc/release; ls /data /hidden; cat /one /two").await?;
    ensure(listed == "above\n/data:\nkept\n\n/hidden:\ng\nsamesame", &listed)?;
    let as_root = ExecOptions { user: is_root().then(|| "root".to_owned()), ..ExecOptions::default() };
    let changed = "echo new > /data/kept && echo x > /data/gone && cat /data/kept /data/gone; ls /hidden";
    let result = sandbox.exec(changed, as_root).await?;
    ensure(result.stdout_text() == "new\nx\ng\n", format!("{result:?}"))?;
    let second = stored.create(SandboxSpec::default()).await?;
    let untouched = output(&second, "cat /data/kept; ls /data; cat /proc/self/mountinfo").await?;
    ensure(untouched.starts_with("keptkept\n"), &untouched)?;
    let state = stored.state.path();
    ensure(
        !untouched.contains(state.to_str().unwrap_or("?")),
        format!("the state folder shows: {untouched}"),
    )?;
    sandbox.destroy().await?;
    second.destroy().await?;
    stored.state.assert_empty()
}

async fn wishes() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let config = json!({ "Env": ["A=image", "B=image", "PATH=/opt/tools:/bin", "HOME=/nowhere"], "WorkingDir": "/srv/app" });
    let app = TestLayer::default().file("srv/app/f", "from the image");
    stored.put(&TestImage::new(&[stored.system()?, app]).with_config(config), "app:1")?;
    let show = "echo $PWD $A $B $HOME $PATH";
    let sandbox = stored.create(SandboxSpec::default()).await?;
    let seen = output(&sandbox, show).await?;
    ensure(seen == "/srv/app image image /home/user /home/user/.local/bin:/opt/tools:/bin\n", &seen)?;
    ensure(
        output(&sandbox, "cat f && echo mine > new && cat new").await? == "from the imagemine\n",
        "the workdir",
    )?;
    ensure(sandbox.read("f").await? == "from the image", "read from the workdir")?;
    sandbox.destroy().await?;
    let spec = SandboxSpec {
        env: [("A".to_owned(), "spec".to_owned())].into(),
        workdir: Some(SandboxPath::parse("/home/user")?),
        ..SandboxSpec::default()
    };
    let sandbox = stored.create(spec).await?;
    let seen = output(&sandbox, show).await?;
    ensure(seen.starts_with("/home/user spec image /home/user "), &seen)?;
    sandbox.destroy().await?;
    stored.state.assert_empty()
}

async fn users() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let people = TestLayer::default()
        .file(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\nweb:x:33:33::/srv:/bin/sh\n",
        )
        .file("etc/group", "root:x:0:\nstaff:x:50:\n");
    let (root, ours) = (is_root(), ["node", "1000 1000 /home/node\n"]);
    let cases = [
        (json!({}), ours[1]),
        (json!({ "User": "node" }), ours[1]),
        (json!({ "User": "web" }), "33 33 /srv\n"),
        (json!({ "User": "web:staff" }), "33 50 /srv\n"),
        (json!({ "User": "4711:50" }), "4711 50 /\n"),
        (json!({ "User": "0" }), "0 0 /root\n"),
    ];
    for (config, wanted) in cases {
        stored
            .put(&TestImage::new(&[stored.system()?, people.clone()]).with_config(config.clone()), "app:1")?;
        let sandbox = stored.create(SandboxSpec::default()).await?;
        let line = "while read k a b; do case $k in Uid:) u=$a;; Gid:) g=$a;; esac; done < /proc/self/status; echo ${u%%[!0-9]*} ${g%%[!0-9]*} $HOME";
        let seen = output(&sandbox, line).await?;
        // Alone there is one user, whom the image calls `node`.
        ensure(seen == if root { wanted } else { ours[1] }, format!("{config}: {seen}"))?;
        sandbox.destroy().await?;
    }
    let config = json!({ "User": "nobody-there" });
    stored.put(&TestImage::new(&[stored.system()?, people]).with_config(config), "app:2")?;
    let spec = SandboxSpec { image: Some("app:2".to_owned()), ..SandboxSpec::default() };
    let provider = stored.state.provider()?;
    match (root, Sandbox::create(&*provider, spec).await) {
        (true, Err(error)) => ensure(error.to_string().contains("nobody-there"), error.to_string())?,
        (false, Ok(sandbox)) => sandbox.destroy().await?,
        (_, other) => return Err(format!("{:?}", other.map(|_| "a sandbox")).into()),
    }
    stored.state.assert_empty()
}

async fn many_layers() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let mut layers = vec![stored.system()?];
    layers.extend((1..127).map(|n| TestLayer::default().file(&format!("n/{n}"), "")));
    stored.put(&TestImage::new(&layers), "app:1")?;
    let sandbox = stored.create(SandboxSpec::default()).await?;
    let seen = output(&sandbox, "cd /n; set -- *; echo $#").await?;
    ensure(seen == "126\n", &seen)?;
    sandbox.destroy().await?;
    layers.push(TestLayer::default().file("n/127", ""));
    let error = stored.put(&TestImage::new(&layers), "app:2").err().ok_or("128 layers were taken")?;
    ensure(error.message().is_some_and(|said| said.contains("127")), format!("{error:?}"))
}

async fn woken() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let config = json!({ "Env": ["A=image", "PATH=/bin"], "WorkingDir": "/usr/src/app" });
    stored.put(
        &TestImage::new(&[stored.system()?, TestLayer::default().file("f", "x")]).with_config(config),
        "app:1",
    )?;
    let sandbox = stored.create(SandboxSpec::default()).await?;
    sandbox.write("kept", "kept").await?;
    let (id, provider) = (sandbox.id().to_string(), stored.state.provider()?);
    let name = ImageName::parse("app:1")?;
    for state in ["running", "sleeping"] {
        let error = stored.store().remove(&name, false, || stored.uses()).err().ok_or("it was removed")?;
        ensure(error.kind() == ErrorKind::Conflict, format!("{state}: {error}"))?;
        if state == "running" {
            provider.sleep(&id).await?;
        }
    }
    stored.store().remove(&name, true, || stored.uses())?;
    stored.store().prune(true, || stored.uses())?;
    let sandbox = Sandbox::wake(&*provider, &id).await?;
    let seen = output(&sandbox, "echo $PWD $A $PATH; cat kept /f").await?;
    ensure(seen == "/usr/src/app image /home/user/.local/bin:/bin\nkeptx", &seen)?;
    sandbox.destroy().await?;
    stored.store().prune(false, || stored.uses())?;
    let left: Vec<String> = fs::read_dir(stored.store().layers())?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()?;
    ensure(left.iter().all(|name| name.contains('-')), format!("layers that nobody needs are left: {left:?}"))
}

async fn removal_race() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let image = TestImage::new(&[stored.system()?]);
    let name = ImageName::parse("app:1")?;
    let provider = stored.state.provider()?;
    for _ in 0..8 {
        stored.put(&image, "app:1")?;
        let (store, state, name) = (stored.store(), stored.state.path(), name.clone());
        let removing =
            tokio::task::spawn_blocking(move || store.remove(&name, true, || image_uses(&state, &|_| None)));
        let spec = SandboxSpec { image: Some("app:1".to_owned()), ..SandboxSpec::default() };
        let made = Sandbox::create(&*provider, spec).await;
        removing.await??;
        match made {
            Ok(sandbox) => {
                let seen = output(&sandbox, "cat /etc/release").await?;
                ensure(seen == "tiny\n", format!("its layers are gone: {seen}"))?;
                sandbox.destroy().await?;
            }
            Err(error) => ensure(error.kind() == ErrorKind::NotFound, error.to_string())?,
        }
    }
    stored.state.assert_empty()
}

async fn pools() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let config = json!({ "Env": ["A=image"], "WorkingDir": "/srv/app" });
    stored.put(&TestImage::new(&[stored.system()?]).with_config(config), "node:22")?;
    let pool = SandboxPool::open(stored.state.provider()?, PoolOptions::default())?;
    let context = ToolContext::new(pool.clone());
    let input = json!({ "sandbox": "a" });
    let made = handle_tool_call(&context, &toolset("pool")?, "sandbox_create", input).await;
    ensure(!made.is_error && made.as_text().contains("node:22"), made.as_text())?;
    let seen = output(&pool.get("a").await?, "echo $PWD $A; echo x > mine && cat mine").await?;
    ensure(seen == "/home/user image\nx\n", &seen)?;
    pool.close().await?;
    stored.state.assert_empty()
}

async fn setuid() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let shell = fs::read("/bin/cat")?;
    let above = TestLayer::default().entry(tar::EntryType::Regular, "bin/suid", "", 0o6755, &shell);
    stored.put(&TestImage::new(&[stored.system()?, above]), "app:1")?;
    let sandbox = stored.create(SandboxSpec::default()).await?;
    let seen = output(&sandbox, "ls -l /bin/suid").await?;
    ensure(seen.starts_with("-rwxr-xr-x "), &seen)?;
    sandbox.destroy().await?;
    stored.state.assert_empty()
}

async fn absent() -> Result<(), Failed> {
    let stored = Stored::new()?;
    stored.put(&TestImage::new(&[stored.system()?]), "app:1")?;
    let provider = stored.state.provider()?;
    let spec = SandboxSpec { image: Some("node:22".to_owned()), ..SandboxSpec::default() };
    let error = Sandbox::create(&*provider, spec).await.err().ok_or("it was made")?;
    let hint = error.hint().unwrap_or_default();
    ensure(
        error.kind() == ErrorKind::NotFound && hint.contains("eyot image pull node:22"),
        format!("{error}: {hint}"),
    )?;
    stored.state.assert_empty()
}

async fn links() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let secret = stored.folder.path().join("secret");
    fs::write(&secret, "secret:x:7:7::/:/bin/sh\n")?;
    let target = secret.to_str().ok_or("a path")?;
    let linked = TestLayer::default().symlink("etc/group", target).symlink("etc/hosts", target);
    let system = stored.system()?;
    stored
        .put(&TestImage::new(&[system, TestLayer::default().file("etc/.wh.passwd", ""), linked]), "app:1")?;
    let sandbox = stored.create(SandboxSpec::default()).await?;
    let seen = output(&sandbox, "cat /etc/passwd /etc/group /etc/hosts").await?;
    ensure(seen.contains("user:x:1000") && !seen.contains("secret"), &seen)?;
    sandbox.destroy().await?;
    stored.state.assert_empty()
}

async fn mounts() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let source: PathBuf = stored.folder.path().join("source");
    fs::create_dir(&source)?;
    fs::write(source.join("f"), "mounted")?;
    let above = TestLayer::default().file("one", "");
    stored.put(
        &TestImage::new(&[stored.system()?, TestLayer::default().file("srv/data/f", "image"), above]),
        "app:1",
    )?;
    let mount = Mount { source, target: SandboxPath::parse("/srv/data")?, writable: false, cow: false };
    let sandbox = stored.create(SandboxSpec { mounts: vec![mount], ..SandboxSpec::default() }).await?;
    let seen = output(&sandbox, "cat /srv/data/f").await?;
    ensure(seen == "mounted", &seen)?;
    sandbox.destroy().await?;
    stored.state.assert_empty()
}

async fn above_a_mount() -> Result<(), Failed> {
    let stored = Stored::new()?;
    let source = tempfile::tempdir()?;
    let app = TestLayer::default()
        .directory("srv/app", 0o751)
        .directory("srv/drop", 0o1777)
        .directory("srv/fixed", 0o555);
    stored.put(&TestImage::new(&[stored.system()?, app]), "app:1")?;
    let always = ["/var", "/var/tmp", "/home", "/home/user", "/workspace"];
    let of_app = ["/srv", "/srv/app", "/srv/drop", "/srv/fixed"];
    for (image, folders) in [("host", always.to_vec()), ("app:1", [&always[..], &of_app].concat())] {
        let look = format!(
            "for folder in {}; do ls -lnd $folder | {{ read mode links uid gid rest; echo $folder $mode $uid $gid; }}; done",
            folders.join(" ")
        );
        let seen = async |mounts: Vec<Mount>| -> Result<String, Failed> {
            let spec = SandboxSpec { image: Some(image.to_owned()), mounts, ..SandboxSpec::default() };
            let sandbox = stored.create(spec).await?;
            let seen = output(&sandbox, &look).await?;
            sandbox.destroy().await?;
            Ok(seen)
        };
        let mut mounts = Vec::new();
        for folder in &folders {
            let target = SandboxPath::parse(&format!("{folder}/mounted/deep"))?;
            mounts.push(Mount { source: source.path().to_owned(), target, writable: false, cow: false });
        }
        let (without, with) = (seen(Vec::new()).await?, seen(mounts).await?);
        ensure(without.lines().count() == folders.len(), &without)?;
        ensure(with == without, format!("in {image}, these:\n{without}became these:\n{with}"))?;
    }
    stored.state.assert_empty()
}

async fn pull_from_nowhere() -> Result<(), Failed> {
    let stored = Stored::new()?;
    stored.put(&TestImage::new(&[stored.system()?]), "app:1")?;
    let with = |pull| {
        let mut spec = SandboxSpec { image: Some("app:1".to_owned()), ..SandboxSpec::default() };
        spec.container.pull = pull;
        spec
    };
    let provider = stored.state.provider()?;
    let error = Sandbox::create(&*provider, with(PullPolicy::Always)).await.err().ok_or("it was made")?;
    ensure(error.kind() == ErrorKind::Unsupported && error.to_string().contains("pull"), format!("{error}"))?;
    for pull in [PullPolicy::Missing, PullPolicy::Never] {
        Sandbox::create(&*provider, with(pull)).await?.destroy().await?;
    }
    stored.state.assert_empty()
}
