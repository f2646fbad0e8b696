//! Lines about programs in the log of the server: bounded in length and in number.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::plain::plain;
use crate::sync::lock;

/// Bytes of a line that are logged.
const LINE_BYTES: usize = 1024;
const WINDOW: Duration = Duration::from_secs(1);

/// Decides which lines of one source are logged: of what a process writes, or all do, or of all launches and ends.
#[derive(Debug)]
pub(crate) struct Pacing {
    /// Lines within [`WINDOW`].
    most: u32,
    /// What the lines are called where some were left out.
    called: &'static str,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    n_lines: u32,
    n_left_out: u64,
}

impl Pacing {
    /// Lets so many lines through within a second; `called` is what they are called where some were left out.
    pub(crate) fn new(most: u32, called: &'static str) -> Self {
        Self {
            most,
            called,
            window: Mutex::new(Window {
                began: Instant::now(),
                n_lines: 0,
                n_left_out: 0,
            }),
        }
    }

    /// Gives the lines of `text` to `log` that are to be logged at the time `now`, and before the first one after a
    /// pause, how many were left out.
    pub(crate) fn lines(&self, text: &str, now: Instant, mut log: impl FnMut(&str)) {
        let mut window = lock(&self.window);
        if now.duration_since(window.began) >= WINDOW {
            self.tell_left_out(&mut window, &mut log);
            *window = Window {
                began: now,
                n_lines: 0,
                n_left_out: 0,
            };
        }
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if window.n_lines >= self.most {
                window.n_left_out += 1;
            } else {
                window.n_lines += 1;
                log(&plain(&line[..line.floor_char_boundary(LINE_BYTES)]));
            }
        }
    }

    /// No more lines come: gives `log` how many were left out and not told of.
    pub(crate) fn end(&self, mut log: impl FnMut(&str)) {
        self.tell_left_out(&mut lock(&self.window), &mut log);
    }

    fn tell_left_out(&self, window: &mut Window, log: &mut impl FnMut(&str)) {
        let n_left_out = std::mem::take(&mut window.n_left_out);
        if n_left_out > 0 {
            log(&format!("({n_left_out} {} were left out)", self.called));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(pacing: &Pacing, text: &str, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        pacing.lines(text, now, |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn lines_are_bounded_in_length_and_number() {
        let pacing = Pacing::new(100, "lines");
        let now = Instant::now();
        assert_eq!(logged(&pacing, "a\n\nb\n", now), ["a", "b"]);
        assert_eq!(
            logged(&pacing, "0 %\r1 %\u{202e}\n", now),
            ["0 %\\r1 %\\u{202e}"]
        );
        assert_eq!(logged(&pacing, &"ß".repeat(1000), now)[0].len(), LINE_BYTES);
        assert_eq!(logged(&pacing, &"x\n".repeat(1000), now).len(), 96);
        assert_eq!(
            logged(&pacing, "y", now + WINDOW),
            ["(904 lines were left out)", "y"]
        );
    }

    #[test]
    fn what_was_left_out_is_told_at_the_end_where_nothing_comes_after_it() {
        let pacing = Pacing::new(2, "lines");
        let now = Instant::now();
        assert_eq!(logged(&pacing, "a\nb\nc\nd\n", now), ["a", "b"]);
        let mut told = Vec::new();
        pacing.end(|line| told.push(line.to_owned()));
        pacing.end(|line| told.push(line.to_owned()));
        assert_eq!(told, ["(2 lines were left out)"]);
        assert_eq!(logged(&pacing, "e", now + WINDOW), ["e"]);
        // A moment that has passed tells of itself without a line.
        logged(&pacing, "f\ng\nh", now + WINDOW);
        assert_eq!(
            logged(&pacing, "", now + 2 * WINDOW),
            ["(2 lines were left out)"]
        );
    }
}
