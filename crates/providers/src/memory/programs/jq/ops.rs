//! The operators of `jq` on values, and its words for what can't be done.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::rc::Rc;

use super::meter;
use super::value::{Error, JqValue, Map, ValueResult};
use super::write;

/// The bytes of a value that are shown in an error.
const SHOWN_BYTES: usize = 11;

pub(super) fn error(text: impl Into<String>) -> Error {
    Error::new(JqValue::text(text))
}

/// A value in an error: its kind, and the beginning of it.
pub(super) fn described(value: &JqValue) -> String {
    let mut text = write::compact(value);
    if text.len() > SHOWN_BYTES + 3 {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES));
        text.push_str("...");
    }
    format!("{} ({text})", value.kind())
}

pub(super) fn wrong(value: &JqValue, what: &str) -> Error {
    error(format!("{} {what}", described(value)))
}

pub(super) fn wrong_pair(one: &JqValue, two: &JqValue, what: &str) -> Error {
    error(format!("{} and {} {what}", described(one), described(two)))
}

pub(super) fn not_indexed(value: &JqValue, index: &JqValue) -> Error {
    match index {
        JqValue::JqText(key) => error(format!("Cannot index {} with string \"{}\"", value.kind(), &**key)),
        _ => error(format!("Cannot index {} with {}", value.kind(), index.kind())),
    }
}

pub(super) fn not_iterated(value: &JqValue) -> Error {
    error(format!("Cannot iterate over {}", described(value)))
}

fn merged(mut one: Rc<super::meter::MeteredValue<Map>>, two: &Map, is_deep: bool) -> ValueResult {
    for (key, value) in two {
        meter::tick();
        let map = Rc::make_mut(&mut one);
        let value = match (map.get(key), value) {
            (Some(old @ JqValue::Object(_)), new @ JqValue::Object(_)) if is_deep => {
                (old.clone() * new.clone())?
            }
            _ => value.clone(),
        };
        map.change(value.depth(), |map| map.insert(key.clone(), value));
    }
    Ok(JqValue::Object(one))
}

impl Add for JqValue {
    type Output = ValueResult;

    fn add(self, other: Self) -> ValueResult {
        meter::tick();
        match (self, other) {
            (Self::Null, value) | (value, Self::Null) => Ok(value),
            (Self::Number(one), Self::Number(two)) => Ok(Self::Number(one + two)),
            (Self::JqText(mut one), Self::JqText(two)) => {
                one.push(&two);
                Ok(Self::JqText(one))
            }
            (Self::Array(mut one), Self::Array(two)) => {
                meter::check(two.len() * size_of::<Self>());
                Rc::make_mut(&mut one).change(two.depth().saturating_sub(1), |one| {
                    one.extend(two.iter().cloned());
                });
                Ok(Self::Array(one))
            }
            (Self::Object(one), Self::Object(two)) => merged(one, &two, false),
            (one, two) => Err(wrong_pair(&one, &two, "cannot be added")),
        }
    }
}

impl Sub for JqValue {
    type Output = ValueResult;

    fn sub(self, other: Self) -> ValueResult {
        meter::tick();
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => Ok(Self::Number(one - two)),
            (Self::Array(one), Self::Array(two)) => {
                Ok(one.iter().filter(|item| !two.contains(item)).cloned().collect())
            }
            (one, two) => Err(wrong_pair(&one, &two, "cannot be subtracted")),
        }
    }
}

impl Mul for JqValue {
    type Output = ValueResult;

    fn mul(self, other: Self) -> ValueResult {
        meter::tick();
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => Ok(Self::Number(one * two)),
            (Self::JqText(text), Self::Number(count)) | (Self::Number(count), Self::JqText(text)) => {
                Ok(repeated(&text, count))
            }
            (Self::Object(one), Self::Object(two)) => merged(one, &two, true),
            (one, two) => Err(wrong_pair(&one, &two, "cannot be multiplied")),
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "more than fits is refused")]
fn repeated(text: &str, count: f64) -> JqValue {
    if count.is_nan() || count <= 0.0 {
        return JqValue::Null;
    }
    let count = count.max(1.0) as usize;
    meter::check(text.len().saturating_mul(count));
    JqValue::text(text.repeat(count))
}

impl Div for JqValue {
    type Output = ValueResult;

    fn div(self, other: Self) -> ValueResult {
        meter::tick();
        match (self, other) {
            (Self::Number(one), Self::Number(0.0)) => {
                let what = "cannot be divided because the divisor is zero";
                Err(wrong_pair(&Self::Number(one), &Self::Number(0.0), what))
            }
            (Self::Number(one), Self::Number(two)) => Ok(Self::Number(one / two)),
            (Self::JqText(text), Self::JqText(separator)) => Ok(split(&text, &separator)),
            (one, two) => Err(wrong_pair(&one, &two, "cannot be divided")),
        }
    }
}

/// The parts of a text between separators; the characters if there is none.
fn split(text: &str, separator: &str) -> JqValue {
    if text.is_empty() {
        return JqValue::array(Vec::new());
    }
    if separator.is_empty() {
        return text.chars().map(|letter| JqValue::text(letter.to_string())).collect();
    }
    text.split(separator).map(JqValue::text).collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the remainder of whole numbers"
)]
impl Rem for JqValue {
    type Output = ValueResult;

    fn rem(self, other: Self) -> ValueResult {
        match (&self, &other) {
            (Self::Number(one), Self::Number(two)) if one.is_nan() || two.is_nan() => {
                Ok(Self::Number(f64::NAN))
            }
            (Self::Number(one), Self::Number(two)) => {
                let (one, two) = (*one as i64, *two as i64);
                if two == 0 {
                    let what = "cannot be divided (remainder) because the divisor is zero";
                    return Err(wrong_pair(&self, &other, what));
                }
                Ok(Self::Number(one.wrapping_rem(two) as f64))
            }
            _ => Err(wrong_pair(&self, &other, "cannot be divided")),
        }
    }
}

impl Neg for JqValue {
    type Output = ValueResult;

    fn neg(self) -> ValueResult {
        match self {
            Self::Number(number) => Ok(Self::Number(-number)),
            other => Err(wrong(&other, "cannot be negated")),
        }
    }
}
