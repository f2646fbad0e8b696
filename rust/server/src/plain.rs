//! Text of programs and clients where it stands beside the server's own: in its log.

use std::borrow::Cow;

/// The text with everything escaped that would not be seen as it is: what moves the cursor or changes the colour of a
/// terminal, what begins a line, and what turns the direction of the text around.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unseen(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// True for control characters, but the tabulator, for separators of lines, and for what Unicode formats text by (its
/// category Cf), but the joiners of letters and emoji.
fn is_unseen(character: char) -> bool {
    (character.is_control() && character != '\t')
        || matches!(
            character,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_all_else_stays() {
        for (text, expected) in [
            ("plain, größer, 漢字\t🦀", "plain, größer, 漢字\t🦀"),
            ("10 %\r20 %", "10 %\\r20 %"),
            ("a\nb", "a\\nb"),
            (
                "\x1b[31mred\x07\x7f\u{9b}",
                "\\u{1b}[31mred\\u{7}\\u{7f}\\u{9b}",
            ),
            (
                "user\u{202e}nimda\u{2066}\u{200f}",
                "user\\u{202e}nimda\\u{2066}\\u{200f}",
            ),
            ("one\u{2028}two\u{feff}", "one\\u{2028}two\\u{feff}"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
