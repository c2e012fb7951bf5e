//! The character classes of patterns and sets, as sets of bytes.

/// A class such as `[:alpha:]`, in the locale `C`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteClass {
    pub name: &'static str,
    pub has: fn(u8) -> bool,
}

static CLASSES: [ByteClass; 12] = [
    ByteClass { name: "alnum", has: |byte| byte.is_ascii_alphanumeric() },
    ByteClass { name: "alpha", has: |byte| byte.is_ascii_alphabetic() },
    ByteClass { name: "blank", has: |byte| matches!(byte, b' ' | b'\t') },
    ByteClass { name: "cntrl", has: |byte| byte.is_ascii_control() },
    ByteClass { name: "digit", has: |byte| byte.is_ascii_digit() },
    ByteClass { name: "graph", has: |byte| byte.is_ascii_graphic() },
    ByteClass { name: "lower", has: |byte| byte.is_ascii_lowercase() },
    ByteClass { name: "print", has: |byte| byte.is_ascii_graphic() || byte == b' ' },
    ByteClass { name: "punct", has: |byte| byte.is_ascii_punctuation() },
    ByteClass { name: "space", has: |byte| matches!(byte, b' ' | 0x09..=0x0d) },
    ByteClass { name: "upper", has: |byte| byte.is_ascii_uppercase() },
    ByteClass { name: "xdigit", has: |byte| byte.is_ascii_hexdigit() },
];

/// Finds a class by its name.
pub(super) fn byte_class(name: &[u8]) -> Option<ByteClass> {
    CLASSES.iter().find(|class| class.name.as_bytes() == name).copied()
}
