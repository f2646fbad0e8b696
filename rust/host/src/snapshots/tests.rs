//! Snapshots on disk, with contexts that were never computed.

use std::fs;
use std::path::{Path, PathBuf};

use pie_core::{Capabilities, ContextImage, ErrorCode};
use proptest::prelude::*;

use super::binding::ModelIdentity;
use super::config::SnapshotConfig;
use super::format::{HEADER_BYTES, Header, Part};
use super::loading::SavedContext;
use super::pages::{KeptRun, PageForm};
use super::store::SnapshotStore;
use crate::Error;

const TURNS: &[u8] = br#"{"tools": [], "stretches": []}"#;

/// A store that leaves the disk as it is.
fn store_of(dir: &Path, model: &str, config: SnapshotConfig) -> SnapshotStore {
    let identity = ModelIdentity {
        name: model.to_owned(),
        backend: "dummy".to_owned(),
        folder: dir.join("checkpoint"),
    };
    SnapshotStore::new(&dir.join("snapshots"), config, identity)
}

fn config() -> SnapshotConfig {
    SnapshotConfig {
        free_bytes: 0,
        ..SnapshotConfig::default()
    }
}

fn store(dir: &Path) -> SnapshotStore {
    store_of(dir, "tiny", config())
}

/// So many tokens, of which those from `own` on are others than those of other contexts.
fn image(n: u32, own: u32, seed: u32) -> ContextImage {
    let token = |slot: u32| {
        if slot < own {
            slot
        } else {
            slot ^ (seed << 16)
        }
    };
    ContextImage {
        tokens: (0..n).map(token).collect(),
        pending: vec![seed],
        buffer: vec![1, 2, 3],
        path: u64::from(seed),
        ..ContextImage::default()
    }
}

fn load(store: &SnapshotStore, owner: &str, name: &str) -> Result<Option<SavedContext>, Error> {
    let loaded = store.named(owner, name).load(|_| Ok(()))?;
    Ok(loaded.map(|(kept, ())| kept))
}

fn loaded(store: &SnapshotStore, name: &str) -> ContextImage {
    let kept = load(store, "ada", name).unwrap().unwrap();
    assert_eq!(kept.turns, TURNS);
    kept.image
}

fn names(store: &SnapshotStore, owner: &str) -> Vec<String> {
    let listed = store.list(Some(owner)).unwrap();
    listed.into_iter().map(|it| it.name).collect()
}

/// The files of snapshots and of runs.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("snapshots/tiny")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| path.extension().is_some();
    let mut files: Vec<PathBuf> = paths.filter(is_one).collect();
    files.sort();
    files
}

#[test]
fn what_was_saved_is_there_for_the_next_engine_and_for_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    let images = [image(3000, 0, 1), image(10, 0, 2), ContextImage::default()];
    for (name, image) in ["a", "b", "c"].into_iter().zip(&images) {
        first.named("ada", name).save(image, TURNS).unwrap();
    }
    first.close();
    let next = store(dir.path());
    assert_eq!(names(&next, "ada"), ["a", "b", "c"]);
    assert!(names(&next, "bob").is_empty());
    for (name, image) in ["a", "b", "c"].into_iter().zip(&images) {
        assert_eq!(loaded(&next, name), *image);
        assert!(load(&next, "bob", name).unwrap().is_none());
    }
    assert!(load(&next, "ada", "d").unwrap().is_none());
    assert!(!next.named("bob", "a").delete().unwrap());
    assert!(next.named("ada", "a").delete().unwrap());
    assert!(!next.named("ada", "a").delete().unwrap());
    next.close();
    assert_eq!(names(&store(dir.path()), "ada"), ["b", "c"]);
}

