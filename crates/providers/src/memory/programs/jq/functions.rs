//! The filters that are functions here rather than definitions in the language of `jq`.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jaq_core::box_iter::box_once;
use jaq_core::native::{Filter, Fun, bome, unary, v};
use jaq_core::{Cv, Exn, Native, RunPtr, ValT as _, ValXs};

use super::data::Kind;
use super::library::places;
use super::meter;
use super::ops::{error, not_indexed, wrong, wrong_pair};
use super::regex;
use super::value::{Error, JqText, JqValue, ValueResult};
use super::{read, write};

/// Filters of the library that read the host, or that are replaced.
const REPLACED: [&str; 7] =
    ["env", "keys_unsorted", "implode", "debug_empty", "stderr_empty", "localtime", "strflocaltime"];

type Function = Filter<RunPtr<Kind>>;

/// Lists all filters that are functions.
pub(super) fn all() -> impl Iterator<Item = Fun<Kind>> {
    let library = jaq_core::funs().chain(jaq_std::funs());
    let library = library.filter(|(name, ..)| !REPLACED.contains(name));
    library
        .chain(ours().into_iter().map(|(name, arguments, run)| (name, arguments, Native::<Kind>::new(run))))
}

/// Makes a filter of the input alone.
macro_rules! of_input {
    ($name:literal, $function:expr) => {
        ($name, v(0), |cv| {
            let function: fn(JqValue) -> ValueResult = $function;
            bome(function(cv.1))
        })
    };
}

/// Makes a filter of the input and one argument.
macro_rules! of_argument {
    ($name:literal, $function:expr) => {
        ($name, v(1), |cv| {
            let function: fn(JqValue, JqValue) -> ValueResult = $function;
            unary(cv, function)
        })
    };
}

fn ours() -> Vec<Function> {
    let mut all = values();
    all.extend(texts());
    all.extend(context());
    all
}

fn values() -> Vec<Function> {
    vec![
        of_input!("__type", |value| Ok(JqValue::text(value.kind()))),
        of_input!("__nan", |_| Ok(JqValue::Number(f64::NAN))),
        of_input!("__infinite", |_| Ok(JqValue::Number(f64::INFINITY))),
        of_input!("__isnan", |value| Ok(matches!(value, JqValue::Number(number) if number.is_nan()).into())),
        of_argument!("__fail", |value, what| match what {
            JqValue::JqText(what) => Err(wrong(&value, &what)),
            _ => Err(wrong(&value, "is wrong")),
        }),
        of_input!("length", length),
        of_input!("keys_unsorted", |value| keys(value, false)),
        of_input!("keys", |value| keys(value, true)),
        of_argument!("has", has),
        of_argument!("contains", contains),
        of_argument!("indices", indices),
        of_argument!("bsearch", bsearch),
        of_argument!("__delpath", |value, path| match path {
            JqValue::Array(path) => delete(value, &path),
            _ => Err(error("Path must be specified as an array")),
        }),
    ]
}

fn texts() -> Vec<Function> {
    vec![
        of_input!("tojson", |value| Ok(JqValue::text(write::compact(&value)))),
        of_input!("fromjson", from_json),
        of_input!("tonumber", to_number),
        of_input!("implode", implode),
        of_argument!("__join", join),
        of_input!("__escape_html", |value| map_text(value, html)),
        of_input!("__escape_uri", |value| map_text(value, uri)),
        of_input!("__escape_tsv", |value| map_text(value, tsv)),
        of_input!("__decode_base64", from_base64),
        of_input!("__encode_base32", |value| map_text(value, to_base32)),
        of_input!("__decode_base32", from_base32),
        ("__match", v(3), |mut cv| {
            let is_test = cv.0.pop_var();
            let flags = cv.0.pop_var();
            let pattern = cv.0.pop_var();
            each(regex::matches(&cv.1, &pattern, &flags, is_test.is_true()))
        }),
        ("__pieces", v(2), |mut cv| {
            let flags = cv.0.pop_var();
            let pattern = cv.0.pop_var();
            bome(regex::pieces(&cv.1, &pattern, &flags))
        }),
    ]
}

fn each<'a>(values: Result<Vec<JqValue>, Error>) -> ValXs<'a, JqValue> {
    match values {
        Ok(values) => Box::new(values.into_iter().map(Ok)),
        Err(wrong) => box_once(Err(Exn::from(wrong))),
    }
}

