//! What a template writes around each message, read off its renderings.
//!
//! A conversation is rendered with a mark in place of each content. What stands between the marks of two neighbours is
//! the closing of the first and the header of the second. The closing is what is written behind a message that nothing
//! follows, as far as it is also written when something does. So every template whose messages stand in order can be
//! taken apart, without knowing it.
//!
//! A template may place messages in another way. One rule covers it: what was said is kept where it was said.
//! - A message that is only rendered together with the next one (a system prompt inside the first question) has no
//!   closing of its own; what stands between belongs to the next.
//! - A message that moves as the conversation continues (a system prompt inside the last question) stays where it was
//!   said; messages after it are placed as if it had not been said.
//! - An assistant's message is written as it is when the conversation continues, not as when it is the last (without an
//!   empty thinking block).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::role::Role;
use crate::error::{Error, Result};
use crate::limits::MAX_KEPT_BYTES;
use crate::template::{ChatTemplate, Message};
use crate::tokenizer::Tokenizer;

/// The most places in a conversation whose frames are kept.
const MAX_FRAMES: usize = 512;
/// The most turns that are rendered as they are to find a frame.
const MAX_TURNS: usize = 12;
/// Of a longer conversation, how many turns of its beginning stay: a system prompt and the first exchange.
const N_FIRST: usize = 3;
/// And how many of its end.
const N_LAST: usize = 4;

/// A place in a conversation, where a message or a cue is to stand.
pub(super) struct InsertionPoint<'a> {
    /// Who spoke before, in order.
    pub(super) roles: &'a [Role],
    /// The template's text behind the last content, which is already written.
    pub(super) written: &'a str,
    /// Whether the first turn does not begin the context.
    pub(super) follows: bool,
}

/// What a template writes around a message at one place.
pub(super) struct Frame {
    /// The text before the content, without what is already written.
    header: String,
    sketch: Arc<Sketch>,
}

/// What a template writes around a message after others.
struct Sketch {
    /// Who speaks in the rendering, the message's own role at `at`.
    roles: Vec<Role>,
    at: usize,
    /// The rendering before the message's mark, and behind it.
    before: String,
    after: String,
    /// Where in `before` the content of the message before this one ends; 0 when it is the first.
    previous_end: usize,
    /// The text behind the content that belongs to the message.
    closing: String,
}

impl Frame {
    /// The text that the template writes before the content.
    pub(super) fn header(&self) -> &str {
        &self.header
    }

    /// The text that the template writes behind the content.
    pub(super) fn closing(&self) -> &str {
        &self.sketch.closing
    }
}

/// A template, taken apart as its pieces are asked for.
pub(super) struct Pieces {
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    /// Sketches by who speaks; none when the template reads the clock.
    known: Mutex<Known<Arc<Sketch>>>,
    /// What is written behind the last of these turns to open the assistant's; none when the template reads the clock.
    cues: Mutex<Known<Option<Arc<str>>>>,
}

/// What was found for the places of a conversation.
struct Known<T> {
    found: HashMap<Vec<Role>, T>,
    n_bytes: usize,
}

impl<T> Known<T> {
    fn new() -> Mutex<Self> {
        Mutex::new(Self {
            found: HashMap::new(),
            n_bytes: 0,
        })
    }

    /// Keeps what was found for a place, which has so many bytes; of too much all is forgotten.
    fn keep(&mut self, roles: Vec<Role>, found: T, n_bytes: usize) {
        if n_bytes > MAX_KEPT_BYTES {
            return;
        }
        self.n_bytes += n_bytes;
        if self.found.len() >= MAX_FRAMES || self.n_bytes > MAX_KEPT_BYTES {
            self.found.clear();
            self.n_bytes = n_bytes;
        }
        self.found.insert(roles, found);
    }
}

impl Pieces {
    pub(super) fn new(tokenizer: Arc<Tokenizer>, template: ChatTemplate) -> Self {
        Self {
            tokenizer,
            template,
            known: Known::new(),
            cues: Known::new(),
        }
    }

    /// What the template writes around a message of `role` at `place`.
    ///
    /// # Errors
    /// `template-error` when the template refuses the conversation, or writes the message nowhere.
    pub(super) fn frame(&self, place: &InsertionPoint<'_>, role: Role) -> Result<Frame> {
        let mut roles = window(place.roles);
        roles.push(role);
        let sketch = self.sketch(roles)?;
        let header = self
            .unwritten(place, &sketch.before[sketch.previous_end..], sketch.at == 0)
            .to_owned();
        Ok(Frame { header, sketch })
    }