#[test]
fn an_engine_that_uses_a_folder_keeps_others_out_until_it_stops() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = [(); 2].map(|()| store(dir.path()));
    first
        .named("ada", "a")
        .save(&image(5, 0, 1), TURNS)
        .unwrap();
    let refused = second.list(None).err().unwrap();
    assert_eq!(refused.code, ErrorCode::InvalidConfig);
    assert!(!refused.message.contains('/'), "{}", refused.message);
    first.close();
    assert_eq!(names(&second, "ada"), ["a"]);
    let stopped = first.list(None).err().unwrap();
    assert_eq!(stopped.code, ErrorCode::EngineStopped);
}

#[test]
fn what_an_engine_left_unfinished_goes_where_the_next_one_starts() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path()).clean_up();
    assert!(!dir.path().join("snapshots").exists());
    let [first, second] = [(); 2].map(|()| store(dir.path()));
    first
        .named("ada", "a")
        .save(&image(5, 0, 1), TURNS)
        .unwrap();
    let unfinished = dir.path().join("snapshots/tiny/.new-0000000000000009");
    fs::write(&unfinished, b"half").unwrap();
    let snapshot = files(dir.path()).remove(0);
    let number = snapshot.file_name().unwrap().to_str().unwrap();
    let (number, _) = number.split_once('-').unwrap();
    let pages = |number: &str| snapshot.with_file_name(format!("{number}-{:032x}.kv", 1));
    let (kept, orphaned) = (pages(number), pages("00000000000000ff"));
    for path in [&kept, &orphaned] {
        fs::write(path, b"pages").unwrap();
    }
    second.clean_up();
    assert!(unfinished.exists(), "the first may be writing it");
    assert!(orphaned.exists(), "the first may be removing it");
    first.close();
    second.clean_up();
    assert!(!unfinished.exists() && !orphaned.exists());
    assert!(kept.exists());
    assert_eq!(names(&second, "ada"), ["a"]);
}

#[test]
fn saving_again_replaces_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for n in 1..20 {
        store
            .named("ada", "a")
            .save(&image(n, 0, n), TURNS)
            .unwrap();
        assert_eq!(loaded(&store, "a"), image(n, 0, n));
        assert_eq!(files(dir.path()).len(), 1);
    }
}

#[test]
fn what_contexts_begin_with_is_kept_once_until_the_last_of_them_goes() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let images = [1, 2, 3].map(|seed| image(5000, 4096, seed));
    for (name, image) in ["a", "b", "c"].into_iter().zip(&images) {
        store.named("ada", name).save(image, TURNS).unwrap();
    }
    let sizes: Vec<u64> = files(dir.path())
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .collect();
    assert!(sizes[0] > 4 * 5000, "{sizes:?}");
    assert!(
        sizes[1] < sizes[0] / 3 && sizes[2] < sizes[0] / 3,
        "{sizes:?}"
    );
    // Of another user nothing is shared.
    store.named("bob", "a").save(&images[0], TURNS).unwrap();
    assert_eq!(fs::metadata(&files(dir.path())[3]).unwrap().len(), sizes[0]);
    assert!(store.named("bob", "a").delete().unwrap());
    // The first goes, and what the others share of it stays: in this engine and in the next.
    assert!(store.named("ada", "a").delete().unwrap());
    assert_eq!(names(&store, "ada"), ["b", "c"]);
    assert_eq!(loaded(&store, "b"), images[1]);
    store.close();
    let next = self::store(dir.path());
    assert_eq!(names(&next, "ada"), ["b", "c"]);
    assert_eq!(loaded(&next, "c"), images[2]);
    assert_eq!(files(dir.path()).len(), 3);
    assert!(next.named("ada", "b").delete().unwrap());
    assert_eq!(loaded(&next, "c"), images[2]);
    assert!(next.named("ada", "c").delete().unwrap());
    assert_eq!(files(dir.path()), Vec::<PathBuf>::new());
}

