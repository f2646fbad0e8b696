//! The regular expression by which a tokenizer splits text before byte-pair encoding.

use serde_json::Value;
use tokenizers::Tokenizer;

/// What the `ByteLevel` pre-tokenizer splits by when it is told to split by itself: the expression of GPT-2.
const BYTE_LEVEL: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The expression of a tokenizer, or the empty string.
pub(super) fn of(tokenizer: &Tokenizer) -> String {
    let pre_tokenizer = tokenizer
        .get_pre_tokenizer()
        .and_then(|it| serde_json::to_value(it).ok());
    pre_tokenizer
        .as_ref()
        .and_then(find)
        .unwrap_or_default()
        .to_owned()
}

fn find(pre_tokenizer: &Value) -> Option<&str> {
    match pre_tokenizer["type"].as_str()? {
        "Sequence" => pre_tokenizer["pretokenizers"]
            .as_array()?
            .iter()
            .find_map(find),
        "Split" => pre_tokenizer["pattern"]["Regex"].as_str(),
        "ByteLevel" if pre_tokenizer["use_regex"].as_bool() != Some(false) => Some(BYTE_LEVEL),
        _ => None,
    }
}
