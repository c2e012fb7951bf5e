//! What the library wants to know of values: their parts, and changes of these.

use std::rc::Rc;

use jaq_core::box_iter::box_once;
use jaq_core::path::Opt;
use jaq_core::val::{Range, ValX};
use jaq_core::{Exn, ValT};

use super::meter::{self, MeteredValue};
use super::ops::{error, not_indexed, not_iterated};
use super::value::{Error, JqText, JqValue, Map, ValueResult};

type Pairs = jaq_core::box_iter::BoxIter<'static, Result<(JqValue, JqValue), Error>>;

/// The farthest that an array grows by one index.
const MAX_INDEX: f64 = 536_870_911.0;

fn unshared<T: super::meter::Footprint + Clone + Default>(shared: Rc<MeteredValue<T>>) -> T {
    Rc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone()).into_inner()
}

/// The place in an array that a number means, from the end if it is negative.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "checked before"
)]
fn place(index: f64, len: usize) -> Option<usize> {
    let index = index.floor();
    let index = if index < 0.0 { index + len as f64 } else { index };
    (0.0..=MAX_INDEX).contains(&index).then_some(index as usize)
}

/// The bounds of a slice, within a length.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "clamped before"
)]
fn bounds(range: &Range<&JqValue>, len: usize) -> Result<std::ops::Range<usize>, Error> {
    let bound = |value: Option<&JqValue>, default: f64, round: fn(f64) -> f64| match value {
        None | Some(JqValue::Null) => Ok(default),
        Some(JqValue::Number(number)) => {
            let number = if *number < 0.0 { number + len as f64 } else { *number };
            Ok(round(number).clamp(0.0, len as f64))
        }
        Some(_) => Err(error("Start and end indices of an array slice must be numbers")),
    };
    let start = bound(range.start, 0.0, f64::floor)? as usize;
    let end = bound(range.end, len as f64, f64::ceil)? as usize;
    Ok(start..end.max(start))
}

fn byte_at(text: &str, letters: usize) -> usize {
    text.char_indices().nth(letters).map_or(text.len(), |(at, _)| at)
}

fn slice(value: &JqValue, range: &Range<&JqValue>) -> ValueResult {
    match value {
        JqValue::Null => Ok(JqValue::Null),
        JqValue::Array(items) => {
            let bounds = bounds(range, items.len())?;
            Ok(items[bounds].iter().cloned().collect())
        }
        JqValue::JqText(text) => {
            let bounds = bounds(range, text.chars().count())?;
            let start = byte_at(text, bounds.start);
            let end = start + byte_at(&text[start..], bounds.len());
            Ok(JqValue::text(&text[start..end]))
        }
        other => Err(not_indexed(other, &JqValue::object(Map::default()))),
    }
}

/// The range that an object means as an index.
fn range_of(map: &Map) -> Range<&JqValue> {
    map.get("start")..map.get("end")
}

/// The places at which an array has the items of another.
pub(super) fn places(items: &[JqValue], wanted: &[JqValue]) -> JqValue {
    if wanted.is_empty() {
        return JqValue::Null;
    }
    let windows = items.windows(wanted.len()).enumerate();
    windows.filter(|(_, window)| *window == wanted).map(|(at, _)| JqValue::from(at)).collect()
}

