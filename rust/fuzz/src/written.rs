//! Inputs that somebody writes down, beside those that are made up: the kept ones that show what once went wrong.
//!
//! An input whose first byte is a multiple of four, which `T` is, is the text behind it. A text of many bytes stands
//! there in few: the byte 1, a number in digits, the byte 2, a piece of text and the byte 3 are so many such pieces.

/// The text of an input that is written down; none where the input stands for something else.
pub(crate) fn written(data: &[u8]) -> Option<&[u8]> {
    let (first, text) = data.split_first()?;
    first.is_multiple_of(4).then_some(text)
}

/// The text with its repetitions, up to `max_bytes`.
pub(crate) fn expanded(mut text: &[u8], max_bytes: usize) -> Vec<u8> {
    let mut whole = Vec::new();
    while whole.len() < max_bytes && !text.is_empty() {
        if let Some((n_times, piece, rest)) = repetition(text) {
            let fitting = (max_bytes - whole.len()) / piece.len().max(1);
            whole.extend(piece.repeat(n_times.min(fitting)));
            text = rest;
        } else {
            whole.push(text[0]);
            text = &text[1..];
        }
    }
    whole
}

/// The text with names replaced by what they stand for; what is not UTF-8 stays as it is.
pub(crate) fn filled(text: &[u8], names: &[(&str, &str)]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(text) else {
        return text.to_vec();
    };
    let mut filled = text.to_owned();
    for (name, value) in names {
        filled = filled.replace(name, value);
    }
    filled.into_bytes()
}

/// How often, what, and what comes behind it, where the text begins with a repetition.
fn repetition(text: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let mut parts = text.strip_prefix(&[1])?.splitn(2, |&byte| byte == 2);
    let (number, rest) = (parts.next()?, parts.next()?);
    let mut parts = rest.splitn(2, |&byte| byte == 3);
    let (piece, rest) = (parts.next()?, parts.next()?);
    let n_times = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((n_times, piece, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_written_out() {
        for (text, expected) in [
            (&b"a\x013\x02bc\x03d"[..], &b"abcbcbcd"[..]),
            (b"\x010\x02bc\x03d", b"d"),
            (b"\x019\x02\x03d", b"d"),
            // What is not whole is text.
            (b"\x013\x02bc", b"\x013\x02bc"),
            (b"\x01x\x02bc\x03", b"\x01x\x02bc\x03"),
            // As much as may be, in whole pieces.
            (b"\x0199\x02abc\x03", b"abcabcabc"),
            (b"0123456789a", b"0123456789"),
        ] {
            assert_eq!(expanded(text, 10), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn an_input_is_written_where_its_first_byte_says_so() {
        assert_eq!(written(b"Text"), Some(&b"ext"[..]));
        assert_eq!(written(b"\x01Text"), None);
        assert_eq!(written(b""), None);
    }
}
