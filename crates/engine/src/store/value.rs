//! Values of a database, the same for every kind of it.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};

use super::database_error::DatabaseError;

/// A value that goes into a statement or comes out of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// Makes the values of a statement, in the order of their numbers: `?1`, `?2`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::value::Value::from($value)),*] };
}
pub(super) use values;

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u64> for Value {
    /// No database has a larger number than that of 63 bits. One that is larger means "no limit".
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(is_so: bool) -> Self {
        Self::Integer(is_so.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<[u8; 32]> for Value {
    fn from(bytes: [u8; 32]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<&Option<String>> for Value {
    fn from(text: &Option<String>) -> Self {
        text.clone().into()
    }
}

/// A type that a column can be read as.
pub(super) trait FromValue: Sized {
    /// Reads it; `None`: the value is of another type.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).and_then(|number| number.try_into().ok())
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).and_then(|number| number.try_into().ok())
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A row of an answer.
#[derive(Debug)]
pub(super) struct DatabaseRow {
    /// The names of the columns, which all rows of an answer share.
    names: Arc<[String]>,
    values: Vec<Value>,
}

impl DatabaseRow {
    /// Makes a row of columns with their names.
    pub(super) fn new(names: &Arc<[String]>, values: Vec<Value>) -> Self {
        Self { names: Arc::clone(names), values }
    }

    /// Reads a column.
    pub(super) fn get<T: FromValue>(&self, column: &str) -> std::result::Result<T, DatabaseError> {
        let place = self.names.iter().position(|name| name == column);
        let found = place.and_then(|place| self.values.get(place));
        let value =
            found.ok_or_else(|| DatabaseError::unreadable(column, "there is no such column".into()))?;
        T::from_value(value)
            .ok_or_else(|| DatabaseError::unreadable(column, "it holds a value of another type".into()))
    }
}

/// Writes a value as a column of JSON has it.
pub(super) fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::Internal, "change the store: a value is no JSON").with_source(error)
    })
}
