//! Operations that only some providers have, each refused before anything changes where it can't be
//! done: finding files and lines, moving trees as tar streams, connections, use of resources.

use futures_util::StreamExt;

use super::Sandbox;
use crate::capabilities::Capability;
use crate::driver::{ByteStream, TcpStream};
use crate::error::{Error, Result};
use crate::files::TarInOptions;
use crate::path::ConfinedPath;
use crate::process::{LiveProcesses, Usage};
use crate::published::PublishedPort;
use crate::search::{GlobOptions, GlobResult, GrepOptions, GrepResult};

impl Sandbox {
    /// Finds files whose path matches a pattern; a pattern that can't be read is `invalid`.
    pub async fn glob(&self, options: &GlobOptions) -> Result<GlobResult> {
        self.check_alive()?;
        self.require(Capability::Glob, "glob", &[])?;
        self.driver()
            .glob(options)
            .await
            .map_err(self.failed("glob", format_args!("{}` below `{}", options.pattern, options.root)))
    }

    /// Finds lines that match a pattern; a pattern that can't be read is `invalid`.
    pub async fn grep(&self, options: &GrepOptions) -> Result<GrepResult> {
        self.check_alive()?;
        self.require(Capability::Grep, "grep", &[])?;
        self.driver()
            .grep(options)
            .await
            .map_err(self.failed("grep", format_args!("{}` below `{}", options.pattern, options.root)))
    }

    /// A file or a tree as a tar stream; entry names begin with the last segment of the path.
    pub async fn tar_out(&self, path: &str) -> Result<ByteStream> {
        let place = self.place(path)?;
        self.tar_out_at(&place, path).await
    }

    /// Unpacks a tar stream below a directory that exists, and says how many entries were made. Nothing is written
    /// outside of it, and no link is followed; devices and hard links that lead out are refused, setuid bits dropped.
    /// Symbolic links are made wherever they lead.
    pub async fn tar_in(&self, path: &str, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        let place = self.place(path)?;
        self.tar_in_at(&place, path, tar, options).await
    }

    pub(crate) async fn tar_out_at(&self, place: &ConfinedPath, shown: &str) -> Result<ByteStream> {
        self.require(Capability::Tar, "tar_out", &[])?;
        let tar = self.driver().tar_out(place).await;
        let tar = tar.map_err(self.failed("pack", shown))?;
        let (sandbox, shown) = (self.clone(), shown.to_owned());
        let named = tar.map(move |bytes| bytes.map_err(sandbox.failed("pack", &shown)));
        Ok(named.boxed())
    }

    pub(crate) async fn tar_in_at(
        &self,
        place: &ConfinedPath,
        shown: &str,
        tar: ByteStream,
        options: TarInOptions,
    ) -> Result<u64> {
        self.require(Capability::Tar, "tar_in", &[])?;
        self.driver().tar_in(place, tar, options).await.map_err(self.failed("unpack into", shown))
    }

    /// Connects to a TCP port on the sandbox's own loopback; `unavailable` if nothing listens
    /// there.
    pub async fn dial(&self, port: u16) -> Result<Box<dyn TcpStream>> {
        self.check_alive()?;
        self.require(Capability::Dial, "dial", &[])?;
        if port == 0 {
            return Err(Error::invalid("port", "must be from 1 to 65535, not 0"));
        }
        self.driver().dial(port).await.map_err(self.failed("connect to port", port))
    }

    /// Lists the ports that the spec's `container.ports` asks to be published, in that order, and
    /// where each is. Without any the list is empty for every provider; `unavailable` while one of
    /// them is not published.
    pub async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        self.check_alive()?;
        if self.info().spec.container.ports.is_empty() {
            Ok(Vec::new())
        } else {
            self.driver().published_ports().await
        }
    }

    /// Measures what the sandbox uses now.
    pub async fn usage(&self) -> Result<Usage> {
        self.check_alive()?;
        self.require(Capability::Usage, "usage", &[])?;
        let context = format!("measure sandbox `{}`", self.name());
        self.driver().usage().await.map_err(|error| error.context(context))
    }

    /// Lists everything that runs in the sandbox. Neither this nor [`Sandbox::usage`] counts as
    /// activity.
    pub async fn live_processes(&self) -> Result<LiveProcesses> {
        self.check_alive()?;
        self.require(Capability::LiveProcesses, "live_processes", &[])?;
        let context = format!("list what runs in sandbox `{}`", self.name());
        self.driver().live_processes().await.map_err(|error| error.context(context))
    }
}
