//! How a name that a client chose becomes the name of a folder.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The longest name that is written out; longer ones are named by their digest. File systems take 255 bytes.
const MAX_BYTES: usize = 200;

/// The folder of a name: no two names have one folder, whether or not the file system tells cases apart, and none is
/// the way to another folder.
pub(crate) fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte) {
            folder.push(char::from(byte));
        } else {
            push_hex(&mut folder, "%", byte);
        }
    }
    match folder.len() {
        // No name that is written out is this, or begins so.
        0 => "%".to_owned(),
        1..=MAX_BYTES => folder,
        _ => {
            let mut folder = "~".to_owned();
            Sha256::digest(name)
                .iter()
                .for_each(|byte| push_hex(&mut folder, "", *byte));
            folder
        }
    }
}

fn push_hex(text: &mut String, before: &str, byte: u8) {
    // Writing to a text cannot fail.
    let _ = write!(text, "{before}{byte:02x}");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_kept_apart_and_lead_nowhere() {
        for (name, folder) in [
            ("ada", "ada"),
            ("Ada", "%41da"),
            ("", "%"),
            (".", "%2e"),
            ("..", "%2e%2e"),
            ("../bob", "%2e%2e%2fbob"),
            ("a\0b", "a%00b"),
            ("ß", "%c3%9f"),
            ("%41da", "%2541da"),
            ("~", "%7e"),
        ] {
            assert_eq!(folder_name(name), folder);
        }
        let long: HashSet<String> = ["a", "b", "A", "/"]
            .iter()
            .map(|letter| folder_name(&letter.repeat(300)))
            .collect();
        assert_eq!(long.len(), 4);
        assert!(
            long.iter()
                .all(|name| name.len() == 65 && name.starts_with('~'))
        );
    }
}
