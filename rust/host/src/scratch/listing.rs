//! The entries of a folder, while they wait for a program to take them.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::vec::IntoIter;

use cap_primitives::fs::{FileType, FileTypeExt as _, read_base_dir};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

use super::folder::Outcome;
use super::process_files::Holding;

/// Entries for which there is room at first; then the room is doubled.
const FIRST_ENTRIES: usize = 64;
/// What an allocator takes beside the bytes of a name.
const ALLOCATION_BYTES: usize = 16;

/// The entries of a folder as they were at one time, which the user of the process is charged for.
pub(crate) struct Listing {
    entries: IntoIter<(OsString, DescriptorType)>,
    _holding: Holding,
}

impl Listing {
    /// Reads all entries of a folder. Those that are removed meanwhile are left out.
    ///
    /// # Errors
    /// Those of the system, and `limit-engine-memory`.
    pub(crate) fn read(dir: &File, mut holding: Holding) -> Outcome<Self> {
        let mut entries = Vec::new();
        for entry in read_base_dir(dir)? {
            let entry = entry?;
            let found = match entry.metadata() {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            if entries.len() == entries.capacity() {
                grow(&mut entries, &mut holding)?;
            }
            let name = entry.file_name();
            holding
                .charge
                .grow((name.capacity() + ALLOCATION_BYTES) as u64)?;
            entries.push((name, descriptor_type(found.file_type())));
        }
        Ok(Self {
            entries: entries.into_iter(),
            _holding: holding,
        })
    }

    /// The next entry. None: the program has taken all.
    ///
    /// # Errors
    /// `illegal-byte-sequence` for a name that is not UTF-8.
    pub(crate) fn next(&mut self) -> Result<Option<DirectoryEntry>, ErrorCode> {
        let Some((name, type_)) = self.entries.next() else {
            return Ok(None);
        };
        match name.into_string() {
            Ok(name) => Ok(Some(DirectoryEntry { type_, name })),
            Err(_) => Err(ErrorCode::IllegalByteSequence),
        }
    }
}

/// Makes room for more entries. The old room and the new one are there at once for a moment.
fn grow<T>(entries: &mut Vec<T>, holding: &mut Holding) -> Outcome<()> {
    let bytes = |n: usize| n.saturating_mul(size_of::<T>()) as u64;
    let before = entries.capacity();
    let more = before.max(FIRST_ENTRIES);
    holding.charge.grow(bytes(before + more))?;
    entries.reserve_exact(more);
    holding.charge.shrink(bytes(before));
    Ok(())
}

fn descriptor_type(found: FileType) -> DescriptorType {
    if found.is_dir() {
        DescriptorType::Directory
    } else if found.is_file() {
        DescriptorType::RegularFile
    } else if found.is_symlink() {
        DescriptorType::SymbolicLink
    } else if found.is_block_device() {
        DescriptorType::BlockDevice
    } else if found.is_char_device() {
        DescriptorType::CharacterDevice
    } else {
        DescriptorType::Unknown
    }
}