/// As a program does that saves a conversation after each turn.
#[test]
fn a_context_that_grows_and_is_saved_again_shares_with_a_bounded_number_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for n in 1..100 {
        let grown = image(n * 900, 1 << 20, 1);
        store.named("ada", "a").save(&grown, TURNS).unwrap();
        assert_eq!(loaded(&store, "a"), grown);
    }
    assert!(files(dir.path()).len() <= 40, "{}", files(dir.path()).len());
    assert!(store.named("ada", "a").delete().unwrap());
    assert!(files(dir.path()).is_empty());
}

/// What a damaged file gives: an error that says what to do, and which harms nobody else.
fn assert_unusable(dir: &Path, what: &str) {
    let damaged = store(dir);
    let error = load(&damaged, "ada", "a").err();
    let error = error.unwrap_or_else(|| panic!("{what} is not noticed"));
    assert_eq!(error.code, ErrorCode::SnapshotUnusable, "{what}: {error}");
    assert!(
        error.message.contains("delete the snapshot"),
        "{what}: {error}"
    );
    assert!(!error.message.contains('/'), "{what}: {error}");
    assert_eq!(loaded(&damaged, "b"), image(7, 0, 9), "{what}");
    damaged.close();
}

/// A folder with a snapshot `a`, of which every part has bytes, and another one; and the file of the first.
fn saved() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store
        .named("ada", "a")
        .save(&image(2500, 0, 1), TURNS)
        .unwrap();
    store
        .named("ada", "b")
        .save(&image(7, 0, 9), TURNS)
        .unwrap();
    store.close();
    let file = files(dir.path()).remove(0);
    let whole = fs::read(&file).unwrap();
    (dir, file, whole)
}

#[test]
fn a_bit_that_flips_in_any_part_is_noticed_and_the_snapshot_can_be_deleted() {
    let (dir, file, whole) = saved();
    let header = Header::read(&fs::File::open(&file).unwrap())
        .unwrap()
        .unwrap();
    let mut places: Vec<usize> = (0..HEADER_BYTES).step_by(7).collect();
    for part in Part::ALL {
        let extent = header.of(part);
        let (start, n_bytes) = (extent.offset as usize, extent.n_bytes as usize);
        assert!(n_bytes > 0, "{part:?} has no bytes");
        places.extend([start, start + n_bytes / 2, start + n_bytes - 1]);
    }
    for (place, bit) in places.into_iter().zip((0..8).cycle()) {
        let mut flipped = whole.clone();
        flipped[place] ^= 1 << bit;
        fs::write(&file, flipped).unwrap();
        assert_unusable(dir.path(), &format!("bit {bit} of byte {place}"));
    }
    let store = store(dir.path());
    assert!(store.named("ada", "a").delete().unwrap());
    assert!(load(&store, "ada", "a").unwrap().is_none());
    assert_eq!(files(dir.path()).len(), 1);
}

#[test]
fn a_file_that_is_cut_anywhere_is_noticed_and_can_be_saved_over() {
    let (dir, file, whole) = saved();
    for percent in 0..100 {
        fs::write(&file, &whole[..whole.len() * percent / 100]).unwrap();
        assert_unusable(dir.path(), &format!("a cut at {percent} %"));
    }
    fs::write(&file, [&whole[..], b"!"].concat()).unwrap();
    assert_unusable(dir.path(), "a byte too many");
    let store = store(dir.path());
    store
        .named("ada", "a")
        .save(&image(3, 0, 3), TURNS)
        .unwrap();
    assert_eq!(loaded(&store, "a"), image(3, 0, 3));
    assert_eq!(files(dir.path()).len(), 2);
}

