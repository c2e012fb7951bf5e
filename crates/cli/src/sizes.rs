//! Sizes as people write and read them: `512m`, `2g`, `1.5GiB`. A unit is a power of 1024, as Docker
//! has it.

const MIB: u64 = 1 << 20;

/// Parses `65536`, `64k`, `10m` or `1.5g` into bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    bytes(number, unit).ok_or_else(|| refusal(text))
}

/// Parses `512m`, `2g` or `1.5g` into MiB. A unit is needed, since a bare number is bytes to Docker
/// and MiB to others.
pub fn parse_mib(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    if bytes(number, unit) == Some(0) {
        return Err(format!(
            "`{text}` is nothing; write 512m or 2g, or leave the option out for the default"
        ));
    }
    if unit.is_empty() && !number.is_empty() {
        // Docker takes it for bytes.
        let mib = number.parse().map_or(0, |bytes: u64| bytes / MIB);
        let with_unit = if mib > 0 { format!("{mib}m") } else { format!("{text}m") };
        return Err(format!("`{text}` has no unit; write {with_unit} for MiB"));
    }
    match bytes(number, unit) {
        Some(bytes) if bytes.is_multiple_of(MIB) => Ok(bytes / MIB),
        Some(_) => Err(format!("`{text}` is not a whole number of MiB; write 512m or 2g")),
        None => Err(refusal(text)),
    }
}

/// Parses `512`, in MiB, or a size with its unit.
pub fn parse_mib_or_number(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| parse_mib(text))
}

/// Renders MiB in the largest unit that it is a whole number of: `2 GiB`, `1536 MiB`.
pub fn shown_mib(mib: u64) -> String {
    if mib > 0 && mib.is_multiple_of(1024) { format!("{} GiB", mib / 1024) } else { format!("{mib} MiB") }
}

/// Renders bytes in the largest unit that they are a whole number of: `1 MiB`, `1500 bytes`.
pub fn shown_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0 bytes".to_owned(),
        bytes if bytes.is_multiple_of(MIB) => shown_mib(bytes / MIB),
        bytes if bytes.is_multiple_of(1024) => format!("{} KiB", bytes / 1024),
        bytes => format!("{bytes} bytes"),
    }
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.');
    text.split_at(end.unwrap_or(text.len()))
}

fn bytes(number: &str, unit: &str) -> Option<u64> {
    let unit = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    if !number.contains('.') {
        return number.parse::<u64>().ok()?.checked_mul(unit);
    }
    let bytes = (number.parse::<f64>().ok()? * unit as f64).round();
    (bytes < eyot::Limits::MAX as f64).then_some(bytes as u64)
}

fn refusal(text: &str) -> String {
    format!("`{text}` is not a valid size; write 512m, 2g or 1.5g")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_of_1024_in_either_case() {
        for (text, expected) in
            [("0", 0), ("70", 70), ("64k", 65_536), ("10M", 10 << 20), ("2 GiB", 2 << 30), ("1.5g", 3 << 29)]
        {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "g", "-1m", "1x", "1.2.3m", "99999999999999999999", "9999999999t", "1e3m"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn memory_needs_a_unit_and_whole_mebibytes() {
        assert_eq!((parse_mib("512m"), parse_mib("2g"), parse_mib("0.5GB")), (Ok(512), Ok(2048), Ok(512)));
        assert!(parse_mib("512").unwrap_err().contains("write 512m"));
        assert!(parse_mib("536870912").unwrap_err().contains("write 512m"), "Docker has bytes");
        assert!(parse_mib("100k").is_err() && parse_mib("much").is_err());
        assert_eq!((parse_mib_or_number("512"), parse_mib_or_number("2g")), (Ok(512), Ok(2048)));
    }

    #[test]
    fn a_limit_is_shown_in_the_largest_whole_unit() {
        assert_eq!([0, 512, 1536, 2048].map(shown_mib), ["0 MiB", "512 MiB", "1536 MiB", "2 GiB"]);
        assert_eq!([1500, 65_536, 1 << 20].map(shown_bytes), ["1500 bytes", "64 KiB", "1 MiB"]);
    }
}
