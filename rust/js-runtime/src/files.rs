//! Files, as `node:fs/promises` of the prelude stands on them: calls that name a path, and files that are open.
//!
//! A call that fails throws an error whose message is the name of its code in `wasi:filesystem`.

use std::cell::{OnceCell, RefCell};

use rquickjs::class::Trace;
use rquickjs::convert::List;
use rquickjs::{Ctx, Error, Exception, JsLifetime, Object, Result, TypedArray};

use crate::bindings::wasi::filesystem::preopens;
use crate::bindings::wasi::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, OpenFlags, PathFlags,
};
use crate::bridge::{byte_array, bytes_of};

/// Bytes that one call reads or writes.
const PART_BYTES: usize = 64 << 10;
/// Nanoseconds of a millisecond.
const NS_PER_MS: f64 = 1e6;

thread_local! {
    /// The folders of the program, asked for when it first names a path.
    static FOLDERS: OnceCell<Vec<(Descriptor, String)>> = const { OnceCell::new() };
}

/// The result of a call of the system.
type Outcome<T> = std::result::Result<T, ErrorCode>;

/// Something that is open.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct OpenFile {
    /// None once it is closed.
    #[qjs(skip_trace)]
    descriptor: RefCell<Option<Descriptor>>,
}

#[rquickjs::methods(rename_all = "camelCase")]
impl OpenFile {
    /// At most `n_bytes` from a position on; fewer at the end of the file.
    fn read<'js>(&self, ctx: Ctx<'js>, n_bytes: f64, position: f64) -> Result<TypedArray<'js, u8>> {
        let bytes = self.with(&ctx, |file| read(file, n_bytes as usize, position as u64))?;
        byte_array(&ctx, bytes)
    }

    /// Writes all bytes at a position.
    fn write<'js>(&self, ctx: Ctx<'js>, bytes: TypedArray<'js, u8>, position: f64) -> Result<()> {
        let bytes = bytes_of(&ctx, &bytes)?;
        self.with(&ctx, |file| write(file, &bytes, position as u64))
    }

    fn set_size(&self, ctx: Ctx<'_>, n_bytes: f64) -> Result<()> {
        self.with(&ctx, |file| file.set_size(n_bytes as u64))
    }

    fn sync(&self, ctx: Ctx<'_>) -> Result<()> {
        self.with(&ctx, Descriptor::sync)
    }

    fn stat<'js>(&self, ctx: Ctx<'js>) -> Result<Object<'js>> {
        let found = self.with(&ctx, Descriptor::stat)?;
        described(&ctx, &found)
    }

    /// The names in a folder, each with what it is.
    fn entries<'js>(&self, ctx: Ctx<'js>) -> Result<Vec<List<(String, &'static str)>>> {
        self.with(&ctx, |folder| {
            let stream = folder.read_directory()?;
            let mut entries = Vec::new();
            while let Some(entry) = stream.read_directory_entry()? {
                entries.push(List((entry.name, kind(entry.type_))));
            }
            Ok(entries)
        })
    }

    /// Closes it; again it does nothing.
    fn close(&self) {
        drop(self.descriptor.take());
    }
}

impl OpenFile {
    fn with<T>(&self, ctx: &Ctx<'_>, work: impl FnOnce(&Descriptor) -> Outcome<T>) -> Result<T> {
        match &*self.descriptor.borrow() {
            Some(descriptor) => work(descriptor),
            None => Err(ErrorCode::BadDescriptor),
        }
        .map_err(|code| thrown(ctx, code))
    }
}

/// Opens a path. `flags` are letters: `r` to read, `w` to write, `c` made where it is not there, `x` an error where it
/// is, `t` emptied, `d` an error where it is not a folder.
pub(crate) fn open(ctx: Ctx<'_>, path: String, flags: String) -> Result<OpenFile> {
    let has = |letter: char| flags.contains(letter);
    let open_flags = [
        ('c', OpenFlags::CREATE),
        ('x', OpenFlags::EXCLUSIVE),
        ('t', OpenFlags::TRUNCATE),
        ('d', OpenFlags::DIRECTORY),
    ]
    .into_iter()
    .filter(|(letter, _)| has(*letter))
    .fold(OpenFlags::empty(), |flags, (_, flag)| flags | flag);
    let descriptor_flags = [('r', DescriptorFlags::READ), ('w', DescriptorFlags::WRITE)]
        .into_iter()
        .filter(|(letter, _)| has(*letter))
        .fold(DescriptorFlags::empty(), |flags, (_, flag)| flags | flag);
    let opened = at(&path, |folder, rest| {
        folder.open_at(
            PathFlags::SYMLINK_FOLLOW,
            rest,
            open_flags,
            descriptor_flags,
        )
    });
    Ok(OpenFile {
        descriptor: RefCell::new(Some(opened.map_err(|code| thrown(&ctx, code))?)),
    })
}