#[test]
fn a_file_of_another_version_model_or_name_is_told() {
    let (dir, file, whole) = saved();
    let mut later = whole.clone();
    later[8..12].copy_from_slice(&7u32.to_le_bytes());
    fs::write(&file, later).unwrap();
    let error = load(&store(dir.path()), "ada", "a").err().unwrap();
    assert!(error.message.contains("version 7"), "{error}");
    assert_unusable(dir.path(), "another version");
    fs::write(&file, &whole).unwrap();
    // As where an operator serves other weights under the same name.
    let other = dir.path().join("snapshots/other");
    fs::rename(dir.path().join("snapshots/tiny"), &other).unwrap();
    let of_other = store_of(dir.path(), "other", config());
    let error = load(&of_other, "ada", "a").err().unwrap();
    assert_eq!(error.code, ErrorCode::SnapshotUnusable);
    assert!(error.message.contains("other weights"), "{error}");
    of_other.close();
    fs::rename(other, dir.path().join("snapshots/tiny")).unwrap();
    // As where somebody renames a file to make it another user's.
    let store = store(dir.path());
    store
        .named("bob", "a")
        .save(&image(9, 0, 1), TURNS)
        .unwrap();
    store.close();
    let of_bob = files(dir.path()).pop().unwrap();
    fs::copy(&file, &of_bob).unwrap();
    let store = self::store(dir.path());
    let error = load(&store, "bob", "a").err().unwrap();
    assert_eq!(error.code, ErrorCode::SnapshotUnusable, "{error}");
    assert!(
        error.message.contains("that of another user's snapshot"),
        "{error}"
    );
    assert_eq!(loaded(&store, "a"), image(2500, 0, 1));
}

#[test]
fn nothing_is_removed_that_a_damaged_snapshot_may_need() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    first
        .named("ada", "a")
        .save(&image(3000, 2048, 1), TURNS)
        .unwrap();
    first
        .named("ada", "b")
        .save(&image(3000, 2048, 2), TURNS)
        .unwrap();
    first.close();
    let b = files(dir.path()).pop().unwrap();
    let whole = fs::read(&b).unwrap();
    fs::write(&b, b"damaged").unwrap();
    let second = store(dir.path());
    assert!(second.named("ada", "a").delete().unwrap());
    assert!(names(&second, "ada").is_empty());
    second.close();
    fs::write(&b, whole).unwrap();
    let third = store(dir.path());
    assert_eq!(loaded(&third, "b"), image(3000, 2048, 2));
    assert!(third.named("ada", "b").delete().unwrap());
    assert!(files(dir.path()).is_empty());
}

#[test]
fn what_is_saved_shares_no_tokens_that_were_damaged_since() {
    let (dir, file, whole) = saved();
    let header = Header::read(&fs::File::open(&file).unwrap())
        .unwrap()
        .unwrap();
    let mut flipped = whole;
    flipped[header.of(Part::Runs).offset as usize + 9] ^= 1;
    fs::write(&file, flipped).unwrap();
    let store = store(dir.path());
    // Beside it and over it.
    for name in ["c", "a"] {
        store
            .named("ada", name)
            .save(&image(2500, 0, 1), TURNS)
            .unwrap();
        assert_eq!(loaded(&store, name), image(2500, 0, 1));
    }
    let sizes = files(dir.path())
        .into_iter()
        .map(|it| fs::metadata(it).unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    assert_eq!(sizes.len(), 3, "{sizes:?}");
    assert!(
        sizes[2] < sizes[1] / 3,
        "what was written anew is shared again: {sizes:?}"
    );
}

#[test]
fn what_could_not_be_removed_does_not_come_back_where_its_name_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store
        .named("ada", "a")
        .save(&image(5, 0, 1), TURNS)
        .unwrap();
    // A folder in place of the file is not removed as a file.
    let (replaced, aside) = (files(dir.path()).remove(0), dir.path().join("aside"));
    fs::rename(&replaced, &aside).unwrap();
    fs::create_dir(&replaced).unwrap();
    store
        .named("ada", "a")
        .save(&image(6, 0, 2), TURNS)
        .unwrap();
    let refused = store.named("ada", "a").delete().unwrap_err();
    assert_eq!(refused.code, ErrorCode::DiskError);
    assert_eq!(loaded(&store, "a"), image(6, 0, 2));
    fs::remove_dir(&replaced).unwrap();
    fs::rename(&aside, &replaced).unwrap();
    assert!(store.named("ada", "a").delete().unwrap());
    assert!(files(dir.path()).is_empty());
}