/// Filters that look at the run, or print beside it.
fn context() -> Vec<Function> {
    vec![
        ("__env", v(0), |cv| box_once(Ok(cv.0.data().state.env.clone()))),
        ("__input_filename", v(0), |cv| box_once(Ok(cv.0.data().state.inputs.file()))),
        ("__input_line_number", v(0), |cv| box_once(Ok(cv.0.data().state.inputs.line()))),
        ("input", v(0), |cv| box_once(next(&cv).unwrap_or_else(|| Err(error("No more inputs").into())))),
        ("inputs", v(0), |cv| Box::new(std::iter::from_fn(move || next(&cv)))),
        ("debug_empty", v(0), |cv| {
            cv.0.data().state.printer.tell(&format!("[\"DEBUG:\",{}]\n", write::compact(&cv.1)));
            Box::new(std::iter::empty())
        }),
        ("stderr_empty", v(0), |cv| {
            cv.0.data().state.printer.tell(&write::compact(&cv.1));
            Box::new(std::iter::empty())
        }),
        ("__stderr_text", v(0), |cv| {
            if let JqValue::JqText(text) = &cv.1 {
                cv.0.data().state.printer.tell(text);
            }
            Box::new(std::iter::empty())
        }),
    ]
}

fn next<'a>(cv: &Cv<'a, Kind>) -> Option<jaq_core::ValX<'a, JqValue>> {
    let next = cv.0.data().state.inputs.next();
    next.map_err(|wrong| Exn::from(error(wrong))).transpose()
}

fn length(value: JqValue) -> ValueResult {
    Ok(match &value {
        JqValue::Null => JqValue::from(0_usize),
        JqValue::Bool(_) => return Err(wrong(&value, "has no length")),
        JqValue::Number(number) => JqValue::Number(number.abs()),
        JqValue::JqText(text) => JqValue::from(text.chars().count()),
        JqValue::Array(items) => JqValue::from(items.len()),
        JqValue::Object(map) => JqValue::from(map.len()),
    })
}

