//! Values of JSON, as `jq` has them: numbers are 64-bit floats, objects keep the order of their keys.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

use indexmap::IndexMap;

use super::meter::{self, Footprint, MeteredValue};

/// A text. Clones share it.
#[derive(Clone)]
pub(super) struct JqText(Rc<MeteredValue<String>>);

pub(super) type Map = IndexMap<JqText, JqValue>;

/// A value. Clones share what it holds.
#[derive(Clone, Default)]
pub(super) enum JqValue {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    JqText(JqText),
    Array(Rc<MeteredValue<Vec<JqValue>>>),
    Object(Rc<MeteredValue<Map>>),
}

pub(super) type Error = jaq_core::Error<JqValue>;
pub(super) type ValueResult = Result<JqValue, Error>;

impl Footprint for String {
    fn bytes(&self) -> usize {
        self.capacity() + 64
    }

    fn depth(&self) -> u32 {
        0
    }
}

impl Footprint for Vec<JqValue> {
    fn bytes(&self) -> usize {
        self.capacity() * size_of::<JqValue>() + 64
    }

    fn depth(&self) -> u32 {
        self.iter().map(JqValue::depth).max().unwrap_or(0) + 1
    }
}

impl Footprint for Map {
    fn bytes(&self) -> usize {
        self.capacity() * (size_of::<JqValue>() + 40) + 128
    }

    fn depth(&self) -> u32 {
        self.values().map(JqValue::depth).max().unwrap_or(0) + 1
    }
}

impl JqText {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(Rc::new(MeteredValue::new(text.into())))
    }

    /// Adds text at the end, in place if nothing else has it.
    pub(super) fn push(&mut self, more: &str) {
        meter::check(more.len());
        Rc::make_mut(&mut self.0).change(0, |text| text.push_str(more));
    }
}

impl Deref for JqText {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_str()
    }
}

impl Borrow<str> for JqText {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for JqText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for JqText {}

impl PartialOrd for JqText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for JqText {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for JqText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl JqValue {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::JqText(JqText::new(text))
    }

    pub(super) fn array(items: Vec<Self>) -> Self {
        Self::Array(Rc::new(MeteredValue::new(items)))
    }

    pub(super) fn object(map: Map) -> Self {
        Self::Object(Rc::new(MeteredValue::new(map)))
    }

    /// An object of a few fields.
    pub(super) fn fields<const N: usize>(fields: [(&str, Self); N]) -> Self {
        Self::object(fields.into_iter().map(|(name, value)| (JqText::new(name), value)).collect())
    }

    pub(super) fn depth(&self) -> u32 {
        match self {
            Self::Array(items) => items.depth(),
            Self::Object(map) => map.depth(),
            _ => 0,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::JqText(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    pub(super) fn is_true(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(false) => 1,
            Self::Bool(true) => 2,
            Self::Number(_) => 3,
            Self::JqText(_) => 4,
            Self::Array(_) => 5,
            Self::Object(_) => 6,
        }
    }

    /// Compares as `jq` sorts, with an order of two numbers.
    fn compare(&self, other: &Self, numbers: fn(f64, f64) -> Ordering) -> Ordering {
        meter::tick();
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => numbers(*one, *two),
            (Self::JqText(one), Self::JqText(two)) => one.cmp(two),
            (Self::Array(one), Self::Array(two)) => {
                let pairs = one.iter().zip(two.iter()).map(|(one, two)| one.compare(two, numbers));
                pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&two.len()))
            }
            (Self::Object(one), Self::Object(two)) => compare_objects(one, two, numbers),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_objects(one: &Map, two: &Map, numbers: fn(f64, f64) -> Ordering) -> Ordering {
    let sorted = |map: &Map| {
        let mut keys: Vec<JqText> = map.keys().cloned().collect();
        keys.sort_unstable();
        keys
    };
    let (keys, others) = (sorted(one), sorted(two));
    keys.cmp(&others).then_with(|| {
        let values = keys.iter().filter_map(|key| Some(one.get(key)?.compare(two.get(key)?, numbers)));
        values.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

/// The order of numbers in which every one that is none is the least, and all of these are alike.
fn total(one: f64, two: f64) -> Ordering {
    match (one.is_nan(), two.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => one.partial_cmp(&two).unwrap_or(Ordering::Equal),
    }
}

/// The order of `<`, in which one that is none is less than itself too.
fn operator(one: f64, two: f64) -> Ordering {
    if one.is_nan() { Ordering::Less } else { total(one, two) }
}

impl PartialEq for JqValue {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other, operator).is_eq()
    }
}

impl Eq for JqValue {}

#[allow(
    clippy::non_canonical_partial_ord_impl,
    reason = "`jq` compares and sorts what is no number differently"
)]
impl PartialOrd for JqValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.compare(other, operator))
    }
}

impl Ord for JqValue {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other, total)
    }
}

impl fmt::Debug for JqValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl From<bool> for JqValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for JqValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers are 64-bit floats")]
impl From<isize> for JqValue {
    fn from(number: isize) -> Self {
        Self::Number(number as f64)
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers are 64-bit floats")]
impl From<usize> for JqValue {
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

impl From<String> for JqValue {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<std::ops::Range<Option<Self>>> for JqValue {
    fn from(range: std::ops::Range<Option<Self>>) -> Self {
        let bound = Option::unwrap_or_default;
        Self::fields([("start", bound(range.start)), ("end", bound(range.end))])
    }
}

impl FromIterator<Self> for JqValue {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        let mut all = Vec::new();
        for item in items {
            if all.len() % 1024 == 0 {
                meter::check(all.capacity() * 2 * size_of::<Self>());
            }
            meter::tick();
            all.push(item);
        }
        Self::array(all)
    }
}