#[test]
fn quotas_name_the_number_the_limit_and_the_setting() {
    let dir = tempfile::tempdir().unwrap();
    let few = SnapshotConfig {
        user_snapshots: 2,
        user_bytes: 20_000,
        total_bytes: 40_000,
        ..config()
    };
    let store = store_of(dir.path(), "tiny", few);
    let save =
        |owner: &str, name: &str, n: u32| store.named(owner, name).save(&image(n, 0, 1), TURNS);
    let refused = |result: Result<Vec<KeptRun>, Error>, setting: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitSnapshots);
        assert!(error.message.contains(setting), "{error}");
    };
    save("ada", "a", 10).unwrap();
    save("ada", "b", 10).unwrap();
    refused(save("ada", "c", 10), "snapshots.user_snapshots");
    refused(save("ada", "a", 6000), "snapshots.user_bytes");
    assert_eq!(loaded(&store, "a"), image(10, 0, 1));
    // What goes for it counts no more.
    for _ in 0..5 {
        save("ada", "a", 3000).unwrap();
    }
    assert!(store.named("ada", "b").delete().unwrap());
    save("bob", "a", 3000).unwrap();
    refused(save("eve", "a", 3000), "snapshots.total_bytes");
    assert_eq!(names(&store, "ada"), ["a"]);
    save("ada", "c", 10).unwrap();
}

#[test]
fn a_write_that_fails_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store
        .named("ada", "a")
        .save(&image(2000, 0, 1), TURNS)
        .unwrap();
    // Where the next file would be written stands something else.
    let folder = dir.path().join("snapshots/tiny");
    fs::create_dir_all(folder.join(".new-0000000000000002")).unwrap();
    let error = store
        .named("ada", "a")
        .save(&image(2000, 1024, 2), TURNS)
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::DiskError);
    assert!(!error.message.contains('/'), "{error}");
    assert_eq!(loaded(&store, "a"), image(2000, 0, 1));
    assert_eq!(files(dir.path()).len(), 1);
    store
        .named("ada", "a")
        .save(&image(2000, 1024, 3), TURNS)
        .unwrap();
    assert_eq!(loaded(&store, "a"), image(2000, 1024, 3));
}

#[test]
fn a_folder_that_cannot_be_made_is_told_without_its_path() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("snapshots"), b"a file").unwrap();
    let error = store(dir.path()).list(None).err().unwrap();
    assert_eq!(error.code, ErrorCode::DiskError);
    assert!(!error.message.contains('/'), "{error}");
}

#[test]
fn what_is_charged_is_asked_for_before_it_is_read() {
    let (dir, _, whole) = saved();
    let store = store(dir.path());
    let refuse = |n_bytes: u64| -> Result<(), Error> {
        assert!(n_bytes > 4 * 2500 && n_bytes < whole.len() as u64);
        Err(Error::new(ErrorCode::LimitEngineMemory, "no"))
    };
    let refused = store.named("ada", "a").load(refuse).err().unwrap();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
}

