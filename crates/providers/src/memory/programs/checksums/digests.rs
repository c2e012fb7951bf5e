//! The algorithms of checksums.

use blake2::Blake2bVarCore;
use blake2::digest::block_api::{Buffer, UpdateCore, VariableOutputCore};
use sha2::digest::{Digest, DynDigest};

/// The bits of the longest BLAKE2b checksum.
pub(super) const MAX_BLAKE2B_BITS: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Bsd,
    SysV,
    Crc,
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Blake2b,
}

/// The algorithms as `cksum -a` names them, and as a line with a tag does.
pub(super) const ALGORITHMS: &[(&str, &str, Algorithm)] = &[
    ("bsd", "BSD", Algorithm::Bsd),
    ("sysv", "SYSV", Algorithm::SysV),
    ("crc", "CRC", Algorithm::Crc),
    ("md5", "MD5", Algorithm::Md5),
    ("sha1", "SHA1", Algorithm::Sha1),
    ("sha224", "SHA224", Algorithm::Sha224),
    ("sha256", "SHA256", Algorithm::Sha256),
    ("sha384", "SHA384", Algorithm::Sha384),
    ("sha512", "SHA512", Algorithm::Sha512),
    ("blake2b", "BLAKE2b", Algorithm::Blake2b),
];

impl Algorithm {
    /// The name in a line with a tag.
    pub(super) fn tag(self) -> &'static str {
        ALGORITHMS.iter().find(|(_, _, algorithm)| *algorithm == self).map_or("", |(_, tag, _)| tag)
    }

    /// Tells whether it counts alone, and its checksums can't be verified.
    pub(super) fn is_plain_sum(self) -> bool {
        matches!(self, Self::Bsd | Self::SysV | Self::Crc)
    }

    /// The letters of a checksum that is written in base sixteen.
    pub(super) fn letters(self, bits: usize) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha224 => 56,
            Self::Sha256 => 64,
            Self::Sha384 => 96,
            _ => bits / 4,
        }
    }

    /// Begins a checksum; the bits are BLAKE2b's.
    pub(super) fn begin(self, bits: usize) -> Checksum {
        match self {
            Self::Bsd => Checksum::Bsd(0, 0),
            Self::SysV => Checksum::SysV(0, 0),
            Self::Crc => Checksum::Crc(0, 0),
            Self::Md5 => Checksum::Digest(Box::new(md5::Md5::new())),
            Self::Sha1 => Checksum::Digest(Box::new(sha1::Sha1::new())),
            Self::Sha224 => Checksum::Digest(Box::new(sha2::Sha224::new())),
            Self::Sha256 => Checksum::Digest(Box::new(sha2::Sha256::new())),
            Self::Sha384 => Checksum::Digest(Box::new(sha2::Sha384::new())),
            Self::Sha512 => Checksum::Digest(Box::new(sha2::Sha512::new())),
            Self::Blake2b => {
                let bytes = bits / 8;
                // The core takes every length that the options let through.
                match Blake2bVarCore::new(bytes) {
                    Ok(core) => {
                        Checksum::Blake2b(Box::new((core, Buffer::<Blake2bVarCore>::default())), bytes)
                    }
                    Err(_) => Checksum::Crc(0, 0),
                }
            }
        }
    }
}

/// A checksum that is being made. Sums count the bytes too.
pub(super) enum Checksum {
    Bsd(u32, u64),
    SysV(u32, u64),
    Crc(u32, u64),
    Digest(Box<dyn DynDigest + Send>),
    Blake2b(Box<(Blake2bVarCore, Buffer<Blake2bVarCore>)>, usize),
}

impl Checksum {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Bsd(sum, len) => {
                for byte in bytes {
                    *sum = ((*sum >> 1) + ((*sum & 1) << 15) + u32::from(*byte)) & 0xffff;
                }
                *len += bytes.len() as u64;
            }
            Self::SysV(sum, len) => {
                *sum = bytes.iter().fold(*sum, |sum, byte| sum.wrapping_add(u32::from(*byte)));
                *len += bytes.len() as u64;
            }
            Self::Crc(crc, len) => {
                *crc = bytes.iter().fold(*crc, |crc, byte| crc_step(crc, *byte));
                *len += bytes.len() as u64;
            }
            Self::Digest(digest) => digest.update(bytes),
            Self::Blake2b(state, _) => {
                let (core, buffer) = &mut **state;
                buffer.digest_blocks(bytes, |blocks| core.update_blocks(blocks));
            }
        }
    }

    /// Ends it, and writes it as its program prints it before the name.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Bsd(sum, len) => format!("{sum:05} {:5}", len.div_ceil(1024)),
            Self::SysV(sum, len) => {
                let folded = (sum & 0xffff) + (sum >> 16);
                format!("{} {}", (folded & 0xffff) + (folded >> 16), len.div_ceil(512))
            }
            Self::Crc(mut crc, len) => {
                let mut left = len;
                while left != 0 {
                    crc = crc_step(crc, (left & 0xff) as u8);
                    left >>= 8;
                }
                format!("{} {len}", !crc)
            }
            Self::Digest(digest) => hex::encode(digest.finalize()),
            Self::Blake2b(state, bytes) => {
                let (mut core, mut buffer) = *state;
                let mut all = Default::default();
                core.finalize_variable_core(&mut buffer, &mut all);
                hex::encode(&all[..bytes])
            }
        }
    }
}

/// Takes one byte into the checksum of POSIX's `cksum`.
fn crc_step(crc: u32, byte: u8) -> u32 {
    crc << 8 ^ CRC_TABLE[usize::from((crc >> 24) as u8 ^ byte)]
}

static CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0x04c1_1db7;
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value >> 31 == 1 { value << 1 ^ POLYNOMIAL } else { value << 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_real_programs() {
        for (algorithm, bits, sum) in [
            (Algorithm::Bsd, 0, "08403     1"),
            (Algorithm::SysV, 0, "532 1"),
            (Algorithm::Crc, 0, "3287646509 5"),
            (Algorithm::Md5, 0, "5d41402abc4b2a76b9719d911017c592"),
            (Algorithm::Sha1, 0, "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
            (Algorithm::Blake2b, 128, "46fb7408d4f285228f4af516ea25851b"),
        ] {
            let mut checksum = algorithm.begin(bits);
            checksum.update(b"hel");
            checksum.update(b"lo");
            assert_eq!(checksum.finish(), sum, "{algorithm:?}");
        }
        assert_eq!(Algorithm::Crc.begin(0).finish(), "4294967295 0");
    }
}
