//! Pages between the pool of the driver and the disk.
//!
//! The driver writes pages to memory that the host shows it as a file, and reads them from there, so that no driver
//! waits for a disk: the host alone reads and writes files. One run at a time goes through that memory, in moves of so
//! few bytes that nobody whose batch waits for one notices.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use pie_core::{ContentId, ErrorCode, MAX_MOVED_PAGES, MoveDirection, PageMove};
use rustix::fs::{MemfdFlags, memfd_create};

use super::Model;
use super::keeping::{Keeping, Opening};
use crate::Error;
use crate::snapshots::pages::{KeptRun, PageFile, PageForm, PageWriter};

/// Bytes that one command moves, unless a page has more.
const MOVED_BYTES: usize = 16 << 20;

/// Parts of a run that are under way at once: one from the disk, and one into the pool.
const AT_ONCE: usize = 2;

/// Memory that pages are moved through.
struct Exchange {
    file: Arc<File>,
    path: String,
    page: Vec<u8>,
    /// Pages that it holds.
    n_pages: usize,
}

impl Exchange {
    fn new(form: &PageForm) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            let message = format!("there is no memory to move pages through ({error})");
            Error::new(ErrorCode::DiskError, message)
        };
        let n_pages = (MOVED_BYTES / form.page_bytes).clamp(1, MAX_MOVED_PAGES);
        let descriptor = memfd_create("pie-pages", MemfdFlags::CLOEXEC);
        let file = File::from(descriptor.map_err(|error| failed(error.into()))?);
        file.set_len((n_pages * form.page_bytes) as u64)
            .map_err(failed)?;
        // Drivers of other processes of this user open it by that path too.
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Self {
            file: Arc::new(file),
            path,
            page: vec![0; form.page_bytes],
            n_pages,
        })
    }

    /// Has the driver move these pages. Returns how many, from the first on, are where they were wanted. A driver that
    /// has not answered may open the path later, when it would be that of another file: so this one is `given_up`, and
    /// stays open until the driver has answered.
    fn carry(
        &self,
        model: &Model,
        given_up: &mut Vec<Arc<File>>,
        direction: MoveDirection,
        contents: &[ContentId],
    ) -> Result<usize, Error> {
        let moved = model.move_pages(PageMove {
            direction,
            contents: contents.to_vec(),
            path: self.path.clone(),
        });
        match &moved {
            Ok(_) => given_up.clear(),
            Err(_) if model.with_engine(|engine| engine.runs_command()) => {
                given_up.push(self.file.clone())
            }
            Err(_) => {}
        }
        Ok(usize::try_from(moved?).unwrap_or(usize::MAX))
    }

    fn offset(&self, place: usize) -> u64 {
        (place * self.page.len()) as u64
    }

    /// Reads pages of a run, up to the first that is damaged. Returns how many.
    fn fill(&mut self, pages: &PageFile, wanted: Range<usize>) -> Result<usize, Error> {
        let failed = |error: io::Error| {
            Error::new(
                ErrorCode::DiskError,
                format!("pages cannot be read ({error})"),
            )
        };
        for (place, page) in wanted.clone().enumerate() {
            if !pages.read(page, &mut self.page).map_err(failed)? {
                return Ok(place);
            }
            let offset = self.offset(place);
            self.file.write_all_at(&self.page, offset).map_err(failed)?;
        }
        Ok(wanted.len())
    }
}

/// Keeps the pages of runs of a user that were saved, which a context has ready: up to the first that it has not, or
/// that there is no room for. A snapshot is whole without: what fails is told to the log.
pub(super) fn keep(
    model: &Model,
    keeping: &Keeping,
    owner: &str,
    runs: &[KeptRun],
    contents: &[ContentId],
) {
    let Some(form) = keeping.form().filter(|_| !runs.is_empty()) else {
        return;
    };
    if !keeping.is_worth(form, model.with_engine(|engine| engine.token_ns())) {
        return;
    }
    if let Err(error) = keep_runs(model, keeping, form, owner, runs, contents) {
        tracing::warn!(%error, model = model.name(), "pages of a snapshot are not kept: they will be computed again");
    }
}

fn keep_runs(
    model: &Model,
    keeping: &Keeping,
    form: &PageForm,
    owner: &str,
    runs: &[KeptRun],
    contents: &[ContentId],
) -> Result<(), Error> {
    let mut n_kept = 0;
    for (run, contents) in runs.iter().zip(contents.chunks_exact(form.n_pages())) {
        if keeping.store.pages_of(run, form).is_some() {
            continue;
        }
        // Anew for each run: others, whose passes may wait, move theirs in between.
        let mut given_up = keeping.alone();
        let written = keeping.store.write_pages(owner, run, form, |writer| {
            write_run(model, &mut given_up, form, contents, writer)
        });
        if !written? {
            break;
        }
        n_kept += 1;
    }
    if n_kept > 0 {
        keeping.store.sync()
    } else {
        Ok(())
    }
}

