//! Memory that two processes share: an anonymous file, mapped.

#![expect(
    unsafe_code,
    reason = "maps memory that another process writes, and hands out its address"
)]

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// The file, and what is mapped of it.
#[derive(Debug)]
pub(crate) struct Area {
    file: File,
    mapping: Arc<Mapping>,
}

/// A part of an area, which stays mapped as long as this lives. What stands in it is the business of both processes: it
/// is read and written only by the one whose turn it is.
#[derive(Clone, Debug)]
pub struct View {
    mapping: Arc<Mapping>,
    n_bytes: usize,
}

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    n_bytes: usize,
}

// SAFETY: a mapping is an address that stays valid until it is dropped, on whatever thread; who reads and writes there
// when is settled by the counters of the channel.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Area {
    /// A new area of zeros, which nobody can make smaller.
    pub(crate) fn make(n_bytes: usize) -> Result<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(c"pie-channel".as_ptr(), flags) };
        if descriptor < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the call made this descriptor, and nobody else has it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        file.set_len(n_bytes as u64)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
        // SAFETY: the call takes two numbers.
        if unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, seals) } < 0 {
            return Err(Error::last_os_error());
        }
        let mapping = Arc::new(Mapping::new(&file, n_bytes)?);
        Ok(Self { file, mapping })
    }

    /// An area that another process made.
    pub(crate) fn open(descriptor: OwnedFd) -> Result<Self> {
        let file = File::from(descriptor);
        let n_bytes = len_of(&file)?;
        let mapping = Arc::new(Mapping::new(&file, n_bytes)?);
        Ok(Self { file, mapping })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Bytes that are mapped.
    pub(crate) fn n_bytes(&self) -> usize {
        self.mapping.n_bytes
    }

    /// Makes the file as long, if it is shorter, and maps it anew. Views of it as it was stay good.
    pub(crate) fn grow(&mut self, n_bytes: usize) -> Result<()> {
        if n_bytes > self.n_bytes() {
            self.file.set_len(n_bytes as u64)?;
            self.mapping = Arc::new(Mapping::new(&self.file, n_bytes)?);
        }
        Ok(())
    }

    /// Maps what another process has made longer.
    pub(crate) fn follow(&mut self) -> Result<()> {
        let n_bytes = len_of(&self.file)?;
        if n_bytes > self.n_bytes() {
            self.mapping = Arc::new(Mapping::new(&self.file, n_bytes)?);
        }
        Ok(())
    }

    /// The first bytes of it, as many as there are up to `n_bytes`.
    pub(crate) fn view(&self, n_bytes: usize) -> View {
        View {
            mapping: self.mapping.clone(),
            n_bytes: n_bytes.min(self.n_bytes()),
        }
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.mapping.start
    }

    /// Copies words to its beginning. False: it is too small.
    pub(crate) fn put_words(&self, words: &[u32]) -> bool {
        let n_bytes = size_of_val(words);
        if n_bytes > self.n_bytes() {
            return false;
        }
        // SAFETY: as many bytes are mapped; words that belong to this process do not overlap them.
        unsafe {
            std::ptr::copy_nonoverlapping(
                words.as_ptr().cast::<u8>(),
                self.mapping.start.as_ptr(),
                n_bytes,
            );
        }
        true
    }

    /// Copies bytes to `offset`, as many as there is room for.
    pub(crate) fn put_bytes(&self, offset: usize, bytes: &[u8]) {
        let n_bytes = bytes.len().min(self.n_bytes().saturating_sub(offset));
        if n_bytes > 0 {
            // SAFETY: `offset + n_bytes` are mapped; bytes that belong to this process do not overlap them.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    self.mapping.start.as_ptr().add(offset),
                    n_bytes,
                );
            }
        }
    }

    /// A copy of bytes from `offset` on, as many as there are up to `n_bytes`.
    pub(crate) fn bytes(&self, offset: usize, n_bytes: usize) -> Vec<u8> {
        let n_bytes = n_bytes.min(self.n_bytes().saturating_sub(offset));
        let mut bytes = vec![0; n_bytes];
        if n_bytes > 0 {
            // SAFETY: as above, the other way round.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.mapping.start.as_ptr().add(offset),
                    bytes.as_mut_ptr(),
                    n_bytes,
                );
            }
        }
        bytes
    }
}

impl View {
    /// Where it begins: an address of a whole page of memory.
    pub fn start(&self) -> *mut u8 {
        self.mapping.start.as_ptr()
    }

    /// Its bytes.
    pub const fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}

impl Mapping {
    fn new(file: &File, n_bytes: usize) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, of a file that is as long and cannot become shorter.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                n_bytes,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start_byte) if start != libc::MAP_FAILED => Ok(Self {
                start: start_byte,
                n_bytes,
            }),
            _ => Err(Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nothing has the address any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.n_bytes) };
    }
}

fn len_of(file: &File) -> Result<usize> {
    usize::try_from(file.metadata()?.len()).map_err(Error::other)
}