    /// The content of a message as the template writes it: most trim it.
    ///
    /// # Errors
    /// `template-error` when the template refuses the content.
    pub(super) fn content(&self, frame: &Frame, text: &str) -> Result<String> {
        let sketch = &frame.sketch;
        let marks: Vec<String> = (0..sketch.roles.len()).map(mark).collect();
        let content = |place: usize| {
            if place == sketch.at {
                text
            } else {
                marks.get(place).map_or("", String::as_str)
            }
        };
        let messages: Vec<Message<'_>> = sketch
            .roles
            .iter()
            .enumerate()
            .map(|(place, role)| Message {
                role: role.name(),
                content: content(place),
            })
            .collect();
        let whole = self.template.render(&messages, false)?;
        let written = whole
            .strip_prefix(sketch.before.as_str())
            .and_then(|rest| rest.strip_suffix(sketch.after.as_str()));
        // A template that writes other things around this very content would split what was said: the content stays as
        // it is.
        Ok(written.unwrap_or(text).to_owned())
    }

    /// What the template writes to open the assistant's turn at `place`.
    ///
    /// # Errors
    /// `template-error` when the template refuses the conversation.
    pub(super) fn cue(&self, place: &InsertionPoint<'_>) -> Result<String> {
        let roles = window(place.roles);
        let Some(last) = roles.len().checked_sub(1) else {
            return Ok(self.opening()? + &self.cue_after_question()?);
        };
        match self.tail(roles, last)? {
            Some(tail) => Ok(self.unwritten(place, &tail, false).to_owned()),
            None => self.cue_after_question(),
        }
    }

    /// What the template writes behind the last of `roles` where the assistant's turn is to be opened; `None` when it
    /// leaves that message out.
    fn tail(&self, roles: Vec<Role>, last: usize) -> Result<Option<Arc<str>>> {
        let known = || self.cues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = known().found.get(&roles) {
            return Ok(tail.clone());
        }
        let whole = self.render(&roles, true)?;
        let tail: Option<Arc<str>> =
            only(&whole, &mark(last)).map(|at| whole[at + mark(last).len()..].into());
        if !self.template.reads_clock() {
            let n_bytes = tail.as_deref().map_or(0, str::len);
            known().keep(roles, tail.clone(), n_bytes);
        }
        Ok(tail)
    }

    /// What the template writes behind the content of the last of `roles`.
    ///
    /// # Errors
    /// As [`Pieces::frame`].
    pub(super) fn closing_of(&self, roles: &[Role]) -> Result<String> {
        Ok(self.sketch(roles.to_vec())?.closing.clone())
    }

    /// What the template writes before the first message of a conversation, whoever says it.
    fn opening(&self) -> Result<String> {
        let answered = [Role::User, Role::Assistant];
        let written = self.closing_of(&answered)?;
        let later = self.frame(
            &InsertionPoint {
                roles: &answered,
                written: &written,
                follows: false,
            },
            Role::User,
        )?;
        let first = self.sketch(vec![Role::User])?;
        Ok(first
            .before
            .strip_suffix(later.header())
            .unwrap_or_default()
            .to_owned())
    }

    fn cue_after_question(&self) -> Result<String> {
        let roles = [Role::User];
        let closing = self.closing_of(&roles)?;
        let whole = self.render(&roles, true)?;
        let tail = only(&whole, &mark(0)).map_or("", |at| &whole[at + mark(0).len()..]);
        Ok(self
            .unwritten(
                &InsertionPoint {
                    roles: &roles,
                    written: &closing,
                    follows: false,
                },
                tail,
                false,
            )
            .to_owned())
    }

    /// Of the text between two contents, or before the first, what is still to be written.
    fn unwritten<'t>(&self, place: &InsertionPoint<'_>, text: &'t str, first: bool) -> &'t str {
        if first {
            let begin = self
                .template
                .special()
                .get("bos_token")
                .filter(|_| place.follows)
                .unwrap_or_default();
            return text.strip_prefix(begin).unwrap_or(text);
        }
        &text[self.common(place.written, text)..]
    }

