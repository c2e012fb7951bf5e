//! Makes a sandbox, runs a program of a folder in it and brings its picture back.

use eyot::{ExecOptions, NetworkMode, Sandbox, SandboxSpec, TarInOptions};
use eyot_native::{NativeOptions, NativeProvider};
use futures_util::{StreamExt, stream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = NativeProvider::new(NativeOptions::default())?;
    let spec = SandboxSpec { network: NetworkMode::Egress, ..SandboxSpec::default() };
    let sandbox = Sandbox::create(&*provider, spec).await?;
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("project", "project")?;
    let tar = stream::iter([Ok(tar.into_inner()?.into())]).boxed();
    sandbox.tar_in(".", tar, TarInOptions::default()).await?;
    let job = "pip install --quiet --no-build-isolation ./project/chart && python3 project/main.py";
    let run = sandbox.exec_stream(job, ExecOptions::default()).await?;
    run.collect(|_, output| print!("{}", String::from_utf8_lossy(output))).await?;
    std::fs::write("plot.png", sandbox.read("plot.png").await?)?;
    Ok(sandbox.destroy().await?)
}
