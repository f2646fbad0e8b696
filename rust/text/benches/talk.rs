//! What decoders cost a token, and what a turn costs behind others: `cargo bench --profile release -p pie-text`.
//!
//! Each case is a line of JSON with its samples by round, which `asv_benchmarks` reads.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pie_text::{
    At, Chat, ChatDecoder, ChatEvent, ChatState, ReasoningDecoder, ReasoningEvent, Role,
    ToolDecoder, ToolEvent,
};
use serde_json::json;

const ROUNDS: usize = 9;
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/pie/pie_tiny");
const VOCAB_SIZE: u32 = 4096;
/// What a model says in a turn: words, a thought, a call.
const PROSE: &str =
    "The price of a violin depends on its age, its maker and its sound; a new one begins at 340. ";
const THOUGHT: &str = "<think>\nHalf of eight is four, and a quarter is two.\n</think>\n\n";
const CALL: &str =
    "<tool_call>\n{\"name\": \"get_price\", \"arguments\": {\"item\": \"violin\"}}\n</tool_call>\n";
const QUESTION: &str = "How much does a violin cost, and why is it as expensive as that?";

/// Microseconds a unit of work, of each round.
fn timed(n_units: usize, mut work: impl FnMut()) -> Vec<f64> {
    work();
    let round = || {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64() * 1e6 / n_units as f64
    };
    std::iter::repeat_with(round).take(ROUNDS).collect()
}

fn show(case: &str, unit: &str, ours: &[f64], peer: &[f64]) {
    let line = json!({ "case": case, "unit": unit, "ours": ours, "peer": peer });
    println!("{line}");
}

/// A turn of some thousand tokens.
fn turn(chat: &Chat) -> Vec<u32> {
    let parts = [PROSE, THOUGHT, PROSE, PROSE, CALL];
    let text = parts.concat().repeat(40);
    chat.tokenizer().encode(&text).unwrap()
}

/// A conversation of so many turns: its tokens, and its state.
fn conversation(chat: &Chat, n_turns: usize) -> (Vec<u32>, ChatState) {
    let (mut tokens, mut state) = (Vec::new(), ChatState::new());
    for index in 0..n_turns {
        let role = [Role::User, Role::Assistant][index % 2];
        let more = chat.fill(&state, at(&tokens), role, QUESTION).unwrap();
        tokens.extend(more.tokens);
        state = more.state;
    }
    (tokens, state)
}

fn at(tokens: &[u32]) -> At<'_> {
    At {
        length: tokens.len() as u32,
        tail: &tokens[tokens.len().saturating_sub(Chat::TAIL_LEN)..],
    }
}

fn main() {
    let chat = Arc::new(Chat::from_dir(Path::new(MODEL), VOCAB_SIZE).unwrap());
    let tokens = turn(&chat);
    let text = || {
        let mut decoder = ChatDecoder::new(Arc::clone(&chat));
        for token in &tokens {
            let mut event = decoder.feed(&[*token]).unwrap();
            while event != ChatEvent::Idle {
                event = black_box(decoder.feed(&[]).unwrap());
            }
        }
    };
    show("text", "us/token", &timed(tokens.len(), text), &[]);
    let thoughts = || {
        let mut decoder = ReasoningDecoder::new(Arc::clone(&chat));
        for token in &tokens {
            let mut event = decoder.feed(&[*token]).unwrap();
            while event != ReasoningEvent::Idle {
                event = black_box(decoder.feed(&[]).unwrap());
            }
        }
    };
    show("thoughts", "us/token", &timed(tokens.len(), thoughts), &[]);
    let calls = || {
        let mut decoder = ToolDecoder::new(Arc::clone(&chat));
        for token in &tokens {
            let mut event = decoder.feed(&[*token]).unwrap();
            while event != ToolEvent::Idle {
                event = black_box(decoder.feed(&[]).unwrap());
            }
        }
    };
    show("calls", "us/token", &timed(tokens.len(), calls), &[]);

    for (many, few) in [(100, 2), (1000, 100)] {
        let both = [many, few].map(|n_turns| conversation(&chat, n_turns));
        let [mut ours, mut peer] = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            ours.push(turn_us(&chat, &both[0]));
            peer.push(turn_us(&chat, &both[1]));
        }
        let case = format!("a turn behind {many} turns, and behind {few}");
        show(&case, "us/turn", &ours, &peer);
    }
}

/// Microseconds of one more turn.
fn turn_us(chat: &Chat, (tokens, state): &(Vec<u32>, ChatState)) -> f64 {
    const TIMES: u32 = 200;
    let began = Instant::now();
    for _ in 0..TIMES {
        let more = chat.fill(state, at(tokens), Role::User, QUESTION);
        black_box(more.unwrap());
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
}
