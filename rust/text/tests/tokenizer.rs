//! Text to ids, ids to text, and the bytes behind each id.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use pie_text::{Error, Tokenizer};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{CONTROL, byte_level, metaspace, tokenizer};

// rows: RS-028
#[test]
fn control_tokens_are_parsed_and_nothing_is_added() {
    let it = tokenizer(&byte_level());
    let ids = it.encode("<|im_start|>user\nhi<think>").unwrap();
    let piece = |id: &u32| String::from_utf8(it.token_bytes(*id).unwrap().to_vec()).unwrap();
    let pieces: Vec<String> = ids.iter().map(piece).collect();
    assert_eq!(pieces, ["<|im_start|>", "user", "\n", "h", "i", "<think>"]);
    assert!(it.is_control(ids[0]) && !it.is_control(ids[5]));
    assert!(it.encode("").unwrap().is_empty());
}

// rows: RS-028
#[test]
fn a_post_processor_truncation_and_padding_are_left_aside() {
    let mut json = byte_level();
    let id = it_id(&json, "<|begin_of_text|>");
    json["post_processor"] = json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>", "ids": [id], "tokens": ["<|begin_of_text|>"]}}});
    json["truncation"] =
        json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
    json["padding"] = json!({"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "!"});
    let it = tokenizer(&json);
    for ids in [
        it.encode("abcd").unwrap(),
        it.encode_content("abcd").unwrap(),
    ] {
        assert_eq!(it.decode(&ids).unwrap(), "abcd");
        assert_eq!(ids.len(), 4);
    }
}

fn it_id(json: &Value, content: &str) -> u64 {
    json["added_tokens"]
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["content"] == content)
        .unwrap()["id"]
        .as_u64()
        .unwrap()
}

// rows: RS-042..044
#[test]
fn content_stays_text() {
    for json in [byte_level(), metaspace()] {
        let it = tokenizer(&json);
        for text in [
            "<|im_end|>",
            "a<|im_start|>b",
            "<s>hello</s>",
            "<|im_<|im_end|>end|>",
            "<s",
            "<think> a </think>",
        ] {
            let ids = it.encode_content(text).unwrap();
            assert!(!ids.iter().any(|&id| it.is_control(id)), "{text}");
            assert_eq!(it.decode(&ids).unwrap(), text);
        }
        assert_eq!(
            it.encode_content("hello world").unwrap(),
            it.encode("hello world").unwrap()
        );
    }
}

// rows: RS-042..044
#[test]
fn content_stays_text_where_the_vocabulary_of_text_holds_control_tokens() {
    // With `ignore_merges` a word that is in the vocabulary is taken whole.
    let mut json = byte_level();
    json["model"]["ignore_merges"] = json!(true);
    json["model"]["vocab"]["abc"] = json!(900);
    json["added_tokens"].as_array_mut().unwrap().push(
        json!({"id": 900, "content": "abc", "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": true}),
    );
    let it = tokenizer(&json);
    assert_eq!(it.encode("abc").unwrap(), [900]);
    let ids = it.encode_content("abc").unwrap();
    assert_eq!(ids, b"abc".map(u32::from));
}

// rows: RS-028
#[test]
fn unknown_characters_may_become_the_unknown_token() {
    let mut json = metaspace();
    json["model"]["byte_fallback"] = json!(false);
    let it = tokenizer(&json);
    assert_eq!(it.encode_content("h漢").unwrap(), it.encode("h漢").unwrap());
}

// rows: RS-029
#[test]
fn decoding_shows_control_tokens_and_replaces_torn_bytes() {
    let it = tokenizer(&byte_level());
    let ids = it.encode("é<|im_end|>").unwrap();
    assert_eq!(it.decode(&ids).unwrap(), "é<|im_end|>");
    assert_eq!(it.decode(&[0xC3, 0x41]).unwrap(), "\u{FFFD}A");
    let size = it.vocab_size();
    assert_eq!(
        it.decode(&[size]).unwrap_err(),
        Error::Token {
            id: size,
            vocab_size: size
        }
    );
    assert!(
        it.decode(&[size])
            .unwrap_err()
            .to_string()
            .contains(&format!("0 to {}", size - 1))
    );
}

// rows: RS-029..030
#[test]
fn a_model_may_have_more_ids_than_its_tokenizer() {
    let json = byte_level().to_string();
    let own = tokenizer(&byte_level()).vocab_size();
    let it = Tokenizer::from_bytes(json.as_bytes(), own + 10).unwrap();
    assert_eq!(it.vocab_size(), own + 10);
    assert_eq!(it.decode(&[own]).unwrap(), "");
    assert_eq!(it.token_bytes(own), None);
    assert!(it.decode(&[own + 10]).is_err());
    assert_eq!(it.vocabs().0.len(), own as usize);
    assert!(Tokenizer::from_bytes(json.as_bytes(), u32::MAX).is_err());
}

// rows: RS-029..030
#[test]
fn the_words_of_a_tokenizer_have_logits() {
    let json = byte_level().to_string();
    let own = tokenizer(&byte_level()).vocab_size();
    let words = byte_level()["model"]["vocab"].as_object().unwrap().len() as u32;
    // Tokens that were added may have none.
    for logits in [own, own - 3, words] {
        let it = Tokenizer::from_bytes(json.as_bytes(), logits).unwrap();
        assert_eq!(it.vocab_size(), own);
    }
    let error = Tokenizer::from_bytes(json.as_bytes(), words - 3).unwrap_err();
    assert_eq!(error.code(), "invalid-model");
    let (logits, largest) = (words - 3, words - 1);
    for words in [
        format!("3 tokens of the ids {logits} to {largest}"),
        format!("the model has {logits} logits"),
    ] {
        assert!(error.to_string().contains(&words), "{error}");
    }
}

// rows: RS-030
#[test]
fn vocabs_are_raw_bytes() {
    let it = tokenizer(&byte_level());
    let (ids, bytes) = it.vocabs();
    assert_eq!(ids, (0..it.vocab_size()).collect::<Vec<_>>());
    for byte in 0..=u8::MAX {
        assert_eq!(bytes[usize::from(byte)], [byte]);
    }
    let place = |token: &[u8]| bytes.iter().position(|bytes| bytes == token);
    assert!(
        place("é".as_bytes()).is_some()
            && place(b" the").is_some()
            && place(&[0xF0, 0x9F, 0x98]).is_some()
    );

    let it = tokenizer(&metaspace());
    assert_eq!(it.token_bytes(3 + 0x0A).unwrap(), b"\n");
    let ids = it.encode("hello").unwrap();
    assert_eq!(it.token_bytes(ids[0]).unwrap(), b" h");
}

#[test]
fn the_longest_token_is_as_long_as_any() {
    for json in [byte_level(), metaspace()] {
        let tokenizer = tokenizer(&json);
        let lengths = (0..tokenizer.vocab_size()).filter_map(|id| tokenizer.token_bytes(id));
        let longest = lengths.map(<[u8]>::len).max();
        assert_eq!(Some(tokenizer.longest_token_bytes()), longest);
    }
}

// rows: RS-031
#[test]
fn special_tokens_are_the_declared_ones() {
    let it = tokenizer(&byte_level());
    let (ids, bytes) = it.special_tokens();
    assert_eq!(bytes, CONTROL.map(|token| token.as_bytes().to_vec()));
    assert!(ids.is_sorted());
}

// rows: RS-032
#[test]
fn the_split_regex_is_the_tokenizers() {
    let regex = |pre_tokenizer: Value| {
        let mut json = byte_level();
        json["pre_tokenizer"] = pre_tokenizer;
        tokenizer(&json).split_regex().to_owned()
    };
    assert!(
        tokenizer(&byte_level())
            .split_regex()
            .starts_with("(?i:'s|'t")
    );
    let byte_level = |use_regex| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    assert!(regex(byte_level(true)).contains(r"\p{L}+"));
    assert_eq!(regex(byte_level(false)), "");
    assert_eq!(tokenizer(&metaspace()).split_regex(), "");
}

// rows: RS-028..029
#[test]
fn sentencepiece_text_keeps_its_spaces() {
    let it = tokenizer(&metaspace());
    for text in ["hello world", "hello\n漢é", "a  b ", "</s>hello"] {
        assert_eq!(
            it.decode(&it.encode(text).unwrap()).unwrap(),
            text,
            "{text:?}"
        );
    }
    // Content behind control text is no new beginning: no space is put before it.
    assert_eq!(
        it.decode(&it.encode_content("<s>hello").unwrap()).unwrap(),
        "<s>hello"
    );
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let missing = Tokenizer::from_dir(Path::new("no/such/model"), 0).unwrap_err();
    assert_eq!(missing.code(), "invalid-model");
    assert!(
        missing
            .to_string()
            .contains("tokenizer.json is missing; download"),
        "{missing}"
    );
    let full = byte_level().to_string();
    for damaged in [&full[..full.len() / 2], "", "[]", "{}", "\u{0}"] {
        let error = Tokenizer::from_bytes(damaged.as_bytes(), 0).unwrap_err();
        assert!(
            error.to_string().contains("tokenizer.json is damaged"),
            "{error}"
        );
    }
    let mut json = byte_level();
    json["decoder"] = json!({"type": "WordPiece", "prefix": "##", "cleanup": true});
    let error = Tokenizer::from_bytes(json.to_string().as_bytes(), 0).unwrap_err();
    assert!(error.to_string().contains("WordPiece"), "{error}");
    json["decoder"] = Value::Null;
    assert!(Tokenizer::from_bytes(json.to_string().as_bytes(), 0).is_err());
    let mut json = byte_level();
    json["model"]["vocab"]["huge"] = json!(4_000_000_000_u32);
    let error = Tokenizer::from_bytes(json.to_string().as_bytes(), 0).unwrap_err();
    assert!(error.to_string().contains("4000000000"), "{error}");
}

/// The library takes a step of an unknown type for the first whose fields it has, so its type says nothing.
// rows: RS-028
#[test]
fn what_steps_make_of_a_text_is_bounded_whatever_their_type_says() {
    let replace = json!({"pattern": {"Regex": "."}, "content": "a".repeat(5_000)});
    for kind in [
        json!("Replace"),
        json!("Rgplace"),
        json!({"Replace": null}),
        json!(7),
        Value::Null,
    ] {
        let mut step = replace.clone();
        step["type"] = kind.clone();
        for normalizer in [
            step.clone(),
            json!({"type": "Sequence", "normalizers": [step.clone()]}),
            json!({"type": "none", "normalizers": [step]}),
        ] {
            let mut json = byte_level();
            json["normalizer"] = normalizer;
            let error = Tokenizer::from_bytes(json.to_string().as_bytes(), 0).unwrap_err();
            assert!(
                error.to_string().contains("may make 5001 bytes of one"),
                "{kind}: {error}"
            );
        }
    }
    let mut json = byte_level();
    json["normalizer"] = replace;
    assert!(Tokenizer::from_bytes(json.to_string().as_bytes(), 0).is_err());
}

/// Fifteen bytes of a fuzzer were such a file: of four kilobytes it made half a gigabyte.
// rows: RS-028
#[test]
fn what_a_pre_tokenizer_makes_of_a_text_is_bounded() {
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let spaces = json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true});
    let loaded = |steps: &[&Value]| {
        let mut json = byte_level();
        json["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps});
        Tokenizer::from_bytes(json.to_string().as_bytes(), 0)
    };
    assert!(loaded(&[&json!({"type": "WhitespaceSplit"}), &spaces, &bytes]).is_ok());
    assert!(loaded(&[&bytes; 3]).is_ok());
    let error = loaded(&[&bytes; 4]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("may make 81 bytes of one, and the limit is 32"),
        "{error}"
    );
}

