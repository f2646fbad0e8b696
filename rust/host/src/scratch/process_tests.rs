//! What the engine holds for a process that opens, lists, reads and writes files is bounded and charged, whatever the
//! process drops and when.

use std::fs;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use pie_core::ErrorCode;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use wasmtime_wasi::p2::{InputStream as _, OutputStream as _, Pollable as _, StreamError};

use super::change::At;
use super::config::{FileScope, FilesConfig};
use super::descriptor::{InScratch, OpenDescriptor};
use super::folder::{Folder, Outcome};
use super::folders::{Folders, Owner};
use super::listing::Listing;
use super::process_files::ProcessFiles;
use super::reader::Reader;
use super::tests::WRITE;
use super::writer::Writer;
use crate::budget::Budget;
use crate::limits::STREAM_BYTES;
use crate::sandbox::cpu::CpuMeter;

/// A process that has its folders, and what it is charged to.
struct Process {
    files: ProcessFiles,
    budget: Arc<Budget>,
    cpu: Arc<CpuMeter>,
    data: TempDir,
    /// One thread, so that a task runs when the test waits and not before.
    runtime: Runtime,
}

impl Process {
    /// Of a host that lets each process open `open_files`.
    fn new(scope: FileScope, open_files: usize) -> Self {
        let data = tempfile::tempdir().unwrap();
        let config = FilesConfig {
            scope,
            open_files,
            free_bytes: 0,
            ..FilesConfig::default()
        };
        let folders = Arc::new(Folders::new(config, Some(data.path())).unwrap());
        let owner = Owner {
            user: "ada".to_owned(),
            program: "notes".to_owned(),
        };
        let (budget, cpu) = (Budget::new(64 << 20, None), Arc::<CpuMeter>::default());
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let turns = folders.turns_of("ada", cpu.clone(), runtime.handle().clone());
        let mut process = Self {
            files: ProcessFiles::new(folders, owner, budget.account("ada"), turns),
            budget,
            cpu,
            data,
            runtime,
        };
        process.given();
        process
    }

    /// As a call of `get-directories`.
    fn given(&mut self) -> Vec<Arc<OpenDescriptor>> {
        if let Some(finding) = self.files.finding() {
            let found = finding();
            self.files.keep(found);
        }
        let given = self.files.given().iter();
        given.map(|(dir, _)| dir.clone()).collect()
    }

    fn scratch(&self) -> InScratch {
        let (dir, path) = self.files.given().last().unwrap();
        assert_eq!(path, "/scratch");
        dir.clone().changeable_dir().unwrap()
    }

    async fn open(&self, name: &str) -> Arc<OpenDescriptor> {
        let (dir, path, permit) = (
            self.scratch(),
            PathBuf::from(name),
            self.files.permit().unwrap(),
        );
        let folder = dir.folder().clone();
        let opened = dir.change(self.files.turns(), move |change, dir| {
            let opened = change.open(dir, &path, &WRITE)?;
            Ok(OpenDescriptor::opened(folder, opened, permit))
        });
        Arc::new(opened.await.unwrap())
    }

    async fn remove(&self, name: &'static str) {
        let dir = self.scratch();
        let removed = dir.change(self.files.turns(), move |change, dir| {
            change.remove_file(dir, name.as_ref())
        });
        removed.await.unwrap();
    }

    fn writer(&self, file: &Arc<OpenDescriptor>) -> Outcome<Writer> {
        let file = file.clone().changeable_file().unwrap();
        let held = (
            self.files.turns().clone(),
            self.files.holding(STREAM_BYTES)?,
        );
        let refusals = self.files.refusals().clone();
        Ok(Writer::new(file, At::End, held, refusals))
    }

    fn reader(&self, file: &Arc<OpenDescriptor>) -> Reader {
        let holding = self.files.holding(STREAM_BYTES).unwrap();
        let held = (self.files.turns().clone(), holding);
        Reader::new(file.clone(), 0, held, self.files.refusals().clone())
    }

    fn listing(&self) -> Outcome<Listing> {
        Listing::read(self.scratch().open().file(), self.files.holding(0)?)
    }

    /// Bytes and files that the folder is charged with.
    async fn usage(&self, dir: &InScratch) -> (u64, u64) {
        let usage = dir.change(self.files.turns(), |change, _| Ok(change.usage()));
        let usage = usage.await.unwrap();
        (usage.n_bytes, usage.n_files)
    }

