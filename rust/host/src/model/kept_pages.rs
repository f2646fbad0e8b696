//! Pages between the pool of the driver and the disk.
//!
//! The driver writes pages to memory that the host shows it as a file, and reads them from there, so that no driver
//! waits for a disk: the host alone reads and writes files. One move at a time goes through that memory, and each is of
//! so few bytes that nobody whose batch waits for it notices.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use pie_core::{ContentId, ErrorCode, MAX_MOVED_PAGES, MoveDirection, PageMove};
use rustix::fs::{MemfdFlags, memfd_create};

use super::Model;
use super::keeping::{Keeping, Opening};
use crate::Error;
use crate::snapshots::pages::{KeptRun, PageFile, PageForm, PageWriter};

/// Bytes that one command moves, unless a page has more.
const MOVED_BYTES: usize = 16 << 20;

/// Memory that pages are moved through.
struct Exchange {
    file: File,
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
        file.set_len((n_pages * form.page_bytes) as u64).map_err(failed)?;
        // Drivers of other processes of this user open it by that path too.
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Self {
            file,
            path,
            page: vec![0; form.page_bytes],
            n_pages,
        })
    }

    /// Has the driver move these pages. Returns how many, from the first on, are where they were wanted.
    fn carry(
        &self,
        model: &Model,
        direction: MoveDirection,
        contents: &[ContentId],
    ) -> Result<usize, Error> {
        let moved = model.move_pages(PageMove {
            direction,
            contents: contents.to_vec(),
            path: self.path.clone(),
        })?;
        Ok(usize::try_from(moved).unwrap_or(usize::MAX))
    }

    fn offset(&self, place: usize) -> u64 {
        (place * self.page.len()) as u64
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
    let _alone = keeping.alone();
    let kept = Exchange::new(form).and_then(|mut exchange| {
        let mut n_kept = 0;
        for (run, contents) in runs.iter().zip(contents.chunks_exact(form.n_pages())) {
            if keeping.store.pages_of(run, form).is_some() {
                continue;
            }
            let written = keeping.store.write_pages(owner, run, form, |writer| {
                write_run(model, &mut exchange, contents, writer)
            });
            if !written? {
                break;
            }
            n_kept += 1;
        }
        if n_kept > 0 { keeping.store.sync() } else { Ok(()) }
    });
    if let Err(error) = kept {
        tracing::warn!(%error, model = model.name(), "pages of a snapshot are not kept: they will be computed again");
    }
}

/// Writes the pages of a run. False: the driver does not have them all.
fn write_run(
    model: &Model,
    exchange: &mut Exchange,
    contents: &[ContentId],
    writer: &mut PageWriter<'_>,
) -> Result<bool, Error> {
    let failed = |error: io::Error| Error::new(ErrorCode::DiskError, format!("pages cannot be written ({error})"));
    if model.with_engine(|engine| engine.n_contents_there(contents)) as usize != contents.len() {
        return Ok(false);
    }
    for part in contents.chunks(exchange.n_pages) {
        if exchange.carry(model, MoveDirection::Export, part)? != part.len() {
            return Ok(false);
        }
        for place in 0..part.len() {
            let offset = exchange.offset(place);
            exchange.file.read_exact_at(&mut exchange.page, offset).map_err(failed)?;
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
    let contents = opening.contents.chunks_exact(form.n_pages()).nth(opening.n_done);
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
    let _alone = keeping.alone();
    let (began, n_bytes) = (Instant::now(), (contents.len() - first) * form.page_bytes);
    match read_run(model, form, &pages, contents, first) {
        Ok(true) => {
            keeping.note_read(n_bytes as u64, began.elapsed());
            true
        }
        Ok(false) => false,
        Err(error) => {
            tracing::warn!(%error, model = model.name(), "pages of a snapshot do not come: they are computed again");
            false
        }
    }
}

/// Reads the pages of a run from the one at `first` on. False: not all of them have come.
fn read_run(
    model: &Model,
    form: &PageForm,
    pages: &PageFile,
    contents: &[ContentId],
    first: usize,
) -> Result<bool, Error> {
    let failed = |error: io::Error| Error::new(ErrorCode::DiskError, format!("pages cannot be read ({error})"));
    let mut exchange = Exchange::new(form)?;
    let mut next = first;
    while next < contents.len() {
        let most = exchange.n_pages.min(contents.len() - next);
        let mut n_sound = 0;
        while n_sound < most && pages.read(next + n_sound, &mut exchange.page).map_err(failed)? {
            let offset = exchange.offset(n_sound);
            exchange.file.write_all_at(&exchange.page, offset).map_err(failed)?;
            n_sound += 1;
        }
        let is_damaged = n_sound < most;
        if is_damaged {
            let (model, page) = (model.name(), next + n_sound);
            tracing::error!(model, page, "a page of a snapshot is damaged: it is computed again");
        }
        let part = &contents[next..next + n_sound];
        if part.is_empty() || exchange.carry(model, MoveDirection::Import, part)? < part.len() || is_damaged {
            return Ok(false);
        }
        next += n_sound;
    }
    Ok(true)
}
