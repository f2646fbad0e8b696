//! What files programs have: the settings of `[runtime]`.

use std::path::PathBuf;
use std::time::Duration;

use pie_core::settings;
use pie_core::settings::{Field, Kind, Refusal, Value, Word};

/// Where programs find their own files.
pub(crate) const SCRATCH: &str = "/scratch";
const SHORTEST_STALL: Duration = Duration::from_secs(1);
/// Ten years, so that deadlines can be computed.
const LONGEST_STALL: Duration = Duration::from_secs(300_000_000);
/// The longest path at which programs find a folder.
const MAX_MOUNT_BYTES: usize = 255;

settings! {
    /// What files programs have.
    pub struct FilesConfig in "runtime" {
        /// Whose folder programs find as `/scratch`: `user`, one of each user; `program`, one of each program of a
        /// user; `process`, one of each process, which ends with it; `shared`, one for all users; `off`, none. They lie
        /// in `engine.data_dir`.
        scope "fs_scope": FileScope = FileScope::User;
        /// Bytes that the files of one such folder may have together.
        bytes "fs_bytes": u64 = 1 << 30, 0 => 1 << 50;
        /// Files, folders and links in one such folder.
        files "fs_files": u64 = 10_000, 0 => 1 << 32;
        /// Bytes of the disk that programs leave free.
        free_bytes "fs_free_bytes": u64 = 1 << 30, 0 => 1 << 50;
        /// What one process may open at once, beside the folders that it is given: files, folders and streams of them.
        open_files "fs_open_files": usize = 64, 4 => 1 << 16;
        /// How long one piece of work on files may last. After that its thread counts as lost: others get its turn, and
        /// calls on files of its user fail until it ends.
        stall "fs_stall_s": Duration = Duration::from_secs(60), SHORTEST_STALL => LONGEST_STALL;
        /// Folders that every program can read, each as `DIR=/data`: an absolute path here, and the path at which
        /// programs find it.
        mounts "fs_mounts": Vec<Mount> = Vec::new();
    }
}

/// Whose folder a program finds as `/scratch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileScope {
    /// That of its user.
    User,
    /// That of the program, for its user.
    Program,
    /// One of its own, which ends with it.
    Process,
    /// One for all.
    Shared,
    /// None.
    Off,
}

impl FileScope {
    /// Whether files outlive the process that makes them.
    pub(crate) const fn keeps(self) -> bool {
        !matches!(self, Self::Process | Self::Off)
    }

    const WORDS: [(&'static str, Self); 5] = [
        ("user", Self::User),
        ("program", Self::Program),
        ("process", Self::Process),
        ("shared", Self::Shared),
        ("off", Self::Off),
    ];
}

impl Field for FileScope {
    const KIND: Kind = Kind::Choice(&["user", "program", "process", "shared", "off"]);
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        let word = Self::WORDS.iter().find(|(_, scope)| scope == self);
        Value::Text(word.map_or_else(String::new, |(word, _)| (*word).to_owned()))
    }

    fn from_value(value: Value) -> Result<Self, Refusal> {
        let text = String::from_value(value)?;
        let scope = Self::WORDS.iter().find(|(word, _)| *word == text);
        scope.map(|(_, scope)| *scope).ok_or(Refusal {
            found: text,
            expected: "user, program, process, shared or off",
        })
    }
}

/// A folder of the machine that programs read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it lies.
    pub(crate) folder: PathBuf,
    /// Where programs find it.
    pub(crate) path: String,
}

impl Word for Mount {
    const EXPECTED: &'static str = "DIR=/PATH, as in /srv/documents=/data: an absolute path, \
         and names of letters, digits, '.', '_' and '-', not in /scratch";

    fn parse(text: &str) -> Option<Self> {
        let (folder, path) = text.rsplit_once('=')?;
        let is_name = |name: &str| {
            !matches!(name, "" | "." | "..")
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        let names = path.strip_prefix('/')?;
        let is_path = path.len() <= MAX_MOUNT_BYTES && names.split('/').all(is_name);
        let below = path.strip_prefix(SCRATCH);
        let is_own = below.is_some_and(|below| below.is_empty() || below.starts_with('/'));
        (folder.starts_with('/') && !folder.contains('\0') && is_path && !is_own).then(|| Self {
            folder: PathBuf::from(folder),
            path: path.to_owned(),
        })
    }

    fn text(&self) -> String {
        format!("{}={}", self.folder.display(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_names_a_folder_and_a_path() {
        for (text, folder, path) in [
            ("/srv=/data", "/srv", "/data"),
            ("/a=b/c=/data/x-1", "/a=b/c", "/data/x-1"),
        ] {
            let mount = Mount::parse(text).unwrap();
            assert_eq!(
                (mount.folder.to_str().unwrap(), &*mount.path),
                (folder, path)
            );
            assert_eq!(mount.text(), text);
        }
        for text in [
            "",
            "=",
            "/srv",
            "srv=/data",
            "/srv=data",
            "/srv=/",
            "/srv=/a/",
            "/srv=/a//b",
            "/srv=/..",
            "/srv=/a/../b",
            "/srv=/scratch",
            "/srv=/scratch/x",
            "/srv=/a b",
            "/s\0=/a",
        ] {
            assert_eq!(Mount::parse(text), None, "{text:?}");
        }
        assert_eq!(Mount::parse(&format!("/srv=/{}", "a".repeat(300))), None);
    }
}
