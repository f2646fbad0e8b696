//! How a template writes calls, text by text: what a grammar of calls is made of.

use super::calls;
use super::finding::{MarkedCall, written_calls};
use super::format::CallFormat;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

/// The texts around calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFrame {
    /// Before the first call.
    pub(crate) open: String,
    /// A call, in order.
    pub(crate) parts: Vec<CallPart>,
    /// Between two calls; none where a turn has a single one.
    pub(crate) between: Option<String>,
    /// Behind the last call, up to the token that ends the turn.
    pub(crate) close: String,
}

/// A part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallPart {
    Text(String),
    Name,
    Arguments,
    /// An id of nine letters and digits.
    Id,
}

impl CallFrame {
    /// That of a template that writes calls in a format: as it renders them, or where it renders none, in the plainest
    /// way. None where the format cannot be read back, or arguments are not written as JSON. `ends` are the tokens with
    /// which the model ends what it says.
    pub(crate) fn of(
        tokenizer: &Tokenizer,
        template: &ChatTemplate,
        format: &CallFormat,
        ends: &[u32],
    ) -> Option<Self> {
        let frame = match written_calls(template, &[MarkedCall::new(0)]) {
            Some(text) => Self::read(tokenizer, template, &text, ends)?,
            None => Self::plain(format)?,
        };
        frame.is_read(tokenizer, format, ends).then_some(frame)
    }

    /// Out of what the template writes of a call.
    fn read(
        tokenizer: &Tokenizer,
        template: &ChatTemplate,
        text: &str,
        ends: &[u32],
    ) -> Option<Self> {
        let (first, second) = (MarkedCall::new(0), MarkedCall::new(1));
        let one = Found::of(text, &first)?;
        let end_at = |text: &str| {
            let bytes = ends.iter().filter_map(|&id| tokenizer.token_bytes(id));
            let texts = bytes.filter_map(|it| std::str::from_utf8(it).ok());
            let found = texts
                .filter(|it| !it.is_empty())
                .filter_map(|it| text.find(it));
            found.min().unwrap_or(text.trim_end().len())
        };
        let rest = &text[one.end..];
        let close = &rest[..end_at(rest)];
        let open = &text[..one.start];
        let both = written_calls(template, &[first.clone(), second.clone()]);
        let between = both.and_then(|both| {
            let (one_of, other) = (Found::of(&both, &first)?, Found::of(&both, &second)?);
            let rest = &both[other.end..];
            let is_alike = one_of.parts == one.parts
                && other.parts == one.parts
                && both[..one_of.start] == *open
                && rest[..end_at(rest)] == *close;
            let between = both.get(one_of.end..other.start)?;
            is_alike.then(|| between.to_owned())
        });
        Some(Self {
            open: open.to_owned(),
            parts: one.parts,
            between,
            close: close.to_owned(),
        })
    }

    /// The plainest way of a format.
    fn plain(format: &CallFormat) -> Option<Self> {
        let text = |text: &str| CallPart::Text(text.to_owned());
        match format {
            CallFormat::Marked { begin, end } => {
                let (begin, end) = (begin.as_ref(), end.as_deref());
                let open = format!("{begin}\n{{\"name\": \"");
                let close = format!(
                    "}}{}",
                    end.map_or_else(String::new, |end| format!("\n{end}"))
                );
                Some(Self {
                    between: end.map(|_| format!("{close}\n{open}")),
                    open,
                    parts: vec![
                        CallPart::Name,
                        text("\", \"arguments\": "),
                        CallPart::Arguments,
                    ],
                    close,
                })
            }
            CallFormat::Channel => Some(Self {
                open: "<|channel|>commentary to=functions.".to_owned(),
                parts: vec![
                    CallPart::Name,
                    text(" <|constrain|>json<|message|>"),
                    CallPart::Arguments,
                ],
                between: None,
                close: String::new(),
            }),
            CallFormat::Bare { .. } => None,
        }
    }

    /// Whether calls that are written so are read again.
    fn is_read(&self, tokenizer: &Tokenizer, format: &CallFormat, ends: &[u32]) -> bool {
        let calls: Vec<MarkedCall> = (0..if self.between.is_some() { 2 } else { 1 })
            .map(MarkedCall::new)
            .collect();
        let written: Vec<String> = calls.iter().map(|call| self.written(call)).collect();
        let between = self.between.as_deref().unwrap_or_default();
        let written = written.join(between);
        let Ok(tokens) = tokenizer.encode(&format!("{}{written}{}", self.open, self.close)) else {
            return false;
        };
        let read = calls::all(tokenizer, Some(format), &tokens, ends);
        read.len() == calls.len() && calls.iter().zip(&read).all(|(call, read)| call.is(read))
    }

    fn written(&self, call: &MarkedCall) -> String {
        let [arguments, _] = call.spellings();
        let part = |part: &CallPart| match part {
            CallPart::Text(text) => text.clone(),
            CallPart::Name => call.name.clone(),
            CallPart::Arguments => arguments.clone(),
            CallPart::Id => call.id.clone(),
        };
        self.parts.iter().map(part).collect()
    }
}

/// Where a call stands in a text.
struct Found {
    start: usize,
    parts: Vec<CallPart>,
    end: usize,
}

impl Found {
    fn of(text: &str, call: &MarkedCall) -> Option<Self> {
        let once = |what: &str| {
            let mut found = text.match_indices(what);
            let (start, _) = found.next()?;
            found.next().is_none().then_some(start..start + what.len())
        };
        let spellings = call.spellings();
        let arguments = spellings.iter().find_map(|it| once(it))?;
        let mut slots = vec![
            (once(&call.name)?, CallPart::Name),
            (arguments, CallPart::Arguments),
        ];
        slots.extend(once(&call.id).map(|it| (it, CallPart::Id)));
        slots.sort_by_key(|(range, _)| range.start);
        let start = slots.first()?.0.start;
        let mut end = start;
        let mut parts = Vec::new();
        for (range, slot) in slots {
            let between = text.get(end..range.start)?;
            if !between.is_empty() {
                parts.push(CallPart::Text(between.to_owned()));
            }
            parts.push(slot);
            end = range.end;
        }
        Some(Self { start, parts, end })
    }
}
