//! Bodies in parts (`multipart/form-data`), as clients send them and as the toolbox answers.

use axum::http::{HeaderMap, header};

/// A part of a body.
pub struct Part {
    pub name: String,
    pub file_name: String,
    pub content: Vec<u8>,
}

/// Reads the parts of a body; `None`: it has none.
pub fn read(headers: &HeaderMap, body: &[u8]) -> Option<Vec<Part>> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let boundary = kind.split("boundary=").nth(1)?.split(';').next()?.trim_matches('"');
    let (first, between) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let mut rest = &body[find(body, first.as_bytes())? + first.len()..];
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        rest = rest.strip_prefix(b"\r\n")?;
        let head_end = find(rest, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&rest[..head_end]).into_owned();
        rest = &rest[head_end + 4..];
        let end = find(rest, between.as_bytes())?;
        let field = |name: &str| {
            let at = head.find(&format!(" {name}=\""))? + name.len() + 3;
            Some(head[at..].split('"').next()?.to_owned())
        };
        parts.push(Part {
            name: field("name")?,
            file_name: field("filename").unwrap_or_default(),
            content: rest[..end].to_vec(),
        });
        rest = &rest[end + between.len()..];
    }
    Some(parts)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The boundary of what the toolbox answers.
pub const BOUNDARY: &str = "DAYTONA-FILE-BOUNDARY";

/// Writes parts.
pub fn write(parts: &[Part]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        let (name, file_name, length) = (&part.name, &part.file_name, part.content.len());
        let head = format!(
            "--{BOUNDARY}\r\nContent-Type: application/octet-stream\r\nContent-Disposition: form-data; \
             name=\"{name}\"; filename=\"{file_name}\"\r\nContent-Length: {length}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}
