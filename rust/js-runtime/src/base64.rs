//! `btoa` and `atob`: the forgiving base64 of the WHATWG. Bytes are texts of characters up to U+00FF, as on the Web.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as base64; none where a character is beyond U+00FF.
pub(crate) fn encode(text: String) -> Option<String> {
    let bytes = text
        .chars()
        .map(|character| u8::try_from(u32::from(character)).ok())
        .collect::<Option<Vec<u8>>>()?;
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .fold(0u32, |word, byte| (word << 8) | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = if place <= group.len() {
                LETTERS[(word >> (18 - 6 * place)) as usize & 63]
            } else {
                b'='
            };
            encoded.push(char::from(letter));
        }
    }
    Some(encoded)
}

/// The bytes of base64; none where it is damaged. White space is skipped, and padding may be left out.
pub(crate) fn decode(text: String) -> Option<String> {
    let mut letters: Vec<u8> = text
        .bytes()
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' '))
        .collect();
    if letters.len().is_multiple_of(4) {
        for _ in 0..2 {
            if letters.last() == Some(&b'=') {
                letters.pop();
            }
        }
    }
    if letters.len() % 4 == 1 {
        return None;
    }
    let values = letters
        .into_iter()
        .map(value)
        .collect::<Option<Vec<u32>>>()?;
    let mut decoded = String::with_capacity(values.len());
    for group in values.chunks(4) {
        let word =
            group.iter().fold(0u32, |word, value| (word << 6) | *value) << (6 * (4 - group.len()));
        // A group of n letters holds n - 1 whole bytes; the bits behind them are dropped.
        for place in 1..group.len() {
            decoded.push(char::from((word >> (24 - 8 * place)) as u8));
        }
    }
    Some(decoded)
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}
