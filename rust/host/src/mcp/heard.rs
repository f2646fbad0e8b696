//! What calls get of a server that writes given bytes: for those who try any bytes, without a server.

use std::sync::Arc;

use super::line::{Line, Lines};
use super::listing::joined;
use super::sse::Events;
use super::waiting::Waiting;
use crate::Error;

/// What a server wrote by one of its ways.
#[derive(Clone, Copy, Debug)]
pub enum McpWritten<'a> {
    /// Pieces of lines.
    Lines(&'a [&'a [u8]]),
    /// Pieces of a stream of events, by HTTP.
    Events(&'a [&'a [u8]]),
}

/// What came of it.
#[derive(Debug)]
pub struct McpHeard {
    /// What each call got; none where it waits still.
    pub answers: Vec<Option<Result<String, Error>>>,
    /// What a server that writes lines is told.
    pub replies: Vec<String>,
    /// All answers as the pages of one list, put together, or why they are none.
    pub list: Option<Result<String, String>>,
}

/// What `n_calls` calls get where a server writes that. Their ids count from 0, their answers may have `most` bytes.
///
/// # Errors
/// Those of a call that cannot begin; there are none.
pub fn mcp_heard(written: McpWritten<'_>, n_calls: u64, most: usize) -> Result<McpHeard, Error> {
    let server: Arc<str> = "server".into();
    let waiting = Waiting::new(&server);
    let calls: Result<Vec<_>, Error> = (0..n_calls)
        .map(|id| waiting.enter(id, most as u64))
        .collect();
    let mut replies = Vec::new();
    let mut take = |line: Line| replies.extend(waiting.take(line));
    match written {
        McpWritten::Lines(pieces) => {
            let mut lines = Lines::new(most);
            for piece in pieces {
                lines.feed(piece, &mut take);
            }
            if let Some(line) = lines.rest() {
                take(line);
            }
        }
        McpWritten::Events(pieces) => {
            let mut events = Events::default();
            for piece in pieces {
                events.feed(piece, |data| take(Line::Whole(data)));
            }
        }
    }
    let mut calls = calls?;
    let answers: Vec<_> = calls.iter_mut().map(|call| call.try_recv().ok()).collect();
    let pages: Vec<&str> = answers
        .iter()
        .filter_map(|answer| answer.as_ref()?.as_ref().ok().map(String::as_str))
        .collect();
    let list = (!pages.is_empty()).then(|| joined(&pages, "tools"));
    Ok(McpHeard {
        answers,
        replies,
        list,
    })
}
