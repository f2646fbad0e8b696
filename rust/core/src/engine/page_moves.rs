//! Pages that go to files and come from there, so that what outlives the engine need not be computed again.
//!
//! Who keeps pages names them by their contents ([`Engine::contents`]) and has the driver write them to a file, or read
//! them from one. What was read is an idle page of its node from then on: whoever wants it finds it as if somebody had
//! computed it, and where others need the room it is computed again. So a page that does not come costs time alone.
//!
//! A context that was opened from elsewhere can *await* its pages ([`Engine::await_pages`]). Its first pass, or that of
//! a fork of it, says so ([`Engine::drain_page_wishes`]), and is offered to no batch before whoever brings the pages is
//! done ([`Engine::pages_arrived`]). Other contexts do not notice.

use super::Engine;
use super::command_queue::{QueuedCommand, Transfer};
use super::commands::check_path;
use super::forwarding::refused;
use super::requests::{Answer, Progress, ticket};
use crate::command::{Command, MAX_MOVED_PAGES, MoveDirection, PageMove};
use crate::context::{Context, PageWish, Pass};
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::{ContentId, ContextId, RequestId};
use crate::kv::{Arrival, NodeId};

impl Engine {
    /// The names of the full pages that a context has computed, in their order.
    ///
    /// # Errors
    /// `context-released`.
    pub fn contents(&self, context: ContextId) -> Result<Vec<ContentId>> {
        let nodes = self.owned.live(context)?.full_nodes(&self.device.store);
        Ok(nodes.into_iter().map(NodeId::name).collect())
    }

    /// How many of these pages are on the device, up to the first that is not.
    pub fn n_contents_there(&self, contents: &[ContentId]) -> u32 {
        let nodes = contents.iter().map(|&name| NodeId::of(name));
        self.device.store.n_there(nodes)
    }

    /// What computing a token costs in nanoseconds, as seen; 0 where none was.
    pub fn token_ns(&self) -> u64 {
        self.waiting.costs.token_ns()
    }

    /// The first pass of a context, which has none, waits for its pages, and so does that of each fork of it.
    ///
    /// # Errors
    /// `context-busy`, `context-released`.
    pub fn await_pages(&mut self, context: ContextId) -> Result<()> {
        self.idle_context(context, "awaited")?.wish = Some(PageWish::of(context));
        Ok(())
    }

    /// Contexts whose pages are wanted now, by a pass of theirs or of a fork. Ask after every call.
    pub fn drain_page_wishes(&mut self) -> Vec<ContextId> {
        std::mem::take(&mut self.page_wishes)
    }

    /// What could be had of the pages of a context is there: whoever waits for them, it and its forks, goes on.
    pub fn pages_arrived(&mut self, wished: ContextId) {
        for id in self.owned.contexts.ids() {
            let context = self.owned.contexts.get_mut(id);
            let wishes = |context: &Context| context.wish.is_some_and(|it| it.context == wished);
            let Some(context) = context.filter(|context| wishes(context)) else {
                continue;
            };
            let has_asked = context.awaits_pages();
            context.wish = None;
            if has_asked && context.pass.as_ref().is_some_and(Pass::is_waiting) {
                let served = self.totals.n_batches;
                let ticket = ticket(ContextId(id), context, served);
                self.waiting.queue.extend(ticket);
            }
        }
    }

    /// Enters a move of pages.
    pub(super) fn submit_pages(
        &mut self,
        request: RequestId,
        wanted: PageMove,
    ) -> Result<Progress> {
        self.check_room_for_command(None)?;
        if self.config.driver.page_bytes == 0 {
            let model = &self.config.model;
            let message = format!(
                "the driver of {model} does not give its pages away; run the model on another one, or compute them again"
            );
            return Err(Error::new(ErrorCode::Unsupported, message));
        }
        let n = wanted.contents.len();
        if n == 0 || n > MAX_MOVED_PAGES {
            let message = format!("{n} pages are to be moved at once; move 1 to {MAX_MOVED_PAGES}");
            return Err(refused(&message));
        }
        check_path("pages", Some(&wanted.path))?;
        self.owned.add_command(request, None);
        let asked = QueuedCommand::Pages(wanted);
        self.device.commands.waiting.push_back((request, asked));
        Ok(Progress::Waiting)
    }

    /// The command of a move of pages, and what it does with them. An error is what there is nothing to do for: so many
    /// of the pages are where they are wanted.
    pub(super) fn begin_move(
        &mut self,
        wanted: &PageMove,
    ) -> std::result::Result<(Command, Transfer), u32> {
        let store = &mut self.device.store;
        let nodes: Vec<NodeId> = wanted
            .contents
            .iter()
            .map(|&name| NodeId::of(name))
            .collect();
        let path = wanted.path.clone();
        match wanted.direction {
            MoveDirection::Export => {
                let lent = store.lend_all(&nodes).ok_or(0_u32)?;
                let pages = (0..).zip(lent.iter().copied()).collect();
                Ok((Command::ExportPages { pages, path }, Transfer::Out(lent)))
            }
            MoveDirection::Import => {
                let placed = store.begin_import(&nodes);
                let (Some((first, _)), Some((last, _))) = (placed.first(), placed.last()) else {
                    return Err(store.n_there(nodes.into_iter()));
                };
                // Those between are there, and so are those behind the last that follow it.
                let n_between = last - first + 1 - placed.len() as u32;
                let behind = nodes.into_iter().skip(*last as usize + 1);
                let n_there = first + n_between + store.n_there(behind);
                let pages = placed.iter().map(|(place, it)| (*place, it.page)).collect();
                let arrivals: Vec<Arrival> = placed.into_iter().map(|(_, it)| it).collect();
                Ok((
                    Command::ImportPages { pages, path },
                    Transfer::In(arrivals, n_there),
                ))
            }
        }
    }

    /// A command is done with the pages that it moved. Returns what is answered.
    pub(super) fn end_move(&mut self, transfer: Transfer, succeeded: bool) -> Answer {
        let store = &mut self.device.store;
        match transfer {
            Transfer::Nothing => Answer::Commanded,
            Transfer::Out(lent) => {
                let n = lent.len() as u32;
                for page in lent {
                    store.take_back(page);
                }
                self.totals.n_pages_exported += u64::from(n) * u64::from(succeeded);
                Answer::Moved(n)
            }
            Transfer::In(arrivals, n_there) => {
                let n_arrived = store.end_import(arrivals.into_iter(), succeeded);
                self.totals.n_pages_imported += u64::from(n_arrived);
                Answer::Moved(n_there + n_arrived)
            }
        }
    }
}
