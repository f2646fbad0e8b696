//! Tokenizers, as they stand in anyone's model folder.

use arbitrary::{Arbitrary, Unstructured};
use pie_text::Tokenizer;
use serde_json::{Value, json};

/// The most steps that are made up.
const MAX_STEPS: usize = 12;
/// The longest text that is encoded.
const MAX_TEXT: usize = 4096;

/// Makes a `tokenizer.json` of the bytes, and encodes a text by it: it can be, or there is an error.
pub fn tokenizers(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let Ok(file) = file(&mut bytes) else {
        return;
    };
    let Ok(tokenizer) = Tokenizer::from_bytes(&file, 0) else {
        return;
    };
    let rest = String::from_utf8_lossy(bytes.take_rest()).into_owned();
    for text in [rest.clone(), "a b\n".repeat(MAX_TEXT / 4), rest.repeat(8)] {
        let _any = tokenizer.encode(&text);
        if let Ok(ids) = tokenizer.encode_content(&text) {
            tokenizer.decode(&ids).unwrap();
        }
    }
}

fn file(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let text = include_str!("../../text/tests/data/byte_level.json");
    let mut document: Value = serde_json::from_str(text).unwrap();
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
