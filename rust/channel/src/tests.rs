//! Both ends in one process, on threads of their own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unsafe_code,
    reason = "a test fails by panicking, and reads what the other end wrote"
)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use super::*;

const VOCAB_SIZE: u32 = 100;
const SOON: Duration = Duration::from_micros(20);
const LONG: Duration = Duration::from_secs(30);

fn ends() -> (HostEnd, DriverEnd) {
    let host = HostEnd::new(VOCAB_SIZE).unwrap();
    // SAFETY: the host has them open.
    let copy = |descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned();
    let copies: Vec<OwnedFd> = host
        .descriptors()
        .into_iter()
        .map(|descriptor| copy(descriptor).unwrap())
        .collect();
    let driver = DriverEnd::open(copies.try_into().unwrap(), VOCAB_SIZE).unwrap();
    (host, driver)
}

fn words(view: &View) -> Vec<u32> {
    // SAFETY: the words of a batch, which nobody writes while they are read.
    unsafe { std::slice::from_raw_parts(view.start().cast(), view.n_bytes() / 4) }.to_vec()
}

fn floats(view: &View) -> &[f32] {
    // SAFETY: the rows of an answer, which nobody writes while they are read.
    unsafe { std::slice::from_raw_parts(view.start().cast(), view.n_bytes() / 4) }
}

/// Answers each batch with rows that hold its first word; ends with the host.
fn serve(mut driver: DriverEnd, host: UnixStream) {
    let mut arrived: Vec<Arrived> = Vec::new();
    loop {
        match driver.receive(host.as_fd(), SOON).unwrap() {
            Received::Batch(batch) => {
                arrived.push(batch);
                continue;
            }
            Received::Awaited => {}
            Received::Gone => return,
        }
        let batch = arrived.remove(0);
        let (first, n_rows) = (words(&driver.words(batch.slot).unwrap())[0], batch.n_words);
        assert!(n_rows < batch.n_most_rows);
        let rows = driver.rows(batch.slot).unwrap();
        assert_eq!(rows.n_bytes(), batch.n_most_rows * 4 * VOCAB_SIZE as usize);
        // SAFETY: the rows of a batch that is not answered.
        let rows =
            unsafe { std::slice::from_raw_parts_mut(rows.start().cast::<f32>(), n_rows * 100) };
        rows.fill(first as f32);
        match first % 3 {
            0 => driver.answer(Outcome::Rows, n_rows, ""),
            1 => driver.answer(Outcome::Failures, n_rows, "a sequence"),
            _ => driver.answer(Outcome::Failed, 0, "the device"),
        }
        .unwrap();
    }
}

#[test]
fn words_beyond_an_area_are_not_copied() {
    let area = area::Area::make(64).unwrap();
    let n_words = area.n_bytes() / 4;
    assert!(area.put_words(&vec![7; n_words]));
    assert!(!area.put_words(&vec![9; n_words + 1]));
    assert_eq!(area.bytes(0, 4), 7u32.to_ne_bytes());
}

#[test]
fn batches_of_any_length_are_answered_in_order() {
    let (mut host, driver) = ends();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || serve(driver, theirs));
    let lengths = [1, 2, 3, 30_000, 5, 100_000, 7, 8, 300_000, 1];
    let mut sent = 0;
    for (index, &length) in lengths.iter().enumerate() {
        while sent < lengths.len() && sent < index + 2 {
            // As many rows are wanted as the batch has words.
            host.send(&vec![sent as u32; lengths[sent]], lengths[sent])
                .unwrap();
            sent += 1;
        }
        assert_eq!(
            host.wait(ours.as_fd(), SOON, LONG).unwrap(),
            Waited::Answered
        );
        let answer = host.take().unwrap();
        let expected = [Outcome::Rows, Outcome::Failures, Outcome::Failed][index % 3];
        assert_eq!(answer.outcome, expected);
        assert_eq!(answer.text, ["", "a sequence", "the device"][index % 3]);
        if expected != Outcome::Failed {
            assert_eq!(answer.n_rows, length);
            let rows = host.rows(answer.slot).unwrap();
            let rows = &floats(&rows)[..length * 100];
            assert!(rows.iter().all(|&it| it == index as f32));
        }
    }
    assert!(host.take().is_none());
    drop(ours);
    server.join().unwrap();
}

#[test]
fn many_small_batches_wake_each_other() {
    let (mut host, driver) = ends();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || serve(driver, theirs));
    for n in 0..20_000 {
        host.send(&[3 * n], 1).unwrap();
        // Now and then a side is asleep before the other one is ready.
        if n % 500 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let looking = if n % 2 == 0 { SOON } else { Duration::ZERO };
        assert_eq!(
            host.wait(ours.as_fd(), looking, LONG).unwrap(),
            Waited::Answered
        );
        let slot = host.take().unwrap().slot;
        assert_eq!(floats(&host.rows(slot).unwrap())[0], (3 * n) as f32);
    }
    drop(ours);
    server.join().unwrap();
}

#[test]
fn a_driver_that_is_gone_is_noticed_and_one_that_is_slow_is_not() {
    let (mut host, driver) = ends();
    let (ours, theirs) = UnixStream::pair().unwrap();
    host.send(&[1, 2, 3], 1).unwrap();
    let soon = Duration::from_millis(2);
    assert_eq!(
        host.wait(ours.as_fd(), SOON, soon).unwrap(),
        Waited::TimedOut
    );
    drop((driver, theirs));
    assert_eq!(host.wait(ours.as_fd(), SOON, LONG).unwrap(), Waited::Lost);
    assert!(host.take().is_none());
}

#[test]
fn an_answer_is_taken_though_its_driver_is_gone() {
    let (mut host, mut driver) = ends();
    let (ours, theirs) = UnixStream::pair().unwrap();
    host.send(&[1, 2, 3], 1).unwrap();
    let received = driver.receive(theirs.as_fd(), SOON).unwrap();
    assert!(matches!(received, Received::Batch(_)));
    driver.answer(Outcome::Rows, 1, "").unwrap();
    drop((driver, theirs));
    assert_eq!(
        host.wait(ours.as_fd(), SOON, LONG).unwrap(),
        Waited::Answered
    );
    assert_eq!(host.take().unwrap().n_rows, 1);
}

#[test]
fn a_driver_that_writes_nonsense_leads_nowhere() {
    let (mut host, mut driver) = ends();
    let (ours, theirs) = UnixStream::pair().unwrap();
    host.send(&[1, 2, 3], 1).unwrap();
    assert!(host.send(&[1], 1).is_ok());
    assert!(host.send(&[1], 1).is_err(), "two are under way");
    let received = driver.receive(theirs.as_fd(), SOON).unwrap();
    assert!(matches!(received, Received::Batch(_)));
    driver
        .answer(
            Outcome::Failures,
            usize::MAX,
            &"\u{e9}".repeat(MAX_TEXT_BYTES),
        )
        .unwrap();
    assert!(
        driver.answer(Outcome::Rows, 1, "").is_err(),
        "no batch is under way"
    );
    assert_eq!(
        host.wait(ours.as_fd(), SOON, LONG).unwrap(),
        Waited::Answered
    );
    let answer = host.take().unwrap();
    assert_eq!(answer.text.len(), MAX_TEXT_BYTES);
    assert_eq!(answer.n_rows, answer.n_most_rows);
    assert!(answer.n_rows * 400 <= host.rows(answer.slot).unwrap().n_bytes());
}