    /// Descriptors of this process of the machine that lead into the data of the engine.
    fn n_descriptors(&self) -> usize {
        let links = fs::read_dir("/proc/self/fd").unwrap();
        links
            .filter_map(|link| fs::read_link(link.unwrap().path()).ok())
            .filter(|path| path.starts_with(self.data.path()))
            .count()
    }
}

/// Lets others work until something holds.
async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

fn whole_piece() -> Bytes {
    Bytes::from(vec![1; STREAM_BYTES])
}

#[test]
fn streams_that_are_dropped_while_they_write_are_no_more_than_may_be() {
    let process = Process::new(FileScope::User, 4);
    process.runtime.block_on(async {
        let file = process.open("file").await;
        let in_use = process.scratch().folder().state.clone().lock_owned().await;
        let mut n = 0;
        let refused = loop {
            let mut writer = match process.writer(&file) {
                Ok(writer) => writer,
                Err(refused) => break refused,
            };
            n += 1;
            assert_eq!(writer.check_write().unwrap(), STREAM_BYTES);
            writer.write(whole_piece()).unwrap();
            // The program that drops the stream waits; it is ended there.
            let mut dropping = Box::pin(async move { writer.cancel().await });
            let mut context = Context::from_waker(Waker::noop());
            assert!(dropping.as_mut().poll(&mut context).is_pending());
            drop(dropping);
            assert_eq!(process.budget.held_bytes(), n * STREAM_BYTES as u64);
        };
        assert_eq!(n, 3);
        drop(process.files.failed(refused));
        let code = process.files.refusals().last().unwrap().code;
        assert_eq!(code, ErrorCode::LimitResources);
        drop(in_use);
        until(|| process.budget.held_bytes() == 0).await;
        assert!(process.writer(&file).is_ok());
        let usage = process.usage(&process.scratch()).await;
        assert_eq!(usage, (3 * STREAM_BYTES as u64, 1));
    });
}

#[test]
fn a_dropped_stream_is_waited_for() {
    let process = Process::new(FileScope::User, 4);
    process.runtime.block_on(async {
        let file = process.open("file").await;
        let mut writer = process.writer(&file).ok().unwrap();
        writer.write(whole_piece()).unwrap();
        writer.cancel().await;
        let written = file.file().metadata().unwrap().len();
        assert_eq!(written, STREAM_BYTES as u64);
    });
}

#[test]
fn a_write_behind_the_close_of_a_removed_file_is_given_back() {
    let process = Process::new(FileScope::User, 4);
    process.runtime.block_on(async {
        let file = process.open("file").await;
        process.remove("file").await;
        let raw = file.file().clone();
        let mut writer = process.writer(&file).ok().unwrap();
        writer.write(whole_piece()).unwrap();
        // No other task has run so far.
        drop((writer, file));
        until(|| raw.metadata().unwrap().len() == STREAM_BYTES as u64).await;
        let scratch = process.scratch();
        let is_closed = |folder: &Folder| {
            let state = folder.state.try_lock();
            state.is_ok_and(|state| state.open.is_empty())
        };
        until(|| is_closed(scratch.folder())).await;
        assert_eq!(process.usage(&scratch).await, (0, 0));
    });
}

#[test]
fn asking_for_the_folders_again_opens_nothing_and_begins_no_other_quota() {
    for scope in [FileScope::Process, FileScope::User] {
        let mut process = Process::new(scope, 4);
        let before = process.n_descriptors();
        let asked: Vec<_> = (0..1000).flat_map(|_| process.given()).collect();
        assert_eq!((asked.len(), process.n_descriptors()), (1000, before));
        let (first, last) = (asked[0].clone(), asked[999].clone());
        assert!(first.is_same_object(&last).unwrap());
        let [first, last] = [first, last].map(|dir| dir.changeable_dir().unwrap());
        process.runtime.block_on(async {
            let made = first.change(process.files.turns(), |change, dir| {
                change.create_dir(dir, "made".as_ref())
            });
            made.await.unwrap();
            assert_eq!(process.usage(&last).await, (0, 1));
        });
        // What is open is the process's own.
        assert!(process.files.permit().is_ok());
    }
}

