//! What a folder holds is what it is charged with, whatever is done to it, and nothing outside of it is touched.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pie_core::ErrorCode;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tempfile::TempDir;

use super::change::{At, Change, Opened};
use super::config::FilesConfig;
use super::folder::{Fault, Folder, FolderGuards, OpenFile, Outcome, Usage};
use super::opening::Wanted;
use super::turns::{FileTurns, HostTurns};

pub(super) const WRITE: Wanted = Wanted {
    read: true,
    write: true,
    create: true,
    exclusive: false,
    truncate: false,
    directory: false,
    follow: true,
};

/// A folder on the disk, and as programs have it.
struct Fixture {
    root: TempDir,
    folder: Arc<Folder>,
    turns: FileTurns,
    runtime: tokio::runtime::Runtime,
}

impl Fixture {
    fn new(bytes: u64, files: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("own");
        fs::create_dir(&own).unwrap();
        let config = FilesConfig {
            bytes,
            files,
            free_bytes: 0,
            ..FilesConfig::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        Self {
            folder: Arc::new(
                Folder::new(File::open(own).unwrap(), &config, FolderGuards::default()).unwrap(),
            ),
            turns: FileTurns::new(
                HostTurns::new(4, FilesConfig::default().stall),
                "ada".into(),
                Arc::default(),
                runtime.handle().clone(),
            ),
            root,
            runtime,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("own").join(name)
    }

    fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Change<'_>, &File) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let dir = self.folder.dir.dir.clone();
        let changing = self
            .folder
            .change(&self.turns, dir, |change, dir| work(change, dir));
        self.runtime.block_on(changing)
    }

    fn open(&self, path: &str, wanted: Wanted) -> Outcome<(Arc<File>, OpenFile)> {
        let path = PathBuf::from(path);
        match self.change(move |change, dir| change.open(dir, &path, &wanted))? {
            Opened::File(opened, guard) => Ok((opened.file, guard)),
            Opened::Folder(_) => panic!("it is a folder"),
        }
    }

    fn write(&self, path: &str, n_bytes: usize) -> Outcome<()> {
        let (file, _guard) = self.open(path, WRITE)?;
        self.change(move |change, _| change.write(&file, &vec![1; n_bytes], At::Position(0)))
    }

    fn remove(&self, path: &str) -> Outcome<()> {
        let path = PathBuf::from(path);
        self.change(move |change, dir| change.remove_file(dir, &path))
    }

    fn rename(&self, old: &str, new: &str) -> Outcome<()> {
        let (old, new) = (PathBuf::from(old), PathBuf::from(new));
        self.change(move |change, dir| change.rename((dir, &old), (dir, &new)))
    }

    fn make_dir(&self, path: &str) -> Outcome<()> {
        let path = PathBuf::from(path);
        self.change(move |change, dir| change.create_dir(dir, &path))
    }

    fn usage(&self) -> (u64, u64) {
        let Usage { n_bytes, n_files } = self.change(|change, _| Ok(change.usage())).unwrap();
        (n_bytes, n_files)
    }
}

/// Whether the engine refused it.
fn is_full<T>(outcome: &Outcome<T>) -> bool {
    matches!(outcome, Err(Fault::Refused(error)) if error.code == ErrorCode::LimitFiles)
}

fn is_failed<T>(outcome: &Outcome<T>) -> bool {
    matches!(outcome, Err(Fault::Io(_)))
}

#[test]
fn what_is_there_is_counted_at_the_first_change() {
    let given = Fixture::new(100, 10);
    fs::create_dir_all(given.path("a/b")).unwrap();
    fs::write(given.path("a/b/file"), [0; 60]).unwrap();
    symlink("/etc/passwd", given.path("link")).unwrap();
    assert_eq!(given.usage(), (60, 4));
    assert!(is_full(&given.write("other", 41)));
    given.write("other", 40).unwrap();
    assert_eq!(given.usage(), (100, 5));
}

#[test]
fn a_refused_write_changes_nothing() {
    let given = Fixture::new(100, 10);
    let (file, _guard) = given.open("file", WRITE).unwrap();
    for (n_bytes, at, fits) in [
        (60, At::Position(0), true),
        (50, At::End, false),
        (60, At::Position(0), true),
        (1, At::Position(100), false),
        (1, At::Position(u64::MAX), false),
        (1, At::Position(99), true),
        (1, At::End, false),
    ] {
        let (before, file) = (file.metadata().unwrap().len(), file.clone());
        let written = given.change({
            let file = file.clone();
            move |change, _| change.write(&file, &vec![1; n_bytes], at)
        });
        assert_eq!(written.is_ok(), fits, "{n_bytes} {at:?}");
        if !fits {
            assert_eq!(file.metadata().unwrap().len(), before);
        }
    }
    assert_eq!(given.usage(), (100, 1));
}

#[test]
fn holes_count() {
    let given = Fixture::new(1000, 10);
    let (file, _guard) = given.open("file", WRITE).unwrap();
    let set_size = |n_bytes: u64| {
        let file = file.clone();
        given.change(move |change, _| change.set_size(&file, n_bytes))
    };
    for too_many in [1001, 1 << 40, u64::MAX] {
        assert!(is_full(&set_size(too_many)));
    }
    set_size(1000).unwrap();
    assert_eq!(given.usage(), (1000, 1));
    assert!(is_full(&given.write("other", 1)));
    set_size(0).unwrap();
    // The other file is there, and empty.
    assert_eq!(given.usage(), (0, 2));
}

#[test]
fn a_removed_file_counts_until_it_is_closed() {
    let given = Fixture::new(100, 10);
    let (file, guard) = given.open("file", WRITE).unwrap();
    let writing = {
        let file = file.clone();
        move |change: &mut Change<'_>, _: &File| change.write(&file, &[1; 60], At::End)
    };
    given.change(writing).unwrap();
    given.remove("file").unwrap();
    assert_eq!(given.usage(), (60, 0));
    // Nobody sees it, and it can still grow.
    let grown = given.change(move |change, _| change.write(&file, &[1; 41], At::End));
    assert!(is_full(&grown));
    assert!(is_full(&given.write("other", 41)));
    drop(guard);
    assert_eq!(given.usage(), (0, 1));
}

#[test]
fn a_file_that_is_replaced_is_given_back() {
    let given = Fixture::new(100, 10);
    given.write("one", 40).unwrap();
    given.write("other", 50).unwrap();
    given.rename("one", "other").unwrap();
    assert_eq!(given.usage(), (40, 1));
    given.rename("other", "other").unwrap();
    assert_eq!(given.usage(), (40, 1));
    let truncate = Wanted {
        truncate: true,
        ..WRITE
    };
    drop(given.open("other", truncate).unwrap());
    assert_eq!(given.usage(), (0, 1));
}

#[test]
fn what_fails_is_not_charged() {
    let given = Fixture::new(100, 2);
    given.make_dir("folder").unwrap();
    assert!(is_failed(&given.make_dir("folder")));
    assert!(is_failed(&given.make_dir("missing/folder")));
    assert!(is_failed(&given.open("missing/file", WRITE)));
    assert!(is_failed(&given.open("folder", WRITE)));
    assert!(is_failed(&given.remove("missing")));
    assert!(is_failed(&given.rename("missing", "other")));
    assert_eq!(given.usage(), (0, 1));
    given.write("file", 0).unwrap();
    assert!(is_full(&given.open("third", WRITE)));
    assert!(is_full(&given.make_dir("third")));
}

#[test]
fn folders_nest_so_deep_and_no_deeper() {
    let given = Fixture::new(100, 1000);
    let chain = |name: &str, n: usize| vec![name; n].join("/");
    for n in 1..=64 {
        given.make_dir(&chain("a", n)).unwrap();
    }
    assert!(is_full(&given.make_dir(&chain("a", 65))));
    // By way of a link, and by moving a folder with what is in it.
    let jump = chain("a", 60);
    given
        .change(move |change, dir| change.link(Path::new(&jump), dir, Path::new("jump")))
        .unwrap();
    given.make_dir("b").unwrap();
    given.make_dir("b/b").unwrap();
    for n in 61..=64 {
        fs::remove_dir(given.path(&chain("a", 125 - n))).unwrap();
    }
    given.make_dir("jump/c").unwrap();
    given.make_dir("jump/c/c").unwrap();
    given.make_dir("jump/c/c/c").unwrap();
    assert!(is_full(&given.rename("b", "jump/c/c/c/b")));
    given.rename("b", "jump/c/c/b").unwrap();
}

#[test]
fn nothing_leads_out() {
    let given = Fixture::new(1000, 100);
    fs::write(given.root.path().join("secret"), "secret").unwrap();
    fs::create_dir(given.root.path().join("beside")).unwrap();
    symlink("../secret", given.path("relative")).unwrap();
    symlink(given.root.path().join("secret"), given.path("absolute")).unwrap();
    symlink("..", given.path("up")).unwrap();
    symlink("loop", given.path("loop")).unwrap();
    given.make_dir("in").unwrap();
    let long = "x/".repeat(50_000);
    for path in [
        "../secret",
        "../secret/",
        "/etc/passwd",
        "//etc/passwd",
        "relative",
        "absolute",
        "up/secret",
        "up/beside/x",
        "in/../../secret",
        "in/../../own/../secret",
        "./../secret",
        "loop",
        "",
        "..",
        "../beside/new",
        "in/../..",
        &long,
    ] {
        let refused = given.open(path, WRITE);
        assert!(is_failed(&refused), "{path}");
        assert!(is_failed(&given.make_dir(path)), "{path}");
        assert!(
            is_failed(&given.remove(path)) || matches!(path, "relative" | "absolute" | "loop"),
            "{path}"
        );
        given.write("mine", 0).unwrap();
        assert!(
            is_failed(&given.rename("mine", path))
                || matches!(path, "relative" | "absolute" | "loop"),
            "{path}"
        );
    }
    let absolute =
        given.change(|change, dir| change.link(Path::new("/etc"), dir, Path::new("etc")));
    assert!(is_failed(&absolute));
    assert_eq!(
        fs::read_to_string(given.root.path().join("secret")).unwrap(),
        "secret"
    );
    assert_eq!(
        fs::read_dir(given.root.path().join("beside"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn pipes_and_devices_are_not_opened() {
    let given = Fixture::new(1000, 100);
    let made = std::process::Command::new("mkfifo")
        .arg(given.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let read = Wanted {
        read: true,
        ..Wanted::default()
    };
    for wanted in [read, WRITE] {
        assert!(is_failed(&given.open("pipe", wanted)));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u8, u16),
    Append(u8, u16),
    SetSize(u8, u16),
    Open(u8),
    Close(u8),
    Remove(u8),
    Rename(u8, u8),
    MakeDir(u8),
    RemoveDir(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (name, size) = (0..6_u8, 0..600_u16);
    prop_oneof![
        (name.clone(), size.clone()).prop_map(|(name, size)| Step::Write(name, size)),
        (name.clone(), size.clone()).prop_map(|(name, size)| Step::Append(name, size)),
        (name.clone(), size).prop_map(|(name, size)| Step::SetSize(name, size)),
        name.clone().prop_map(Step::Open),
        name.clone().prop_map(Step::Close),
        name.clone().prop_map(Step::Remove),
        (name.clone(), name.clone()).prop_map(|(old, new)| Step::Rename(old, new)),
        name.clone().prop_map(Step::MakeDir),
        name.prop_map(Step::RemoveDir),
    ]
}

/// Does a step, whatever comes of it.
fn does(given: &Fixture, open: &mut BTreeMap<u8, (Arc<File>, OpenFile)>, step: &Step) {
    let name = |number: &u8| format!("{}{number}", ["", "0/", "1/"][usize::from(number % 3)]);
    let file = |number: &u8, open: &BTreeMap<u8, (Arc<File>, OpenFile)>| {
        let held = open.get(number).map(|(file, _)| file.clone());
        held.or_else(|| given.open(&name(number), WRITE).ok().map(|(file, _)| file))
    };
    let outcome = match step {
        Step::Write(number, size) | Step::Append(number, size) => {
            let at = match step {
                Step::Append(..) => At::End,
                _ => At::Position(u64::from(*size) / 2),
            };
            let (bytes, file) = (vec![1; usize::from(*size)], file(number, open));
            file.map(|file| given.change(move |change, _| change.write(&file, &bytes, at)))
        }
        Step::SetSize(number, size) => {
            let (size, file) = (u64::from(*size), file(number, open));
            file.map(|file| given.change(move |change, _| change.set_size(&file, size)))
        }
        Step::Open(number) => {
            if let Ok(opened) = given.open(&name(number), WRITE) {
                open.insert(*number, opened);
            }
            None
        }
        Step::Close(number) => {
            open.remove(number);
            None
        }
        Step::Remove(number) => Some(given.remove(&name(number))),
        Step::Rename(old, new) => Some(given.rename(&name(old), &name(new))),
        Step::MakeDir(number) => Some(given.make_dir(&number.to_string())),
        Step::RemoveDir(number) => {
            let path = PathBuf::from(number.to_string());
            Some(given.change(move |change, dir| change.remove_dir(dir, &path)))
        }
    };
    drop(outcome);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was done, the usage is what is there, and within the quota; once all is closed, to the byte.
    #[test]
    fn usage_is_what_is_there(steps in prop::collection::vec(step(), 1..80)) {
        let given = Fixture::new(1500, 6);
        let mut open = BTreeMap::new();
        for step in &steps {
            does_checked(&given, &mut open, step)?;
        }
        open.clear();
        let kept = given.usage();
        let own = File::open(given.path("")).unwrap();
        let folder = Folder::new(own, &FilesConfig::default(), FolderGuards::default()).unwrap();
        let fresh = Fixture { folder: Arc::new(folder), ..given };
        prop_assert_eq!(kept, fresh.usage());
    }
}

fn does_checked(
    given: &Fixture,
    open: &mut BTreeMap<u8, (Arc<File>, OpenFile)>,
    step: &Step,
) -> Result<(), TestCaseError> {
    does(given, open, step);
    let (n_bytes, n_files) = given.usage();
    prop_assert!(n_bytes <= 1500 && n_files <= 6, "{} {}", n_bytes, n_files);
    Ok(())
}
