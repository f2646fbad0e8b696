//! Built programs and manifests, as they come from anyone.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use pie_host::{Language, Manifest, Packed};

/// The most that the files of a read program may be.
const MAX_FILES_BYTES: usize = 1 << 20;

/// Reads the bytes as a built program and as a manifest; makes a built program of them, reads it, and reads it again
/// with a byte changed.
pub fn packed(data: &[u8]) {
    read(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _any = Manifest::parse(text, "Pie.toml");
    }
    let mut bytes = Unstructured::new(data);
    let Ok((packed, at, flip)) = built(&mut bytes) else {
        return;
    };
    // What cannot be written says so.
    let Ok(mut written) = packed.to_bytes() else {
        return;
    };
    let again = Packed::read(&written, usize::MAX).unwrap().unwrap();
    assert_eq!(again, packed, "what was written is what is read");
    let at = at % written.len();
    written[at] ^= flip;
    read(&written);
    read(&written[..at]);
}

/// Reads a program; what can be read can be written, and reads the same.
fn read(bytes: &[u8]) {
    if let Ok(Some(packed)) = Packed::read(bytes, MAX_FILES_BYTES) {
        let n_bytes: usize = packed.files.values().map(Vec::len).sum();
        assert!(n_bytes <= MAX_FILES_BYTES, "{n_bytes} bytes of files");
        let written = packed.to_bytes().unwrap();
        let again = Packed::read(&written, MAX_FILES_BYTES).unwrap().unwrap();
        assert_eq!(again, packed);
    }
}

fn built(bytes: &mut Unstructured<'_>) -> arbitrary::Result<(Packed, usize, u8)> {
    let (at, flip) = (usize::arbitrary(bytes)?, u8::arbitrary(bytes)?);
    let language = *bytes.choose(&[Language::Python, Language::JavaScript])?;
    let mut files = BTreeMap::<String, Vec<u8>>::arbitrary(bytes)?;
    let entry = String::arbitrary(bytes)?;
    files.insert(entry.clone(), Vec::arbitrary(bytes)?);
    let packed = Packed {
        language: Some(language),
        entry,
        files,
        runtime: Option::arbitrary(bytes)?,
        manifest: Option::arbitrary(bytes)?,
        component: None,
    };
    Ok((packed, at, flip))
}
