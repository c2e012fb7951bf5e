//! Bodies of answers that go wrong.

use axum::body::{Body, Bytes};
use futures_util::StreamExt;

/// Returns spaces, as many as are read.
pub fn endless() -> Body {
    const PIECE: &[u8] = &[b' '; 64 << 10];
    Body::from_stream(futures_util::stream::repeat_with(|| {
        Ok::<_, std::io::Error>(Bytes::from_static(PIECE))
    }))
}

/// Returns the beginning of a body. A longer one breaks off there, and a shorter one is whole.
pub fn cut(body: Body, bytes: usize) -> Body {
    let mut left = bytes;
    let pieces = body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        if left == 0 {
            return Err(std::io::Error::other("the connection is cut"));
        }
        let kept: Bytes = piece.slice(..piece.len().min(left));
        left -= kept.len();
        Ok(kept)
    });
    Body::from_stream(pieces)
}

/// Returns the beginning of a body, and then a connection that breaks, however short the body is.
#[allow(dead_code, reason = "not every vendor's cases need it")]
pub fn broken(body: Body, bytes: usize) -> Body {
    let rest = futures_util::stream::once(async { Err(std::io::Error::other("the connection is cut")) });
    Body::from_stream(
        cut(body, bytes).into_data_stream().map(|piece| piece.map_err(std::io::Error::other)).chain(rest),
    )
}