impl ValT for JqValue {
    fn from_num(number: &str) -> ValueResult {
        number.parse().map(Self::Number).map_err(|_| error(format!("Invalid numeric literal: {number}")))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(pairs: I) -> ValueResult {
        let mut map = Map::default();
        for (key, value) in pairs {
            let Self::JqText(key) = key else {
                return Err(error(format!("Cannot use {} as object key", super::ops::described(&key))));
            };
            map.insert(key, value);
        }
        Ok(Self::object(map))
    }

    fn key_values(self) -> Pairs {
        meter::tick();
        match self {
            Self::Array(items) => {
                Box::new(unshared(items).into_iter().enumerate().map(|(at, item)| Ok((Self::from(at), item))))
            }
            Self::Object(map) => {
                Box::new(unshared(map).into_iter().map(|(key, value)| Ok((Self::JqText(key), value))))
            }
            other => box_once(Err(not_iterated(&other))),
        }
    }

    fn values(self) -> Box<dyn Iterator<Item = ValueResult>> {
        meter::tick();
        match self {
            Self::Array(items) => Box::new(unshared(items).into_iter().map(Ok)),
            Self::Object(map) => Box::new(unshared(map).into_values().map(Ok)),
            other => box_once(Err(not_iterated(&other))),
        }
    }

    fn index(self, index: &Self) -> ValueResult {
        meter::tick();
        if matches!(self, Self::Null) {
            meter::null_step();
        }
        match (&self, index) {
            (Self::Null, Self::Null | Self::JqText(_) | Self::Number(_)) => Ok(Self::Null),
            (Self::Object(map), Self::JqText(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
            (Self::Array(items), Self::Number(at)) => {
                Ok(place(*at, items.len()).and_then(|at| items.get(at)).cloned().unwrap_or_default())
            }
            (Self::Array(items), Self::Array(wanted)) => Ok(places(items, wanted)),
            (Self::Null | Self::Array(_) | Self::JqText(_), Self::Object(map)) => {
                slice(&self, &range_of(map))
            }
            _ => Err(not_indexed(&self, index)),
        }
    }

    fn range(self, range: Range<&Self>) -> ValueResult {
        meter::tick();
        if matches!(self, Self::Null) {
            meter::null_step();
        }
        slice(&self, &range)
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        opt: Opt,
        change: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        meter::tick();
        match self {
            Self::Array(items) => {
                unshared(items).into_iter().filter_map(|item| change(item).next()).collect()
            }
            Self::Object(map) => {
                let changed = |(key, value)| change(value).next().map(|value| Ok((key, value?)));
                let map: Result<Map, Exn<'a, Self>> = unshared(map).into_iter().filter_map(changed).collect();
                map.map(Self::object)
            }
            other => opt.fail(other, |other| not_iterated(&other).into()),
        }
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        index: &Self,
        opt: Opt,
        change: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        meter::tick();
        match (self, index) {
            (Self::Null, Self::JqText(key)) => {
                let changed = change_field(Rc::new(MeteredValue::new(Map::default())), key, change)?;
                // Nothing was put in: it stays what it was.
                Ok(if matches!(&changed, Self::Object(map) if map.is_empty()) { Self::Null } else { changed })
            }
            (Self::Object(map), Self::JqText(key)) => change_field(map, key, change),
            (Self::Null, Self::Number(at)) => {
                let changed = change_item(Rc::new(MeteredValue::new(Vec::new())), *at, change)?;
                Ok(if matches!(&changed, Self::Array(items) if items.is_empty()) {
                    Self::Null
                } else {
                    changed
                })
            }
            (Self::Array(items), Self::Number(at)) => change_item(items, *at, change),
            (value @ (Self::Null | Self::Array(_)), Self::Object(map)) => {
                value.map_range(range_of(map), opt, change)
            }
            (other, _) => opt.fail(other, |other| not_indexed(&other, index).into()),
        }
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        range: Range<&Self>,
        opt: Opt,
        change: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        meter::tick();
        let items = match &self {
            Self::Array(items) => items.clone(),
            Self::Null => Rc::new(MeteredValue::new(Vec::new())),
            other => {
                let refused = not_indexed(other, &Self::object(Map::default()));
                return opt.fail(self, |_| refused.into());
            }
        };
        let bounds = bounds(&range, items.len())?;
        let old: Self = if matches!(self, Self::Null) {
            Self::Null
        } else {
            items[bounds.clone()].iter().cloned().collect()
        };
        let new = match change(old).next().transpose()? {
            Some(Self::Array(new)) => new.iter().cloned().collect(),
            None => Vec::new(),
            Some(_) => return Err(error("A slice of an array can only be assigned another array").into()),
        };
        let (before, after) = (&items[..bounds.start], &items[bounds.end..]);
        Ok(before.iter().cloned().chain(new).chain(after.iter().cloned()).collect())
    }

    fn as_bool(&self) -> bool {
        meter::tick();
        self.is_true()
    }

    fn into_string(self) -> Self {
        match self {
            Self::JqText(text) => Self::JqText(text),
            other => Self::text(super::write::compact(&other)),
        }
    }
}

fn change_field<'a, I: Iterator<Item = ValX<'a, JqValue>>>(
    mut map: Rc<MeteredValue<Map>>,
    key: &JqText,
    change: impl Fn(JqValue) -> I,
) -> ValX<'a, JqValue> {
    // The value is taken out meanwhile, so that it can be changed in place.
    let old = Rc::make_mut(&mut map).change(0, |map| map.get_mut(key).map(std::mem::take));
    let is_there = old.is_some();
    match change(old.unwrap_or_default()).next().transpose()? {
        Some(new) => {
            Rc::make_mut(&mut map).change(new.depth(), |map| map.insert(key.clone(), new));
        }
        None if is_there => {
            Rc::make_mut(&mut map).change(0, |map| map.shift_remove(key));
        }
        None => {}
    }
    Ok(JqValue::Object(map))
}

fn change_item<'a, I: Iterator<Item = ValX<'a, JqValue>>>(
    mut items: Rc<MeteredValue<Vec<JqValue>>>,
    index: f64,
    change: impl Fn(JqValue) -> I,
) -> ValX<'a, JqValue> {
    let Some(at) = place(index, items.len()) else {
        let text = if index > 0.0 { "Array index too large" } else { "Out of bounds negative array index" };
        return Err(error(text).into());
    };
    let old = Rc::make_mut(&mut items).change(0, |items| items.get_mut(at).map(std::mem::take));
    let is_there = old.is_some();
    match change(old.unwrap_or_default()).next().transpose()? {
        Some(new) => {
            if at >= items.len() {
                meter::check((at - items.len()) * size_of::<JqValue>() * 2);
            }
            Rc::make_mut(&mut items).change(new.depth(), |items| {
                if at >= items.len() {
                    items.resize(at + 1, JqValue::Null);
                }
                items[at] = new;
            });
        }
        None if is_there => {
            Rc::make_mut(&mut items).change(0, |items| items.remove(at));
        }
        None => {}
    }
    Ok(JqValue::Array(items))
}

impl jaq_std::ValT for JqValue {
    fn into_seq<S: FromIterator<Self>>(self) -> Result<S, Self> {
        match self {
            Self::Array(items) => Ok(unshared(items).into_iter().collect()),
            other => Err(other),
        }
    }

    fn is_int(&self) -> bool {
        matches!(self, Self::Number(number) if number.fract() == 0.0)
    }

    #[allow(clippy::cast_possible_truncation, reason = "a whole number")]
    fn as_isize(&self) -> Option<isize> {
        match self {
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 9e18 => Some(*number as isize),
            _ => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    fn is_utf8_str(&self) -> bool {
        matches!(self, Self::JqText(_))
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        if let Self::JqText(text) = self { Some(text.as_bytes()) } else { None }
    }

    fn as_sub_str(&self, sub: &[u8]) -> Self {
        Self::text(String::from_utf8_lossy(sub))
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::text(String::from_utf8_lossy(bytes.as_ref()))
    }
}
