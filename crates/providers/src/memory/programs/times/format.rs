//! Times as text, by the letters that `date +FORMAT` knows.

use super::{Moment, Zone};

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The widest field. A wider one would only take memory.
const MAX_WIDTH: usize = 4096;
/// The longest text.
const MAX_TEXT: usize = 16 << 20;

/// Prints a time as the format says.
pub(in crate::memory::programs) fn format_time(format: &str, moment: Moment, zone: &Zone) -> String {
    let time = LocalTime::new(moment, zone);
    let mut out = String::new();
    time.write(format, &mut out);
    out
}

/// A time on the clock and the calendar of a zone.
struct LocalTime {
    moment: Moment,
    offset: i64,
    zone: String,
    year: i64,
    /// From 0 on, as the weekdays, which begin with Sunday.
    month: usize,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    weekday: i64,
    /// From 0 on.
    day_of_year: i64,
}

/// The flags and the width of one field.
#[derive(Debug, Clone, Copy, Default)]
struct TimeField {
    pad: Option<char>,
    width: usize,
    is_upper: bool,
    is_swapped: bool,
    colons: usize,
}

impl LocalTime {
    fn new(moment: Moment, zone: &Zone) -> Self {
        let (offset, zone) = zone.at(moment);
        let offset = i64::from(offset);
        let local = moment.seconds.saturating_add(offset);
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day, day_of_year) = calendar(days);
        Self {
            moment,
            offset,
            zone,
            year,
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            weekday: (days + 4).rem_euclid(7),
            day_of_year,
        }
    }

    fn write(&self, format: &str, out: &mut String) {
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if out.len() > MAX_TEXT {
                return;
            }
            let (field, letter, length) = read_field(rest);
            let literal = &rest[..length];
            rest = &rest[length..];
            let known = letter.is_some_and(|letter| self.write_field(letter, field, out));
            if !known {
                put_text(literal, TimeField { pad: None, is_upper: false, is_swapped: false, ..field }, out);
            }
        }
        out.push_str(rest);
    }

    /// Writes one field. Returns `false` if there is none of this letter.
    fn write_field(&self, letter: char, field: TimeField, out: &mut String) -> bool {
        if let Some(format) = combined(letter, field) {
            let mut text = String::new();
            self.write(&format, &mut text);
            put_text(&text, TimeField { is_swapped: false, ..field }, out);
            return true;
        }
        let (day, month) = (DAYS[self.weekday as usize % 7], MONTHS[self.month % 12]);
        let upper = TimeField { is_upper: field.is_upper || field.is_swapped, ..field };
        let lower = |text: &str| if field.is_swapped { text.to_lowercase() } else { text.to_owned() };
        let half = if self.hour < 12 { "AM" } else { "PM" };
        match letter {
            'a' => put_text(&day[..3], upper, out),
            'A' => put_text(day, upper, out),
            'b' | 'h' => put_text(&month[..3], upper, out),
            'B' => put_text(month, upper, out),
            'p' => put_text(&lower(half), TimeField { is_swapped: false, ..field }, out),
            'P' => {
                put_text(&half.to_lowercase(), TimeField { is_upper: false, is_swapped: false, ..field }, out)
            }
            'Z' => put_text(&lower(&self.zone), TimeField { is_swapped: false, ..field }, out),
            'n' => put_text("\n", field, out),
            't' => put_text("\t", field, out),
            'N' => put_fraction(self.moment.nanos, field, out),
            'z' => return self.put_offset(field, out),
            _ => {
                let Some((number, digits, pad)) = self.number(letter) else { return false };
                put_number(number, digits, pad, field, out);
            }
        }
        true
    }

    /// The number of a letter, with the digits that it has at least and what fills them.
    fn number(&self, letter: char) -> Option<(i64, usize, char)> {
        let half = (self.hour + 11) % 12 + 1;
        let (iso_year, iso_week) = self.iso_week();
        let monday = (self.weekday + 6) % 7;
        Some(match letter {
            'C' => (self.year.div_euclid(100), 2, '0'),
            'y' => (self.year.rem_euclid(100), 2, '0'),
            'Y' => (self.year, 4, '0'),
            'G' => (iso_year, 4, '0'),
            'g' => (iso_year.rem_euclid(100), 2, '0'),
            'm' => (self.month as i64 + 1, 2, '0'),
            'd' => (self.day, 2, '0'),
            'e' => (self.day, 2, '_'),
            'H' => (self.hour, 2, '0'),
            'k' => (self.hour, 2, '_'),
            'I' => (half, 2, '0'),
            'l' => (half, 2, '_'),
            'M' => (self.minute, 2, '0'),
            'S' => (self.second, 2, '0'),
            'j' => (self.day_of_year + 1, 3, '0'),
            'q' => (self.month as i64 / 3 + 1, 1, '0'),
            's' => (self.moment.seconds, 1, '0'),
            'u' => (monday + 1, 1, '0'),
            'w' => (self.weekday, 1, '0'),
            'U' => ((self.day_of_year + 7 - self.weekday) / 7, 2, '0'),
            'W' => ((self.day_of_year + 7 - monday) / 7, 2, '0'),
            'V' => (iso_week, 2, '0'),
            _ => return None,
        })
    }

    /// The week by ISO 8601, whose first one has the year's first Thursday, and its year.
    fn iso_week(&self) -> (i64, i64) {
        let thursday = self.day_of_year + 3 - (self.weekday + 6) % 7;
        let (year, day) = if thursday < 0 {
            (self.year - 1, thursday + days_of(self.year - 1))
        } else if thursday >= days_of(self.year) {
            (self.year + 1, thursday - days_of(self.year))
        } else {
            (self.year, thursday)
        };
        (year, day / 7 + 1)
    }

    fn put_offset(&self, field: TimeField, out: &mut String) -> bool {
        let all = self.offset.abs();
        let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
        let rest = match field.colons {
            0 => {
                let number = hours * 100 + minutes;
                put_signed(self.offset < 0, &number.to_string(), 5, "", field, out);
                return true;
            }
            1 => format!(":{minutes:02}"),
            2 => format!(":{minutes:02}:{seconds:02}"),
            3 if seconds != 0 => format!(":{minutes:02}:{seconds:02}"),
            3 if minutes != 0 => format!(":{minutes:02}"),
            3 => String::new(),
            _ => return false,
        };
        put_signed(self.offset < 0, &hours.to_string(), 3, &rest, field, out);
        true
    }
}

