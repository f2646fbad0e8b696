//! A batch that does not fit is refused, and no arena whatever makes the check or what follows it panic.

use proptest::prelude::*;

use super::*;

const LIMITS: ArenaBounds = ArenaBounds {
    vocab_size: 100,
    max_positions: 64,
    page_size: 4,
    n_pages: 8,
    host_pages: 3,
    max_tokens: 16,
};

/// The arrays of an arena by the index of their pair.
type Arrays = Vec<(usize, Vec<u32>)>;

/// Two sequences: 3 tokens that begin one, and 1 token behind 5 others, the first under an attention row.
fn arrays() -> Arrays {
    vec![
        (array::TOKENS, vec![5, 6, 7, 8]),
        (array::POSITIONS, vec![0, 1, 2, 5]),
        (array::QO_INDPTR, vec![0, 3, 4]),
        (array::KV_INDPTR, vec![0, 1, 3]),
        (array::KV_INDICES, vec![3, 1, 6]),
        (array::KV_LAST_PAGE_LEN, vec![3, 2]),
        (array::ROW_TOKEN, vec![2, 3]),
        (array::ROW_KEEP, vec![0, 2]),
        (array::MASK_INDPTR, vec![0, 2, 2, 2, 2]),
        (array::MASK_RUNS, vec![0, 1]),
        (array::COPY_SRC, vec![0]),
        (array::COPY_DST, vec![2]),
        (array::SWAP_OUT_SRC, vec![3, 5]),
        (array::SWAP_OUT_DST, vec![1, 2]),
        (array::SWAP_IN_SRC, vec![0]),
        (array::SWAP_IN_DST, vec![5]),
    ]
}

fn arena(arrays: &Arrays) -> Vec<u32> {
    let len = |pair: usize| {
        arrays
            .iter()
            .find(|(found, _)| *found == pair)
            .map_or(0, |(_, array)| array.len() as u32)
    };
    let mut words = vec![0; HEADER_WORDS];
    for (pair, array) in arrays {
        words[FIELDS_AT + 2 * pair] = words.len() as u32;
        words[FIELDS_AT + 2 * pair + 1] = array.len() as u32;
        words.extend(array);
    }
    let total = words.len() as u32;
    for (word, value) in [
        (head::MAGIC, MAGIC),
        (head::VERSION, VERSION),
        (head::WORDS, total),
        (head::PAGE_SIZE, 4),
        (head::TOKENS, len(array::TOKENS)),
        (head::SEQUENCES, len(array::KV_LAST_PAGE_LEN)),
        (head::ROWS, len(array::ROW_TOKEN)),
    ] {
        words[word] = value;
    }
    words
}

fn read(arena: &[u32]) -> Result<Batch<'_>> {
    Batch::read(arena, &LIMITS, &mut [0; LIMITS.n_pages])
}

/// The arena with one array replaced.
fn with(pair: usize, array: &[u32]) -> Vec<u32> {
    let mut arrays = arrays();
    arrays.retain(|(found, _)| *found != pair);
    arrays.push((pair, array.to_vec()));
    arena(&arrays)
}

