//! `base64` and `base32`: bytes are written as letters, and read back.

use async_trait::async_trait;

use super::options::{OptionWord, complete, unknown};
use super::run::{Ending, ProgramRun, ShellProgram};

/// The columns of a line, unless others are asked for.
const USUAL_COLUMNS: usize = 76;
/// The bytes that are worked on at once: whole groups of both encodings.
const BYTES_AT_ONCE: usize = 15 << 12;

const LONG: &[&str] = &["decode", "ignore-garbage", "wrap"];

/// A way to write bytes as letters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BaseEncoding {
    letters: &'static [u8],
    /// The bits that a letter holds.
    bits: usize,
    /// The letters of a whole group.
    group: usize,
}

pub(super) static BASE64: BaseEncoding = BaseEncoding {
    letters: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    bits: 6,
    group: 4,
};

pub(super) static BASE32: BaseEncoding =
    BaseEncoding { letters: b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", bits: 5, group: 8 };

#[derive(Debug)]
struct Options {
    decodes: bool,
    ignores_garbage: bool,
    columns: usize,
    operands: Vec<String>,
}

#[async_trait]
impl ShellProgram for BaseEncoding {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let name = options.operands.first().map_or("-", String::as_str);
        let bytes = run.read(name).await?.map_err(|reason| Ending::refused(format!("{name}: {reason}")))?;
        if options.decodes {
            self.decode_all(run, bytes.to_vec(), options.ignores_garbage).await
        } else {
            self.encode_all(run, &bytes, options.columns).await
        }
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options =
        Options { decodes: false, ignores_garbage: false, columns: USUAL_COLUMNS, operands: Vec::new() };
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let name = match word {
            OptionWord::Operand(operand) => {
                options.operands.push(operand);
                continue;
            }
            OptionWord::Short('d') => "decode",
            OptionWord::Short('i') => "ignore-garbage",
            OptionWord::Short('w') => "wrap",
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => complete(&name, LONG)?,
        };
        match name {
            "decode" => options.decodes = true,
            "ignore-garbage" => options.ignores_garbage = true,
            _ => options.columns = columns(&words.value()?)?,
        }
    }
    match options.operands.get(1) {
        Some(extra) => Err(Ending::usage(format!("extra operand ‘{extra}’"))),
        None => Ok(options),
    }
}

/// Reads the number of columns; one that is too large is as good as none.
fn columns(text: &str) -> Result<usize, Ending> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(Ending::refused(format!("invalid wrap size: ‘{text}’")));
    }
    Ok(text.parse().unwrap_or(0))
}

impl BaseEncoding {
    async fn encode_all(&self, run: &ProgramRun<'_>, bytes: &[u8], columns: usize) -> Result<i32, Ending> {
        let mut column = 0;
        for piece in bytes.chunks(BYTES_AT_ONCE) {
            run.breathe().await;
            let mut letters = &self.encode(piece)[..];
            let mut out = Vec::with_capacity(letters.len() + letters.len() / USUAL_COLUMNS + 1);
            while columns > 0 && column + letters.len() >= columns {
                let (line, rest) = letters.split_at(columns - column);
                out.extend_from_slice(line);
                out.push(b'\n');
                (letters, column) = (rest, 0);
            }
            out.extend_from_slice(letters);
            column += letters.len();
            run.print(out).await?;
        }
        if columns > 0 && column > 0 {
            run.print("\n").await?;
        }
        Ok(0)
    }

    fn encode(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() * 8 / self.bits + self.group);
        let (mut buffer, mut held) = (0_usize, 0);
        for byte in bytes {
            buffer = (buffer & 0xff) << 8 | usize::from(*byte);
            held += 8;
            while held >= self.bits {
                held -= self.bits;
                out.push(self.letters[buffer >> held & (self.letters.len() - 1)]);
            }
        }
        if held > 0 {
            out.push(self.letters[buffer << (self.bits - held) & (self.letters.len() - 1)]);
        }
        out.resize(out.len().next_multiple_of(self.group), b'=');
        out
    }

    async fn decode_all(
        &self,
        run: &ProgramRun<'_>,
        mut bytes: Vec<u8>,
        ignores: bool,
    ) -> Result<i32, Ending> {
        bytes.retain(|byte| *byte != b'\n' && (!ignores || *byte == b'=' || self.letters.contains(byte)));
        let values = self.values();
        for piece in bytes.chunks(BYTES_AT_ONCE / 15 * 8) {
            run.breathe().await;
            let mut out = Vec::with_capacity(piece.len());
            let is_valid = piece.chunks(self.group).all(|group| self.decode_group(&values, group, &mut out));
            run.print(out).await?;
            if !is_valid {
                return Err(Ending::refused("invalid input"));
            }
        }
        Ok(0)
    }

    /// The value of each byte that is a letter.
    fn values(&self) -> [Option<u8>; 256] {
        let mut values = [None; 256];
        for (value, letter) in (0..).zip(self.letters) {
            values[usize::from(*letter)] = Some(value);
        }
        values
    }

    /// Reads a group. Returns `false` if it is wrong; of one in base 64, what is right at its beginning
    /// is read.
    fn decode_group(&self, values: &[Option<u8>; 256], group: &[u8], out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let (mut buffer, mut held, mut letters) = (0_usize, 0, 0);
        for byte in group {
            let Some(value) = values[usize::from(*byte)] else { break };
            buffer = (buffer & 0xff) << self.bits | usize::from(value);
            held += self.bits;
            letters += 1;
            if held >= 8 {
                held -= 8;
                out.push((buffer >> held & 0xff) as u8);
            }
        }
        let is_padded = group[letters..].iter().all(|byte| *byte == b'=');
        // The letters before the padding end within the last byte, and hold no more than that.
        let is_valid = group.len() == self.group && is_padded && letters > 0 && held < self.bits;
        if !is_valid && *self == BASE32 {
            out.truncate(before);
        }
        is_valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: &BaseEncoding, text: &str) -> (bool, String) {
        let mut out = Vec::new();
        let values = encoding.values();
        let mut groups = text.as_bytes().chunks(encoding.group);
        let is_valid = groups.all(|group| encoding.decode_group(&values, group, &mut out));
        (is_valid, String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn bytes_come_back_from_their_letters() {
        for (bytes, base64, base32) in [
            ("", "", ""),
            ("f", "Zg==", "MY======"),
            ("fo", "Zm8=", "MZXQ===="),
            ("foo", "Zm9v", "MZXW6==="),
            ("foob", "Zm9vYg==", "MZXW6YQ="),
            ("fooba", "Zm9vYmE=", "MZXW6YTB"),
        ] {
            assert_eq!(BASE64.encode(bytes.as_bytes()), base64.as_bytes());
            assert_eq!(BASE32.encode(bytes.as_bytes()), base32.as_bytes());
            assert_eq!(decoded(&BASE64, base64), (true, bytes.to_owned()));
            assert_eq!(decoded(&BASE32, base32), (true, bytes.to_owned()));
        }
    }

    #[test]
    fn wrong_letters_end_what_is_read() {
        for (text, read) in [("Zm9vYg", "foob"), ("Zm9v!", "foo"), ("====", ""), ("Z===", "")] {
            assert_eq!(decoded(&BASE64, text), (false, read.to_owned()), "{text}");
        }
    }
}
