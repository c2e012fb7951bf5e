//! The answer of a server's tool: a text in the forms of the reference, and the images that it names.

use eyot_tools::{ToolContent, clip};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde::Deserialize;
use serde_json::Value;

/// Returns the content of an answer: its text, clipped as every tool's is, and behind it its images. The text names images and
/// sound by type and size.
pub(super) fn content(result: &CallToolResult) -> Vec<ToolContent> {
    let text = joined(result.structured_content.as_ref(), result.content.iter().map(part));
    with_images(text, result.content.iter())
}

/// Returns the text of an answer with content of an unknown kind, which is shown as JSON, and whether the answer is an error.
/// `None`: the value is not the answer of a tool.
pub(super) fn content_of_unknown(result: &Value) -> Option<(Vec<ToolContent>, bool)> {
    let content = result.get("content")?.as_array()?;
    let blocks: Vec<_> =
        content.iter().map(|item| ContentBlock::deserialize(item).map_err(|_| item)).collect();
    let parts = blocks.iter().map(|block| block.as_ref().map_or_else(|item| item.to_string(), part));
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let text = joined(result.get("structuredContent"), parts);
    Some((with_images(text, blocks.iter().filter_map(|block| block.as_ref().ok())), is_error))
}

fn with_images<'a>(text: String, blocks: impl Iterator<Item = &'a ContentBlock>) -> Vec<ToolContent> {
    [ToolContent::Text(text)].into_iter().chain(blocks.filter_map(image)).collect()
}

fn image(block: &ContentBlock) -> Option<ToolContent> {
    let (data, mime_type) = match block {
        ContentBlock::Image(image) => (&image.data, &image.mime_type),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::BlobResourceContents { blob, mime_type: Some(mime_type), .. }
                if mime_type.starts_with("image/") =>
            {
                (blob, mime_type)
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(ToolContent::Image { data: data.clone(), mime_type: mime_type.clone() })
}

fn joined(structured: Option<&Value>, content: impl Iterator<Item = String>) -> String {
    // `{:#}` prints the same as JavaScript with an indent of 2.
    let mut parts: Vec<String> =
        structured.map(|structured| format!("Structured content:\n{structured:#}")).into_iter().collect();
    parts.extend(content);
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        return "(MCP tool returned no content)".to_owned();
    }
    clip(&parts.join("\n\n"), |_| "ask the tool for less, or for a part".to_owned())
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!("[Image: {}, {} base64 chars]", image.mime_type, image.data.len())
        }
        ContentBlock::Audio(audio) => {
            format!("[Audio: {}, {} base64 chars]", audio.mime_type, audio.data.len())
        }
        ContentBlock::Resource(resource) => embedded(&resource.resource),
        ContentBlock::ResourceLink(link) => linked(link),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

fn embedded(resource: &ResourceContents) -> String {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[Resource: {uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, blob, .. } => {
            format!("[Resource: {uri}, {} base64 chars]", blob.len())
        }
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

fn linked(link: &Resource) -> String {
    let description = link.description.as_deref().filter(|description| !description.is_empty());
    let description = description.map(|description| format!(" - {description}")).unwrap_or_default();
    format!("[Resource link: {} ({}){description}]", link.name, link.uri)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text_of(result: Value) -> String {
        match content(&serde_json::from_value(result).unwrap()).remove(0) {
            ToolContent::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_kind_of_content_has_its_form() {
        let answer = text_of(json!({
            "structuredContent": {"a": [1, {}], "b": "ä"},
            "content": [
                {"type": "text", "text": "one"},
                {"type": "text", "text": ""},
                {"type": "image", "mimeType": "image/png", "data": "QUJD"},
                {"type": "audio", "mimeType": "audio/wav", "data": "QUI="},
                {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "a://c", "blob": "QUJDRA=="}},
                {"type": "resource_link", "uri": "a://d", "name": "d"},
                {"type": "resource_link", "uri": "a://e", "name": "e", "description": "the e"},
            ],
        }));
        let expected = [
            "Structured content:\n{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"ä\"\n}",
            "one",
            "[Image: image/png, 4 base64 chars]",
            "[Audio: audio/wav, 4 base64 chars]",
            "[Resource: a://b]\ninside",
            "[Resource: a://c, 8 base64 chars]",
            "[Resource link: d (a://d)]",
            "[Resource link: e (a://e) - the e]",
        ];
        assert_eq!(answer, expected.join("\n\n"));
    }

    #[test]
    fn no_content_is_said() {
        for empty in [json!({"content": []}), json!({"content": [{"type": "text", "text": ""}]})] {
            assert_eq!(text_of(empty), "(MCP tool returned no content)");
        }
        assert_eq!(text_of(json!({"structuredContent": null, "content": []})), "Structured content:\nnull");
    }

    #[test]
    fn an_enormous_answer_keeps_its_ends() {
        let long = format!("begin{}end", "x".repeat(1 << 20));
        let answer = text_of(json!({"content": [{"type": "text", "text": long}]}));
        assert!(answer.len() < 80 << 10 && answer.starts_with("begin") && answer.ends_with("end"));
        assert!(answer.contains("ask the tool for less"));
    }
}
