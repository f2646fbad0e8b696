//! The text of a generation, piece by piece.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_util::stream::{self, LocalBoxStream, Stream, StreamExt};

use super::machine::Machine;
use super::step::GenStep;
use crate::{Result, chat};

/// The text of a generation, in pieces as they come: [`Generator::texts`](crate::Generator::texts) makes it.
///
/// No piece is empty, and all of them together are what `collect_text` returns. So no piece has a part of a stop text,
/// nor of a character. An error is the last item. A wait for a piece that is dropped loses nothing: the next one goes
/// on with it.
#[must_use = "nothing is generated before its pieces are asked for"]
pub struct TextStream {
    texts: LocalBoxStream<'static, Result<String>>,
    so_far: String,
}

/// What a stream of texts goes on with.
struct Reading {
    machine: Rc<Machine>,
    /// None before the first step that it shows: the program may add stop texts until then.
    decoder: Option<chat::Decoder>,
    queue: VecDeque<String>,
    is_ended: bool,
}

impl TextStream {
    pub(super) fn new(machine: Rc<Machine>) -> Self {
        let reading = Reading {
            machine,
            decoder: None,
            queue: VecDeque::new(),
            is_ended: false,
        };
        Self {
            texts: stream::unfold(reading, Reading::piece).fuse().boxed_local(),
            so_far: String::new(),
        }
    }

    /// All pieces that it has given, joined.
    pub fn text_so_far(&self) -> &str {
        &self.so_far
    }
}

impl Stream for TextStream {
    type Item = Result<String>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let piece = ready!(this.texts.as_mut().poll_next(cx));
        if let Some(Ok(text)) = &piece {
            this.so_far.push_str(text);
        }
        Poll::Ready(piece)
    }
}

impl fmt::Debug for TextStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TextStream")
            .field("so_far", &self.so_far)
            .finish_non_exhaustive()
    }
}

impl Reading {
    /// The next piece, and what comes after it; none at the end.
    async fn piece(mut self) -> Option<(Result<String>, Self)> {
        loop {
            if let Some(text) = self.queue.pop_front() {
                return Some((Ok(text), self));
            }
            if self.is_ended {
                return None;
            }
            if let Err(error) = self.read().await {
                self.is_ended = true;
                return Some((Err(error), self));
            }
        }
    }

    /// Runs a step, and queues the text that it completes. Where there is none left, what is held back is text.
    async fn read(&mut self) -> Result<()> {
        let generator = self.machine.generator()?;
        let decoder = self
            .decoder
            .get_or_insert_with(|| chat::Decoder::of_generator(generator, false, false));
        let output = match GenStep::open(&self.machine)? {
            Some(step) => Some(step.execute().await?),
            None => None,
        };
        self.is_ended = output.as_ref().is_none_or(|it| it.finish_reason.is_some());
        self.queue.extend(decoder.texts(output.as_ref())?);
        Ok(())
    }
}
