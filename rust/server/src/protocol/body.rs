//! What a message of the server says, held as it lies elsewhere and written by the piece: the texts and the files of
//! events are neither copied nor escaped as a whole, which could make six bytes of one.

use std::io::{self, Write};
use std::sync::Arc;

use pie_host::{Event, Failure, LogText};
use serde_json::Value;

use crate::threads::TimeSlice;

/// Bytes of a text that are escaped at once.
const SLICE_BYTES: usize = 2 << 10;

/// A message of the server.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    is_binary: bool,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    /// As it stands.
    Plain(String),
    /// The length of a header of a binary message.
    Length([u8; 4]),
    /// A text of an event, as a JSON string.
    Quoted(Arc<Event>, Field),
    /// The bytes of a file.
    File(Arc<Event>),
}

/// Which text of an event.
#[derive(Clone, Copy, Debug)]
enum Field {
    Text,
    Message,
    Kind,
    Traceback,
}

impl Body {
    /// A JSON text.
    pub(crate) fn json(value: &Value) -> Self {
        Self {
            is_binary: false,
            parts: vec![Part::Plain(value.to_string())],
        }
    }

    /// The answer to a request for a list: the rows under their name. They are made and written in turns with others.
    pub(crate) async fn list(id: u64, name: &str, rows: impl Iterator<Item = Value>) -> Self {
        let mut body = Self::empty();
        body.plain(format!("{{\"id\":{id},\"ok\":{{\"{name}\":["));
        let mut time_slice = TimeSlice::new();
        for (n, row) in rows.enumerate() {
            body.plain(if n == 0 {
                String::new()
            } else {
                ",".to_owned()
            });
            body.plain(row.to_string());
            time_slice.pause().await;
        }
        body.plain("]}}".to_owned());
        body
    }

    /// The answer to `outcome`: how a process ended.
    pub(crate) fn outcome(id: u64, last: Option<&Arc<Event>>) -> Self {
        let mut body = Self::empty();
        body.plain(format!("{{\"id\":{id},\"ok\":{{\"outcome\":"));
        match last {
            Some(event) => {
                body.plain("{".to_owned());
                body.fields(event);
                body.plain("}".to_owned());
            }
            None => body.plain("null".to_owned()),
        }
        body.plain("}}".to_owned());
        body
    }

    /// The answer to `logs`.
    pub(crate) fn log(id: u64, log: LogText) -> Self {
        let LogText {
            text,
            next,
            n_dropped_bytes,
            ended,
        } = log;
        let mut body = Self::empty();
        body.plain(format!(
            "{{\"id\":{id},\"ok\":{{\"next\":{next},\"dropped_bytes\":{n_dropped_bytes},\"ended\":{ended}"
        ));
        body.quoted("text", &Arc::new(Event::Stdout(text)), Field::Text);
        body.plain("}}".to_owned());
        body
    }

    /// An event of a process.
    pub(crate) fn event(pid: u64, seq: u64, event: &Arc<Event>) -> Self {
        let mut body = Self::empty();
        body.plain(format!("{{\"type\":\"event\",\"pid\":{pid},\"seq\":{seq},"));
        body.fields(event);
        body.plain("}".to_owned());
        if let Event::File(_) = **event {
            // A header of the server is a few dozen bytes.
            let n_bytes = u32::try_from(body.held_text_bytes()).unwrap_or(0);
            body.is_binary = true;
            body.parts.insert(0, Part::Length(n_bytes.to_le_bytes()));
            body.parts.push(Part::File(event.clone()));
        }
        body
    }

    pub(crate) fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Bytes that are held as long as this is: texts, and the event that it speaks of.
    pub(crate) fn held_bytes(&self) -> usize {
        let event = self.parts.iter().find_map(|part| match part {
            Part::Quoted(event, _) | Part::File(event) => Some(event),
            Part::Plain(_) | Part::Length(_) => None,
        });
        self.held_text_bytes() + event.map_or(0, |event| event.payload_bytes())
    }

