//! The kept inputs of `corpus/`, one after the other: those that were written down, and those that fuzzers learnt.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The targets that have kept inputs, each with a test below.
const KEPT: [&str; 7] = [
    "grammars",
    "mcp",
    "protocol",
    "routes",
    "scripts",
    "templates",
    "tokenizers",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The inputs of a target, each with its name and the number of its line.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let path = folder().join(target).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut inputs = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let label = format!("{}:{}", path.display(), place + 1);
        let Some((name, input)) = line.split_once(": ") else {
            panic!("{label}: no name before an input");
        };
        let Some(input) = plain(input.as_bytes()) else {
            panic!("{label}: an escape that there is not");
        };
        inputs.push((format!("{label}: {name}"), input));
    }
    inputs
}

/// What the escapes of a line stand for.
fn plain(mut line: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some((&byte, rest)) = line.split_first() {
        line = rest;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&kind, rest) = line.split_first()?;
        line = rest;
        bytes.push(match kind {
            b'\\' => b'\\',
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let (digits, rest) = line.split_at_checked(2)?;
                line = rest;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

fn check(name: &str, target: impl Fn(&[u8])) {
    assert!(KEPT.contains(&name), "{name}");
    for (label, input) in inputs(name) {
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            panic!("{label}");
        }
    }
}

#[test]
fn clients() {
    check("protocol", pie_fuzz::protocol);
}

#[test]
fn grammars() {
    check("grammars", pie_fuzz::grammars);
}

#[test]
fn requests_to_programs() {
    check("routes", pie_fuzz::routes);
}

#[test]
fn servers_of_tools() {
    check("mcp", pie_fuzz::mcp);
}

#[test]
fn scripts() {
    let worker = [env!("CARGO_BIN_EXE_pie-fuzz-worker").to_owned()];
    check("scripts", |input| pie_fuzz::scripts(input, &worker));
}

#[test]
fn templates() {
    check("templates", pie_fuzz::templates);
}

#[test]
fn tokenizers() {
    check("tokenizers", pie_fuzz::tokenizers);
}

#[test]
fn every_kept_corpus_is_run() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let target = path.file_stem().unwrap().to_str().unwrap();
        assert!(KEPT.contains(&target), "{target} has no test");
    }
}

#[test]
fn escapes_are_read() {
    assert_eq!(
        plain(br"a\\b\n\r\t\x00\xff"),
        Some(b"a\\b\n\r\t\0\xff".to_vec())
    );
    for damaged in [&br"\"[..], br"\q", br"\x0", br"\xgg"] {
        assert_eq!(plain(damaged), None, "{}", damaged.escape_ascii());
    }
}
