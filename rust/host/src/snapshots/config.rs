//! How snapshots are kept: the settings of `[snapshots]`.

use std::path::PathBuf;

use pie_core::settings;
use pie_core::settings::{Field, Kind, Refusal, Value};

settings! {
    /// How snapshots are kept.
    pub struct SnapshotConfig in "snapshots" {
        /// How long snapshots that programs save under names are kept: `memory`, as long as the engine runs; `disk`,
        /// until they are deleted, also by engines that come later. Those whose names the engine makes up are kept in
        /// memory in either case.
        durability "durability": Durability = Durability::Memory;
        /// The folder of snapshots on disk, which one engine at a time uses; empty: `snapshots` in `engine.data_dir`.
        folder "folder": PathBuf = PathBuf::new();
        /// Bytes of the files of one user's snapshots of one model.
        user_bytes "user_bytes": u64 = 1 << 30, 0 => 1 << 50;
        /// Snapshots of one user, of one model, on disk.
        user_snapshots "user_snapshots": u32 = 10_000, 0 => 10_000_000;
        /// Bytes of the files of all snapshots of one model.
        total_bytes "total_bytes": u64 = 16 << 30, 0 => 1 << 50;
        /// Whether the keys and values of snapshots on disk are kept beside their tokens, in runs of 1024 tokens:
        /// `auto`, where reading a page seems to be cheaper than computing it again; `always`; `never`. No result
        /// depends on it.
        pages "pages": PageKeeping = PageKeeping::Auto;
        /// Bytes of the disk that snapshots leave free.
        free_bytes "free_bytes": u64 = 1 << 30, 0 => 1 << 50;
    }
}

/// How long snapshots that have names are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As long as the engine runs.
    Memory,
    /// Until they are deleted.
    Disk,
}

/// Whether keys and values are kept beside tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKeeping {
    /// Where reading them seems to be cheaper than computing them again.
    Auto,
    /// Wherever they are there.
    Always,
    /// Nowhere.
    Never,
}

impl PageKeeping {
    const WORDS: [(&'static str, Self); 3] = [
        ("auto", Self::Auto),
        ("always", Self::Always),
        ("never", Self::Never),
    ];
}

impl Field for PageKeeping {
    const KIND: Kind = Kind::Choice(&["auto", "always", "never"]);
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        let word = Self::WORDS.iter().find(|(_, it)| it == self);
        Value::Text(word.map_or_else(String::new, |(word, _)| (*word).to_owned()))
    }

    fn from_value(value: Value) -> Result<Self, Refusal> {
        let text = String::from_value(value)?;
        let word = Self::WORDS.iter().find(|(word, _)| *word == text);
        word.map(|(_, it)| *it).ok_or(Refusal {
            found: text,
            expected: "auto, always or never",
        })
    }
}

impl Durability {
    const WORDS: [(&'static str, Self); 2] = [("memory", Self::Memory), ("disk", Self::Disk)];
}

impl Field for Durability {
    const KIND: Kind = Kind::Choice(&["memory", "disk"]);
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        let word = Self::WORDS.iter().find(|(_, it)| it == self);
        Value::Text(word.map_or_else(String::new, |(word, _)| (*word).to_owned()))
    }

    fn from_value(value: Value) -> Result<Self, Refusal> {
        let text = String::from_value(value)?;
        let word = Self::WORDS.iter().find(|(word, _)| *word == text);
        word.map(|(_, it)| *it).ok_or(Refusal {
            found: text,
            expected: "memory or disk",
        })
    }
}
