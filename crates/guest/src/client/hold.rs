//! Holding the calls of every client back while the sandbox's files are changed from outside.

use eyot::Result;

use super::call::Call;
use super::connection::Connection;
use crate::protocol::{HOLDS_CALLS, Request};

/// The calls of all other connections wait for this. Dropping it lets them go on.
pub struct CallHold(Call);

impl Connection {
    /// Holds the calls of all other connections back.
    ///
    /// # Errors
    /// `conflict` while a process runs or a call is served that may use the sandbox's files; `unsupported` by an older guest.
    pub async fn hold(&self) -> Result<CallHold> {
        self.require(HOLDS_CALLS, "a snapshot of a sandbox that is awake")?;
        let call = self.call(&Request::Hold).await?;
        self.unless_silent(call.event()).await?;
        Ok(CallHold(call))
    }
}

impl CallHold {
    /// Lets the calls go on.
    pub async fn release(self) -> Result<()> {
        self.0.sender().send_end();
        self.0.reply().await.map(drop)
    }
}