    fn held_text_bytes(&self) -> usize {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Plain(text) => text.len(),
                _ => 0,
            })
            .sum()
    }

    /// Bytes of the whole as it is written. A long text is gone through in turns with others.
    pub(crate) async fn count(&self) -> usize {
        let mut n_bytes = 0;
        let mut time_slice = TimeSlice::new();
        for part in &self.parts {
            match part {
                Part::Quoted(event, field) => {
                    let mut text = field.of(event);
                    n_bytes += 2;
                    while !text.is_empty() {
                        let (slice, rest) = text.split_at(text.floor_char_boundary(SLICE_BYTES));
                        n_bytes += escaped_bytes(slice);
                        text = rest;
                        time_slice.pause().await;
                    }
                }
                part => n_bytes += part.as_it_stands().len(),
            }
        }
        n_bytes
    }

    /// The whole, from its first byte on.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        Pieces {
            parts: self.parts.iter(),
            rest: Rest::None,
        }
    }

    fn empty() -> Self {
        Self {
            is_binary: false,
            parts: Vec::new(),
        }
    }

    fn plain(&mut self, text: String) {
        if let Some(Part::Plain(before)) = self.parts.last_mut() {
            before.push_str(&text);
        } else {
            self.parts.push(Part::Plain(text));
        }
    }

    fn quoted(&mut self, name: &str, event: &Arc<Event>, field: Field) {
        self.plain(format!(",\"{name}\":"));
        self.parts.push(Part::Quoted(event.clone(), field));
    }

    /// What an event says, without whose it is; of a file, only that it is one.
    fn fields(&mut self, event: &Arc<Event>) {
        let kind = match **event {
            Event::Stdout(_) | Event::Sent(..) => "stdout",
            Event::Stderr(_) => "stderr",
            Event::Message(_) => "message",
            Event::Notice(_) => "notice",
            Event::Return(_) => "return",
            Event::Error(_) => "error",
            Event::File(_) => "file",
        };
        self.plain(format!("\"kind\":\"{kind}\""));
        match &**event {
            Event::Sent(_, form) => {
                self.plain(format!(",\"form\":\"{}\"", form.as_str()));
                self.quoted("text", event, Field::Text);
            }
            Event::Stdout(_) | Event::Stderr(_) | Event::Message(_) | Event::Notice(_) => {
                self.quoted("text", event, Field::Text);
            }
            Event::Return(_) => self.quoted("value", event, Field::Text),
            Event::Error(Failure { code, .. }) => {
                let code = serde_json::json!(code);
                self.plain(format!(",\"code\":{code}"));
                self.quoted("message", event, Field::Message);
                self.quoted("error_kind", event, Field::Kind);
                self.quoted("traceback", event, Field::Traceback);
            }
            Event::File(_) => {}
        }
    }
}

impl Part {
    /// The bytes of a part that is written as it is held.
    fn as_it_stands(&self) -> &[u8] {
        match self {
            Self::Plain(text) => text.as_bytes(),
            Self::Length(bytes) => bytes,
            Self::File(event) => match &**event {
                Event::File(data) => data,
                _ => &[],
            },
            Self::Quoted(..) => &[],
        }
    }
}

impl Field {
    fn of(self, event: &Event) -> &str {
        match (self, event) {
            (
                Self::Text,
                Event::Stdout(text)
                | Event::Sent(text, _)
                | Event::Stderr(text)
                | Event::Message(text)
                | Event::Notice(text)
                | Event::Return(text),
            ) => text,
            (Self::Message, Event::Error(failure)) => &failure.message,
            (Self::Kind, Event::Error(failure)) => &failure.kind,
            (Self::Traceback, Event::Error(failure)) => &failure.traceback,
            _ => "",
        }
    }
}

/// What is left of a body.
pub(crate) struct Pieces<'a> {
    parts: std::slice::Iter<'a, Part>,
    rest: Rest<'a>,
}

