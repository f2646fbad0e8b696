//! Tokenizers, as they stand in anyone's model folder.

use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use pie_text::Tokenizer;
use serde_json::{Value, json};

use crate::written::{expanded, filled, written};

/// The most steps that are made up.
const MAX_STEPS: usize = 12;
/// The longest text that is encoded.
const MAX_TEXT: usize = 4096;
/// The longest file that is written down.
const MAX_FILE: usize = 12 << 20;
/// What stands between a file that is written down and the text that is encoded by it.
const END_OF_FILE: u8 = 4;

/// A small tokenizer, which the bytes change.
static PLAIN: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../text/tests/data/byte_level.json")).unwrap()
});
/// The names that stand for parts of the small tokenizer in a file that is written down.
static PARTS: LazyLock<[(&str, String); 6]> = LazyLock::new(|| {
    let [vocab, merges, added] = ["/model/vocab", "/model/merges", "/added_tokens"]
        .map(|place| PLAIN.pointer(place).unwrap().to_string());
    let inner = |list: String| list[1..list.len() - 1].to_owned();
    [
        ("MODEL", PLAIN["model"].to_string()),
        ("SPLITTER", PLAIN["pre_tokenizer"].to_string()),
        ("DECODER", PLAIN["decoder"].to_string()),
        ("VOCAB", inner(vocab)),
        ("MERGES", inner(merges)),
        ("ADDED", inner(added)),
    ]
});

/// Makes a `tokenizer.json` of the bytes, and encodes a text by it: it can be, or there is an error.
pub fn tokenizers(data: &[u8]) {
    if let Some(text) = written(data) {
        let (file, text) = written_file(text);
        return try_out(&file, &text);
    }
    let mut bytes = Unstructured::new(data);
    let Ok(file) = file(&mut bytes) else {
        return;
    };
    try_out(&file, bytes.take_rest());
}

/// The file that is written down, and the text behind it.
fn written_file(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let end = text.iter().position(|&byte| byte == END_OF_FILE);
    let (file, text) = text.split_at(end.unwrap_or(text.len()));
    let parts = PARTS.each_ref().map(|(name, part)| (*name, part.as_str()));
    (
        expanded(&filled(file, &parts), MAX_FILE),
        expanded(text, MAX_TEXT),
    )
}

fn try_out(file: &[u8], rest: &[u8]) {
    let Ok(tokenizer) = Tokenizer::from_bytes(file, 0) else {
        return;
    };
    let rest = String::from_utf8_lossy(rest).into_owned();
    for text in [rest.clone(), "a b\n".repeat(MAX_TEXT / 4), rest.repeat(8)] {
        let _any = tokenizer.encode(&text);
        if let Ok(ids) = tokenizer.encode_content(&text) {
            tokenizer.decode(&ids).unwrap();
        }
    }
}

fn file(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let mut document = PLAIN.clone();
    if bool::arbitrary(bytes)? {
        let steps: Vec<Value> = steps(bytes, normalizer)?;
        document["normalizer"] = json!({"type": "Sequence", "normalizers": steps});
    }
    if bool::arbitrary(bytes)? {
        let mut steps: Vec<Value> = steps(bytes, splitter)?;
        steps.push(document["pre_tokenizer"].clone());
        document["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps});
    }
    if bool::arbitrary(bytes)? {
        let id = u32::arbitrary(bytes)?;
        let content = text_of(bytes)?;
        let token = json!({
            "id": id, "content": content, "single_word": bool::arbitrary(bytes)?, "lstrip": bool::arbitrary(bytes)?,
            "rstrip": bool::arbitrary(bytes)?, "normalized": bool::arbitrary(bytes)?, "special": bool::arbitrary(bytes)?
        });
        document["added_tokens"].as_array_mut().unwrap().push(token);
    }
    let mut file = document.to_string().into_bytes();
    for _ in 0..bytes.int_in_range(0..=4)? {
        let at = usize::arbitrary(bytes)? % file.len();
        file[at] = u8::arbitrary(bytes)?;
    }
    Ok(file)
}

fn steps(
    bytes: &mut Unstructured<'_>,
    step: fn(&mut Unstructured<'_>) -> arbitrary::Result<Value>,
) -> arbitrary::Result<Vec<Value>> {
    (0..bytes.int_in_range(0..=MAX_STEPS)?)
        .map(|_| step(bytes))
        .collect()
}

fn normalizer(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Value> {
    Ok(match bytes.int_in_range(0..=9_u8)? {
        0 => {
            json!({"type": "Replace", "pattern": {"String": text_of(bytes)?}, "content": text_of(bytes)?})
        }
        1 => {
            json!({"type": "Replace", "pattern": {"Regex": pattern(bytes)?}, "content": text_of(bytes)?})
        }
        2 => json!({"type": "Prepend", "prepend": text_of(bytes)?}),
        3 => json!({"type": "NFKD"}),
        4 => json!({"type": "NFC"}),
        5 => json!({"type": "Lowercase"}),
        6 => {
            json!({"type": "Strip", "strip_left": bool::arbitrary(bytes)?, "strip_right": bool::arbitrary(bytes)?})
        }
        7 => json!({"type": "ByteLevel"}),
        8 => json!({"type": "Nmt"}),
        _ => {
            json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true})
        }
    })
}

fn splitter(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Value> {
    Ok(match bytes.int_in_range(0..=5_u8)? {
        0 => {
            let behavior = *bytes.choose(&[
                "Removed",
                "Isolated",
                "MergedWithPrevious",
                "MergedWithNext",
                "Contiguous",
            ])?;
            json!({"type": "Split", "pattern": {"Regex": pattern(bytes)?}, "behavior": behavior, "invert": bool::arbitrary(bytes)?})
        }
        1 => {
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": bool::arbitrary(bytes)?})
        }
        2 => {
            json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": bool::arbitrary(bytes)?})
        }
        3 => json!({"type": "Digits", "individual_digits": bool::arbitrary(bytes)?}),
        4 => json!({"type": "Punctuation", "behavior": "Isolated"}),
        _ => json!({"type": "WhitespaceSplit"}),
    })
}

fn text_of(bytes: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let letters = ["a", "b", " ", "\u{2581}", "\u{fdfa}", "<s>", ""];
    let letter = *bytes.choose(&letters)?;
    let n_times = *bytes.choose(&[0_usize, 1, 2, 3, 60, 1000])?;
    Ok(letter.repeat(n_times))
}

fn pattern(bytes: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let parts = [
        "a",
        "(a+)+b",
        "",
        ".",
        "\\s+",
        "(?=a)",
        "(a|a)*\\z",
        "[^a]",
        "x{0,999}",
        "(?<=a)",
    ];
    (0..bytes.int_in_range(0..=3)?)
        .map(|_| Ok(*bytes.choose(&parts)?))
        .collect()
}
