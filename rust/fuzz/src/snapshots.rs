//! Snapshots as files, and what an engine makes of the contexts that come from them.

use arbitrary::{Arbitrary, Unstructured};
use pie_core::{Adapter, ContextImage, Engine, EngineConfig, ProcessId, SpecialSlot, UserId};
use pie_host::{read_snapshot, snapshot_bytes};
use pie_text::ChatState;

const VOCAB_SIZE: u32 = 300;
const TURNS: &[u8] = b"{\"tools\": [], \"stretches\": []}";

/// Reads the bytes as a file and as the state of a conversation; makes a file of them, reads it, and reads it again
/// with a byte changed and cut; and has an engine open what it says.
pub fn snapshots(data: &[u8]) {
    drop(read_snapshot(data));
    if let Ok(state) = ChatState::from_bytes(data, 1000) {
        let written = state.to_bytes().unwrap();
        assert_eq!(ChatState::from_bytes(&written, 1000).unwrap(), state);
    }
    let mut bytes = Unstructured::new(data);
    let Ok((image, at, flip)) = made(&mut bytes) else {
        return;
    };
    open(&image);
    let mut written = snapshot_bytes(&image, TURNS).unwrap();
    let (again, turns) = read_snapshot(&written).unwrap();
    assert_eq!(again, image, "what was written is what is read");
    assert_eq!(turns, TURNS);
    let at = at % written.len();
    assert!(read_snapshot(&written[..at]).is_err(), "a cut at {at}");
    if flip != 0 {
        written[at] ^= flip;
        assert!(read_snapshot(&written).is_err(), "byte {at} was changed");
    }
}

/// Opens a context twice, if one of the model could say that.
fn open(image: &ContextImage) {
    let process = ProcessId(1);
    let mut engine = Engine::new(EngineConfig::new("tiny", VOCAB_SIZE)).unwrap();
    engine.new_process(process, UserId(1), 7).unwrap();
    for _ in 0..2 {
        if let Ok(context) = engine.open_image(process, image) {
            let again = engine.image(context).unwrap();
            let said = |image: &ContextImage| {
                let ContextImage {
                    tokens,
                    special,
                    pending,
                    buffer,
                    ..
                } = image.clone();
                let is_plain = |it: &SpecialSlot| {
                    it.position == it.slot
                        && it.mask.is_empty()
                        && it.adapter == Adapter::default()
                        && it.media == 0
                };
                let special = special.into_iter().filter(|it| !is_plain(it));
                (tokens, special.collect::<Vec<_>>(), pending, buffer)
            };
            assert_eq!(said(&again), said(image));
            engine.fork(context).unwrap();
        }
        engine.check().unwrap();
    }
    engine.end_process(process);
    engine.check().unwrap();
}

fn made(bytes: &mut Unstructured<'_>) -> arbitrary::Result<(ContextImage, usize, u8)> {
    let (at, flip) = (usize::arbitrary(bytes)?, u8::arbitrary(bytes)?);
    // Some are long enough for whole runs.
    let n = usize::from(u8::arbitrary(bytes)?) * usize::from(bytes.int_in_range(1u8..=12)?);
    let step = u32::arbitrary(bytes)?;
    let tokens: Vec<u32> = (0..n as u32)
        .map(|slot| slot.wrapping_mul(step) % VOCAB_SIZE)
        .collect();
    let mut special = Vec::new();
    let mut slot = 0u32;
    while bytes.arbitrary()? {
        slot += u32::from(u8::arbitrary(bytes)?) + 1;
        if slot as usize >= n {
            break;
        }
        let mask = Vec::<u8>::arbitrary(bytes)?.into_iter().map(u32::from);
        special.push(SpecialSlot {
            slot,
            position: bytes.int_in_range(0..=5000)?,
            mask: mask.collect(),
            adapter: Adapter {
                id: u64::arbitrary(bytes)?,
                version: u32::arbitrary(bytes)?,
                zo_seed: Option::arbitrary(bytes)?,
            },
            media: u64::arbitrary(bytes)?,
        });
    }
    let image = ContextImage {
        tokens,
        special,
        pending: words(bytes)?,
        buffer: words(bytes)?,
        n_cached: u32::arbitrary(bytes)?,
        n_committed: u32::arbitrary(bytes)?,
        n_final: u32::arbitrary(bytes)?,
        n_reserved: u32::arbitrary(bytes)?,
        path: u64::arbitrary(bytes)?,
    };
    Ok((image, at, flip))
}

fn words(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u32>> {
    let words = Vec::<u8>::arbitrary(bytes)?;
    Ok(words.into_iter().map(u32::from).collect())
}
