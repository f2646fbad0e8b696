//! What others have walked before changes no answer: neither a mask, nor where a limit of the engine refuses a text.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::{Arc, LazyLock};

use pie_text::Tokenizer;
use pie_text::grammar::{Compiled, Grammar, Matcher, Source, Vocabulary};

static MODEL: LazyLock<(Arc<Tokenizer>, Arc<Vocabulary>)> = LazyLock::new(|| {
    let bytes = include_bytes!("../../../python/pie/pie_tiny/tokenizer.json");
    let tokenizer = Arc::new(Tokenizer::from_bytes(bytes, 0).unwrap());
    let vocabulary = Vocabulary::new(tokenizer.clone(), []).unwrap();
    (tokenizer, Arc::new(vocabulary))
});

/// A grammar of which nothing was walked.
fn fresh(source: Source<'_>) -> Arc<Compiled> {
    let grammar = Arc::new(Grammar::new(source).unwrap());
    Arc::new(Compiled::new(MODEL.1.clone(), grammar).unwrap())
}

/// What was answered in each step of a text: the mask and the token that was taken, or the error that ended it.
type Answers = Vec<Result<(Vec<u32>, u32), String>>;

/// Walks a text of up to `n` tokens. Each is drawn among those allowed by the seed that stands for its place, so that
/// texts whose seeds begin alike do too.
fn walk(compiled: &Arc<Compiled>, n: usize, seed_at: impl Fn(usize) -> u64) -> Answers {
    let stop = MODEL.0.special_tokens().0;
    let mut matcher = Matcher::new(compiled, stop.clone());
    let mut answers = Answers::new();
    while answers.len() < n && !matcher.is_terminated() {
        let mask = match matcher.mask() {
            Ok(mask) => mask,
            Err(error) => {
                answers.push(Err(error.to_string()));
                break;
            }
        };
        let mut random =
            (seed_at(answers.len()) << 32 | answers.len() as u64) ^ 0x9E37_79B9_7F4A_7C15;
        for _ in 0..4 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
        }
        let allowed = (0..MODEL.0.vocab_size()).filter(|it| mask.allows(*it) && !stop.contains(it));
        let allowed: Vec<u32> = allowed.collect();
        let Some(&token) = allowed.get((random % allowed.len().max(1) as u64) as usize) else {
            break;
        };
        if let Err(error) = matcher.accept(&[token]) {
            answers.push(Err(error.to_string()));
            break;
        }
        answers.push(Ok((mask.runs(), token)));
    }
    answers
}

/// Asserts that texts are answered behind others as they are alone. Returns what ended them.
fn check(source: &str, n: usize) -> Vec<Option<String>> {
    let warm = fresh(Source::Regex(source));
    let mut ends = Vec::new();
    for round in 0..4_u64 {
        // Each text goes with the one before for a while.
        let seed_at = |at: usize| round.saturating_sub(u64::from(at < n * round as usize / 5));
        let alone = walk(&fresh(Source::Regex(source)), n, seed_at);
        for again in 0..2 {
            let behind = walk(&warm, n, seed_at);
            let differs = alone
                .iter()
                .zip(&behind)
                .position(|(one, other)| one != other);
            assert_eq!(differs, None, "{source}: round {round}.{again}");
            assert_eq!(alone.len(), behind.len(), "{source}: round {round}.{again}");
        }
        ends.push(alone.last().and_then(|it| it.clone().err()));
    }
    ends
}

#[test]
fn texts_are_answered_behind_others_as_they_are_alone() {
    for source in ["[a-z ]{1,400}", "(ab|cd|[x-z]{2})*", "([a-d]*,)*"] {
        assert!(check(source, 120).iter().all(Option::is_none), "{source}");
    }
}

/// The lexer of each text has ever more states, until they are too many, or it has no fuel left.
#[test]
fn where_a_limit_refuses_a_text_it_does_so_whatever_others_have_walked() {
    let mut n_refused = 0;
    for source in LIMITS {
        for end in check(source, 400).into_iter().flatten() {
            assert!(end.contains("the grammar cannot go on"), "{source}: {end}");
            n_refused += 1;
        }
    }
    assert!(n_refused >= 8, "{n_refused} texts were refused");
}

const LIMITS: [&str; 3] = [
    "[a-z]*[aeiou][a-z]{16}",
    "[a-z]*[aeiou][a-z]{60}",
    "([a-z]*[aeiou][a-z]{24}[0-9])*",
];
