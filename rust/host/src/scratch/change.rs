//! What programs do to a folder. Whatever makes it larger is charged before it is done, and what turned out smaller is
//! given back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path};
use std::sync::Arc;

use cap_primitives::fs::{self, DirOptions, FollowSymlinks, Metadata, MetadataExt as _};
use pie_core::ErrorCode;
use rustix::fs::{Mode, OFlags};
use wasmtime_wasi::{FsPerms, filesystem};

use super::folder::{FileId, Folder, MAX_DEPTH, OpenFile, Outcome, State, Usage, count};
use super::opening::{self, Wanted, new_file};
use super::turns::FileTurns;
use crate::Error;

/// Where bytes are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// So many bytes behind the beginning.
    Position(u64),
    /// Behind the last byte.
    End,
}

/// What was opened.
pub(crate) enum Opened {
    /// A file, open until its guard is dropped.
    File(filesystem::File, OpenFile),
    Folder(File),
}

/// A folder while somebody changes it. Everything here blocks.
pub(crate) struct Change<'a> {
    folder: &'a Arc<Folder>,
    state: &'a mut State,
}

impl Folder {
    /// Changes the folder when its turn comes, by `work` on what is open. What has begun is done to its end, also where
    /// nobody waits for it any more, and what is open stays so until then.
    ///
    /// # Errors
    /// Those of the change, those of counting the folder, and `files-stalled`.
    pub(super) async fn change<T: Send + 'static, O: Send + 'static>(
        self: &Arc<Self>,
        turns: &FileTurns,
        open: O,
        work: impl FnOnce(&mut Change<'_>, &O) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        // Whoever has a turn waits for nobody: so the folder comes first.
        let free = self.state.clone().lock_owned();
        let mut state = turns.waiting(free).await?;
        let folder = self.clone();
        let changing = turns.run(move || {
            let counted = match state.usage {
                Some(usage) => Ok(usage),
                None => count(&folder.dir.dir),
            };
            let changed = counted.map_err(Into::into).and_then(|usage| {
                state.usage = Some(usage);
                work(&mut Change::new(&folder, &mut state), &open)
            });
            // Whoever closes a file gives back what it holds, for which the state has to be free.
            drop(state);
            drop(open);
            changed
        });
        changing.await?
    }
}

impl<'a> Change<'a> {
    fn new(folder: &'a Arc<Folder>, state: &'a mut State) -> Self {
        Self { folder, state }
    }

    /// What is in the folder.
    pub(crate) fn usage(&self) -> Usage {
        self.state.usage.unwrap_or_default()
    }

    /// Opens a file or a folder in `dir`, which lies in the folder.
    ///
    /// # Errors
    /// Those of the system, and `limit-files` where there is no room for a file that it would make.
    pub(crate) fn open(&mut self, dir: &File, path: &Path, wanted: &Wanted) -> Outcome<Opened> {
        let (file, found) = match self.found(dir, path, wanted)? {
            Some(opened) => opened,
            None => self.created(dir, path, wanted)?,
        };
        if found.is_dir() {
            return Ok(Opened::Folder(file));
        }
        if wanted.truncate && found.len() > 0 {
            file.set_len(0)?;
            self.release(found.len(), 0);
        }
        let id = FileId::of(&found);
        let file = new_file(file, FsPerms::ReadWrite, wanted.mode());
        self.state.open.entry(id).or_default().n += 1;
        let guard = OpenFile::new(self.folder.clone(), file.file.clone(), id);
        Ok(Opened::File(file, guard))
    }

