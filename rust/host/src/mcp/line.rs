//! Lines out of bytes that come in pieces. A line that is too long is not kept; what is kept of it is whose it is.

/// The longest id of a message that is looked for in a line that is too long.
const MAX_MEMBER_BYTES: usize = 64;

/// A line that has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// It was longer than it may be. The value of its member `id`, as it was written; none where it has none.
    TooLong(Option<String>),
}

impl Line {
    /// What is left of a line that is too long.
    pub(crate) fn too_long(line: &[u8]) -> Self {
        Self::TooLong(id_of(line))
    }
}

/// The value of the member `id` of a line, as it was written; none where it has none. Nothing is kept of the rest.
pub(crate) fn id_of(line: &[u8]) -> Option<String> {
    let mut finder = IdFinder::default();
    finder.feed(line);
    finder.id
}

/// Splits bytes into lines of at most so many bytes.
#[derive(Debug)]
pub(crate) struct Lines {
    most: usize,
    line: Vec<u8>,
    /// Looks for the id of the line that is not kept.
    id: Option<IdFinder>,
}

impl Lines {
    /// Lines of at most `most` bytes.
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            most,
            line: Vec::new(),
            id: None,
        }
    }

    /// Takes the next bytes; gives every line that ends in them to `take`.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (rest_of_line, behind) = bytes.split_at(end);
            self.add(rest_of_line);
            take(self.finish());
            bytes = behind.get(1..).unwrap_or_default();
        }
        self.add(bytes);
    }

    /// What stands behind the last end of a line; none where nothing does.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        (self.id.is_some() || !self.line.is_empty()).then(|| self.finish())
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(finder) = &mut self.id {
            finder.feed(bytes);
            return;
        }
        if self.line.len() + bytes.len() <= self.most {
            self.line.extend_from_slice(bytes);
            return;
        }
        let mut finder = IdFinder::default();
        finder.feed(&std::mem::take(&mut self.line));
        finder.feed(bytes);
        self.id = Some(finder);
    }

    fn finish(&mut self) -> Line {
        match self.id.take() {
            Some(finder) => Line::TooLong(finder.id),
            None => Line::Whole(std::mem::take(&mut self.line)),
        }
    }
}

/// Finds the member `id` of an object of JSON that is not kept.
#[derive(Debug, Default)]
struct IdFinder {
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    /// The beginning of what stands at the first level since the last comma or colon.
    part: Vec<u8>,
    /// The member whose value comes next is the id.
    is_id: bool,
    id: Option<String>,
}

impl IdFinder {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    fn take(&mut self, byte: u8) {
        if self.is_in_text {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.is_id = self.part == b"\"id\"";
                self.part.clear();
            }
            b',' if self.depth == 1 => self.end_member(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn end_member(&mut self) {
        if std::mem::take(&mut self.is_id) {
            self.id = String::from_utf8(self.part.clone()).ok();
        }
        self.part.clear();
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.part.len() < MAX_MEMBER_BYTES {
            self.part.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// The lines of a text that is there as a whole; none for one that is too long.
    fn naive(bytes: &[u8], most: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let kept = |line: &[u8]| (line.len() <= most).then(|| line.to_vec());
        lines.into_iter().map(kept).collect()
    }

    proptest! {
        #[test]
        fn lines_in_pieces_are_those_of_the_whole(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            most in 0_usize..20,
            n in 1_usize..30,
        ) {
            let (mut lines, mut taken) = (Lines::new(most), Vec::new());
            for piece in bytes.chunks(n) {
                lines.feed(piece, |line| taken.push(line));
            }
            taken.extend(lines.rest());
            let kept = |line| match line {
                Line::Whole(line) => Some(line),
                Line::TooLong(_) => None,
            };
            let taken: Vec<_> = taken.into_iter().map(kept).collect();
            prop_assert_eq!(taken, naive(&bytes, most));
        }

        #[test]
        fn the_id_is_found_wherever_it_stands(
            id in any::<u32>(),
            text in any::<String>(),
            is_first in any::<bool>(),
        ) {
            let result = json!({ "id": 0, "text": text, "list": [text, { "id": 1 }] });
            let mut members = vec![("id", json!(id)), ("result", result)];
            if !is_first {
                members.reverse();
            }
            let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
            let line = Value::Object(Map::from_iter(members)).to_string();
            let found = Line::too_long(line.as_bytes());
            prop_assert_eq!(found, Line::TooLong(Some(id.to_string())));
        }
    }

    fn lines(most: usize, pieces: &[&str]) -> Vec<Line> {
        let (mut lines, mut taken) = (Lines::new(most), Vec::new());
        for piece in pieces {
            lines.feed(piece.as_bytes(), |line| taken.push(line));
        }
        taken.extend(lines.rest());
        taken
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_come_in_pieces() {
        for (pieces, expected) in [
            (vec![], vec![]),
            (vec!["a\nb\n"], vec![whole("a"), whole("b")]),
            (vec!["a", "b", "\n", "c"], vec![whole("ab"), whole("c")]),
            (vec!["\n\n"], vec![whole(""), whole("")]),
        ] {
            assert_eq!(lines(8, &pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_tells_whose_it_is() {
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"id":3}}"#, Some("17")),
            (
                r#"{"result":{"a":[1,{"id":4}]}, "id" : "x\"y" }"#,
                Some(r#""x\"y""#),
            ),
            (r#"{"result":"a long text, \"id\":5, {","id":6}"#, Some("6")),
            (r#"{"result":{"id":3,"text":"long enough"}}"#, None),
            ("noise that is longer than it may be, id: 3", None),
            (r#"[{"id":3},{"id":4},{"id":5},{"id":6}]"#, None),
        ] {
            let id = id.map(str::to_owned);
            let expected = vec![Line::TooLong(id), whole("next")];
            for n in [1, 3, 1000] {
                let text = format!("{line}\nnext");
                let pieces: Vec<&str> = text
                    .as_bytes()
                    .chunks(n)
                    .map(|piece| std::str::from_utf8(piece).unwrap())
                    .collect();
                assert_eq!(lines(16, &pieces), expected, "{line} by {n}");
            }
        }
    }
}