#[test]
fn a_batch_is_read_in_place() {
    let words = arena(&arrays());
    let batch = read(&words).unwrap();
    assert_eq!(
        (
            batch.n_seqs(),
            batch.kv_len(0),
            batch.kv_len(1),
            batch.longest()
        ),
        (2, 3, 6, 6)
    );
    let slots = batch.slots_to_write();
    assert_eq!(slots[2], Some(Slot { page: 3, idx: 2 }));
    assert_eq!(slots[3], Some(Slot { page: 6, idx: 1 }));
    assert!(batch.is_masked(0) && !batch.is_masked(1));
    assert!(batch.allowed(1, 2).eq(std::iter::once(0..2)));
    assert_eq!(batch.embedded_rows().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_reread_token_is_not_written_and_may_share_its_page() {
    let shared = [
        (array::TOKENS, vec![7, 8]),
        (array::POSITIONS, vec![2, 5]),
        (array::QO_INDPTR, vec![0, 1, 2]),
        (array::ROW_TOKEN, vec![0, 1]),
        (array::ROW_KEEP, vec![0, 0]),
        (array::MASK_INDPTR, vec![0, 2, 2]),
        (array::KV_INDICES, vec![3, 1, 3]),
        (array::KV_LAST_PAGE_LEN, vec![3, 3]),
        (array::SEQ_REREAD, vec![1, 1]),
    ];
    let mut arrays = arrays();
    for (pair, array) in shared {
        arrays.retain(|(found, _)| *found != pair);
        arrays.push((pair, array));
    }
    let words = arena(&arrays);
    assert_eq!(read(&words).unwrap().slots_to_write(), [None; 2]);
}

#[test]
fn runs_alternate_and_end_at_the_limit() {
    let words = with(array::MASK_RUNS, &[0, 1]);
    let batch = read(&words).unwrap();
    let runs = |runs: &'static [u32], limit| {
        AllowedSlots {
            runs,
            next: 0,
            limit,
            whole: false,
        }
        .collect::<Vec<_>>()
    };
    assert_eq!(runs(&[2, 3, 1, 2], 9), [2..5, 6..8]);
    assert_eq!(runs(&[2, 3, 1, 2], 7), [2..5, 6..7]);
    assert_eq!(runs(&[0, 1, 1, 1, 0, 4], 100), [0..1, 2..3, 3..7]);
    assert_eq!(runs(&[3], 9), []);
    assert!(batch.allowed(0, 1).eq(std::iter::once(0..1)));
}

#[test]
fn every_mistake_names_itself() {
    let cases: [(&str, Vec<u32>, &str); 28] = [
        (
            "token",
            with(array::TOKENS, &[5, 100, 7, 8]),
            "token 100 is not below 100",
        ),
        (
            "position",
            with(array::POSITIONS, &[0, 1, 64, 5]),
            "position 64 is not below 64",
        ),
        (
            "lengths",
            with(array::POSITIONS, &[0, 1]),
            "positions has 2 elements, not 4",
        ),
        (
            "indptr start",
            with(array::QO_INDPTR, &[1, 3, 4]),
            "qo_indptr does not ascend from 0 to 4",
        ),
        (
            "indptr order",
            with(array::KV_INDPTR, &[0, 4, 3]),
            "kv_indptr does not ascend from 0 to 3",
        ),
        (
            "page",
            with(array::KV_INDICES, &[3, 1, 8]),
            "page index in kv_indices 8 is not below 8",
        ),
        (
            "empty last page",
            with(array::KV_LAST_PAGE_LEN, &[3, 0]),
            "sequence 1: its last page holds 0 tokens of 4",
        ),
        (
            "full last page",
            with(array::KV_LAST_PAGE_LEN, &[5, 2]),
            "sequence 0: its last page holds 5 tokens of 4",
        ),
        (
            "slots",
            with(array::KV_LAST_PAGE_LEN, &[2, 2]),
            "sequence 0: 3 new tokens, but 2 slots",
        ),
        (
            "row",
            with(array::ROW_TOKEN, &[2, 4]),
            "row_token 4 is not below 4",
        ),
        (
            "mask too long",
            with(array::MASK_RUNS, &[0, 4]),
            "token 0: its attention row covers 4 slots of 3",
        ),
        (
            "mask allows nothing",
            with(array::MASK_RUNS, &[1, 1]),
            "token 0: its attention row allows no slot that causality does",
        ),
        (
            "copy to a page twice",
            with(array::COPY_DST, &[0]),
            "page 0 is copied to and from",
        ),
        (
            "two rows in the wrong order",
            with(array::ROW_TOKEN, &[3, 2]),
            "row_token descends",
        ),
        (
            "an empty sequence",
            with(array::QO_INDPTR, &[0, 0, 4]),
            "qo_indptr does not ascend from 0 to 4",
        ),
        (
            "a reread of several tokens",
            with(array::SEQ_REREAD, &[1, 0]),
            "sequence 0 re-reads 3 tokens; one is possible",
        ),
        (
            "swap in and copy to a page",
            with(array::SWAP_IN_DST, &[2]),
            "page 2 is copied or swapped in to twice",
        ),
        (
            "swap out to a slot twice",
            with(array::SWAP_OUT_DST, &[1, 1]),
            "host slot 1 is swapped out to twice",
        ),
        (
            "swap out to and in from a slot",
            with(array::SWAP_IN_SRC, &[2]),
            "host slot 2 is swapped out to and in from",
        ),
        (
            "swap out to a slot that is not there",
            with(array::SWAP_OUT_DST, &[1, 3]),
            "host slot in swap_out_dst 3 is not below 3",
        ),
        (
            "swap out a page that is not there",
            with(array::SWAP_OUT_SRC, &[3, 9]),
            "page index in swap_out_src 9 is not below 8",
        ),
        (
            "copies of two lengths",
            with(array::COPY_DST, &[2, 3]),
            "copy_dst has 2 elements, not 1",
        ),
        (
            "page of another",
            with(array::KV_INDICES, &[3, 3, 6]),
            "page 3 is written by sequence 0 and used by sequence 1",
        ),
        (
            "page written twice",
            with(array::KV_INDICES, &[3, 1, 3]),
            "page 3 is written twice",
        ),
        (
            "reread",
            with(array::SEQ_REREAD, &[1]),
            "seq_reread has 1 elements, neither 0 nor 2",
        ),
        (
            "no header",
            vec![MAGIC; 95],
            "a batch of 95 words has no header of 96",
        ),
        ("not a batch", vec![0; 96], "not a batch of layout 3"),
        (
            "cut off",
            arena(&arrays())[..100].to_vec(),
            "the header says",
        ),
    ];
    for (name, words, expected) in cases {
        let message = read(&words).expect_err(name).message;
        assert!(message.starts_with(expected), "{name}: {message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Some words changed: refused, or all that the operations follow lies inside.
    #[test]
    fn a_damaged_arena_never_panics(changes in prop::collection::vec((0usize..100, prop_oneof![0u32..110, any::<u32>()]), 1..4)) {
        let mut words = arena(&arrays());
        for (at, value) in changes {
            let at = at % words.len();
            words[at] = value;
        }
        if let Ok(batch) = read(&words) {
            for slot in batch.slots_to_write().into_iter().flatten() {
                prop_assert!((slot.page as usize) < LIMITS.n_pages && slot.idx < LIMITS.page_size);
            }
            for seq_idx in 0..batch.n_seqs() {
                for token_idx in batch.seq_tokens(seq_idx) {
                    let limit = batch.slot_of(seq_idx, token_idx) + 1;
                    prop_assert!(limit <= batch.kv_len(seq_idx) && limit <= batch.seq_pages(seq_idx).len() * LIMITS.page_size);
                    prop_assert!(batch.allowed(token_idx, limit).all(|run| run.start < run.end && run.end <= limit));
                }
            }
        }
    }
}

#[test]
fn tokens_with_adapters_are_found() {
    let mut arrays = arrays();
    arrays.extend([
        (array::SEQ_ADAPTER, vec![0, 0, 7, 1]),
        (array::SEQ_ADAPTER_VERSION, vec![0, 3]),
        (array::SEQ_ZO_SEED, vec![0, 0, 0, 1, 9, 2]),
    ]);
    let words = arena(&arrays);
    let key = AdapterKey {
        id: 1 << 32 | 7,
        version: 3,
    };
    let zo_seed = Some(2 << 32 | 9);
    let found = read(&words).unwrap().adapted_tokens();
    assert_eq!(found, [(AdapterUse { key, zo_seed }, 3)]);
    assert!(
        read(&arena(&self::arrays()))
            .unwrap()
            .adapted_tokens()
            .is_empty()
    );
}

#[test]
fn adapters_of_some_sequences_are_refused() {
    for (pair, array) in [
        (array::SEQ_ADAPTER, vec![1, 0]),
        (array::SEQ_ADAPTER, vec![1, 0, 1, 0]),
        (array::SEQ_ADAPTER_VERSION, vec![1, 0]),
        (array::SEQ_ZO_SEED, vec![0; 6]),
    ] {
        assert!(read(&with(pair, &array)).is_err(), "array {pair}");
    }
}
