//! Records of extended headers, read by their lengths. A value may hold any byte, line ends
//! included; a reader that goes by lines loses everything behind such a value, a path for example.

/// Splits off the first record, `<length> <key>=<value>\n`, where the length is that of the whole
/// record. Returns its key, its value and the records behind it; `None` for a malformed one.
pub fn split_record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
    let (record, behind) = records.split_at_checked(length)?;
    let pair = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    Some((&pair[..equals], &pair[equals + 1..], behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_line_ends_does_not_hide_the_record_behind_it() {
        let records = b"9 a=\n1 x\n7 b=cd\n";
        let (key, value, behind) = split_record(records).unwrap();
        assert_eq!((key, value), (&b"a"[..], &b"\n1 x"[..]));
        assert_eq!(split_record(behind), Some((&b"b"[..], &b"cd"[..], &b""[..])));
    }

    #[test]
    fn records_that_lie_about_their_length_are_refused() {
        for records in ["", "x", "5 a=b", "99 path=a\n", "3 \n", "0 path=a\n", "8 path=a\n", " path=a\n"] {
            assert_eq!(split_record(records.as_bytes()), None, "{records}");
        }
    }
}