enum Rest<'a> {
    None,
    Bytes(&'a [u8]),
    /// A text, and after it a quotation mark.
    Quoted(&'a str),
}

impl Pieces<'_> {
    /// Adds to `buffer` until it holds about `most` bytes; false when the end of the body stands in it.
    pub(crate) fn fill(&mut self, buffer: &mut Vec<u8>, most: usize) -> bool {
        while buffer.len() < most {
            let room = most - buffer.len();
            self.rest = match std::mem::replace(&mut self.rest, Rest::None) {
                Rest::Bytes(bytes) if bytes.len() > room => {
                    let (now, later) = bytes.split_at(room);
                    buffer.extend_from_slice(now);
                    Rest::Bytes(later)
                }
                Rest::Bytes(bytes) => {
                    buffer.extend_from_slice(bytes);
                    Rest::None
                }
                Rest::Quoted("") => {
                    buffer.push(b'"');
                    Rest::None
                }
                Rest::Quoted(text) => {
                    let (slice, later) = text.split_at(text.floor_char_boundary(SLICE_BYTES));
                    escape(slice, buffer);
                    Rest::Quoted(later)
                }
                Rest::None => match self.parts.next() {
                    Some(Part::Quoted(event, field)) => {
                        buffer.push(b'"');
                        Rest::Quoted(field.of(event))
                    }
                    Some(part) => Rest::Bytes(part.as_it_stands()),
                    None => return false,
                },
            };
        }
        !matches!(self.rest, Rest::None) || !self.parts.as_slice().is_empty()
    }
}

/// Counts what is written.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of a text in JSON, without the quotation marks.
fn escaped_bytes(text: &str) -> usize {
    let mut count = Count(0);
    // Counting cannot fail.
    drop(serde_json::to_writer(&mut count, text));
    count.0.saturating_sub(2)
}