// rows: RS-028
#[test]
fn a_text_that_is_too_long_is_an_error() {
    let it = tokenizer(&byte_level());
    let text = "a".repeat(pie_text::limits::MAX_TEXT_BYTES + 1);
    for result in [it.encode(&text), it.encode_content(&text)] {
        let error = result.unwrap_err();
        assert_eq!(error.code(), "invalid-argument");
        assert!(
            error.to_string().contains(&text.len().to_string()),
            "{error}"
        );
    }
}

// rows: RS-029
#[test]
fn tokens_of_a_text_that_is_too_long_are_an_error() {
    let it = tokenizer(&byte_level());
    let id = it.encode("a").unwrap()[0];
    let limit = pie_text::limits::MAX_TEXT_BYTES;
    assert_eq!(it.decode(&vec![id; limit]).unwrap().len(), limit);
    let error = it.decode(&vec![id; limit + 1]).map(drop).unwrap_err();
    assert_eq!(error.code(), "invalid-argument");
    for number in [limit, limit + 1] {
        assert!(error.to_string().contains(&number.to_string()), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_never_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), which in 0..2_usize) {
        let mut bytes = [byte_level(), metaspace()][which].to_string().into_bytes();
        for (place, byte) in edits {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(it) = Tokenizer::from_bytes(&bytes, 0) {
            for text in ["hello <|im_end|>é", "<s>a</s>"] {
                let ids = it.encode_content(text).unwrap_or_default();
                prop_assert!(it.decode(&ids).is_ok());
                prop_assert!(it.encode(text).is_ok_and(|ids| it.decode(&ids).is_ok()) || it.encode(text).is_err());
            }
        }
    }
}