/// Reads a field from its `%` on: its flags, its letter, and the bytes that it takes.
fn read_field(text: &str) -> (TimeField, Option<char>, usize) {
    let mut field = TimeField::default();
    let mut at = 1;
    let next = |at: usize| text[at..].chars().next();
    while let Some(flag @ ('_' | '-' | '0' | '+' | '^' | '#')) = next(at) {
        match flag {
            '^' => field.is_upper = true,
            '#' => field.is_swapped = true,
            pad => field.pad = Some(pad),
        }
        at += 1;
    }
    while let Some(digit) = next(at).and_then(|digit| digit.to_digit(10)) {
        field.width = (field.width * 10 + digit as usize).min(MAX_WIDTH);
        at += 1;
    }
    if let Some('E' | 'O') = next(at) {
        at += 1;
    }
    while next(at) == Some(':') {
        field.colons += 1;
        at += 1;
    }
    match next(at) {
        Some(letter) if field.colons == 0 || letter == 'z' => (field, Some(letter), at + letter.len_utf8()),
        _ if field.colons > 0 => (field, None, 1),
        letter => (field, letter, at),
    }
}

/// The format that a letter stands for.
fn combined(letter: char, field: TimeField) -> Option<String> {
    let caret = if field.is_upper { "^" } else { "" };
    Some(match letter {
        '%' if field.width == 0 => "%".to_owned(),
        'c' => format!("%{caret}a %{caret}b %e %H:%M:%S %-Y"),
        'D' | 'x' => "%m/%d/%y".to_owned(),
        'F' => {
            let width = field.width.saturating_sub(6);
            match (field.pad, width) {
                (None, 0) => "%+4Y-%m-%d".to_owned(),
                (Some('+' | '-'), 0) => "%-Y-%m-%d".to_owned(),
                (pad, width) => format!("%{}{width}Y-%m-%d", pad.unwrap_or('0')),
            }
        }
        'r' => "%I:%M:%S %p".to_owned(),
        'R' => "%H:%M".to_owned(),
        'T' | 'X' => "%H:%M:%S".to_owned(),
        _ => return None,
    })
}

fn put_text(text: &str, field: TimeField, out: &mut String) {
    let missing = field.width.saturating_sub(text.chars().count());
    if field.pad != Some('-') {
        let fill = if matches!(field.pad, Some('0' | '+')) { '0' } else { ' ' };
        out.extend(std::iter::repeat_n(fill, missing));
    }
    if field.is_upper {
        out.push_str(&text.to_uppercase());
    } else {
        out.push_str(text);
    }
}

fn put_number(number: i64, digits: usize, pad: char, field: TimeField, out: &mut String) {
    let pad = field.pad.unwrap_or(pad);
    let text = number.unsigned_abs().to_string();
    let sign = if number < 0 {
        "-"
    } else if pad == '+' && digits == 4 && (text.len() > 4 || field.width > 4) {
        "+"
    } else {
        ""
    };
    let width = if field.width > 0 { field.width } else { digits + usize::from(number < 0) };
    let missing = width.saturating_sub(text.len() + sign.len());
    match pad {
        '-' => *out += &format!("{sign}{text}"),
        '_' => *out += &format!("{}{sign}{text}", " ".repeat(missing)),
        _ => *out += &format!("{sign}{}{text}", "0".repeat(missing)),
    }
}