    /// The sketch of the last of `roles` after the others.
    fn sketch(&self, roles: Vec<Role>) -> Result<Arc<Sketch>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sketch) = known().found.get(&roles) {
            return Ok(Arc::clone(sketch));
        }
        let sketch = Arc::new(self.draw(&roles)?);
        if !self.template.reads_clock() {
            let texts = [&sketch.before, &sketch.after, &sketch.closing];
            let n_bytes = texts.iter().map(|text| text.len()).sum();
            known().keep(roles, Arc::clone(&sketch), n_bytes);
        }
        Ok(sketch)
    }

    /// Draws the sketch of the last of `roles`; where the others are not in order there, as if system messages had not
    /// been said, and at last as if it followed a question and an answer.
    fn draw(&self, roles: &[Role]) -> Result<Sketch> {
        let Some((&role, before)) = roles.split_last() else {
            return Err(Error::Template(
                "the chat template was asked for a message of nobody".to_owned(),
            ));
        };
        if let Some(sketch) = self.draw_in_order(before, role)? {
            return Ok(sketch);
        }
        let plain: Vec<Role> = before
            .iter()
            .copied()
            .filter(|role| *role != Role::System)
            .collect();
        let generic: &[Role] = if role == Role::Assistant {
            &[Role::User]
        } else {
            &[Role::User, Role::Assistant]
        };
        for others in [plain.as_slice(), generic] {
            // A first message would begin the conversation again.
            if others.is_empty() {
                continue;
            }
            // A refusal here is not of the program's conversation.
            if let Ok(Some(sketch)) = self.draw_in_order(others, role) {
                return Ok(sketch);
            }
        }
        Err(Error::Template(format!(
            "the chat template leaves out the {} message at this place of the conversation; append its text raw, or say it elsewhere",
            role.name()
        )))
    }

    /// Draws the sketch of a message of `role` after `before`. `None` when the rendering does not show it right behind
    /// the others.
    fn draw_in_order(&self, before: &[Role], role: Role) -> Result<Option<Sketch>> {
        let at = before.len();
        let mut alone = before.to_vec();
        alone.push(role);
        let mut followed = alone.clone();
        let last = self.render(&alone, false);
        // What follows a user is the assistant; whatever else was said, a user may follow.
        let more = if role == Role::User {
            self.render(&alone, true)
        } else {
            followed.push(Role::User);
            self.render(&followed, false)
        };
        let spot =
            |text: &Result<String>| text.as_ref().ok().and_then(|text| only(text, &mark(at)));
        let behind = |text: &str, start: usize| {
            let tail = &text[start + mark(at).len()..];
            tail[..tail.find(&mark(at + 1)).unwrap_or(tail.len())].to_owned()
        };
        let last_tail = spot(&last).and_then(|start| Some(behind(last.as_ref().ok()?, start)));
        let more_tail = spot(&more).and_then(|start| Some(behind(more.as_ref().ok()?, start)));
        let closing = match (&last_tail, &more_tail) {
            (Some(last), Some(more)) => last[..self.common(last, more)].to_owned(),
            (Some(last), None) => last.clone(),
            (None, _) => String::new(),
        };
        let (roles, whole) = match (role, last_tail.is_some(), more_tail.is_some()) {
            (Role::Assistant, _, true) | (Role::System, false, true) => (followed, more?),
            (_, true, _) => (alone, last?),
            _ => {
                // The template refused the conversation, or leaves the message out.
                last?;
                return Ok(None);
            }
        };
        let Some(start) = only(&whole, &mark(at)) else {
            return Ok(None);
        };
        let (head, tail) = whole.split_at(start);
        let previous_end = match at.checked_sub(1) {
            None => 0,
            Some(previous) => match head.rfind(&mark(previous)) {
                Some(start) => start + mark(previous).len(),
                None => return Ok(None),
            },
        };
        if (0..at).any(|other| head[previous_end..].contains(&mark(other))) {
            return Ok(None);
        }
        let after = tail[mark(at).len()..].to_owned();
        Ok(Some(Sketch {
            roles,
            at,
            before: head.to_owned(),
            after,
            previous_end,
            closing,
        }))
    }

    /// How much of `written` stands at the front of `text`, in bytes: all of it, or as many whole control tokens and
    /// texts between them.
    fn common(&self, written: &str, text: &str) -> usize {
        if text.starts_with(written) {
            return written.len();
        }
        let mut n_common = 0;
        for (left, right) in self
            .tokenizer
            .split_at_added(written)
            .into_iter()
            .zip(self.tokenizer.split_at_added(text))
        {
            if left != right {
                break;
            }
            n_common += left.len();
        }
        n_common
    }

    /// The rendering of a conversation with marks for contents.
    fn render(&self, roles: &[Role], cue: bool) -> Result<String> {
        let marks: Vec<String> = (0..roles.len()).map(mark).collect();
        let messages: Vec<Message<'_>> = roles
            .iter()
            .zip(&marks)
            .map(|(role, mark)| Message {
                role: role.name(),
                content: mark,
            })
            .collect();
        self.template.render(&messages, cue)
    }
}

/// What stands for the content of the message at `place`: a word that no template changes or writes itself.
fn mark(place: usize) -> String {
    format!("QcontentZ{place:06}Q")
}

/// Where `mark` stands, if it stands once.
fn only(text: &str, mark: &str) -> Option<usize> {
    let start = text.find(mark)?;
    (!text[start + mark.len()..].contains(mark)).then_some(start)
}

/// A conversation short enough to render: turns in its middle are left out.
///
/// How a template writes a message depends on its neighbours, on how the conversation began, and on whether an even or
/// odd number of turns came before (roles that must alternate), not on how many. So an even number of turns is left
/// out, and the turn behind them keeps a neighbour of the same role.
fn window(roles: &[Role]) -> Vec<Role> {
    let mut roles = roles.to_vec();
    while roles.len() > MAX_TURNS {
        let latest = roles.len() - N_LAST;
        let spot = |at: usize| (roles.get(at - 1), at % 2);
        let mut seen = HashSet::new();
        let cut = (N_FIRST..latest)
            .filter(|&start| seen.insert(spot(start)))
            .filter_map(|start| {
                Some(
                    start
                        ..(start + 1..=latest)
                            .rev()
                            .find(|&end| spot(end) == spot(start))?,
                )
            })
            .max_by_key(ExactSizeIterator::len);
        match cut {
            Some(cut) => roles.drain(cut),
            None => break,
        };
    }
    roles
}
