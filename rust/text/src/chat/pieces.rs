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
//! - Tools are written with the message at which the template writes them, and never again. After messages that the
//!   template would write in another way, they are written as at the beginning of a conversation.
//! - The answer of a tool continues behind the token with which the model ended its calls. What a template writes only
//!   behind the last of several answers is left to what comes next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::role::Role;
use super::scene::{CallStyle, Particulars, Scene, mark};
use super::window::shortened;
use crate::error::{Error, Result};
use crate::limits::MAX_KEPT_BYTES;
use crate::template::{ChatTemplate, Message};
use crate::tokenizer::Tokenizer;

/// The most places in a conversation whose frames are kept.
const MAX_FRAMES: usize = 512;
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
    /// What is rendered, with the message at `at`.
    scene: Scene,
    at: usize,
    /// The rendering before the message's mark, and behind it.
    before: String,
    after: String,
    /// Where in `before` the message before this one ends, without what is written behind it; 0 when it is the first.
    previous_end: usize,
    /// The text behind the content that belongs to the message.
    closing: String,
    /// The text behind the content where nothing follows.
    last_closing: String,
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

    /// The text that the template writes behind the content where nothing follows.
    pub(super) fn last_closing(&self) -> &str {
        &self.sketch.last_closing
    }
}

/// A template, taken apart as its pieces are asked for.
pub(super) struct Pieces {
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    /// How calls are shown to the template; none where it shows none.
    calls: Option<CallStyle>,
    /// The texts of the tokens with which the model ends what it says.
    ends: Vec<String>,
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
            calls: CallStyle::of(&template),
            template,
            ends: Vec::new(),
            known: Known::new(),
            cues: Known::new(),
        }
    }

    /// The template.
    pub(super) fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Gives it the texts of the tokens with which the model ends what it says.
    pub(super) fn set_ends(&mut self, ends: Vec<String>) {
        self.ends = ends;
    }

    /// What the template writes around a message of `role` at `place`.
    ///
    /// # Errors
    /// `template-error` when the template refuses the conversation, or writes the message nowhere.
    pub(super) fn frame(
        &self,
        place: &InsertionPoint<'_>,
        role: Role,
        with: &Particulars,
    ) -> Result<Frame> {
        let mut roles = shortened(place.roles.to_vec());
        roles.push(role);
        let sketch = self.sketch(roles, with)?;
        let header = self
            .unwritten(place, &sketch.before[sketch.previous_end..], sketch.at == 0)
            .to_owned();
        Ok(Frame { header, sketch })
    }

    /// The same where the template writes the tools of `with` around the message; none where it does not.
    pub(super) fn frame_with_tools(
        &self,
        place: &InsertionPoint<'_>,
        role: Role,
        with: &Particulars,
    ) -> Option<Frame> {
        let mut roles = shortened(place.roles.to_vec());
        roles.push(role);
        if let Ok(Some(sketch)) = self.draw_in_order(&roles, with) {
            let between = &sketch.before[sketch.previous_end..];
            if sketch.at == 0 || between.starts_with(place.written) {
                let header = self.unwritten(place, between, sketch.at == 0).to_owned();
                let sketch = Arc::new(sketch);
                return Some(Frame { header, sketch });
            }
        }
        let sketch = self.draw_in_order(&[role], with).ok()??;
        let first = InsertionPoint {
            follows: true,
            ..*place
        };
        let header = self.unwritten(&first, &sketch.before, true).to_owned();
        let sketch = Arc::new(sketch);
        Some(Frame { header, sketch })
    }

    /// Whether the template writes the tools of `with` with a message of `role` at `place`.
    pub(super) fn writes_tools(
        &self,
        place: &InsertionPoint<'_>,
        role: Role,
        with: &Particulars,
    ) -> bool {
        let marked = with.with_marks();
        let frame = self.frame_with_tools(place, role, &marked);
        frame.is_some_and(|frame| {
            [frame.header(), frame.closing()]
                .iter()
                .any(|text| marked.names_stand_in(text))
        })
    }

    /// What the template writes of tools alone, behind something else.
    ///
    /// # Errors
    /// `template-error` when it does not write them.
    pub(super) fn tools_alone(&self, with: &Particulars) -> Result<String> {
        let answered = [Role::User, Role::Assistant];
        let place = InsertionPoint {
            roles: &[],
            written: "",
            follows: true,
        };
        let frame = self
            .frame_with_tools(&place, Role::User, with)
            .filter(|_| self.writes_tools(&place, Role::User, with))
            .ok_or_else(|| {
                Error::Template(
                    "the chat template of the model has no place for tools; describe them in a system message".to_owned(),
                )
            })?;
        let written = self.closing_of(&answered)?;
        let later = InsertionPoint {
            roles: &answered,
            written: &written,
            follows: false,
        };
        let plain = self.frame(&later, Role::User, &Particulars::default())?;
        Ok(match frame.header().strip_suffix(plain.header()) {
            Some(tools) => tools.to_owned(),
            // They stand inside the message: it is one of its own then.
            None => frame.header().to_owned() + frame.closing(),
        })
    }

    /// The content of a message as the template writes it: most trim it.
    ///
    /// # Errors
    /// `template-error` when the template refuses the content.
    pub(super) fn content(&self, frame: &Frame, text: &str) -> Result<String> {
        let sketch = &frame.sketch;
        let whole = self.render_scene(&sketch.scene, Some((sketch.at, text)), false)?;
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
        let roles = shortened(place.roles.to_vec());
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
        let whole = self.render_cue(&roles)?;
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
        let plain = Particulars::default();
        Ok(self.sketch(roles.to_vec(), &plain)?.closing.clone())
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
            &Particulars::default(),
        )?;
        let first = self.sketch(vec![Role::User], &Particulars::default())?;
        Ok(first
            .before
            .strip_suffix(later.header())
            .unwrap_or_default()
            .to_owned())
    }

    fn cue_after_question(&self) -> Result<String> {
        let roles = [Role::User];
        let closing = self.closing_of(&roles)?;
        let whole = self.render_cue(&roles)?;
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
    fn sketch(&self, roles: Vec<Role>, with: &Particulars) -> Result<Arc<Sketch>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !with.is_plain() {
            return Ok(Arc::new(self.draw(&roles, with)?));
        }
        if let Some(sketch) = known().found.get(&roles) {
            return Ok(Arc::clone(sketch));
        }
        let sketch = Arc::new(self.draw(&roles, with)?);
        if !self.template.reads_clock() {
            let texts = [&sketch.before, &sketch.after, &sketch.closing];
            let n_bytes = texts.iter().map(|text| text.len()).sum();
            known().keep(roles, Arc::clone(&sketch), n_bytes);
        }
        Ok(sketch)
    }

    /// Draws the sketch of the last of `roles`; where the others are not in order there, as if system messages had not
    /// been said, and at last as if it followed a question and an answer.
    fn draw(&self, roles: &[Role], with: &Particulars) -> Result<Sketch> {
        let Some((&role, before)) = roles.split_last() else {
            return Err(Error::Template(
                "the chat template was asked for a message of nobody".to_owned(),
            ));
        };
        // A refusal is of the program's conversation, save where an answer stands behind no call.
        let behind_a_call = matches!(before.last(), Some(Role::Assistant | Role::Tool));
        match self.draw_in_order(roles, with) {
            Ok(Some(sketch)) => return Ok(sketch),
            Err(error) if role != Role::Tool || behind_a_call => return Err(error),
            _ => {}
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
            if let Ok(Some(sketch)) = self.draw_in_order(&[others, &[role]].concat(), with) {
                return Ok(sketch);
            }
        }
        Err(Error::Template(format!(
            "the chat template leaves out the {} message at this place of the conversation; append its text raw, or say it elsewhere",
            role.name()
        )))
    }

    /// Draws the sketch of the last of `roles`. `None` when the rendering does not show it right behind the others.
    fn draw_in_order(&self, roles: &[Role], with: &Particulars) -> Result<Option<Sketch>> {
        let Some((&role, before)) = roles.split_last() else {
            return Ok(None);
        };
        let at = before.len();
        let last = self.render(roles, at, with, false);
        let followed = |by: Role| [roles, &[by]].concat();
        // What follows a user is the assistant; whatever else was said, a user may follow.
        let more = if matches!(role, Role::User | Role::Tool) {
            self.render(roles, at, with, true)
        } else {
            self.render(&followed(Role::User), at, with, false)
        };
        let last_tail = behind(&last, at);
        let more_tail = behind(&more, at);
        let mut closing = self.closing_within(role, last_tail.as_deref(), more_tail.as_deref());
        if role == Role::Tool {
            let another = self.render(&followed(Role::Tool), at, with, false);
            if let Some(tail) = behind(&another, at) {
                closing.truncate(self.common_of_answers(&closing, &tail));
            }
        }
        let (roles, whole) = match (role, last_tail.is_some(), more_tail.is_some()) {
            (Role::Assistant, _, true) | (Role::System, false, true) => {
                (followed(Role::User), more?)
            }
            (_, true, _) => (roles.to_vec(), last?),
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
        let Some(previous_end) = self.end_of_previous(head, before, role) else {
            return Ok(None);
        };
        if (0..at).any(|other| head[previous_end..].contains(&mark(other))) {
            return Ok(None);
        }
        Ok(Some(Sketch {
            scene: Scene {
                roles,
                at,
                with: with.clone(),
            },
            at,
            before: head.to_owned(),
            after: tail[mark(at).len()..].to_owned(),
            previous_end,
            last_closing: last_tail.unwrap_or_else(|| closing.clone()),
            closing,
        }))
    }

    /// What belongs to a message of `role` of the text behind its content: where it is the last, and where another
    /// message follows.
    fn closing_within(&self, role: Role, last: Option<&str>, more: Option<&str>) -> String {
        let (Some(last), Some(more)) = (last, more) else {
            return last.unwrap_or_default().to_owned();
        };
        let closing = &last[..self.common(last, more)];
        if closing.is_empty() && role == Role::Assistant {
            return self.other_end(last, more);
        }
        closing.to_owned()
    }

    /// Where in the rendering before a message of `role` the one before it ends.
    fn end_of_previous(&self, head: &str, before: &[Role], role: Role) -> Option<usize> {
        let Some(previous) = before.len().checked_sub(1) else {
            return Some(0);
        };
        let end = head.rfind(&mark(previous))? + mark(previous).len();
        if role != Role::Tool || before.last() != Some(&Role::Assistant) {
            return Some(end);
        }
        // The rest of the call is the model's, up to the token with which it ends.
        let tail = &head[end..];
        let ends = self
            .ends
            .iter()
            .filter_map(|token| tail.find(token.as_str()));
        if let Some(at) = ends.min() {
            return Some(end + at);
        }
        let plain = self.closing_of(&[Role::User, Role::Assistant]).ok()?;
        let at = tail.find(&plain).filter(|_| !plain.is_empty())?;
        Some(end + at)
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

    /// The token with which an answer ends where the conversation continues, `more`, if it is another than where it
    /// does not, `last`.
    fn other_end(&self, last: &str, more: &str) -> String {
        let first = |text: &str| self.tokenizer.pieces_of(text).into_iter().next();
        match (first(last), first(more)) {
            (Some((_, Some(_))), Some((end, Some(_)))) => end,
            _ => String::new(),
        }
    }

    /// The text behind an answer that nothing follows.
    ///
    /// # Errors
    /// `template-error` when the template refuses a question and its answer.
    pub(super) fn last_ending(&self) -> Result<String> {
        let roles = [Role::User, Role::Assistant];
        let last = self.render(&roles, roles.len(), &Particulars::default(), false)?;
        Ok(behind(&Ok(last), 1).unwrap_or_default())
    }

    /// How much of `written` stands at the front of `text`, as of [`Pieces::common`], where a text may go on.
    fn common_of_answers(&self, written: &str, text: &str) -> usize {
        let n_common = self.common(written, text);
        let left = self.tokenizer.split_at_added(&written[n_common..]);
        match left.first() {
            Some(first) if text[n_common..].starts_with(first) => n_common + first.len(),
            _ => n_common,
        }
    }

    /// The rendering of a conversation with marks for contents, the message at `at` as `with` says.
    fn render(&self, roles: &[Role], at: usize, with: &Particulars, cue: bool) -> Result<String> {
        let scene = Scene {
            roles: roles.to_vec(),
            at,
            with: with.clone(),
        };
        self.render_scene(&scene, None, cue)
    }

    /// The rendering of a plain conversation, with what opens the assistant's turn.
    fn render_cue(&self, roles: &[Role]) -> Result<String> {
        self.render(roles, roles.len(), &Particulars::default(), true)
    }

    /// The rendering of a scene; the message of that place has this content.
    fn render_scene(
        &self,
        scene: &Scene,
        content: Option<(usize, &str)>,
        cue: bool,
    ) -> Result<String> {
        let marks: Vec<String> = (0..scene.roles.len()).map(mark).collect();
        let mut messages: Vec<Message<'_>> = scene.messages(&marks, self.calls);
        if let Some((place, text)) = content
            && let Some(message) = messages.get_mut(place)
        {
            message.content = Some(text);
        }
        self.template.render(&messages, scene.with.tools(), cue)
    }
}

/// The text behind the mark of the message at `at`, up to the next one.
fn behind(text: &Result<String>, at: usize) -> Option<String> {
    let text = text.as_ref().ok()?;
    let tail = &text[only(text, &mark(at))? + mark(at).len()..];
    let next = tail.find(&mark(at + 1)).unwrap_or(tail.len());
    Some(tail[..next].to_owned())
}

/// Where `mark` stands, if it stands once.
fn only(text: &str, mark: &str) -> Option<usize> {
    let start = text.find(mark)?;
    (!text[start + mark.len()..].contains(mark)).then_some(start)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use chrono::DateTime;

    use super::*;
    use crate::special::SpecialTokens;

    /// What a template writes before the first question, and before the answer, on two days.
    fn on_two_days(source: &str) -> [[String; 2]; 2] {
        let bytes = include_bytes!("../../tests/data/byte_level.json");
        let tokenizer = Arc::new(Tokenizer::from_bytes(bytes, 0).unwrap());
        let today = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&today);
        let now = move || {
            let s = clock.load(Ordering::Relaxed) * 86_400;
            DateTime::from_timestamp(s, 0)
                .unwrap_or_default()
                .naive_utc()
        };
        let template = ChatTemplate::with_clock(source, SpecialTokens::default(), now).unwrap();
        let pieces = Pieces::new(tokenizer, template);
        [0, 1].map(|day| {
            today.store(day, Ordering::Relaxed);
            let place = |roles| InsertionPoint {
                roles,
                written: "",
                follows: false,
            };
            let plain = Particulars::default();
            let frame = pieces.frame(&place(&[]), Role::User, &plain).unwrap();
            [
                frame.header().to_owned(),
                pieces.cue(&place(&[Role::User])).unwrap(),
            ]
        })
    }

    // rows: RS-042..046
    #[test]
    fn what_the_clock_says_is_never_kept() {
        const MESSAGES: &str = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
        let day = "{{ strftime_now('%d') }}";
        let found = on_two_days(&format!(
            "{day}{MESSAGES}{{% if add_generation_prompt %}}>{day}{{% endif %}}"
        ));
        assert_eq!(found, [["01[", "]>01"], ["02[", "]>02"]]);
    }

    #[test]
    fn what_no_clock_says_is_kept() {
        let bytes = include_bytes!("../../tests/data/byte_level.json");
        let tokenizer = Arc::new(Tokenizer::from_bytes(bytes, 0).unwrap());
        let source = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
        let template = ChatTemplate::new(source, SpecialTokens::default()).unwrap();
        let pieces = Pieces::new(tokenizer, template);
        let plain = Particulars::default();
        let [first, second] = [0, 1].map(|_| pieces.sketch(vec![Role::User], &plain).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
    }
}
