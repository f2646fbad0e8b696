//! What a Rust program said when it panicked. Its instance ends by an instruction that says nothing, and what happened
//! stands on its standard error alone.

/// Bytes of the message of a panic, and of a line, that are kept.
const KEPT_BYTES: usize = 4 << 10;

/// Listens to the standard error of a program for the last panic. It keeps a few KiB, whatever is written.
#[derive(Debug, Default)]
pub(crate) struct PanicListener {
    /// The beginning of the line that is being written.
    line: String,
    panic: Option<Panic>,
}

#[derive(Debug)]
struct Panic {
    /// `FILE:LINE:COLUMN`.
    place: String,
    message: String,
    /// Lines that come are not of the message.
    is_told: bool,
}

impl PanicListener {
    /// Takes what comes next.
    pub(crate) fn hear(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            append(&mut self.line, piece.trim_end_matches('\n'));
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line);
            }
        }
    }

    fn take_line(&mut self, line: &str) {
        if let Some(place) = place_of(line) {
            self.panic = Some(Panic {
                place: place.to_owned(),
                message: String::new(),
                is_told: false,
            });
        } else if let Some(panic) = &mut self.panic {
            panic.take_line(line);
        }
    }

    /// Where the program panicked and with which message; none where it has not.
    pub(crate) fn told(&self) -> Option<String> {
        let panic = self.panic.as_ref()?;
        let mut message = panic.message.clone();
        if !panic.is_told {
            append(&mut message, &self.line);
        }
        let message = message.trim();
        let colon = if message.is_empty() { "" } else { ": " };
        Some(format!(
            "the program panicked at {}{colon}{message}",
            panic.place
        ))
    }

    /// Forgets what it has heard: another instance begins.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Panic {
    fn take_line(&mut self, line: &str) {
        // What the library says behind the message.
        const BEHIND: [&str; 2] = ["note: run with `RUST_BACKTRACE", "stack backtrace:"];
        self.is_told |= BEHIND.iter().any(|begin| line.starts_with(begin));
        if !self.is_told {
            append(&mut self.message, line);
            append(&mut self.message, "\n");
        }
    }
}

/// Appends as much of `text` as there is room for, up to a whole character.
fn append(kept: &mut String, text: &str) {
    let room = KEPT_BYTES.saturating_sub(kept.len());
    kept.push_str(&text[..text.floor_char_boundary(room)]);
}

/// The place that the first line of a panic names: `panicked at src/lib.rs:41:20:` as the SDK writes it, and the
/// standard library with the thread in front, `thread 'main' (1) `.
fn place_of(line: &str) -> Option<&str> {
    const SAYS: &str = "panicked at ";
    let place = match line.strip_prefix("thread '") {
        Some(thread) => thread.split_once(SAYS)?.1,
        None => line.strip_prefix(SAYS)?,
    };
    // Where there is no message, there is no colon.
    let place = place.strip_suffix(':').unwrap_or(place);
    let mut numbers = place.rsplitn(3, ':').take(2);
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (numbers.all(is_number) && place.matches(':').count() >= 2).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str =
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";

    fn told(pieces: &[&str]) -> Option<String> {
        let mut listener = PanicListener::default();
        for piece in pieces {
            listener.hear(piece);
        }
        listener.told()
    }

    #[test]
    fn a_panic_is_told_however_it_is_written() {
        let pieces = [
            "before\n\nthread '",
            "main",
            "' (1) panicked at ",
            "src/lib.rs:41:20",
            ":\n",
            "oh no: ",
            "7",
            "\n",
            NOTE,
        ];
        let expected = Some("the program panicked at src/lib.rs:41:20: oh no: 7".to_owned());
        assert_eq!(told(&pieces), expected);
        assert_eq!(told(&[pieces.concat().as_str()]), expected);
        // The last one counts, what comes behind it does not, and its last line needs no end.
        let first = "thread '<unnamed>' panicked at a.rs:1:2:\nfirst\n";
        assert_eq!(told(&[first, pieces.concat().as_str(), "more\n"]), expected);
        let open = "thread 'main' panicked at a.rs:1:2:\ntwo\nlines";
        let expected = "the program panicked at a.rs:1:2: two\nlines";
        assert_eq!(told(&[open]).as_deref(), Some(expected));
        let of_sdk = ["panicked at src/lib.rs:41:20:\n", "oh no: ", "7\n"];
        let expected = "the program panicked at src/lib.rs:41:20: oh no: 7";
        assert_eq!(told(&of_sdk).as_deref(), Some(expected));
        let without = ["panicked at a.rs:1:2\n"];
        assert_eq!(
            told(&without).as_deref(),
            Some("the program panicked at a.rs:1:2")
        );
        let silent = "thread 'main' panicked at a.rs:1:2:\n";
        let expected = "the program panicked at a.rs:1:2";
        assert_eq!(told(&[silent, NOTE]).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_not_a_panic_tells_nothing() {
        for text in [
            "",
            "oh no\n",
            "thread 'main' panicked at a.rs:1:2:",
            "thread 'main' panicked at a.rs:1:x:\nno\n",
            "thread 'main' panicked at 1:2:\nno\n",
            "thread 'main' panicked at somewhere\nno\n",
            "a thread 'main' panicked at a.rs:1:2:\nno\n",
            "it panicked at a.rs:1:2:\nno\n",
        ] {
            assert_eq!(told(&[text]), None, "{text:?}");
        }
        let mut listener = PanicListener::default();
        listener.hear("thread 'main' panicked at a.rs:1:2:\nno\n");
        listener.forget();
        assert_eq!(listener.told(), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut listener = PanicListener::default();
        listener.hear("thread 'main' panicked at a.rs:1:2:\n");
        for _ in 0..10_000 {
            listener.hear("ß\nßßß");
        }
        let panic = listener.panic.as_ref().unwrap();
        assert!(listener.line.len() <= KEPT_BYTES && panic.message.len() <= KEPT_BYTES);
        assert!(listener.told().unwrap().len() < KEPT_BYTES + 100);
    }
}
