//! Messages with channels, as the harmony format has them: `<|channel|>analysis<|message|>...<|end|>`. What stands
//! before `<|message|>` says where the message goes.

use super::lexer::Item;

/// A part of what the model says in channels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A message begins, with all of its header.
    Begin(&'a str),
    /// Text of the message.
    Body(&'a str),
    /// The message ended.
    End,
}

/// Tells messages and their headers apart.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    header: String,
    in_body: bool,
    /// Whether a marker stands in the header or opened it.
    is_marked: bool,
}

impl Channels {
    /// The markers that it needs, in the order that it knows them by.
    pub(crate) const MARKERS: [&str; 5] = [
        "<|message|>",
        "<|start|>",
        "<|end|>",
        "<|channel|>",
        "<|constrain|>",
    ];
    const MESSAGE: usize = 0;
    const START: usize = 1;
    const CHANNEL: usize = 3;
    const CONSTRAIN: usize = 4;

    /// Takes an item of [`Channels::MARKERS`]; a further marker ends a message.
    pub(crate) fn take(&mut self, item: Item<'_>, mut give: impl FnMut(Part<'_>)) {
        match item {
            Item::Marker(Self::MESSAGE, _) if !self.in_body => {
                self.in_body = true;
                self.is_marked = false;
                give(Part::Begin(&self.header));
                self.header.clear();
            }
            Item::Marker(Self::CHANNEL | Self::CONSTRAIN, text) if !self.in_body => {
                self.header.push_str(text);
                self.is_marked = true;
            }
            Item::Marker(marker, _) => {
                self.end(give);
                self.is_marked = marker == Self::START;
            }
            Item::Text(text) if self.in_body => give(Part::Body(text)),
            Item::Text(text) => self.header.push_str(text),
            Item::Control(..) => {}
        }
    }

    /// The turn ends. Returns what would be a header and has no marker: the header stands before the turn then, and
    /// this is what was said.
    pub(crate) fn end(&mut self, mut give: impl FnMut(Part<'_>)) -> String {
        let header = std::mem::take(&mut self.header);
        let is_marked = std::mem::take(&mut self.is_marked);
        if std::mem::take(&mut self.in_body) {
            give(Part::End);
        }
        if is_marked { String::new() } else { header }
    }

    /// Whether a message is under way, behind its header.
    pub(crate) fn is_in_body(&self) -> bool {
        self.in_body
    }

    /// Bytes that it holds.
    pub(crate) fn n_bytes(&self) -> usize {
        self.header.len()
    }

    /// The channel that a header names.
    pub(crate) fn channel(header: &str) -> &str {
        let rest = header
            .rsplit_once("<|channel|>")
            .map_or("", |(_, rest)| rest);
        let end = rest.find(|each: char| each.is_whitespace() || each == '<');
        &rest[..end.unwrap_or(rest.len())]
    }

    /// The function that a header calls: `to=functions.NAME`.
    pub(crate) fn function(header: &str) -> Option<&str> {
        let (_, rest) = header.split_once("to=functions.")?;
        let end = rest.find(|each: char| each.is_whitespace() || each == '<');
        Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
    }
}
