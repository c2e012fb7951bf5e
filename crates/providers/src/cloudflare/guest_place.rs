//! The guest's place in a sandbox: it is put there, started, looked for, and taken away again.

use eyot::Result;
use eyot_guest::PROGRAM;

use super::exec_call::run;
use super::host::BridgeHost;
use super::record::BridgeRecord;
use crate::terminal_guest::{BEGIN, GuestTrace, LOOK, PLACE, done, trace};

/// The directory that the bridge writes files to.
const WORKSPACE: &str = "/workspace";

/// Puts the guest into a sandbox and starts it. Done twice, it is the same guest.
pub(super) async fn begin(host: &BridgeHost, record: &BridgeRecord) -> Result<()> {
    host.records.calling(record, put(host, record)).await
}

async fn put(host: &BridgeHost, record: &BridgeRecord) -> Result<()> {
    let (client, id, dir) = (&host.client, &record.bridge_id, record.life.directory());
    let placed = run(client, id, PLACE, &[&dir, record.workdir().as_str(), WORKSPACE]).await?;
    done(&placed)?;
    client.put(id, &upload_name(record), PROGRAM).await?;
    let begun = run(client, id, BEGIN, &[&dir, &upload_path(record), &PROGRAM.len().to_string()]).await?;
    done(&begun)
}

/// Returns the name of the guest's program in the workspace, until it is moved to its directory.
fn upload_name(record: &BridgeRecord) -> String {
    format!(".eyot-{}", record.life.key)
}

fn upload_path(record: &BridgeRecord) -> String {
    format!("{WORKSPACE}/{}", upload_name(record))
}

/// Looks for the guest.
pub(super) async fn look(host: &BridgeHost, record: &BridgeRecord) -> Result<GuestTrace> {
    let directory = record.life.directory();
    let looking = async { run(&host.client, &record.bridge_id, LOOK, &[&directory]).await };
    trace(&host.records.calling(record, looking).await?)
}

/// Ends the guest, and removes what was put into the sandbox.
pub(super) async fn leave(host: &BridgeHost, record: &BridgeRecord) -> Result<()> {
    let arguments = [&record.life.directory(), "end", &upload_path(record)];
    let found = run(&host.client, &record.bridge_id, LOOK, &arguments).await?;
    trace(&found).map(drop)
}
