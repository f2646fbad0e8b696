//! `wasi:filesystem/types`, where what programs change is charged first. What only reads is wasmtime's own. All of it
//! works off the threads that run programs, in turns, and on the processor time of its process.
//!
//! A handle of wasmtime's types stands for a value of Pie's: a descriptor for an `Arc<OpenDescriptor>`, a stream of
//! entries for a `Listing`. What is held for a handle hangs on that value.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use wasmtime::component::{Linker, Resource, ResourceTable, ResourceTableError};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};
use wasmtime_wasi::runtime::poll_noop;

use super::files::handle;
use super::view::view;
use crate::Error;
use crate::limits::STREAM_BYTES;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;
use crate::scratch::change::{At, Change};
use crate::scratch::descriptor::{InScratch, OpenDescriptor};
use crate::scratch::folder::Outcome;
use crate::scratch::listing::Listing;
use crate::scratch::opening::{self, Wanted};
use crate::scratch::permits::OpenPermit;
use crate::scratch::process_files::{Holding, ProcessFiles};
use crate::scratch::reader::Reader;
use crate::scratch::refusals::number;
use crate::scratch::turns::FileTurns;
use crate::scratch::writer::Writer;

/// The longest path.
const MAX_PATH_BYTES: usize = 4096;

view! {
    /// What the system interface sees of a process.
    Filesystem { table: HandleTable, files: ProcessFiles }
}

impl Filesystem<'_> {
    /// What stands behind a handle.
    fn open(&self, fd: &Resource<Descriptor>) -> Result<Arc<OpenDescriptor>, ResourceTableError> {
        let open = Resource::<Arc<OpenDescriptor>>::new_borrow(fd.rep());
        self.table.get(&open).cloned()
    }

    /// A file within `/scratch`, to be changed.
    fn changeable_file(&self, fd: &Resource<Descriptor>) -> FsResult<InScratch> {
        Ok(self.open(fd)?.changeable_file()?)
    }

    /// Does work on a thread that may block.
    async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> Outcome<T> + Send + 'static,
    ) -> FsResult<T> {
        let done = self.files.turns().run(work).await;
        done.flatten().map_err(|fault| self.files.failed(fault))
    }

    /// Changes `/scratch` by `work`, which gets what is open.
    async fn change<T: Send + 'static>(
        &mut self,
        target: InScratch,
        work: impl FnOnce(&mut Change<'_>, &File) -> Outcome<T> + Send + 'static,
    ) -> FsResult<T> {
        let changed = target.change(self.files.turns(), work).await;
        changed.map_err(|fault| self.files.failed(fault))
    }

    /// The same of a file.
    async fn change_file<T: Send + 'static>(
        &mut self,
        fd: &Resource<Descriptor>,
        work: impl FnOnce(&mut Change<'_>, &File) -> Outcome<T> + Send + 'static,
    ) -> FsResult<T> {
        let file = self.changeable_file(fd)?;
        self.change(file, work).await
    }

    /// The same of a folder.
    async fn change_dir<T: Send + 'static>(
        &mut self,
        fd: &Resource<Descriptor>,
        work: impl FnOnce(&mut Change<'_>, &File) -> Outcome<T> + Send + 'static,
    ) -> FsResult<T> {
        let dir = self.open(fd)?.changeable_dir()?;
        self.change(dir, work).await
    }

    /// Does as wasmtime does, on a thread that may block.
    async fn plain<T: Send + 'static>(
        &mut self,
        fd: &Resource<Descriptor>,
        call: impl AsyncFnOnce(&mut WasiFilesystemCtxView<'_>, Resource<Descriptor>) -> FsResult<T>
        + Send
        + 'static,
    ) -> FsResult<T> {
        let open = self.open(fd)?;
        let done = self.run(move || Ok(plain_now(&open, call))).await?;
        // Whatever it was, the engine has refused nothing.
        done.inspect_err(|_| self.files.refusals().forget())
    }

    /// A path that may be looked up.
    fn checked(&self, path: String) -> FsResult<PathBuf> {
        self.check(&path)?;
        Ok(PathBuf::from(path))
    }

    fn check(&self, path: &str) -> FsResult<()> {
        let n_bytes = path.len();
        if n_bytes > MAX_PATH_BYTES {
            let message = format!(
                "a path of {n_bytes} bytes is longer than {MAX_PATH_BYTES}, the most that one may have; give a shorter one"
            );
            let refused = Error::new(pie_core::ErrorCode::LimitFiles, message);
            let refusals = self.files.refusals();
            return Err(refusals.refused(refused, ErrorCode::NameTooLong));
        }
        if path.contains('\0') {
            return Err(ErrorCode::Invalid.into());
        }
        Ok(())
    }

    /// What is held for a stream or a listing, for which the engine holds so many bytes.
    fn holding(&self, n_bytes: usize) -> FsResult<Holding> {
        let holding = self.files.holding(n_bytes);
        holding.map_err(|error| self.files.failed(error))
    }

    /// What a stream works by, and what is held for it.
    fn stream(&self) -> FsResult<(FileTurns, Holding)> {
        Ok((self.files.turns().clone(), self.holding(STREAM_BYTES)?))
    }

    /// A permit for something that is opened.
    fn permit(&self) -> FsResult<OpenPermit> {
        let permit = self.files.permit();
        permit.map_err(|error| self.files.failed(error))
    }

    fn writer(&mut self, fd: &Resource<Descriptor>, at: At) -> FsResult<Resource<DynOutputStream>> {
        let file = self.changeable_file(fd)?;
        let writer = Writer::new(file, at, self.stream()?, self.files.refusals().clone());
        let writer: DynOutputStream = Box::new(writer);
        Ok(self.table.push(writer)?)
    }

    /// Opens something in `/scratch`.
    async fn open_in_scratch(
        &mut self,
        dir: InScratch,
        (path, wanted): (PathBuf, Wanted),
    ) -> FsResult<OpenDescriptor> {
        let permit = self.permit()?;
        let folder = dir.folder().clone();
        let work = move |change: &mut Change<'_>, dir: &File| {
            let opened = change.open(dir, &path, &wanted)?;
            Ok(OpenDescriptor::opened(folder, opened, permit))
        };
        self.change(dir, work).await
    }

    /// Opens what a program reads, in a folder that it cannot change.
    async fn open_to_read(
        &mut self,
        dir: Arc<OpenDescriptor>,
        (path, wanted): (PathBuf, Wanted),
    ) -> FsResult<OpenDescriptor> {
        dir.check_dir()?;
        if wanted.changes() {
            return Err(ErrorCode::ReadOnly.into());
        }
        let permit = self.permit()?;
        let opening = move || {
            let (file, found) = opening::open(dir.file(), &path, &wanted)?;
            Ok(OpenDescriptor::opened_to_read(file, &found, permit))
        };
        self.run(opening).await
    }
}

