//! The parts of the API's document that hold for every route: who may call it, where it is, and what generators and linters of
//! clients need that no handler says.

use eyot::wire::{Problem, SocketControl, SocketEvent};
use serde_json::Value;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, OneOf, SchemaFormat, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, PathItem, RefOr, Response, Schema};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(info(title = "Eyot", description = "Computers for AI agents, over HTTP."), security(("key" = [])),
    servers((url = "/", description = "The server that this document comes from")),
    components(schemas(Problem, SocketControl, SocketEvent)), modifiers(&KeyScheme))]
pub(super) struct ApiDocument;

/// Adds the security scheme to the document: a key is sent as a bearer token.
struct KeyScheme;

impl Modify for KeyScheme {
    fn modify(&self, document: &mut Document) {
        let scheme = Http::builder()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("`eyot keys create NAME` makes one."));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme.build()));
    }
}

/// Completes the document of all routes.
pub(super) fn complete(mut document: Document) -> Document {
    let schemas =
        document.components.as_ref().map(|components| components.schemas.clone()).unwrap_or_default();
    let describe = |name: &str| schemas.get(name).and_then(first_line);
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        name_after_tag(operation);
        let bodies =
            operation.request_body.iter_mut().filter_map(inline).flat_map(|body| body.content.values_mut());
        bodies
            .filter_map(inline)
            .for_each(|content| content.schema = content.schema.take().or(Some(bytes())));
        for (status, response) in &mut operation.responses.responses {
            if let RefOr::T(response) = response {
                complete_response(status, response, &describe);
            }
        }
    }
    let schemas = document.components.iter_mut().flat_map(|components| components.schemas.values_mut());
    schemas.for_each(tell_defaults_in);
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, head, .. } = item;
    [get, put, post, delete, patch, head].into_iter().flatten()
}

fn inline<T>(value: &mut RefOr<T>) -> Option<&mut T> {
    match value {
        RefOr::T(value) => Some(value),
        RefOr::Ref(_) => None,
    }
}

/// Names an operation after its tag too: two handlers of one name are of different tags.
fn name_after_tag(operation: &mut Operation) {
    let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
    operation.operation_id = operation.operation_id.take().map(|id| format!("{tag}_{id}"));
}

/// Gives a response a description, which every response must have, and each of its bodies a schema.
fn complete_response(status: &str, response: &mut Response, describe: &impl Fn(&str) -> Option<String>) {
    for (media_type, content) in &mut response.content {
        if let RefOr::T(content @ Content { schema: None, .. }) = content {
            content.schema = Some(if media_type.starts_with("text/") { text() } else { bytes() });
        }
    }
    if response.description.is_empty() {
        let schema =
            response.content.values_mut().filter_map(inline).find_map(|content| content.schema.as_ref());
        let name = schema.and_then(|schema| match schema {
            RefOr::Ref(schema) => schema.ref_location.rsplit('/').next(),
            RefOr::T(_) => None,
        });
        response.description =
            name.and_then(describe).unwrap_or_else(|| usual_description(status).to_owned());
    }
}

fn usual_description(status: &str) -> &'static str {
    match status {
        "201" => "Created",
        "204" => "Done",
        _ => "Success",
    }
}

/// Returns the first line of a schema's description.
fn first_line(schema: &RefOr<Schema>) -> Option<String> {
    let RefOr::T(schema) = schema else { return None };
    let description = match schema {
        Schema::Object(schema) => schema.description.as_ref(),
        Schema::OneOf(schema) => schema.description.as_ref(),
        _ => None,
    };
    description.and_then(|text| text.lines().next()).map(str::to_owned)
}

fn text() -> RefOr<Schema> {
    RefOr::T(Schema::Object(Object::with_type(Type::String)))
}

fn bytes() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
    RefOr::T(ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into())
}

/// Says the defaults of a schema's fields in their descriptions instead of as `default`. Generators
/// take a field with a `default` for one that is always there, and have their users send it.
fn tell_defaults_in(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(Object { properties, .. })) => properties.values_mut().for_each(tell_default),
        RefOr::T(Schema::OneOf(OneOf { items, .. })) => items.iter_mut().for_each(tell_defaults_in),
        _ => {}
    }
}

fn tell_default(property: &mut RefOr<Schema>) {
    match property {
        RefOr::Ref(field) => {
            let text = with_default(std::mem::take(&mut field.description), field.default.take());
            field.description = text;
        }
        RefOr::T(Schema::Object(field)) => {
            let text = with_default(field.description.take().unwrap_or_default(), field.default.take());
            field.description = Some(text).filter(|text| !text.is_empty());
        }
        RefOr::T(Schema::Array(field)) => {
            let text = with_default(field.description.take().unwrap_or_default(), field.default.take());
            field.description = Some(text).filter(|text| !text.is_empty());
        }
        RefOr::T(Schema::OneOf(field)) => {
            let text = with_default(field.description.take().unwrap_or_default(), field.default.take());
            field.description = Some(text).filter(|text| !text.is_empty());
        }
        RefOr::T(_) => {}
    }
}

/// Adds a default to a description that does not speak of one. An empty or composed default says
/// nothing that its fields do not.
fn with_default(description: String, default: Option<Value>) -> String {
    let is_worth_it = |value: &Value| match value {
        Value::Null | Value::Object(_) => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    match default.filter(is_worth_it) {
        Some(default) if !description.contains("default") => {
            format!("{description} By default `{default}`.").trim_start().to_owned()
        }
        _ => description,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_default_is_told_once_and_only_if_it_says_something() {
        let with = |text: &str, default| with_default(text.to_owned(), Some(default));
        assert_eq!(with("Whether.", json!(false)), "Whether. By default `false`.");
        assert_eq!(with("By default none.", json!(false)), "By default none.");
        assert_eq!(with("A.", json!(["ALL"])), "A. By default `[\"ALL\"]`.");
        for empty in [json!(null), json!([]), json!({ "a": 1 })] {
            assert_eq!(with("A.", empty), "A.");
        }
    }
}