/// What is at a path; of a link, what it leads to where `follow`.
pub(crate) fn stat<'js>(ctx: Ctx<'js>, path: String, follow: bool) -> Result<Object<'js>> {
    let flags = match follow {
        true => PathFlags::SYMLINK_FOLLOW,
        false => PathFlags::empty(),
    };
    let found = done(&ctx, at(&path, |folder, rest| folder.stat_at(flags, rest)))?;
    described(&ctx, &found)
}

pub(crate) fn make_folder(ctx: Ctx<'_>, path: String) -> Result<()> {
    done(&ctx, at(&path, Descriptor::create_directory_at))
}

pub(crate) fn remove_folder(ctx: Ctx<'_>, path: String) -> Result<()> {
    done(&ctx, at(&path, Descriptor::remove_directory_at))
}

pub(crate) fn remove_file(ctx: Ctx<'_>, path: String) -> Result<()> {
    done(&ctx, at(&path, Descriptor::unlink_file_at))
}

pub(crate) fn read_link(ctx: Ctx<'_>, path: String) -> Result<String> {
    done(&ctx, at(&path, Descriptor::readlink_at))
}

pub(crate) fn make_link(ctx: Ctx<'_>, target: String, path: String) -> Result<()> {
    let made = at(&path, |folder, rest| folder.symlink_at(&target, rest));
    done(&ctx, made)
}

pub(crate) fn rename(ctx: Ctx<'_>, old: String, new: String) -> Result<()> {
    let renamed = at(&old, |folder, rest| {
        at(&new, |new_folder, new_rest| {
            folder.rename_at(rest, new_folder, new_rest)
        })
    });
    done(&ctx, renamed)
}

/// Works on a path within the folder of the program that it lies in.
fn at<T>(path: &str, work: impl FnOnce(&Descriptor, &str) -> Outcome<T>) -> Outcome<T> {
    FOLDERS.with(|folders| {
        let within = |folder: &str| match path.strip_prefix(folder)? {
            "" => Some("."),
            rest => rest
                .strip_prefix('/')
                .map(|rest| match rest.trim_start_matches('/') {
                    "" => ".",
                    rest => rest,
                }),
        };
        let found = folders.get_or_init(preopens::get_directories).iter();
        found
            .filter_map(|(folder, path)| Some((path.len(), folder, within(path)?)))
            .max_by_key(|(length, ..)| *length)
            .ok_or(ErrorCode::NoEntry)
            .and_then(|(_, folder, rest)| work(folder, rest))
    })
}

fn read(file: &Descriptor, n_bytes: usize, position: u64) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < n_bytes {
        let part = (n_bytes - bytes.len()).min(PART_BYTES) as u64;
        let (read, is_end) = file.read(part, position + bytes.len() as u64)?;
        bytes.extend(read);
        if is_end {
            break;
        }
    }
    Ok(bytes)
}

fn write(file: &Descriptor, bytes: &[u8], position: u64) -> Outcome<()> {
    let mut position = position;
    for part in bytes.chunks(PART_BYTES) {
        let mut left = part;
        while !left.is_empty() {
            let n_bytes = file.write(left, position)?;
            position += n_bytes;
            left = &left[n_bytes as usize..];
        }
    }
    Ok(())
}

fn described<'js>(ctx: &Ctx<'js>, found: &DescriptorStat) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("kind", kind(found.type_))?;
    object.set("size", found.size as f64)?;
    object.set("links", found.link_count as f64)?;
    for (name, time) in [
        ("accessedMs", &found.data_access_timestamp),
        ("modifiedMs", &found.data_modification_timestamp),
        ("changedMs", &found.status_change_timestamp),
    ] {
        let ms = time.as_ref().map_or(0.0, |time| {
            time.seconds as f64 * 1e3 + f64::from(time.nanoseconds) / NS_PER_MS
        });
        object.set(name, ms)?;
    }
    Ok(object)
}

fn kind(kind: DescriptorType) -> &'static str {
    match kind {
        DescriptorType::RegularFile => "file",
        DescriptorType::Directory => "folder",
        DescriptorType::SymbolicLink => "link",
        _ => "other",
    }
}

fn done<T>(ctx: &Ctx<'_>, outcome: Outcome<T>) -> Result<T> {
    outcome.map_err(|code| thrown(ctx, code))
}

fn thrown(ctx: &Ctx<'_>, code: ErrorCode) -> Error {
    Exception::throw_message(ctx, code.name())
}