#[test]
fn ten_thousand_names_are_listed_and_found_by_the_next_engine() {
    const N: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    first
        .named("ada", "name 0")
        .save(&image(3, 0, 1), TURNS)
        .unwrap();
    first.close();
    let file = files(dir.path()).remove(0);
    let whole = fs::read(&file).unwrap();
    // Written without waiting for the disk each time.
    let names_of: Vec<String> = (0..N).map(|n| format!("name {n}")).collect();
    let header = Header::read(&fs::File::open(&file).unwrap())
        .unwrap()
        .unwrap();
    let part = |part: Part| {
        let extent = header.of(part);
        let start = extent.offset as usize;
        whole[start..start + extent.n_bytes as usize].to_vec()
    };
    for (number, name) in names_of.iter().enumerate().skip(1) {
        let mut index: super::format::Index = serde_json::from_slice(&part(Part::Index)).unwrap();
        index.name.clone_from(name);
        let index = serde_json::to_vec(&index).unwrap();
        let others = [Part::State, Part::Turns, Part::Tail, Part::Runs].map(part);
        let bytes =
            super::format::assemble(&[&index, &others[0], &others[1], &others[2], &others[3]]);
        let file_name = super::folder::FileName {
            number: number as u64 + 1,
            key: super::folder::name_key("ada", name),
            is_retired: false,
        };
        fs::write(file.with_file_name(file_name.text()), bytes).unwrap();
    }
    let next = store(dir.path());
    assert_eq!(names(&next, "ada").len(), N);
    assert_eq!(loaded(&next, "name 9999"), image(3, 0, 1));
    let refused = next
        .named("ada", "one more")
        .save(&image(3, 0, 1), TURNS)
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitSnapshots);
    let said = "at most 10000 are kept; delete some, or raise snapshots.user_snapshots";
    assert!(refused.message.contains(said), "{refused}");
    assert!(next.named("ada", "name 5").delete().unwrap());
    next.named("ada", "one more")
        .save(&image(3, 0, 1), TURNS)
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Against a map: whatever is saved, deleted and opened again.
    #[test]
    fn the_store_is_a_map_that_outlives_engines(
        steps in prop::collection::vec((0u8..4, 0usize..3, 0u32..4, 0u32..5), 1..40)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = store(dir.path());
        let mut model = std::collections::BTreeMap::new();
        for (kind, name, seed, length) in steps {
            let name = ["a", "b", "c"][name];
            match kind {
                0 | 1 => {
                    let image = image(length * 700, seed * 1024, seed);
                    store.named("ada", name).save(&image, TURNS).unwrap();
                    model.insert(name, image);
                }
                2 => {
                    let was_there = store.named("ada", name).delete().unwrap();
                    prop_assert_eq!(was_there, model.remove(name).is_some());
                }
                _ => {
                    store.close();
                    store = self::store(dir.path());
                }
            }
            prop_assert_eq!(names(&store, "ada"), model.keys().copied().collect::<Vec<_>>());
            for (name, image) in &model {
                prop_assert_eq!(&loaded(&store, name), image);
            }
        }
        for name in ["a", "b", "c"] {
            store.named("ada", name).delete().unwrap();
        }
        prop_assert!(files(dir.path()).is_empty());
    }
}

const PAGE_BYTES: usize = 64;

fn form() -> PageForm {
    let driver = Capabilities {
        page_size: 256,
        page_bytes: PAGE_BYTES as u64,
        ..Capabilities::default()
    };
    PageForm::of(&driver).unwrap()
}

/// Saves a context and pages of its runs. Returns how many of the runs have pages.
fn save_with_pages(store: &SnapshotStore, name: &str, image: &ContextImage) -> usize {
    let runs = store.named("ada", name).save(image, TURNS).unwrap();
    let written = runs.iter().filter(|run| {
        let written = store.write_pages("ada", run, &form(), |writer| {
            for place in 0..4 {
                writer.push(&[place; PAGE_BYTES]).unwrap();
            }
            Ok(true)
        });
        written.unwrap()
    });
    written.count()
}

fn page_files(dir: &Path) -> usize {
    let files = files(dir);
    files
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "kv"))
        .count()
}

