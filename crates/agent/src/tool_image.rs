//! Images in the answers of tools, as a conversation keeps them: only such as models' APIs take. Any other one would make each
//! later request of the conversation fail.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::message::ContentBlock;

/// The largest image that is sent, as base64: Anthropic takes no larger one.
const MAX_IMAGE_CHARS: usize = 5 << 20;

/// The image as a piece of a message, or a note in its place. The bytes say of which type it is.
pub(crate) fn image_block(data: &str, declared_type: &str) -> ContentBlock {
    if data.len() > MAX_IMAGE_CHARS {
        let most = MAX_IMAGE_CHARS >> 20;
        return left_out(&format!("as base64 it has more than {most} MiB"));
    }
    let Ok(bytes) = STANDARD.decode(data) else { return left_out("it is not base64") };
    match type_of(&bytes) {
        Some(mime_type) => ContentBlock::Image { data: data.to_owned(), mime_type: mime_type.to_owned() },
        None => {
            let declared: String = declared_type.chars().take(60).collect();
            left_out(&format!("`{declared}` is no PNG, JPEG, GIF or WebP"))
        }
    }
}

fn left_out(reason: &str) -> ContentBlock {
    ContentBlock::text(format!("(an image is left out: {reason})"))
}

/// The type of an image by its first bytes.
fn type_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
