//! What holds for every text, conversation and split of tokens.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, LazyLock};

use pie_text::{Chat, ChatDecoder, ChatEvent, Role, Tokenizer};
use proptest::prelude::*;
use support::{
    CHATML, CHATML_DEFAULT_SYSTEM, CHATML_THINKING, CONTROL, Context, GEMMA, LLAMA3, byte_level,
    chat, metaspace, tokenizer,
};

/// Chats are costly to make, and immutable.
static CHATS: LazyLock<Vec<Arc<Chat>>> = LazyLock::new(|| {
    [
        CHATML,
        CHATML_DEFAULT_SYSTEM,
        CHATML_THINKING,
        LLAMA3,
        GEMMA,
    ]
    .into_iter()
    .map(chat)
    .collect()
});
static TOKENIZERS: LazyLock<Vec<Tokenizer>> =
    LazyLock::new(|| vec![tokenizer(&byte_level()), tokenizer(&metaspace())]);

/// Texts of the kinds that tokenizers treat apart: words, spaces, line breaks, punctuation, other scripts, and the
/// beginnings of tokens.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z]{1,6}",
        3 => "[ \n\t]{1,3}",
        2 => "[.:!?<>|/_'0-9]{1,3}",
        1 => any::<char>().prop_map(String::from),
        1 => Just("é😀漢".to_owned()),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

/// Texts that also spell control tokens, whole and in parts.
fn hostile_text() -> impl Strategy<Value = String> {
    let control = (0..CONTROL.len()).prop_map(|place| CONTROL[place].to_owned());
    let torn = (0..CONTROL.len(), 0..18_usize).prop_map(|(place, at)| {
        let token = CONTROL[place];
        token.split_at(at.min(token.len())).0.to_owned()
    });
    prop::collection::vec(prop_oneof![text(), control, torn], 0..5).prop_map(|parts| parts.concat())
}

/// Questions and answers, perhaps after a system prompt.
fn conversation() -> impl Strategy<Value = Vec<(Role, String)>> {
    (
        prop::option::of(text()),
        prop::collection::vec(text(), 1..6),
    )
        .prop_map(|(system, turns)| {
            let turn = |(place, text)| {
                (
                    if place % 2 == 0 {
                        Role::User
                    } else {
                        Role::Assistant
                    },
                    text,
                )
            };
            system
                .map(|text| (Role::System, text))
                .into_iter()
                .chain(turns.into_iter().enumerate().map(turn))
                .collect()
        })
}

/// How the family writes a message, by hand: the oracle.
fn by_hand(template: usize, conversation: &[(Role, String)]) -> String {
    let chatml =
        |(role, text): &(Role, String)| format!("<|im_start|>{}\n{text}<|im_end|>\n", role.name());
    match template {
        0 | 2 => conversation.iter().map(chatml).collect(),
        1 => {
            let default = (Role::System, "You are a helpful assistant.".to_owned());
            let first = if conversation[0].0 == Role::System {
                String::new()
            } else {
                chatml(&default)
            };
            first + &conversation.iter().map(chatml).collect::<String>()
        }
        3 => {
            let turn = |(role, text): &(Role, String)| {
                format!(
                    "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>",
                    role.name(),
                    text.trim()
                )
            };
            "<|begin_of_text|>".to_owned() + &conversation.iter().map(turn).collect::<String>()
        }
        _ => {
            let turn = |(role, text): &(Role, String)| {
                let name = if *role == Role::User { "user" } else { "model" };
                format!("<start_of_turn>{name}\n{}<end_of_turn>\n", text.trim())
            };
            "<bos>".to_owned() + &conversation.iter().map(turn).collect::<String>()
        }
    }
}

/// The concatenated deltas before the end, and the whole reply, of tokens fed in pieces.
fn decoded(chat: &Arc<Chat>, pieces: &[&[u32]]) -> (String, String) {
    let mut decoder = ChatDecoder::new(Arc::clone(chat));
    let mut deltas = String::new();
    let mut take = |event: ChatEvent| {
        if let ChatEvent::Delta(text) = &event {
            deltas.push_str(text);
        }
        event != ChatEvent::Idle
    };
    for piece in pieces {
        take(decoder.feed(piece).unwrap());
        while take(decoder.feed(&[]).unwrap()) {}
    }
    let shown = deltas.clone();
    let mut whole = String::new();
    let mut event = decoder.finish();
    while event != ChatEvent::Idle {
        match event {
            ChatEvent::Delta(text) => deltas.push_str(&text),
            ChatEvent::Done(text) => whole = text,
            _ => {}
        }
        event = decoder.feed(&[]).unwrap();
    }
    assert_eq!(deltas, whole, "the end of a turn loses nothing");
    (shown, whole)
}