fn keys(value: JqValue, is_sorted: bool) -> ValueResult {
    match &value {
        JqValue::Array(items) => Ok((0..items.len()).map(JqValue::from).collect()),
        JqValue::Object(map) => {
            let mut keys: Vec<JqText> = map.keys().cloned().collect();
            if is_sorted {
                keys.sort_unstable();
            }
            Ok(keys.into_iter().map(JqValue::JqText).collect())
        }
        _ => Err(wrong(&value, "has no keys")),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a length")]
fn has(value: JqValue, key: JqValue) -> ValueResult {
    match (&value, &key) {
        (JqValue::Object(map), JqValue::JqText(key)) => Ok(map.contains_key(key).into()),
        (JqValue::Array(items), JqValue::Number(at)) => Ok((*at >= 0.0 && *at < items.len() as f64).into()),
        _ => Err(error(format!("Cannot check whether {} has a {} key", value.kind(), key.kind()))),
    }
}

fn contains(value: JqValue, part: JqValue) -> ValueResult {
    if value.kind() != part.kind() {
        return Err(wrong_pair(&value, &part, "cannot have their containment checked"));
    }
    Ok(holds(&value, &part).into())
}

fn holds(value: &JqValue, part: &JqValue) -> bool {
    meter::tick();
    match (value, part) {
        (JqValue::Object(map), JqValue::Object(part)) => {
            part.iter().all(|(key, part)| map.get(key).is_some_and(|value| holds(value, part)))
        }
        (JqValue::Array(items), JqValue::Array(part)) => {
            part.iter().all(|part| items.iter().any(|item| holds(item, part)))
        }
        (JqValue::JqText(text), JqValue::JqText(part)) => text.contains(&**part),
        _ => value == part,
    }
}

fn indices(value: JqValue, wanted: JqValue) -> ValueResult {
    match (&value, &wanted) {
        (JqValue::Null, _) => Ok(JqValue::Null),
        (JqValue::JqText(_), JqValue::JqText(wanted)) if wanted.is_empty() => Ok(JqValue::Null),
        (JqValue::JqText(text), JqValue::JqText(wanted)) => {
            let (mut letters, mut at, mut from) = (0, 0, 0);
            let mut all = Vec::new();
            while let Some(found) = text[from..].find(&**wanted).map(|found| from + found) {
                meter::tick();
                letters += text[at..found].chars().count();
                at = found;
                all.push(JqValue::from(letters));
                from = found + text[found..].chars().next().map_or(1, char::len_utf8);
            }
            Ok(JqValue::array(all))
        }
        (JqValue::Array(items), JqValue::Array(wanted)) => Ok(places(items, wanted)),
        (JqValue::Array(items), wanted) => Ok(places(items, std::slice::from_ref(wanted))),
        _ => Err(not_indexed(&value, &wanted)),
    }
}

fn bsearch(value: JqValue, wanted: JqValue) -> ValueResult {
    let JqValue::Array(items) = &value else { return Err(wrong(&value, "cannot be searched from")) };
    let signed = |at: usize| isize::try_from(at).unwrap_or(isize::MAX);
    Ok(JqValue::from(match items.binary_search(&wanted) {
        Ok(at) => signed(at),
        Err(at) => -1 - signed(at),
    }))
}

/// Takes away what is at a path.
fn delete(value: JqValue, path: &[JqValue]) -> ValueResult {
    meter::tick();
    let Some((first, rest)) = path.split_first() else { return Ok(JqValue::Null) };
    match &value {
        JqValue::Null => return Ok(JqValue::Null),
        JqValue::Object(map) if matches!(first, JqValue::JqText(key) if !map.contains_key(key)) => {
            return Ok(value);
        }
        JqValue::Array(items) => {
            let is_there = |at: f64| at.abs() <= f64::MAX && has_item(items.len(), at);
            if matches!(first, JqValue::Number(at) if !is_there(*at)) {
                return Ok(value);
            }
        }
        _ => {}
    }
    let essential = jaq_core::path::Opt::Essential;
    let changed = if rest.is_empty() {
        value.map_index(first, essential, |_| std::iter::empty())
    } else {
        value.map_index(first, essential, |value| std::iter::once(delete(value, rest).map_err(Exn::from)))
    };
    let refused = |_| error("Cannot delete the path");
    changed.map_err(|exception| exception.get_err().unwrap_or_else(refused))
}

#[allow(clippy::cast_precision_loss, reason = "a length")]
fn has_item(len: usize, at: f64) -> bool {
    let at = if at < 0.0 { at.floor() + len as f64 } else { at };
    at >= 0.0 && at < len as f64
}

fn from_json(value: JqValue) -> ValueResult {
    let JqValue::JqText(text) = &value else { return Err(wrong(&value, "only strings can be parsed")) };
    match read::one(text) {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(what) => Err(error(format!("{what} (while parsing '{}')", &**text))),
    }
}

fn to_number(value: JqValue) -> ValueResult {
    match &value {
        JqValue::Number(_) => Ok(value),
        JqValue::JqText(text) => match read::one(text) {
            Ok(Some(value @ JqValue::Number(_))) => Ok(value),
            Ok(_) => Err(wrong(&value, "cannot be parsed as a number")),
            Err(what) => Err(error(format!("{what} (while parsing '{}')", &**text))),
        },
        _ => Err(wrong(&value, "cannot be parsed as a number")),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is no letter is replaced")]
fn implode(value: JqValue) -> ValueResult {
    let JqValue::Array(items) = &value else {
        return Err(wrong(&value, "cannot be imploded, must be an array of codepoints"));
    };
    let letter = |item: &JqValue| match item {
        JqValue::Number(code) => Ok(char::from_u32(*code as u32).unwrap_or(char::REPLACEMENT_CHARACTER)),
        _ => Err(error("Unicode codepoint must be numeric")),
    };
    items.iter().map(letter).collect::<Result<String, Error>>().map(JqValue::text)
}

fn join(value: JqValue, separator: JqValue) -> ValueResult {
    let mut joined = JqValue::text("");
    for (at, part) in value.values().enumerate() {
        if at > 0 {
            joined = (joined + separator.clone())?;
        }
        joined = (joined
            + match part? {
                JqValue::Null => JqValue::text(""),
                part @ (JqValue::Bool(_) | JqValue::Number(_)) => part.into_string(),
                part => part,
            })?;
    }
    Ok(joined)
}

fn map_text(value: JqValue, change: fn(&str) -> String) -> ValueResult {
    match &value {
        JqValue::JqText(text) => Ok(JqValue::text(change(text))),
        _ => Err(wrong(&value, "is not a string")),
    }
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}

fn uri(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

fn tsv(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\r', "\\r").replace('\n', "\\n")
}

fn from_base64(value: JqValue) -> ValueResult {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let JqValue::JqText(text) = &value else { return Err(wrong(&value, "is not a string")) };
    let decoded = GeneralPurpose::new(&STANDARD, config).decode(text.as_bytes());
    let bytes = decoded.map_err(|_| wrong(&value, "is not valid base64 data"))?;
    Ok(JqValue::text(String::from_utf8_lossy(&bytes)))
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn to_base32(text: &str) -> String {
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(5) {
        let mut bits = [0; 8];
        bits[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(bits);
        let letters = (chunk.len() * 8).div_ceil(5);
        for at in 0..8 {
            let index = usize::try_from(bits >> (35 - 5 * at) & 31).unwrap_or(0);
            out.push(if at < letters { char::from(BASE32[index]) } else { '=' });
        }
    }
    out
}

fn from_base32(value: JqValue) -> ValueResult {
    let JqValue::JqText(text) = &value else { return Err(wrong(&value, "is not a string")) };
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.trim_end_matches('=').bytes() {
        let at = BASE32.iter().position(|known| *known == letter);
        let five = at.and_then(|at| u32::try_from(at).ok());
        let five = five.ok_or_else(|| wrong(&value, "is not valid base32 data"))?;
        (bits, count) = ((bits << 5 | five) & 0xfff, count + 5);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or(0));
        }
    }
    Ok(JqValue::text(String::from_utf8_lossy(&bytes)))
}
