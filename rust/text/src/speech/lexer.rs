//! Tokens as texts and markers.

use crate::tokenizer::Tokenizer;
use crate::utf8::Utf8;

/// The markers that somebody looks for.
///
/// A marker that is a token of the tokenizer is that token alone: text which spells it is text. One that is not is
/// found in the text.
#[derive(Debug, Clone)]
pub(crate) struct Markers {
    texts: Vec<String>,
    /// Tokens that are markers.
    ids: Vec<(u32, usize)>,
    /// Markers that no token is, by the places of their texts.
    spelled: Vec<usize>,
}

/// A part of what the model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// Text, of whole characters.
    Text(&'a str),
    /// A marker, by its place among those that are looked for, with its text.
    Marker(usize, &'a str),
    /// Another control token, with its text.
    Control(u32, &'a str),
}

impl Markers {
    /// Those of these texts.
    pub(crate) fn new<S: Into<String>>(
        tokenizer: &Tokenizer,
        texts: impl IntoIterator<Item = S>,
    ) -> Self {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        let id = |text: &str| tokenizer.id_of(text);
        let places = || texts.iter().enumerate();
        Self {
            ids: places()
                .filter_map(|(place, text)| Some((id(text)?, place)))
                .collect(),
            spelled: places()
                .filter(|(_, text)| id(text).is_none() && !text.is_empty())
                .map(|(place, _)| place)
                .collect(),
            texts,
        }
    }

    /// Their texts.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether the token is a marker.
    pub(crate) fn holds(&self, id: u32) -> bool {
        self.ids.iter().any(|(marker, _)| *marker == id)
    }

    /// How many may stand in a text of so many bytes.
    pub(crate) fn most_in(&self, n_bytes: usize) -> usize {
        let shortest = self
            .spelled
            .iter()
            .map(|&place| self.texts[place].len())
            .min();
        shortest.map_or(0, |shortest| n_bytes / shortest + 1)
    }

    /// The first marker that `text` spells, and where.
    fn first_in(&self, text: &str) -> Option<(usize, usize)> {
        let found = self.spelled.iter();
        found
            .filter_map(|&place| Some((text.find(self.texts[place].as_str())?, place)))
            .min()
    }

    /// How many bytes at the end of `text` may begin a marker.
    fn n_held(&self, text: &str) -> usize {
        let begun = |marker: &str| {
            let most = text.len().min(marker.len().saturating_sub(1));
            (1..=most)
                .rev()
                .find(|&n| text.as_bytes().ends_with(&marker.as_bytes()[..n]))
                .unwrap_or(0)
        };
        let spelled = self.spelled.iter();
        spelled
            .map(|&place| begun(&self.texts[place]))
            .max()
            .unwrap_or(0)
    }
}

/// Turns tokens into items.
#[derive(Debug, Default)]
pub(crate) struct Lexer {
    utf8: Utf8,
    /// Text that may begin a marker.
    held: String,
    /// Whether a token was seen.
    begun: bool,
}

impl Lexer {
    /// Whether a token was seen since the turn began.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes a token that does not end the turn.
    pub(crate) fn take(
        &mut self,
        tokenizer: &Tokenizer,
        markers: &Markers,
        id: u32,
        is_control: bool,
        mut give: impl FnMut(Item<'_>),
    ) {
        let begins = !std::mem::replace(&mut self.begun, true);
        let marker = markers.ids.iter().find(|(marker, _)| *marker == id);
        if let Some(&(_, place)) = marker {
            self.flush(&mut give);
            give(Item::Marker(place, &markers.texts[place]));
        } else if is_control {
            self.flush(&mut give);
            let bytes = tokenizer.token_bytes(id).unwrap_or_default();
            give(Item::Control(
                id,
                std::str::from_utf8(bytes).unwrap_or_default(),
            ));
        } else {
            let mut bytes = tokenizer.token_bytes(id).unwrap_or_default();
            if begins {
                bytes = tokenizer.strip_lead(bytes);
            }
            let text = self.utf8.push(bytes);
            self.text(markers, &text, &mut give);
        }
    }

    /// Ends the turn: what is held back is given.
    pub(crate) fn end(&mut self, mut give: impl FnMut(Item<'_>)) {
        self.flush(&mut give);
        *self = Self::default();
    }

    fn text(&mut self, markers: &Markers, text: &str, give: &mut impl FnMut(Item<'_>)) {
        if markers.spelled.is_empty() {
            if !text.is_empty() {
                give(Item::Text(text));
            }
            return;
        }
        self.held.push_str(text);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while let Some((start, place)) = markers.first_in(rest) {
            if start > 0 {
                give(Item::Text(&rest[..start]));
            }
            give(Item::Marker(place, &markers.texts[place]));
            rest = &rest[start + markers.texts[place].len()..];
        }
        let (shown, kept) = rest.split_at(rest.len() - markers.n_held(rest));
        if !shown.is_empty() {
            give(Item::Text(shown));
        }
        self.held.push_str(kept);
    }

    fn flush(&mut self, give: &mut impl FnMut(Item<'_>)) {
        let torn = self.utf8.flush();
        self.held.push_str(torn);
        if !self.held.is_empty() {
            give(Item::Text(&std::mem::take(&mut self.held)));
        }
    }
}
