//! The documents (OpenAPI 3.1) of the routers.

use axum::Json;
use axum::extract::OriginalUri;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, Server};
use utoipa::{Modify, OpenApi};

use super::{admin as inspection, invoke, runs};

/// Returns the document (OpenAPI 3.1) of [`super::router`].
pub fn public_document() -> Document {
    PublicDocument::openapi()
}

/// Returns the document (OpenAPI 3.1) of [`super::admin_router`].
pub fn admin_document() -> Document {
    AdminDocument::openapi()
}

/// Serves the document of the public routes.
pub(super) async fn public(OriginalUri(asked): OriginalUri) -> Json<Document> {
    Json(at(public_document(), asked.path()))
}

/// Serves the document of the admin routes.
pub(super) async fn admin(OriginalUri(asked): OriginalUri) -> Json<Document> {
    Json(at(admin_document(), asked.path()))
}

/// Tells where the routes are, from the path at which the document was asked for.
fn at(mut document: Document, path: &str) -> Document {
    let base = ["/agents/openapi.json", "/openapi.json"].iter().find_map(|end| path.strip_suffix(end));
    let base = base.filter(|base| !base.is_empty()).unwrap_or("/");
    document.servers = Some(vec![Server::new(base)]);
    document
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Flue Public API", description = "Starts agents and shows their runs. Served by Eyot.", license(name = "Apache-2.0", identifier = "Apache-2.0")),
    paths(invoke::invoke, runs::get, runs::events, runs::stream),
    tags((name = "agents", description = "Agents"), (name = "runs", description = "Runs of agents")),
    security((), ("key" = [])),
    modifiers(&BearerKey),
)]
struct PublicDocument;

#[derive(OpenApi)]
#[openapi(
    info(title = "Flue Admin API", description = "Lists agents, their instances and their runs. Served by Eyot.", license(name = "Apache-2.0", identifier = "Apache-2.0")),
    paths(inspection::agents, inspection::instances, inspection::instance_runs, inspection::runs, runs::get, runs::events, runs::stream),
    tags((name = "admin", description = "Inspection"), (name = "runs", description = "Runs of agents")),
    security((), ("key" = [])),
    modifiers(&BearerKey),
)]
struct AdminDocument;

/// Adds the key that a server of the routes may ask for. The routers themselves let everybody in.
struct BearerKey;

impl Modify for BearerKey {
    fn modify(&self, document: &mut Document) {
        let key = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The program that serves the routes may ask for a key. `eyot keys create NAME` makes one of `eyot serve`."))
            .build();
        document.components.get_or_insert_default().add_security_scheme("key", SecurityScheme::Http(key));
    }
}
