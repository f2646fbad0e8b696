//! `wasi:filesystem/types`, in which what programs change is charged first. What only reads is wasmtime's own.
//! All of it works off the threads that run programs.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::filesystem::{self, Descriptor, Dir, WasiFilesystemCtxView, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};
use wasmtime_wasi::{FsPerms, OpenMode, WasiCtx, WasiCtxView, WasiView};

use crate::Error;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;
use crate::scratch::change::{At, Change, Opened};
use crate::scratch::folder::{Fault, Folder, OpenFile, Outcome};
use crate::scratch::held::HeldFiles;
use crate::scratch::opening::{self, Wanted};
use crate::scratch::reader::Reader;
use crate::scratch::writer::Writer;

/// The longest path.
const MAX_PATH_BYTES: usize = 4096;
/// Bytes that a stream that reads holds at most.
const READ_BYTES: u64 = 64 << 10;
/// Bytes that an entry of a folder takes beside its name, while it waits to be read.
const ENTRY_BYTES: u64 = 64;

/// What the system interface sees of a process.
pub(crate) struct Files<'a> {
    table: &'a mut HandleTable,
    wasi: &'a mut WasiCtx,
    files: &'a mut HeldFiles,
}

impl HasData for Files<'static> {
    type Data<'a> = Files<'a>;
}

/// Something that lies in `/scratch`, with that folder.
struct Own<T> {
    folder: Arc<Folder>,
    it: T,
}

impl Files<'_> {
    /// Every call comes through here, and is counted.
    fn of(state: &mut ProcessState) -> Files<'_> {
        state.count_arrival();
        Files {
            table: &mut state.table,
            wasi: &mut state.wasi,
            files: &mut state.files,
        }
    }

    /// Wasmtime's own, for what changes nothing.
    fn plain(&mut self) -> WasiFilesystemCtxView<'_> {
        self.filesystem()
    }

    fn dir(&self, fd: &Resource<Descriptor>) -> FsResult<&Dir> {
        match self.table.get(fd)? {
            Descriptor::Dir(dir) => Ok(dir),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn file(&self, fd: &Resource<Descriptor>) -> FsResult<&filesystem::File> {
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// A folder within `/scratch`.
    fn own_dir(&self, fd: &Resource<Descriptor>) -> FsResult<Own<Arc<File>>> {
        let dir = self.dir(fd)?;
        self.own(dir.perms, dir.dir.clone())
    }

    /// A file within `/scratch`.
    fn own_file(&self, fd: &Resource<Descriptor>) -> FsResult<Own<Arc<File>>> {
        let file = self.file(fd)?;
        if !file.open_mode.contains(OpenMode::WRITE) {
            return Err(ErrorCode::BadDescriptor.into());
        }
        self.own(file.perms, file.file.clone())
    }

    fn own<T>(&self, perms: FsPerms, it: T) -> FsResult<Own<T>> {
        match self.files.scratch() {
            Some(folder) if perms == FsPerms::ReadWrite => Ok(Own { folder, it }),
            _ => Err(ErrorCode::ReadOnly.into()),
        }
    }

    /// Changes `/scratch` by `work`, which gets the folder that `fd` stands for.
    async fn change<T: Send + 'static>(
        &mut self,
        fd: &Resource<Descriptor>,
        work: impl FnOnce(&mut Change<'_>, &File) -> Outcome<T> + Send + 'static,
    ) -> FsResult<T> {
        let Own { folder, it } = self.own_dir(fd)?;
        let changed = folder.change(move |change| work(change, &it)).await;
        changed.map_err(|fault| self.failed(fault))
    }

    /// The number of an error. Why the engine refused something is kept for the program to ask.
    fn failed(&self, fault: Fault) -> FsError {
        match fault {
            Fault::Io(error) => error.into(),
            Fault::Refused(error) => self.refused(error, ErrorCode::Quota),
        }
    }

    fn refused(&self, error: Error, code: ErrorCode) -> FsError {
        self.files.refusals().note(error);
        code.into()
    }

    /// Opens what a program may change.
    async fn open_own(
        &mut self,
        fd: &Resource<Descriptor>,
        path: PathBuf,
        wanted: Wanted,
    ) -> FsResult<(Descriptor, Option<Arc<OpenFile>>)> {
        let opened = self
            .change(fd, move |change, dir| change.open(dir, &path, &wanted))
            .await?;
        Ok(match opened {
            Opened::Folder(dir) => (
                Descriptor::Dir(Dir::new(
                    dir,
                    FsPerms::ReadWrite,
                    OpenMode::READ | OpenMode::WRITE,
                    false,
                )),
                None,
            ),
            Opened::File(file, guard) => (Descriptor::File(file), Some(Arc::new(guard))),
        })
    }

    fn writer(&mut self, fd: &Resource<Descriptor>, at: At) -> FsResult<Resource<DynOutputStream>> {
        let Own { folder, it } = self.own_file(fd)?;
        let place = self.files.place();
        let place = place.map_err(|error| self.refused(error, ErrorCode::InsufficientMemory))?;
        let guard = self.files.get(fd.rep()).and_then(|held| held.file.clone());
        let refusals = self.files.refusals().clone();
        let writer = Writer::new(folder, it, at, refusals, (place, guard));
        let writer: DynOutputStream = Box::new(writer);
        Ok(self.table.push(writer)?)
    }

    /// Opens what a program reads, in a folder that it cannot change.
    async fn open_to_read(
        &mut self,
        fd: &Resource<Descriptor>,
        path: PathBuf,
        wanted: Wanted,
    ) -> FsResult<Descriptor> {
        let dir = self.dir(fd)?;
        let (perms, above) = (dir.perms, dir.dir.clone());
        let opening = tokio::task::spawn_blocking(move || opening::open(&above, &path, &wanted));
        let (file, found) = opening.await.map_err(FsError::trap)??;
        Ok(if found.is_dir() {
            Descriptor::Dir(Dir::new(file, perms, OpenMode::READ, false))
        } else {
            Descriptor::File(filesystem::File::new(file, perms, OpenMode::READ, false))
        })
    }
}

impl WasiView for Files<'_> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: self.wasi,
            table: self.table.for_wasi(),
        }
    }
}

