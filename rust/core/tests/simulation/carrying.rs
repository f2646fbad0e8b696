//! Contexts that are opened elsewhere with their pages: written to a file, read from it, and waited for meanwhile.

use pie_core::{
    Answer, ContentId, ContextId, MAX_MOVED_PAGES, MoveDirection, PageMove, RequestId, Submission,
};

use super::driving::{Outcome, Simulation};

/// Pages on their way to a context.
#[derive(Debug)]
pub struct Carried {
    context: ContextId,
    contents: Vec<ContentId>,
    path: String,
    /// What is waited for: that they are written, then that they are read.
    request: RequestId,
    is_written: bool,
}

impl Simulation {
    /// Keeps a context as a value, and opens that for a process, with its pages.
    pub fn carry(&mut self, at: usize, process: usize) -> Outcome {
        let (n_contexts, source) = (self.contexts.len(), self.contexts[at].0);
        self.transplant(at, process)?;
        if self.contexts.len() == n_contexts {
            return Ok(());
        }
        let context = self.contexts[n_contexts].0;
        let engine = &mut self.world.engine;
        engine.await_pages(context).unwrap();
        let of_both = [source, context].map(|it| {
            let mut contents = engine.contents(it).unwrap();
            contents.truncate(MAX_MOVED_PAGES);
            contents
        });
        let [written, contents] = of_both;
        assert_eq!(written.len(), contents.len());
        self.n_carried += 1;
        let path = format!("/pages/{}", self.n_carried);
        match self.move_pages(MoveDirection::Export, written, &path) {
            Some(request) => self.carried.push(Carried {
                context,
                contents,
                path,
                request,
                is_written: false,
            }),
            None => self.world.engine.pages_arrived(context),
        }
        Ok(())
    }

    /// Enters a move; none where that is refused.
    fn move_pages(
        &mut self,
        direction: MoveDirection,
        contents: Vec<ContentId>,
        path: &str,
    ) -> Option<RequestId> {
        let path = path.to_owned();
        let wanted = PageMove {
            direction,
            contents,
            path,
        };
        self.world.submit(Submission::Pages(wanted)).ok()
    }

    /// What was written is read, and whoever waits for what was read goes on; so does who waits for what failed.
    /// Returns whether anything has changed.
    pub fn carry_on(&mut self) -> bool {
        drop(self.world.engine.drain_page_wishes());
        let mut has_changed = false;
        for mut carried in std::mem::take(&mut self.carried) {
            let Some(answer) = self.world.engine.take(carried.request) else {
                self.carried.push(carried);
                continue;
            };
            has_changed = true;
            let n = carried.contents.len() as u32;
            let has_all = answer == Ok(Answer::Moved(n));
            let read = if has_all && !carried.is_written {
                self.move_pages(
                    MoveDirection::Import,
                    carried.contents.clone(),
                    &carried.path,
                )
            } else {
                None
            };
            match read {
                Some(request) => {
                    (carried.request, carried.is_written) = (request, true);
                    self.carried.push(carried);
                }
                None => self.world.engine.pages_arrived(carried.context),
            }
        }
        has_changed
    }
}