/// Calls wasmtime's own with what is open. It may block.
fn plain_now<T>(
    open: &OpenDescriptor,
    call: impl AsyncFnOnce(&mut WasiFilesystemCtxView<'_>, Resource<Descriptor>) -> FsResult<T>,
) -> FsResult<T> {
    let (mut ctx, mut table) = (WasiFilesystemCtx::default(), ResourceTable::new());
    let fd = table.push(open.object())?;
    let mut view = WasiFilesystemCtxView {
        ctx: &mut ctx,
        table: &mut table,
    };
    let done = poll_noop(pin!(call(&mut view, fd)));
    done.unwrap_or_else(|| {
        debug_assert!(false, "what may block waits for nothing");
        tracing::error!("a call on files waited where it may block");
        Err(ErrorCode::Io.into())
    })
}

fn wanted(
    path_flags: PathFlags,
    open_flags: OpenFlags,
    flags: DescriptorFlags,
) -> FsResult<Wanted> {
    let synced = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if flags.intersects(synced) {
        return Err(ErrorCode::Unsupported.into());
    }
    let wanted = Wanted {
        read: flags.contains(DescriptorFlags::READ),
        write: flags.contains(DescriptorFlags::WRITE),
        create: open_flags.contains(OpenFlags::CREATE),
        exclusive: open_flags.contains(OpenFlags::EXCLUSIVE),
        truncate: open_flags.contains(OpenFlags::TRUNCATE),
        directory: open_flags.contains(OpenFlags::DIRECTORY),
        follow: path_flags.contains(PathFlags::SYMLINK_FOLLOW),
    };
    if wanted.directory && (wanted.create || wanted.exclusive || wanted.truncate) {
        return Err(ErrorCode::Invalid.into());
    }
    Ok(wanted)
}

impl types::Host for Filesystem<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        let error = self.table.get(&error)?;
        let refused = error.downcast_ref::<Error>().map(number);
        Ok(refused.or_else(|| error.downcast_ref::<io::Error>().map(ErrorCode::from)))
    }
}

