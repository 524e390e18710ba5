//! The words of an expression: from a place in a script to the end of the line. A line that ends with a backslash
//! continues in the next.

use std::ops::Range;

use super::mistake::Mistake;

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    Int(i64),
    /// 9223372036854775808, which is a number behind a minus only.
    PastInt,
    Double(f64),
    /// `:name`.
    Variable(String),
    /// A keyword or the name of a function, in small letters.
    Word(String),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
    /// The end of the line.
    End,
}

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub span: Range<usize>,
}

/// Signs, the longer before those they begin with.
const SIGNS: [&str; 20] = [
    "<>", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "|", "&", "#", "~",
    "(", ")",
];

/// The letters of names; all that is not ASCII is one.
pub(super) fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii()
}

/// Whether a variable may be called so.
pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|first| is_name_letter(first) && !first.is_ascii_digit())
        && letters.all(is_name_letter)
}

/// The tokens from `start` to the end of the line, its end last.
///
/// # Errors
/// A character that belongs to none, or a number that is too large.
pub(super) fn tokens(text: &str, start: usize) -> Result<Vec<Token>, Mistake> {
    let (mut tokens, mut at) = (Vec::new(), start);
    loop {
        at = skip_blanks(text, at);
        let token = token_at(text, at)?;
        at = token.span.end;
        let is_end = token.kind == TokenKind::End;
        tokens.push(token);
        if is_end {
            return Ok(tokens);
        }
    }
}

/// The first place from `at` on that is neither a blank nor the end of a line that continues.
pub(super) fn skip_blanks(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let blanks = [" ", "\t", "\r", "\x0b", "\x0c", "\\\n", "\\\r\n"];
        match blanks.iter().find(|blank| rest.starts_with(**blank)) {
            Some(blank) => at += blank.len(),
            None => return at,
        }
    }
}

fn token_at(text: &str, at: usize) -> Result<Token, Mistake> {
    let rest = &text[at..];
    let of = |kind: TokenKind, length: usize| {
        Ok(Token {
            kind,
            span: at..at + length,
        })
    };
    let Some(first) = rest.chars().next() else {
        return of(TokenKind::End, 0);
    };
    if first == '\n' {
        return of(TokenKind::End, 0);
    }
    if first.is_ascii_digit() || (first == '.' && digits(&rest[1..]) > 0) {
        return number(rest, at);
    }
    let name_bytes = |text: &str| {
        text.find(|letter| !is_name_letter(letter))
            .unwrap_or(text.len())
    };
    if first == ':' && name_bytes(&rest[1..]) > 0 {
        let length = name_bytes(&rest[1..]);
        return of(TokenKind::Variable(rest[1..=length].to_owned()), 1 + length);
    }
    if is_name_letter(first) {
        let length = name_bytes(rest);
        return of(TokenKind::Word(rest[..length].to_ascii_lowercase()), length);
    }
    if first == ',' {
        return of(TokenKind::Sign(","), 1);
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        // Both are "not equal".
        Some(&"!=") => of(TokenKind::Sign("<>"), 2),
        Some(sign) => of(TokenKind::Sign(sign), sign.len()),
        None => Err(Mistake::new(
            at..at + first.len_utf8(),
            format!("unexpected character {first:?} in an expression"),
        )),
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn number(rest: &str, at: usize) -> Result<Token, Mistake> {
    let whole = digits(rest);
    let mut length = whole;
    if rest[length..].starts_with('.') {
        length += 1 + digits(&rest[length + 1..]);
    }
    if let Some(exponent) = rest[length..].strip_prefix(['e', 'E']) {
        let signed = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits(signed) > 0 {
            length += 1 + exponent.len() - signed.len() + digits(signed);
        }
    }
    let (text, span) = (&rest[..length], at..at + length);
    let too_large = |what: &str| Mistake::new(span.clone(), format!("{what} constant overflow"));
    let kind = match length == whole {
        true if text == "9223372036854775808" => TokenKind::PastInt,
        true => TokenKind::Int(text.parse().map_err(|_| too_large("bigint"))?),
        false => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => TokenKind::Double(number),
            _ => return Err(too_large("double")),
        },
    };
    Ok(Token { kind, span })
}