/// Adds a text as JSON, without the quotation marks: so parts of a text are escaped one by one.
fn escape(text: &str, buffer: &mut Vec<u8>) {
    let from = buffer.len();
    // Writing to memory cannot fail.
    drop(serde_json::to_writer(&mut *buffer, text));
    buffer.pop();
    buffer.remove(from);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(body: &Body, most: usize) -> Vec<u8> {
        let mut whole = Vec::new();
        let mut pieces = body.pieces();
        let mut buffer = Vec::new();
        while pieces.fill(&mut buffer, most) {
            assert!(buffer.len() < most + 6 * SLICE_BYTES, "a piece is long");
            whole.append(&mut buffer);
        }
        whole.append(&mut buffer);
        let counting = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        assert_eq!(counting.block_on(body.count()), whole.len());
        whole
    }

    fn failure(text: &str) -> Arc<Event> {
        Arc::new(Event::Error(Failure {
            kind: format!("Kind{text}"),
            code: None,
            message: text.to_owned(),
            traceback: text.repeat(2),
        }))
    }

    #[test]
    fn what_is_held_beside_an_event_is_what_is_written_around_its_texts() {
        for event in [failure(""), failure("text"), failure("no \u{e4}")] {
            let body = Body::event(1, 2, &event);
            let Event::Error(failure) = &*event else {
                panic!("it is a failure");
            };
            let texts = [&failure.kind, &failure.message, &failure.traceback];
            // Texts stand in quotes.
            let n_quoted: usize = texts.iter().map(|text| text.len() + 2).sum();
            let n_around = written(&body, 1000).len() - n_quoted;
            assert_eq!(body.held_bytes() - event.payload_bytes(), n_around);
        }
    }

    #[test]
    fn a_list_is_made_in_turns_with_others() {
        for n_rows in [0, 1, 3] {
            let rows = (0..n_rows).map(|n| {
                // Longer than any turn.
                std::thread::sleep(std::time::Duration::from_millis(5));
                json!({ "n": n, "name": "a\"b" })
            });
            let mut making = Box::pin(Body::list(7, "rows", rows));
            let mut n_turns = 1;
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let body = loop {
                match making.as_mut().poll(&mut context) {
                    std::task::Poll::Ready(body) => break body,
                    std::task::Poll::Pending => n_turns += 1,
                }
            };
            assert_eq!(n_turns, n_rows + 1);
            let rows: Vec<_> = (0..n_rows)
                .map(|n| json!({ "n": n, "name": "a\"b" }))
                .collect();
            let whole = json!({ "id": 7, "ok": { "rows": rows } }).to_string();
            assert_eq!(written(&body, 100), whole.as_bytes());
        }
    }

    #[test]
    fn pieces_make_the_json_that_the_whole_is() {
        for text in [
            "",
            "plain",
            "\u{1}\"\\\n\u{7f}ä€𝄞",
            &"\u{1}ä\"".repeat(5000),
        ] {
            for most in [1, 100, 16 << 10, 1 << 30] {
                let body = Body::event(3, 4, &Arc::new(Event::Stderr(text.to_owned())));
                let read: Value = serde_json::from_slice(&written(&body, most)).unwrap();
                assert_eq!(
                    read,
                    json!({"type": "event", "pid": 3, "seq": 4, "kind": "stderr", "text": text})
                );
                let body = Body::outcome(5, Some(&failure(text)));
                let read: Value = serde_json::from_slice(&written(&body, most)).unwrap();
                let outcome = json!({
                    "kind": "error", "code": null, "message": text, "error_kind": format!("Kind{text}"), "traceback": text.repeat(2),
                });
                assert_eq!(read, json!({"id": 5, "ok": {"outcome": outcome}}));
            }
        }
        let nothing = Body::outcome(6, None);
        assert_eq!(written(&nothing, 1), br#"{"id":6,"ok":{"outcome":null}}"#);
    }

    #[test]
    fn what_was_sent_says_its_form_and_what_was_printed_none() {
        use pie_host::Form;

        let text = || "7".to_owned();
        for (event, kind, form) in [
            (Event::Sent(text(), Form::Text), "stdout", json!("text")),
            (Event::Sent(text(), Form::Json), "stdout", json!("json")),
            (Event::Stdout(text()), "stdout", Value::Null),
            (Event::Message(text()), "message", Value::Null),
            (Event::Notice(text()), "notice", Value::Null),
        ] {
            let body = Body::event(3, 4, &Arc::new(event));
            let read: Value = serde_json::from_slice(&written(&body, 3)).unwrap();
            assert_eq!((&read["kind"], &read["form"]), (&json!(kind), &form));
            assert_eq!(read["text"], "7");
        }
    }

    #[test]
    fn a_log_is_held_as_it_is_and_escaped_as_it_is_written() {
        let text = "\u{1}ä\"".repeat(5000);
        let n_bytes = text.len();
        let log = LogText {
            text: text.clone(),
            next: 7,
            n_dropped_bytes: 3,
            ended: true,
        };
        let body = Body::log(5, log);
        assert!((n_bytes..n_bytes + 200).contains(&body.held_bytes()));
        let read: Value = serde_json::from_slice(&written(&body, 100)).unwrap();
        let expected = json!({ "text": text, "next": 7, "dropped_bytes": 3, "ended": true });
        assert_eq!(read, json!({ "id": 5, "ok": expected }));
    }

    #[test]
    fn a_file_stands_behind_its_header() {
        let data: Vec<u8> = (0..=255).collect();
        let body = Body::event(1, 2, &Arc::new(Event::File(data.clone())));
        assert!(body.is_binary());
        let header = br#"{"type":"event","pid":1,"seq":2,"kind":"file"}"#;
        let mut whole = u32::try_from(header.len()).unwrap().to_le_bytes().to_vec();
        whole.extend(header);
        whole.extend(&data);
        assert_eq!(written(&body, 7), whole);
    }

    #[test]
    fn what_a_body_holds_is_what_it_would_free() {
        let body = Body::outcome(1, Some(&failure(&"x".repeat(1000))));
        assert!(
            (3000..3200).contains(&body.held_bytes()),
            "{}",
            body.held_bytes()
        );
    }
}
