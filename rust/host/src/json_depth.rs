//! How deep JSON of a program may nest: as deep as clients of every language can hold and give back.

/// Levels of lists and objects around a value.
pub(crate) const MAX_DEPTH: usize = 500;

/// Whether a JSON text nests deeper.
pub(crate) fn nests_too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' if in_string => in_string = false,
            _ if in_string || byte.is_ascii_whitespace() => {}
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ if depth > MAX_DEPTH => return true,
            b'[' | b'{' => depth += 1,
            b'"' => in_string = true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(n_levels: usize, inner: &str) -> String {
        format!("{}{inner}{}", "[".repeat(n_levels), "]".repeat(n_levels))
    }

    #[test]
    fn a_value_has_at_most_so_many_levels_around_it() {
        assert!(!nests_too_deep(&nested(MAX_DEPTH, "1")));
        assert!(!nests_too_deep(&nested(MAX_DEPTH, "[ ]")));
        for inner in ["1", "\"\"", "{}", "[]", "null"] {
            assert!(nests_too_deep(&nested(MAX_DEPTH + 1, inner)), "{inner}");
        }
        let objects = format!("{}1{}", "{\"a\":".repeat(501), "}".repeat(501));
        assert!(nests_too_deep(&objects));
    }

    #[test]
    fn brackets_in_strings_nest_nothing() {
        let text = nested(MAX_DEPTH, &format!("\"\\\"{}\"", "[".repeat(2000)));
        assert!(!nests_too_deep(&text));
        assert!(!nests_too_deep(&format!("[{}1]", "[1],".repeat(2000))));
    }
}