/// A path that may be looked up.
fn checked(path: String) -> FsResult<PathBuf> {
    if path.len() > MAX_PATH_BYTES {
        return Err(ErrorCode::NameTooLong.into());
    }
    if path.contains('\0') {
        return Err(ErrorCode::Invalid.into());
    }
    Ok(PathBuf::from(path))
}

fn check(path: &str) -> FsResult<()> {
    checked(path.to_owned()).map(drop)
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

impl types::Host for Files<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        if self.table.get(&error)?.is::<Error>() {
            return Ok(Some(ErrorCode::Quota));
        }
        self.plain().filesystem_error_code(error)
    }
}

impl HostDescriptor for Files<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynInputStream>> {
        let held = self
            .files
            .place()
            .and_then(|place| Ok((place, self.files.charge(READ_BYTES)?)));
        let (place, charge) =
            held.map_err(|error| self.refused(error, ErrorCode::InsufficientMemory))?;
        let file = self.files.get(fd.rep()).and_then(|held| held.file.clone());
        let stream = self.plain().read_via_stream(fd, offset)?;
        let inner = self.table.for_wasi().delete(stream)?;
        let reader: DynInputStream = Box::new(Reader::new(inner, (place, file, charge)));
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
        self.plain().advise(fd, offset, length, advice).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.plain().sync_data(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.plain().sync(fd).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.plain().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.plain().get_type(fd).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: u64) -> FsResult<()> {
        let Own { folder, it } = self.own_file(&fd)?;
        let changed = folder
            .change(move |change| change.set_size(&it, size))
            .await;
        changed.map_err(|fault| self.failed(fault))
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.plain().set_times(fd, accessed, modified).await
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        length: u64,
        offset: u64,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.plain().read(fd, length, offset).await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        buffer: Vec<u8>,
        offset: u64,
    ) -> FsResult<u64> {
        let Own { folder, it } = self.own_file(&fd)?;
        let n_bytes = buffer.len() as u64;
        let changed = folder
            .change(move |change| change.write(&it, &buffer, At::Position(offset)))
            .await;
        changed.map_err(|fault| self.failed(fault))?;
        Ok(n_bytes)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<ReaddirIterator>> {
        let dir = self.dir(&fd)?.dir.clone();
        // All entries are read at once, and held until the program has taken them.
        let measuring = tokio::task::spawn_blocking(move || opening::entries(&dir));
        let (n_entries, n_bytes) = measuring.await.map_err(FsError::trap)??;
        let held = self.files.place().and_then(|place| {
            let charge = self.files.charge(
                n_entries
                    .saturating_mul(ENTRY_BYTES)
                    .saturating_add(n_bytes),
            )?;
            Ok((place, charge))
        });
        let (place, charge) =
            held.map_err(|error| self.refused(error, ErrorCode::InsufficientMemory))?;
        let stream = self.plain().read_directory(fd).await?;
        self.files.hold(stream.rep(), place, None, Some(charge));
        Ok(stream)
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let path = checked(path)?;
        self.change(&fd, move |change, dir| change.create_dir(dir, &path))
            .await
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.plain().stat(fd).await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        check(&path)?;
        self.plain().stat_at(fd, flags, path).await
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        check(&path)?;
        self.plain()
            .set_times_at(fd, flags, path, accessed, modified)
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
        let (path, wanted) = (checked(path)?, wanted(path_flags, open_flags, flags)?);
        let place = self
            .files
            .place()
            .map_err(|error| self.refused(error, ErrorCode::InsufficientMemory))?;
        let is_own = self.dir(&fd)?.perms == FsPerms::ReadWrite;
        let (opened, guard) = if is_own {
            self.open_own(&fd, path, wanted).await?
        } else if wanted.changes() {
            return Err(ErrorCode::ReadOnly.into());
        } else {
            (self.open_to_read(&fd, path, wanted).await?, None)
        };
        let opened = self.table.push(opened)?;
        self.files.hold(opened.rep(), place, guard, None);
        Ok(opened)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        check(&path)?;
        self.plain().readlink_at(fd, path).await
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let path = checked(path)?;
        self.change(&fd, move |change, dir| change.remove_dir(dir, &path))
            .await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        if self.dir(&fd)?.perms != self.dir(&new)?.perms {
            return Err(ErrorCode::CrossDevice.into());
        }
        let (old_path, new_path) = (checked(old_path)?, checked(new_path)?);
        let new_dir = self.own_dir(&new)?.it;
        self.change(&fd, move |change, dir| {
            change.rename((dir, &old_path), (&new_dir, &new_path))
        })
        .await
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        let (target, path) = (checked(target)?, checked(path)?);
        self.change(&fd, move |change, dir| change.link(&target, dir, &path))
            .await
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let path = checked(path)?;
        self.change(&fd, move |change, dir| change.remove_file(dir, &path))
            .await
    }

    async fn is_same_object(
        &mut self,
        one: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.plain().is_same_object(one, other).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.plain().metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        check(&path)?;
        self.plain().metadata_hash_at(fd, flags, path).await
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        let rep = fd.rep();
        self.table.delete(fd)?;
        self.files.release(rep);
        Ok(())
    }
}

impl HostDirectoryEntryStream for Files<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.plain().read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        let rep = stream.rep();
        self.table.delete(stream)?;
        self.files.release(rep);
        Ok(())
    }
}

/// Puts the charged interface in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    types::add_to_linker::<ProcessState, Files<'static>>(linker, Files::of)?;
    linker.allow_shadowing(false);
    Ok(())
}