impl HostDescriptor for Filesystem<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynInputStream>> {
        let open = self.open(&fd)?;
        open.check_file()?;
        let reader = Reader::new(open, offset, self.stream()?, self.files.refusals().clone());
        let reader: DynInputStream = Box::new(reader);
        Ok(self.table.push(reader)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, At::Position(offset))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, At::End)
    }

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
        length: u64,
        advice: Advice,
    ) -> FsResult<()> {
        self.plain(&fd, async move |plain, fd| {
            plain.advise(fd, offset, length, advice).await
        })
        .await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.plain(&fd, async |plain, fd| plain.sync_data(fd).await)
            .await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.plain(&fd, async |plain, fd| plain.sync(fd).await)
            .await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.plain(&fd, async |plain, fd| plain.get_flags(fd).await)
            .await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.plain(&fd, async |plain, fd| plain.get_type(fd).await)
            .await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: u64) -> FsResult<()> {
        self.change_file(&fd, move |change, file| change.set_size(file, size))
            .await
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.plain(&fd, async move |plain, fd| {
            plain.set_times(fd, accessed, modified).await
        })
        .await
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        length: u64,
        offset: u64,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.plain(&fd, async move |plain, fd| {
            plain.read(fd, length, offset).await
        })
        .await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        buffer: Vec<u8>,
        offset: u64,
    ) -> FsResult<u64> {
        let n_bytes = buffer.len() as u64;
        self.change_file(&fd, move |change, file| {
            change.write(file, &buffer, At::Position(offset))
        })
        .await?;
        Ok(n_bytes)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<ReaddirIterator>> {
        let dir = self.open(&fd)?;
        dir.check_dir()?;
        let holding = self.holding(0)?;
        let listing = self.run(move || Listing::read(dir.file(), holding)).await?;
        Ok(Resource::new_own(self.table.push(listing)?.rep()))
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let path = self.checked(path)?;
        self.change_dir(&fd, move |change, dir| change.create_dir(dir, &path))
            .await
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.plain(&fd, async |plain, fd| plain.stat(fd).await)
            .await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.check(&path)?;
        self.plain(&fd, async move |plain, fd| {
            plain.stat_at(fd, flags, path).await
        })
        .await
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.check(&path)?;
        self.plain(&fd, async move |plain, fd| {
            plain
                .set_times_at(fd, flags, path, accessed, modified)
                .await
        })
        .await
    }

    /// A file has one name: what counts as removed would else be there by another.
    async fn link_at(
        &mut self,
        _old: Resource<Descriptor>,
        _flags: PathFlags,
        _old_path: String,
        _new: Resource<Descriptor>,
        _new_path: String,
    ) -> FsResult<()> {
        Err(ErrorCode::Unsupported.into())
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let what = (self.checked(path)?, wanted(path_flags, open_flags, flags)?);
        let dir = self.open(&fd)?;
        let opened = match dir.is_in_scratch() {
            true => self.open_in_scratch(dir.changeable_dir()?, what).await?,
            false => self.open_to_read(dir, what).await?,
        };
        Ok(handle(self.table, Arc::new(opened))?)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.check(&path)?;
        self.plain(&fd, async move |plain, fd| {
            plain.readlink_at(fd, path).await
        })
        .await
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let path = self.checked(path)?;
        self.change_dir(&fd, move |change, dir| change.remove_dir(dir, &path))
            .await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let (old, new) = (self.open(&fd)?, self.open(&new)?);
        if old.is_in_scratch() != new.is_in_scratch() {
            return Err(ErrorCode::CrossDevice.into());
        }
        let (old_path, new_path) = (self.checked(old_path)?, self.checked(new_path)?);
        let new = new.changeable_dir()?;
        let work = move |change: &mut Change<'_>, old: &File| {
            change.rename((old, &old_path), (new.open().file(), &new_path))
        };
        self.change(old.changeable_dir()?, work).await
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        let (target, path) = (self.checked(target)?, self.checked(path)?);
        self.change_dir(&fd, move |change, dir| change.link(&target, dir, &path))
            .await
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let path = self.checked(path)?;
        self.change_dir(&fd, move |change, dir| change.remove_file(dir, &path))
            .await
    }

    async fn is_same_object(
        &mut self,
        one: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        let (one, other) = (self.open(&one)?, self.open(&other)?);
        let looked = self.run(move || Ok(one.is_same_object(&other)?)).await;
        // What the system does not tell is no fault of the program.
        Ok(looked.unwrap_or(false))
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.plain(&fd, async |plain, fd| plain.metadata_hash(fd).await)
            .await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.check(&path)?;
        self.plain(&fd, async move |plain, fd| {
            plain.metadata_hash_at(fd, flags, path).await
        })
        .await
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        let open = Resource::<Arc<OpenDescriptor>>::new_own(fd.rep());
        self.table.delete(open)?;
        Ok(())
    }
}

impl HostDirectoryEntryStream for Filesystem<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listing = Resource::<Listing>::new_borrow(stream.rep());
        Ok(self.table.get_mut(&listing)?.next()?)
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        let listing = Resource::<Listing>::new_own(stream.rep());
        self.table.delete(listing)?;
        Ok(())
    }
}

/// Puts the charged interface in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    types::add_to_linker::<ProcessState, Filesystem<'static>>(linker, Filesystem::of)?;
    linker.allow_shadowing(false);
    Ok(())
}