/// Writes the pages of a run. False: the driver does not have them all.
fn write_run(
    model: &Model,
    given_up: &mut Vec<Arc<File>>,
    form: &PageForm,
    contents: &[ContentId],
    writer: &mut PageWriter<'_>,
) -> Result<bool, Error> {
    let failed = |error: io::Error| {
        Error::new(
            ErrorCode::DiskError,
            format!("pages cannot be written ({error})"),
        )
    };
    if model.with_engine(|engine| engine.n_contents_there(contents)) as usize != contents.len() {
        return Ok(false);
    }
    let mut exchange = Exchange::new(form)?;
    for part in contents.chunks(exchange.n_pages) {
        if exchange.carry(model, given_up, MoveDirection::Export, part)? != part.len() {
            return Ok(false);
        }
        for place in 0..part.len() {
            let offset = exchange.offset(place);
            exchange
                .file
                .read_exact_at(&mut exchange.page, offset)
                .map_err(failed)?;
            writer.push(&exchange.page).map_err(failed)?;
        }
    }
    Ok(true)
}

/// Brings the pages of the next run of a context that was opened. False: there is nothing more to bring, and what did
/// not come is computed.
pub(super) fn bring_next(model: &Model, keeping: &Keeping, opening: &mut Opening) -> bool {
    let (Some(form), Some(run)) = (keeping.form(), opening.runs.get(opening.n_done)) else {
        return false;
    };
    let contents = opening
        .contents
        .chunks_exact(form.n_pages())
        .nth(opening.n_done);
    let Some(contents) = contents else {
        return false;
    };
    opening.n_done += 1;
    let (n_there, token_ns) =
        model.with_engine(|engine| (engine.n_contents_there(contents), engine.token_ns()));
    let first = n_there as usize;
    if first == contents.len() {
        return true;
    }
    if !keeping.is_worth(form, token_ns) {
        return false;
    }
    let Some(pages) = keeping.store.pages_of(run, form) else {
        return false;
    };
    let mut given_up = keeping.alone();
    let (began, n_bytes) = (Instant::now(), (contents.len() - first) * form.page_bytes);
    match read_run(model, &mut given_up, form, &pages, contents, first) {
        Ok(Brought::All) => {
            keeping.note_read(n_bytes as u64, began.elapsed());
            true
        }
        Ok(Brought::Some) => false,
        Ok(Brought::Damaged) => {
            keeping.store.drop_pages_of(run);
            false
        }
        Err(error) => {
            tracing::warn!(%error, model = model.name(), "pages of a snapshot do not come: they are computed again");
            false
        }
    }
}

/// Which of the pages of a run have come.
enum Brought {
    All,
    /// The driver has no room for more.
    Some,
    /// Those before the first that is damaged on disk.
    Damaged,
}

/// Reads the pages of a run from the one at `first` on: some come from the disk while the driver takes those before.
fn read_run(
    model: &Model,
    given_up: &mut Vec<Arc<File>>,
    form: &PageForm,
    pages: &PageFile,
    contents: &[ContentId],
    first: usize,
) -> Result<Brought, Error> {
    let (freed, free) = mpsc::channel();
    for _ in 0..AT_ONCE {
        // Its other end is here.
        drop(freed.send(Exchange::new(form)?));
    }
    let (full, filled) = mpsc::channel();
    // What is given back and what was filled are dropped with the closure, by which the reader ends.
    thread::scope(move |scope| {
        let reader = thread::Builder::new()
            .name("pie-pages-read".to_owned())
            .spawn_scoped(scope, move || {
                fill_all(pages, first..contents.len(), &free, &full)
            });
        reader.map_err(|error| {
            let message = format!("there is no thread to read pages ({error})");
            Error::new(ErrorCode::DiskError, message)
        })?;
        for part in filled {
            let Filled {
                exchange,
                sound,
                is_whole,
            } = part?;
            if !is_whole {
                let (model, page) = (model.name(), sound.end);
                tracing::error!(
                    model,
                    page,
                    "a page of a snapshot is damaged: it is computed again"
                );
            }
            let part = &contents[sound];
            let n_wanted = part.len();
            let n_taken = if n_wanted == 0 {
                0
            } else {
                exchange.carry(model, given_up, MoveDirection::Import, part)?
            };
            if !is_whole {
                return Ok(Brought::Damaged);
            }
            if n_taken < n_wanted {
                return Ok(Brought::Some);
            }
            // The reader may have ended.
            drop(freed.send(exchange));
        }
        Ok(Brought::All)
    })
}

/// A part of a run that was read.
struct Filled {
    exchange: Exchange,
    /// Which of the pages of the run it holds.
    sound: Range<usize>,
    /// Whether no page behind them is damaged that belonged to the part.
    is_whole: bool,
}

/// Reads pages of a run, part by part, as long as somebody takes them and none is damaged.
fn fill_all(
    pages: &PageFile,
    wanted: Range<usize>,
    free: &Receiver<Exchange>,
    full: &Sender<Result<Filled, Error>>,
) {
    let mut next = wanted.start;
    while next < wanted.end {
        let Ok(mut exchange) = free.recv() else {
            return;
        };
        let end = wanted.end.min(next + exchange.n_pages);
        let part = exchange.fill(pages, next..end).map(|n_sound| Filled {
            exchange,
            sound: next..next + n_sound,
            is_whole: next + n_sound == end,
        });
        let goes_on = part.as_ref().is_ok_and(|part| part.is_whole);
        if full.send(part).is_err() || !goes_on {
            return;
        }
        next = end;
    }
}