    /// What is there; none where it has to be made.
    fn found(&self, dir: &File, path: &Path, wanted: &Wanted) -> Outcome<Option<(File, Metadata)>> {
        if wanted.create && wanted.exclusive {
            return Ok(None);
        }
        match opening::open(dir, path, wanted) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && wanted.create => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn created(&mut self, dir: &File, path: &Path, wanted: &Wanted) -> Outcome<(File, Metadata)> {
        self.charged(0, 1, || {
            let file = fs::open(dir, path, wanted.options().create_new(true))?;
            let found = Metadata::from_file(&file)?;
            Ok((file, found))
        })
    }

    /// Writes all bytes, or none where there is no room for all.
    ///
    /// # Errors
    /// Those of the system, and `limit-files`.
    pub(crate) fn write(&mut self, file: &File, bytes: &[u8], at: At) -> Outcome<()> {
        let before = file.metadata()?.len();
        let start = match at {
            At::Position(start) => start,
            At::End => before,
        };
        let end = start
            .checked_add(bytes.len() as u64)
            .ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let more = end.saturating_sub(before);
        self.charge(more, 0)?;
        // What fills a hole takes room on the disk, too.
        let written = match self.check_disk(bytes.len() as u64) {
            Ok(()) => file.write_all_at(bytes, start).map_err(Into::into),
            Err(error) => Err(error.into()),
        };
        if written.is_err() {
            let grown = file.metadata()?.len().saturating_sub(before);
            self.release(more.saturating_sub(grown), 0);
        }
        written
    }

    /// Cuts a file, or lengthens it by zeros, which count as any other bytes.
    ///
    /// # Errors
    /// As [`Change::write`].
    pub(crate) fn set_size(&mut self, file: &File, n_bytes: u64) -> Outcome<()> {
        let before = file.metadata()?.len();
        self.charged(n_bytes.saturating_sub(before), 0, || file.set_len(n_bytes))?;
        self.release(before.saturating_sub(n_bytes), 0);
        Ok(())
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// Those of the system, and `limit-files`, also where it would lie too deep.
    pub(crate) fn create_dir(&mut self, dir: &File, path: &Path) -> Outcome<()> {
        self.check_depth(dir, path, 0)?;
        self.charged(0, 1, || fs::create_dir(dir, path, &DirOptions::new()))
    }

    /// Makes a symbolic link. One that leads out of the folder can be made and is never followed; one with an absolute
    /// target cannot.
    ///
    /// # Errors
    /// As [`Change::create_dir`].
    pub(crate) fn link(&mut self, target: &Path, dir: &File, path: &Path) -> Outcome<()> {
        self.charged(0, 1, || fs::symlink(target, dir, path))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn remove_dir(&mut self, dir: &File, path: &Path) -> Outcome<()> {
        fs::remove_dir(dir, path)?;
        self.release(0, 1);
        Ok(())
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn remove_file(&mut self, dir: &File, path: &Path) -> Outcome<()> {
        let found = fs::stat(dir, path, FollowSymlinks::No)?;
        fs::remove_file(dir, path)?;
        self.removed(&found);
        Ok(())
    }

    /// Gives something another name; what has that name is removed.
    ///
    /// # Errors
    /// Those of the system, and `limit-files` where a folder would lie too deep.
    pub(crate) fn rename(
        &mut self,
        (old_dir, old_path): (&File, &Path),
        (new_dir, new_path): (&File, &Path),
    ) -> Outcome<()> {
        let moved = fs::stat(old_dir, old_path, FollowSymlinks::No)?;
        if moved.is_dir() {
            let height = height(&fs::open_dir(old_dir, old_path)?)?;
            self.check_depth(new_dir, new_path, height)?;
        }
        let replaced = match fs::stat(new_dir, new_path, FollowSymlinks::No) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        fs::rename(old_dir, old_path, new_dir, new_path)?;
        if let Some(replaced) = replaced
            && FileId::of(&replaced) != FileId::of(&moved)
        {
            self.removed(&replaced);
        }
        Ok(())
    }

    /// Something is gone from the folder. A file that somebody has open keeps its bytes until it is closed.
    fn removed(&mut self, found: &Metadata) {
        self.release(0, 1);
        if !found.is_file() || found.nlink() > 1 {
            return;
        }
        match self.state.open.get_mut(&FileId::of(found)) {
            Some(opens) => opens.is_removed = true,
            None => self.release(found.len(), 0),
        }
    }

    /// Charges what `work` adds, and gives it back where that fails.
    fn charged<T>(
        &mut self,
        n_bytes: u64,
        n_files: u64,
        work: impl FnOnce() -> io::Result<T>,
    ) -> Outcome<T> {
        self.charge(n_bytes, n_files)?;
        let done = work();
        if done.is_err() {
            self.release(n_bytes, n_files);
        }
        Ok(done?)
    }

    /// Refuses a folder that would lie too deep, with `height` folders within it.
    fn check_depth(&self, dir: &File, path: &Path, height: usize) -> Outcome<()> {
        let above = path.parent().unwrap_or(Path::new(""));
        let mut parent = match above.as_os_str().is_empty() {
            true => fs::open_dir(dir, Path::new("."))?,
            false => fs::open_dir(dir, above)?,
        };
        let mut depth = 1 + height;
        while FileId::of(&Metadata::from_file(&parent)?) != self.folder.id {
            depth += 1;
            if depth > MAX_DEPTH {
                let message = format!(
                    "the folder would lie deeper than {MAX_DEPTH} others within /scratch; nest fewer"
                );
                return Err(Error::new(ErrorCode::LimitFiles, message).into());
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let up = Path::new(Component::ParentDir.as_os_str());
            let upper = rustix::fs::openat(&parent, up, flags, Mode::empty());
            parent = File::from(upper.map_err(io::Error::from)?);
        }
        Ok(())
    }

    /// Charges what comes to the folder.
    fn charge(&mut self, n_bytes: u64, n_files: u64) -> Result<(), Error> {
        let (usage, quota) = (self.usage(), self.folder.quota);
        let refused = |message: String| Err(Error::new(ErrorCode::LimitFiles, message));
        let wanted = Usage {
            n_bytes: usage.n_bytes.saturating_add(n_bytes),
            n_files: usage.n_files.saturating_add(n_files),
        };
        if n_bytes > 0 && wanted.n_bytes > quota.bytes {
            return refused(format!(
                "the files in /scratch would have {} bytes, more than runtime.fs_bytes = {}; \
                 remove some, or raise the limit",
                wanted.n_bytes, quota.bytes
            ));
        }
        if n_files > 0 && wanted.n_files > quota.files {
            return refused(format!(
                "there would be {} files and folders in /scratch, more than runtime.fs_files = {}; \
                 remove some, or raise the limit",
                wanted.n_files, quota.files
            ));
        }
        if n_files > 0 {
            self.check_disk(0)?;
        }
        self.state.usage = Some(wanted);
        Ok(())
    }

    /// Refuses what would fill the disk.
    fn check_disk(&self, n_bytes: u64) -> Result<(), Error> {
        // A system that does not tell what is free tells when nothing is.
        let Ok(disk) = rustix::fs::fstatvfs(&self.folder.dir.dir) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let least = self.folder.quota.free_bytes;
        if free.saturating_sub(n_bytes) >= least {
            return Ok(());
        }
        let message = format!(
            "the disk of /scratch has {free} bytes free, of which programs leave runtime.fs_free_bytes = {least}; \
             free some, or lower the limit"
        );
        Err(Error::new(ErrorCode::LimitFiles, message))
    }

    /// Gives back what was charged.
    fn release(&mut self, n_bytes: u64, n_files: u64) {
        self.state.release(n_bytes, n_files);
    }
}

/// How many folders lie within each other in one.
fn height(dir: &File) -> io::Result<usize> {
    let mut deepest = 0;
    let mut within = vec![fs::read_base_dir(dir)?];
    while let Some(entries) = within.last_mut() {
        let Some(entry) = entries.next() else {
            within.pop();
            continue;
        };
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            deepest = deepest.max(within.len());
            if within.len() <= MAX_DEPTH {
                within.push(entry.read_dir()?);
            }
        }
    }
    Ok(deepest)
}