/// Writes an offset, whose sign always shows.
fn put_signed(is_below: bool, number: &str, width: usize, rest: &str, field: TimeField, out: &mut String) {
    let sign = if is_below { '-' } else { '+' };
    let width = width.max(field.width.saturating_sub(rest.len()));
    let missing = width.saturating_sub(number.len() + 1);
    match field.pad {
        Some('-') => *out += &format!("{sign}{number}{rest}"),
        Some('_') => *out += &format!("{}{sign}{number}{rest}", " ".repeat(missing)),
        _ => *out += &format!("{sign}{}{number}{rest}", "0".repeat(missing)),
    }
}

/// Writes the part of a second, in as many digits as the field is wide.
fn put_fraction(nanos: u32, field: TimeField, out: &mut String) {
    let width = if field.width > 0 { field.width } else { 9 };
    let digits = format!("{nanos:09}");
    let shown = &digits[..width.min(9)];
    match field.pad {
        Some(pad @ ('_' | '-')) => {
            let cut = shown.trim_end_matches('0');
            let cut = if cut.is_empty() { &shown[..1] } else { cut };
            // GNU's cuts no digit away unless a width says how many there may be.
            let cut = if pad == '-' && field.width == 0 { shown } else { cut };
            out.push_str(cut);
            if pad == '_' {
                out.extend(std::iter::repeat_n(' ', width - cut.len()));
            }
        }
        _ => *out += &format!("{shown:0<width$}"),
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

/// The year, the month from 0 on, the day, and the day of the year from 0 on.
fn calendar(days: i64) -> (i64, usize, i64, i64) {
    /// The days of 400 years, after which the calendar repeats itself.
    const ERA: i64 = 146_097;
    let (era, mut left) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let mut year = 1970 + era * 400;
    while left >= days_of(year) {
        left -= days_of(year);
        year += 1;
    }
    let day_of_year = left;
    let february = if is_leap(year) { 29 } else { 28 };
    for (month, length) in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
        if left < length {
            return (year, month, left + 1, day_of_year);
        }
        left -= length;
    }
    (year, 11, 31, day_of_year)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(format: &str, seconds: i64, zone: &str) -> String {
        format_time(format, Moment { seconds, nanos: 120_000_000 }, &Zone::named(zone))
    }

    #[test]
    fn fields_are_filled_as_gnu_fills_them() {
        for (format, text) in [
            ("%e|%-e|%0e|%_5d|%-5d", " 5|5|05|    5|5"),
            ("%N|%3N|%-3N|%_3N", "120000000|120|12|12 "),
            ("%z|%:z|%::z|%:::z|%_z|%-z", "+0530|+05:30|+05:30:00|+05:30| +530|+530"),
            ("%^a|%#Z|%P|%10a", "TUE|ist|am|       Tue"),
            ("%F|%12F|%_12F|%+12F", "2024-03-05|002024-03-05|  2024-03-05|+02024-03-05"),
            ("%j %U %V %W %G %q %u %w", "065 09 10 10 2024 1 2 2"),
            ("%Q %:a %::::z % 100%", "%Q %:a %::::z % 100%"),
        ] {
            assert_eq!(shown(format, 1_709_602_689, "Asia/Kolkata"), text, "{format}");
        }
    }

    #[test]
    fn years_far_away_are_shown_too() {
        assert_eq!(shown("%F %a %s", 327_403_382_400, "UTC"), "+12345-01-01 Mon 327403382400");
        assert_eq!(shown("%F %G-%V", -2, "UTC"), "1969-12-31 1970-01");
        for seconds in [i64::MAX, i64::MIN] {
            assert!(shown("%Y", seconds, "EST5EDT").len() > 9);
        }
    }

    #[test]
    fn a_zone_has_its_name_and_its_summer() {
        for (zone, seconds, text) in [
            ("America/New_York", 1_700_000_000, "17:13 EST"),
            ("Europe/Berlin", 1_690_000_000, "06:26 CEST"),
            (":/usr/share/zoneinfo/Europe/Berlin", 1_700_000_000, "23:13 CET"),
            ("XYZ5", 1_700_000_000, "17:13 XYZ"),
            ("<+03>-3", 1_700_000_000, "01:13 +03"),
            ("nonsense", 1_700_000_000, "22:13 nonsense"),
            ("europe/berlin", 1_700_000_000, "22:13 europe"),
            ("", 1_700_000_000, "22:13 UTC"),
        ] {
            assert_eq!(shown("%H:%M %Z", seconds, zone), text, "{zone}");
        }
    }
}