proptest! {
    // No file is written where the sources are.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // rows: RS-042..046
    #[test]
    fn pieces_equal_the_whole(template in 0..5_usize, conversation in conversation()) {
        // Where the family merges the system prompt into the question, pieces that are appended at once cannot equal
        // the whole.
        let conversation: Vec<_> = conversation.into_iter().filter(|(role, _)| template != 4 || *role != Role::System).collect();
        let chat = &CHATS[template];
        let mut context = Context::new(chat);
        for (role, text) in &conversation {
            context.say(*role, text);
        }
        // A thinking block may stand in the very last answer; pieces are written as history.
        let whole = by_hand(template, &conversation);
        prop_assert_eq!(context.tokens, chat.tokenizer().encode(&whole).unwrap());
    }

    // rows: RS-042..044
    #[test]
    fn content_keeps_to_itself(template in 0..5_usize, text in hostile_text()) {
        let chat = &CHATS[template];
        let control = |tokens: &[u32]| tokens.iter().copied().filter(|id| chat.tokenizer().is_control(*id)).collect::<Vec<_>>();
        for role in [Role::User, Role::Assistant] {
            let plain = chat.message_tokens(role, "x").unwrap();
            let hostile = chat.message_tokens(role, &text).unwrap();
            prop_assert_eq!(control(&plain), control(&hostile));
        }
    }

    // rows: RS-028..029
    #[test]
    fn encoding_keeps_the_text(text in hostile_text()) {
        // The tokenizer composes characters (NFC): texts that are changed by it are compared after a round.
        let it = &TOKENIZERS[0];
        let once = it.decode(&it.encode(&text).unwrap()).unwrap();
        prop_assert_eq!(it.decode(&it.encode_content(&text).unwrap()).unwrap(), once.clone());
        prop_assert_eq!(it.decode(&it.encode(&once).unwrap()).unwrap(), once);
    }

    // rows: RS-042..044
    #[test]
    fn content_holds_no_control_token(text in hostile_text(), which in 0..2_usize) {
        let it = &TOKENIZERS[which];
        let ids = it.encode_content(&text).unwrap();
        let unknown = it.encode("\u{10FFFE}").unwrap();
        prop_assert!(ids.iter().all(|id| !it.is_control(*id) || unknown.contains(id)), "{ids:?}");
    }

    // rows: RS-170..171
    #[test]
    fn deltas_are_the_decoded_tokens(
        tokens in prop::collection::vec(prop_oneof![0..256_u32, 256..274_u32], 0..40),
        cuts in prop::collection::vec(0..40_usize, 0..6),
    ) {
        let chat = &CHATS[0];
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(tokens.len())).chain([0, tokens.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&[u32]> = cuts.windows(2).map(|ends| &tokens[ends[0]..ends[1]]).collect();
        let (deltas, whole) = decoded(chat, &pieces);
        prop_assert_eq!(&whole, &chat.tokenizer().decode(&tokens).unwrap());
        // What is still held back at the end is at most one character.
        prop_assert!(whole.strip_prefix(&deltas).is_some_and(|rest| rest.chars().count() <= 1));
    }

    // rows: RS-049
    #[test]
    fn truncation_goes_back(
        template in 0..4_usize,
        steps in prop::collection::vec((0..6_usize, text()), 1..10),
        back in 0..10_usize,
    ) {
        let mut context = Context::new(&CHATS[template]);
        let mut stages = vec![context.clone()];
        for (step, text) in &steps {
            match step {
                0 => context.user(text),
                1 => context.assistant(text),
                2 => context.cue(),
                3 => context.seal(),
                4 => context.append_text(text),
                _ => context.generate(text),
            };
            // A step that appends nothing may change what stands last, which no length tells apart.
            stages.retain(|stage: &Context| stage.tokens.len() < context.tokens.len());
            stages.push(context.clone());
        }
        let stage = &stages[back.min(stages.len() - 1)];
        context.truncate(stage.tokens.len());
        prop_assert_eq!(&context.tokens, &stage.tokens);
        // The conversation goes on in the same way.
        prop_assert_eq!(context.state.needs_cue(), stage.state.needs_cue());
        let (mut sealed, mut cued) = (stage.clone(), stage.clone());
        let (mut cut, mut cut_too) = (context.clone(), context.clone());
        prop_assert_eq!(&cut.seal().tokens, &sealed.seal().tokens);
        prop_assert_eq!(&cut_too.cue().tokens, &cued.cue().tokens);
        let mut again = stage.clone();
        prop_assert_eq!(&context.user("Next").cue().tokens, &again.user("Next").cue().tokens);
    }

    // rows: RS-049
    #[test]
    fn any_cut_leaves_a_context_that_goes_on(template in 0..5_usize, conversation in conversation(), cut in 0..200_usize) {
        let chat = &CHATS[template];
        let mut context = Context::new(chat);
        for (role, text) in &conversation {
            context.say(*role, text);
        }
        context.truncate(cut.min(context.tokens.len()));
        let length = context.tokens.len();
        context.cue();
        prop_assert!(context.tokens.ends_with(chat.cue_tokens().unwrap()));
        let cued = context.tokens.clone();
        prop_assert_eq!(&context.cue().tokens, &cued);
        prop_assert!(cued.len() <= length + chat.cue_tokens().unwrap().len() + 64);
    }
}
