//! The vendor's clock, and the tokens that it signs.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The life of a token, in seconds.
const LIFE_S: f64 = 20.0 * 60.0;

/// Returns the time of a clock that is wrong by so many seconds.
pub fn now_s(skew_s: i64) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs_f64();
    now + skew_s as f64
}

/// Makes a token in the form of a JWT, of this series.
pub fn token(skew_s: i64, series: u64) -> String {
    let (made, text) = (now_s(skew_s), |text: &str| URL_SAFE_NO_PAD.encode(text));
    let payload = format!(r#"{{"iat":{made},"exp":{},"series":{series}}}"#, made + LIFE_S);
    format!("{}.{}.{}", text(r#"{"alg":"none"}"#), text(&payload), text("stand-in"))
}
