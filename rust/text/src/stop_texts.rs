//! Texts that end what is said, looked for in a text that comes in pieces.
//!
//! The first stop text that is complete ends the text, and of those that one byte completes the longest. What stands
//! before it is shown, and no part of it. So what may be the beginning of a stop text is held back until it is known to
//! be none. The result is the same for all ways to split the text into pieces.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits::{MAX_STOP_TEXT_BYTES, MAX_STOP_TEXTS};

/// Texts that end what is said. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct StopTexts(Arc<[Pattern]>);

/// One text, prepared as Knuth, Morris and Pratt do it ("Fast pattern matching in strings", 1977): no byte is looked at
/// again when a beginning turns out to be none.
#[derive(Debug)]
struct Pattern {
    text: Box<[u8]>,
    /// For each of its bytes: how many bytes has the longest beginning, shorter than all up to this byte, that ends
    /// here.
    borders: Box<[usize]>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let text: Box<[u8]> = text.as_bytes().into();
        let mut pattern = Self {
            borders: vec![0; text.len()].into(),
            text,
        };
        for index in 1..pattern.text.len() {
            pattern.borders[index] = pattern.next(pattern.borders[index - 1], pattern.text[index]);
        }
        pattern
    }

    /// How many bytes of its beginning stand at the end, once `byte` follows an end with `n_matched` of them, which are
    /// not all.
    fn next(&self, n_matched: usize, byte: u8) -> usize {
        let mut n_matched = n_matched;
        while n_matched > 0 && self.text[n_matched] != byte {
            n_matched = self.borders[n_matched - 1];
        }
        n_matched + usize::from(self.text[n_matched] == byte)
    }
}

impl StopTexts {
    /// Prepares texts.
    ///
    /// # Errors
    /// `invalid-argument` for a text that is empty or too long, and for too many.
    pub fn new(texts: &[impl AsRef<str>]) -> Result<Self> {
        if texts.len() > MAX_STOP_TEXTS {
            return Err(Error::Argument(format!(
                "{} stop texts are more than the limit of {MAX_STOP_TEXTS}; give fewer",
                texts.len()
            )));
        }
        for (index, text) in texts.iter().enumerate() {
            let n_bytes = text.as_ref().len();
            if n_bytes == 0 {
                return Err(Error::Argument(format!(
                    "stop text {index} is empty, and an empty text stands everywhere; leave it out"
                )));
            }
            if n_bytes > MAX_STOP_TEXT_BYTES {
                return Err(Error::Argument(format!(
                    "stop text {index} has {n_bytes} bytes, more than the limit of {MAX_STOP_TEXT_BYTES}; give a \
                     shorter one, such as its beginning"
                )));
            }
        }
        Ok(Self(
            texts
                .iter()
                .map(|text| Pattern::new(text.as_ref()))
                .collect(),
        ))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory that they take, with those of one search.
    pub fn n_bytes(&self) -> usize {
        let pattern = |it: &Pattern| {
            size_of::<Pattern>() + size_of::<usize>() + it.text.len() * (1 + size_of::<usize>())
        };
        self.0.iter().map(pattern).sum()
    }
}

/// A search for stop texts, and what it holds back.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopSearch {
    texts: StopTexts,
    /// For each text: how many bytes of its beginning stand at the end of what was said.
    n_matched: Vec<usize>,
    /// The end of what was said that may be the beginning of a stop text.
    held: String,
    /// Bytes at the beginning of `held` that are not for this search to show.
    n_foreign: usize,
    is_complete: bool,
}

impl StopSearch {
    pub(crate) fn new(texts: StopTexts) -> Self {
        Self {
            n_matched: vec![0; texts.0.len()],
            texts,
            ..Self::default()
        }
    }

    /// The search for other texts from here on. Those that both have are looked for in what was said before, too.
    pub(crate) fn with_texts(&self, texts: StopTexts) -> Self {
        let matched = |text: &Pattern| {
            let mut known = self.texts.0.iter().zip(&self.n_matched);
            known
                .find(|(known, _)| known.text == text.text)
                .map_or(0, |(_, n_matched)| *n_matched)
        };
        let mut changed = Self {
            n_matched: texts.0.iter().map(matched).collect(),
            texts,
            is_complete: self.is_complete,
            ..Self::default()
        };
        let n_held = changed.longest();
        changed.held = self.held[self.held.len() - n_held..].to_owned();
        changed.n_foreign = n_held;
        changed
    }