#[test]
fn pages_are_there_for_the_next_engine_and_go_with_the_last_that_shares_their_run() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    assert_eq!(save_with_pages(&first, "a", &image(3000, 2048, 1)), 2);
    let runs = first
        .named("ada", "b")
        .save(&image(3000, 2048, 2), TURNS)
        .unwrap();
    assert_eq!(page_files(dir.path()), 2);
    first.close();
    let next = store(dir.path());
    let kept = load(&next, "ada", "b").unwrap().unwrap();
    assert_eq!(kept.runs, runs);
    let mut page = [0; PAGE_BYTES];
    for run in &runs {
        let pages = next.pages_of(run, &form()).unwrap();
        assert!(pages.read(3, &mut page).unwrap());
        assert_eq!(page, [3; PAGE_BYTES]);
    }
    assert!(next.named("ada", "a").delete().unwrap());
    assert_eq!(page_files(dir.path()), 2);
    let (n_runs, held) = next.hold(&runs).unwrap();
    assert_eq!((n_runs, held.len()), (2, 1));
    assert!(next.named("ada", "b").delete().unwrap());
    assert!(
        next.pages_of(&runs[1], &form()).is_some(),
        "somebody reads them"
    );
    next.release(&held);
    assert!(files(dir.path()).is_empty());
}

#[test]
fn pages_give_way_to_tokens_and_are_not_kept_where_there_is_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    for (seed, name) in (1..).zip(["a", "b"]) {
        assert_eq!(save_with_pages(&first, name, &image(2048, 0, seed)), 2);
    }
    first.close();
    let sizes = |of_pages: bool| -> Vec<u64> {
        let files = files(dir.path()).into_iter();
        let wanted =
            files.filter(|path| path.extension().is_some_and(|it| (it == "kv") == of_pages));
        wanted
            .map(|path| fs::metadata(path).unwrap().len())
            .collect()
    };
    let (of_tokens, of_pages) = (sizes(false), sizes(true));
    // A third one has room once the pages of the first have gone, and no pages of its own have.
    let used = of_tokens.iter().chain(&of_pages).sum::<u64>();
    let config = SnapshotConfig {
        user_bytes: used + of_tokens[0] - 2 * of_pages[0],
        ..config()
    };
    let store = store_of(dir.path(), "tiny", config);
    assert_eq!(save_with_pages(&store, "c", &image(2048, 0, 3)), 0);
    assert_eq!(page_files(dir.path()), 2);
    for name in ["a", "b", "c"] {
        assert!(load(&store, "ada", name).unwrap().is_some());
    }
}

#[test]
fn pages_give_way_where_the_disk_is_short() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    assert_eq!(save_with_pages(&first, "a", &image(1024, 0, 1)), 1);
    first.close();
    let config = SnapshotConfig {
        free_bytes: 1 << 50,
        ..config()
    };
    let store = store_of(dir.path(), "tiny", config);
    let refused = store
        .named("ada", "b")
        .save(&image(5, 0, 2), TURNS)
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::DiskFull);
    assert_eq!(page_files(dir.path()), 0);
    assert!(load(&store, "ada", "a").unwrap().is_some());
}

#[test]
fn pages_that_no_file_has_a_run_of_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    save_with_pages(&first, "a", &image(1024, 0, 1));
    first.close();
    let folder = dir.path().join("snapshots/tiny");
    fs::write(
        folder.join(format!("{:016x}-{:032x}.kv", 99, 7)),
        b"left over",
    )
    .unwrap();
    let next = store(dir.path());
    assert_eq!(names(&next, "ada"), ["a"]);
    assert_eq!(page_files(dir.path()), 1);
}

#[test]
fn what_cannot_be_filled_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let runs = store
        .named("ada", "a")
        .save(&image(1024, 0, 1), TURNS)
        .unwrap();
    let few = |store: &SnapshotStore, is_there| {
        store.write_pages("ada", &runs[0], &form(), |writer| {
            writer.push(&[1; PAGE_BYTES]).unwrap();
            Ok(is_there)
        })
    };
    for is_there in [false, true] {
        assert!(!few(&store, is_there).unwrap());
        assert!(store.pages_of(&runs[0], &form()).is_none());
        assert_eq!(files(dir.path()).len(), 1);
    }
}
