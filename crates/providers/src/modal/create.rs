//! Making a sandbox: what is refused before, and what is undone if it can't be finished.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, ValidSpec};

use super::NAME;
use super::client::{CreatedSandbox, ModalClient};
use super::image::check_name;
use super::link::ModalLink;
use super::record::isolation;
use super::script::{NewScript, answer};
use super::wire::{SandboxCreateV2Request, SandboxTag};
use crate::e2b::create::{Reservation, refuse_more};

/// The fields of a spec that are honoured. Limits are Modal's: they are reported as not enforced, and refused where they
/// are required.
const HONOURED: [&str; 5] = ["image", "limits", "network", "require", "security.drop_capabilities"];
/// Makes a directory.
const MAKE_WORKDIR: &str = "PATH=/usr/local/bin:/usr/bin:/bin\nmkdir -p -- \"$2\" || { printf 'permission\\n'; exit; }\nprintf 'ok\\n'\n";

/// Refuses a spec that asks for more than Modal has.
pub(super) fn check(spec: &ValidSpec) -> Result<()> {
    refuse_more(spec, NAME, &HONOURED, &isolation(spec.spec()))?;
    spec.spec().image.as_deref().map_or(Ok(()), check_name)
}

/// A sandbox that is being made. It is ended when it is dropped before it is done.
pub(super) struct UnfinishedModalSandbox {
    client: Arc<ModalClient>,
    id: String,
    pub is_done: bool,
    _names: Reservation,
}

impl Drop for UnfinishedModalSandbox {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (client, id) = (Arc::clone(&self.client), self.id.clone());
        runtime.spawn(async move {
            if let Err(error) = client.terminate(&id).await {
                tracing::warn!(%error, id, "a sandbox of Modal's that was not finished could not be ended");
            }
        });
    }
}

/// Makes a sandbox. If Modal does not have its app or its image any more, they are made anew, once.
async fn create(
    client: &ModalClient,
    mut request: SandboxCreateV2Request,
    tag: &SandboxTag,
    spec: &ValidSpec,
) -> Result<CreatedSandbox> {
    let missing = match client.create(&request, tag).await {
        Err(error) if error.kind() == ErrorKind::NotFound => error,
        made => return made,
    };
    client.forget_ids();
    let (app_id, image_id) = (client.app().await?, client.image_of(spec).await?);
    let known = request.definition.as_mut().map(|definition| &mut definition.image_id);
    if request.app_id == app_id && known.as_deref() == Some(&image_id) {
        return Err(missing);
    }
    request.app_id = app_id;
    if let Some(known) = known {
        *known = image_id;
    }
    client.create(&request, tag).await
}

/// Makes a sandbox, with its working directory.
pub(super) async fn make(
    client: Arc<ModalClient>,
    request: SandboxCreateV2Request,
    tag: SandboxTag,
    spec: ValidSpec,
    names: Reservation,
) -> Result<(UnfinishedModalSandbox, Arc<ModalLink>)> {
    let CreatedSandbox { id, task_id } =
        create(&client, request, &tag, &spec).await.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => crate::e2b::create::in_use(spec.name().as_str()).with_source(error),
            _ => error,
        })?;
    let mut unfinished =
        UnfinishedModalSandbox { client: Arc::clone(&client), id: id.clone(), is_done: false, _names: names };
    let made = async {
        let task_id = if task_id.is_empty() { client.task_id(&id).await? } else { task_id };
        let link = Arc::new(ModalLink::new(client, id, spec.name().to_string(), task_id));
        let arguments = vec![String::new(), spec.workdir().to_string()];
        let script = NewScript { script: MAKE_WORKDIR.to_owned(), arguments, ..NewScript::default() };
        answer(&link, script).await.map_err(|error| {
            Error::new(ErrorKind::Setup, "create sandbox: make its working directory").with_source(error)
        })?;
        Ok(link)
    };
    match made.await {
        Ok(link) => Ok((unfinished, link)),
        Err(error) => {
            // A failed create has left nothing when it is told.
            if let Err(left) = unfinished.client.terminate(&unfinished.id).await {
                let message =
                    format!("create sandbox: it failed, and `{}` could not be ended: {left}", unfinished.id);
                return Err(Error::new(ErrorKind::Unavailable, message)
                    .with_hint("Modal ends it after its timeout; its list shows it")
                    .with_source(error));
            }
            unfinished.is_done = true;
            Err(error)
        }
    }
}