#[test]
fn a_second_engine_keeps_no_files_where_another_one_does() {
    let data = tempfile::tempdir().unwrap();
    let owner = Owner {
        user: "ada".to_owned(),
        program: "notes".to_owned(),
    };
    let engine = |scope| {
        let config = FilesConfig {
            scope,
            ..FilesConfig::default()
        };
        Folders::new(config, Some(data.path())).unwrap()
    };
    let [first, second] = [(); 2].map(|()| engine(FileScope::User));
    first.scratch(&owner).unwrap();
    let refused = second.scratch(&owner).map(drop).unwrap_err();
    assert_eq!(refused.code, ErrorCode::FilesOff);
    assert!(
        refused.message.contains("is used by another engine"),
        "{}",
        refused.message
    );
    assert!(second.claim().is_err());
    // What ends with its process is nobody else's.
    engine(FileScope::Process).scratch(&owner).unwrap();
    first.give_up();
    second.scratch(&owner).unwrap();
}

#[test]
fn work_on_files_takes_the_time_of_its_process() {
    const WORK: Duration = Duration::from_millis(5);
    let process = Process::new(FileScope::User, 4);
    process.runtime.block_on(async {
        let worked = process.files.turns().run(|| {
            let (inner, mut sum) = (CpuMeter::default(), 0_u64);
            while inner.used() < WORK {
                inner.measured(|| (0..1000).for_each(|n| sum = std::hint::black_box(sum + n)));
            }
        });
        worked.await.unwrap();
    });
    assert!(process.cpu.used() >= WORK, "{:?}", process.cpu.used());
}

#[test]
fn a_listing_is_charged_with_what_it_holds() {
    let process = Process::new(FileScope::User, 4);
    let folder = process.data.path().join("scratch/user/ada");
    for n in 0..300 {
        fs::write(folder.join(format!("{n:0100}")), "").unwrap();
    }
    let mut listing = process.listing().unwrap();
    let held = process.budget.held_bytes();
    // A name of a hundred bytes, and an entry of the list, of which there are at most twice as many as are used.
    assert!(
        (300 * 100..300 * (100 + 32 + 2 * 48)).contains(&held),
        "{held}"
    );
    let mut names: Vec<_> = std::iter::from_fn(|| listing.next().unwrap())
        .map(|entry| entry.name)
        .collect();
    names.sort();
    assert_eq!(names.len(), 300);
    assert_eq!(names[299], format!("{:0100}", 299));
    drop(listing);
    assert_eq!(process.budget.held_bytes(), 0);
    // As much as the user may hold but for a part of it.
    let most = process.budget.user_bytes();
    let account = process.budget.account("ada");
    let other = account.charge(crate::budget::Purpose::Log, most - held / 2);
    let refused = process.listing().err().unwrap();
    drop(process.files.failed(refused));
    let code = process.files.refusals().last().unwrap().code;
    assert_eq!(code, ErrorCode::LimitEngineMemory);
    drop(other);
    assert_eq!(process.budget.held_bytes(), 0);
}

#[test]
fn a_stream_reads_what_is_there_and_is_charged_until_it_has() {
    let process = Process::new(FileScope::User, 4);
    process.runtime.block_on(async {
        let file = process.open("file").await;
        fs::write(process.data.path().join("scratch/user/ada/file"), "abcdef").unwrap();
        let mut reader = process.reader(&file);
        assert_eq!(process.budget.held_bytes(), STREAM_BYTES as u64);
        assert_eq!(reader.blocking_read(2).await.unwrap(), "ab");
        // What is asked for and not there yet comes later.
        assert_eq!(reader.read(3).unwrap(), "");
        reader.ready().await;
        assert_eq!(reader.read(1).unwrap(), "c");
        assert_eq!(reader.read(9).unwrap(), "de");
        assert_eq!(reader.blocking_skip(9).await.unwrap(), 1);
        assert_eq!(reader.blocking_read(0).await.unwrap(), "");
        let end = reader.blocking_read(9).await;
        assert!(matches!(end, Err(StreamError::Closed)));
        let mut dropped = process.reader(&file);
        assert_eq!(dropped.read(9).unwrap(), "");
        dropped.cancel().await;
        drop((reader, dropped));
        assert_eq!(process.budget.held_bytes(), 0);
    });
}

#[test]
fn a_read_that_fails_makes_the_last_refusal_stale() {
    let process = Process::new(FileScope::User, 4);
    process.runtime.block_on(async {
        let full = crate::Error::new(ErrorCode::LimitFiles, "full");
        drop(process.files.failed(full));
        assert!(process.files.refusals().last().is_some());
        // A folder is not read as a file is.
        let (dir, _) = process.files.given().last().unwrap();
        let mut reader = process.reader(dir);
        let failed = pin!(reader.blocking_read(9)).await;
        assert!(matches!(failed, Err(StreamError::LastOperationFailed(_))));
        assert!(process.files.refusals().last().is_none());
    });
}
