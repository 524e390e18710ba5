//! The two things that must be known of a server's certificate and that no library here tells: which hash it is signed
//! with, for channel binding, and until when it holds, for one that is trusted as it is. A certificate is a tree of
//! values, each of a tag, a length and a content (DER, ITU-T X.690; RFC 5280, section 4.1).

use std::time::Duration;

use ring::digest::{self, Algorithm};
use spindle_text::calendar::days_since_1970;

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The tag of a version that is written.
const VERSION: u8 = 0xa0;
/// Longer lengths are none.
const LENGTH_BYTES_MAX: usize = 4;

/// Signature algorithms by the hash in them: RFC 4055, RFC 5758. What is signed with less than SHA-256, or with an
/// unknown one, is hashed with SHA-256 (RFC 5929, section 4.1; libpq does not know the others either).
const SHA_384: [&[u8]; 2] = [
    // sha384WithRSAEncryption 1.2.840.113549.1.1.12
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c],
    // ecdsa-with-SHA384 1.2.840.10045.4.3.3
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03],
];
const SHA_512: [&[u8]; 2] = [
    // sha512WithRSAEncryption 1.2.840.113549.1.1.13
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d],
    // ecdsa-with-SHA512 1.2.840.10045.4.3.4
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04],
];
/// Algorithms whose hash is written elsewhere, or that have none: RSASSA-PSS, Ed25519, Ed448.
const WITHOUT_HASH: [&[u8]; 3] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a],
    &[0x2b, 0x65, 0x70],
    &[0x2b, 0x65, 0x71],
];

/// What a connection is known by, `tls-server-end-point` (RFC 5929): the hash of the server's certificate. `None` where
/// the standard does not say which hash.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Reader(certificate).inside(SEQUENCE)?;
    let _ = whole.inside(SEQUENCE)?;
    let signed = whole.inside(SEQUENCE)?.inside(OBJECT_IDENTIFIER)?.0;
    let algorithm: &'static Algorithm = match signed {
        signed if WITHOUT_HASH.contains(&signed) => return None,
        signed if SHA_384.contains(&signed) => &digest::SHA384,
        signed if SHA_512.contains(&signed) => &digest::SHA512,
        _ => &digest::SHA256,
    };
    Some(digest::digest(algorithm, certificate).as_ref().to_vec())
}

/// Whether a certificate names itself as who issued it: only such a one is a root (RFC 5280, section 3.2). `None`: it
/// cannot be read.
pub(super) fn is_self_issued(certificate: &[u8]) -> Option<bool> {
    let mut fields = issuer_and_after(certificate)?;
    let issuer = fields.next()?;
    let _validity = fields.next()?;
    Some(issuer == fields.next()?)
}

/// The fields of a certificate from the issuer on.
fn issuer_and_after(certificate: &[u8]) -> Option<Reader<'_>> {
    let mut fields = Reader(certificate).inside(SEQUENCE)?.inside(SEQUENCE)?;
    if fields.0.first() == Some(&VERSION) {
        fields.next()?;
    }
    let (_serial_number, _algorithm) = (fields.next()?, fields.next()?);
    Some(fields)
}

/// Whether a certificate holds at this time, since 1970. `None`: it cannot be read.
pub(super) fn holds_at(certificate: &[u8], now: Duration) -> Option<bool> {
    let mut fields = issuer_and_after(certificate)?;
    let _issuer = fields.next()?;
    let mut validity = fields.inside(SEQUENCE)?;
    let (from, until) = (time(validity.next()?)?, time(validity.next()?)?);
    let now = i64::try_from(now.as_secs()).ok()?;
    Some((from..=until).contains(&now))
}

/// What is left of a content.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next value, tag and content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, length, rest) = match *self.0 {
            [tag, length @ 0..0x80, ref rest @ ..] => (tag, usize::from(length), rest),
            [tag, bytes, ref rest @ ..] => {
                let bytes = usize::from(bytes & 0x7f);
                if bytes > LENGTH_BYTES_MAX {
                    return None;
                }
                let (length, rest) = rest.split_at_checked(bytes)?;
                let length = length
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                (tag, length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next value, which has this tag.
    fn inside(&mut self, tag: u8) -> Option<Reader<'a>> {
        let (found, content) = self.next()?;
        (found == tag).then_some(Reader(content))
    }
}

/// Seconds since 1970 of a time such as `260131235959Z` or `20560131235959Z` (RFC 5280, section 4.1.2.5).
fn time((tag, text): (u8, &[u8])) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    let of_day = part(4)? * 3600 + part(6)? * 60 + part(8)?;
    Some(days_since_1970(year, month, day) * 86_400 + of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(time((UTC_TIME, b"700101000000Z")), Some(0));
        assert_eq!(time((UTC_TIME, b"000229120001Z")), Some(951_825_601));
        let far = (GENERALIZED_TIME, b"20991231235959Z".as_slice());
        assert_eq!(time(far), Some(4_102_444_799));
        assert_eq!(time((UTC_TIME, b"7001010000")), None);
        assert_eq!(time((SEQUENCE, b"700101000000Z")), None);
    }

    #[test]
    fn what_is_no_certificate_is_told_nothing_of() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x30, 3, 0x30, 4, 0],
            &[0xff; 40],
        ] {
            assert_eq!(end_point(bytes), None);
            assert_eq!(holds_at(bytes, Duration::ZERO), None);
        }
    }
}