    /// A search that goes on from here, for what is said from now on: it finds a text that has begun before, and shows
    /// nothing that was said before.
    pub(crate) fn for_the_rest(&self) -> Self {
        Self {
            n_foreign: self.held.len(),
            is_complete: false,
            ..self.clone()
        }
    }

    /// Takes text, and gives what is certain to stand before a stop text. Behind one nothing is.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.is_complete || text.is_empty() {
            return String::new();
        }
        let n_held = self.held.len();
        self.held.push_str(text);
        let end = match self.find(text.as_bytes()) {
            // It begins within what was held, or later.
            Some((n_read, n_bytes)) => {
                self.is_complete = true;
                n_held + n_read - n_bytes
            }
            None => self.held.len() - self.longest(),
        };
        let shown = self.held[self.n_foreign.min(end)..end].to_owned();
        if self.is_complete {
            self.held.clear();
        }
        self.held.drain(..end.min(self.held.len()));
        // A piece may have been long.
        self.held.shrink_to(MAX_STOP_TEXT_BYTES);
        self.n_foreign = self.n_foreign.saturating_sub(end);
        shown
    }

    /// What is no text comes: no stop text reaches across it. Gives what was held back.
    pub(crate) fn interrupt(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let n_foreign = std::mem::take(&mut self.n_foreign).min(held.len());
        self.n_matched.fill(0);
        held[n_foreign..].to_owned()
    }

    /// Forgets what was said.
    pub(crate) fn restart(&mut self) {
        self.interrupt();
        self.is_complete = false;
    }

    /// Whether a stop text was complete.
    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Bytes of the text that it holds back.
    pub(crate) fn n_held(&self) -> usize {
        self.held.len()
    }

    /// Bytes of memory that it takes, with its texts.
    pub(crate) fn n_bytes(&self) -> usize {
        self.texts.n_bytes() + self.held.capacity()
    }

    /// The first stop text that is complete within `bytes`: how many of them were read, and how long it is.
    fn find(&mut self, bytes: &[u8]) -> Option<(usize, usize)> {
        for (index, &byte) in bytes.iter().enumerate() {
            let mut longest = 0;
            for (pattern, n_matched) in self.texts.0.iter().zip(&mut self.n_matched) {
                *n_matched = pattern.next(*n_matched, byte);
                if *n_matched == pattern.text.len() {
                    longest = longest.max(*n_matched);
                }
            }
            if longest > 0 {
                self.n_matched.fill(0);
                return Some((index + 1, longest));
            }
        }
        None
    }

    /// Bytes at the end of what was said that may begin a stop text.
    fn longest(&self) -> usize {
        self.n_matched.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is shown of a text that comes in pieces, and whether it was ended.
    fn shown(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut search = StopSearch::new(StopTexts::new(stops).unwrap());
        let mut text: String = pieces.iter().map(|piece| search.push(piece)).collect();
        text.push_str(&search.interrupt());
        (text, search.is_complete())
    }

    #[test]
    fn a_text_ends_before_the_first_stop_text_that_is_complete() {
        let check = |stops: &[&str], text: &str, expected: &str, ends: bool| {
            assert_eq!(
                shown(stops, &[text]),
                (expected.to_owned(), ends),
                "{stops:?}"
            );
            let pieces: Vec<&str> = text.split_inclusive(|_: char| true).collect();
            assert_eq!(
                shown(stops, &pieces),
                (expected.to_owned(), ends),
                "{stops:?}"
            );
        };
        check(&["\n"], "one\ntwo", "one", true);
        check(&["END"], "the EN of the END.", "the EN of the ", true);
        check(&["END"], "the EN", "the EN", false);
        check(&["aab"], "aaaab", "aa", true);
        check(&["ababac"], "abababac!", "ab", true);
        // The first that is complete, not the first that begins.
        check(&["abc", "b"], "abc", "a", true);
        // Of two that one byte completes, the longer one.
        check(&["c", "abc"], "xabc", "x", true);
        check(&["é", "ß!"], "aß?é", "aß?", true);
        check(&[], "all of it", "all of it", false);
    }

    #[test]
    fn no_part_of_a_stop_text_is_shown_before_it_is_none() {
        let mut search = StopSearch::new(StopTexts::new(&["\nUser:"]).unwrap());
        assert_eq!(search.push("yes\nUs"), "yes");
        assert_eq!(search.push("e"), "");
        assert_eq!(search.push(" it\n"), "\nUse it");
        assert_eq!(search.push("User:"), "");
        assert!(search.is_complete());
        assert_eq!(search.push("more"), "");
        search.restart();
        assert_eq!(search.push("more"), "more");
    }

    #[test]
    fn no_stop_text_reaches_across_what_is_no_text() {
        let mut search = StopSearch::new(StopTexts::new(&["ab"]).unwrap());
        assert_eq!(search.push("xa"), "x");
        assert_eq!(search.interrupt(), "a");
        assert_eq!(search.push("b"), "b");
        assert!(!search.is_complete());
    }

    #[test]
    fn the_rest_of_a_text_ends_with_a_stop_text_that_began_before() {
        let mut search = StopSearch::new(StopTexts::new(&["END"]).unwrap());
        assert_eq!(search.push("an EN"), "an ");
        let mut rest = search.for_the_rest();
        assert_eq!((rest.push("D."), rest.is_complete()), (String::new(), true));
        let mut rest = search.for_the_rest();
        assert_eq!(rest.push("oEN"), "o");
        assert_eq!(rest.interrupt(), "EN");
    }

    #[test]
    fn texts_that_stay_are_looked_for_in_what_was_said_before() {
        let mut search = StopSearch::new(StopTexts::new(&["END", "xyz"]).unwrap());
        assert_eq!(search.push("an xEN"), "an x");
        let mut changed = search.with_texts(StopTexts::new(&["END", "ND"]).unwrap());
        assert_eq!(changed.push("D"), "");
        assert!(changed.is_complete());
        let mut others = search.with_texts(StopTexts::new(&["ND"]).unwrap());
        assert_eq!(others.push("D"), "D");
        assert!(!others.is_complete());
    }

    #[test]
    fn texts_beyond_the_limits_are_refused() {
        let check = |texts: &[String], says: &str| {
            let error = StopTexts::new(texts).unwrap_err();
            assert_eq!(error.code(), "invalid-argument");
            assert!(error.to_string().contains(says), "{error}");
        };
        check(&["a".to_owned(), String::new()], "stop text 1 is empty");
        check(&["a".repeat(MAX_STOP_TEXT_BYTES + 1)], "257 bytes");
        check(&vec!["a".to_owned(); MAX_STOP_TEXTS + 1], "65 stop texts");
        let most = vec!["a".repeat(MAX_STOP_TEXT_BYTES); MAX_STOP_TEXTS];
        assert!(StopTexts::new(&most).unwrap().n_bytes() < 1 << 18);
    }

    proptest! {
        /// Whatever the pieces are, what is shown is what stands before the end of the shortest beginning of the text
        /// that ends with a stop text.
        #[test]
        fn as_a_search_in_the_whole(
            stops in prop::collection::vec("[abé]{1,4}", 0..4),
            pieces in prop::collection::vec("[abé]{0,5}", 0..6),
        ) {
            let texts = StopTexts::new(&stops).unwrap();
            let mut search = StopSearch::new(texts);
            let mut found = String::new();
            for piece in &pieces {
                found += &search.push(piece);
            }
            found += &search.interrupt();
            let whole = pieces.concat();
            let ends = (1..=whole.len()).filter(|&end| whole.is_char_boundary(end));
            let mut cut = None;
            for end in ends {
                let said = &whole[..end];
                let ending = stops.iter().filter(|stop| said.ends_with(stop.as_str()));
                if let Some(longest) = ending.map(String::len).max() {
                    cut = Some(end - longest);
                    break;
                }
            }
            prop_assert_eq!(search.is_complete(), cut.is_some());
            prop_assert_eq!(found, &whole[..cut.unwrap_or(whole.len())]);
        }
    }
}
