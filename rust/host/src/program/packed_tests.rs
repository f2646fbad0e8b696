use super::*;

const ROOM: usize = 1 << 20;

fn small() -> Packed {
    Packed {
        language: Some(Language::Python),
        entry: "main.py".to_owned(),
        files: BTreeMap::from([
            (
                "main.py".to_owned(),
                b"async def main(input): return 1".to_vec(),
            ),
            ("lib/data.bin".to_owned(), vec![0, 255, 10]),
        ]),
        runtime: Some([0xab; 32]),
        manifest: Some("[package]\nname = \"a\"\nversion = \"1\"\n".to_owned()),
        component: None,
    }
}

fn read(bytes: &[u8]) -> Result<Option<Packed>, Error> {
    Packed::read(bytes, ROOM)
}

fn refused(bytes: &[u8], code: ErrorCode, expected: &str) {
    let error = read(bytes).unwrap_err();
    assert_eq!(error.code, code, "{}", error.message);
    assert!(error.message.contains(expected), "{}", error.message);
}

/// A program of these two sections.
fn with(header: &str, archive: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = PREAMBLE.to_vec();
    append(&mut bytes, PROGRAM_SECTION, header.as_bytes());
    if let Some(archive) = archive {
        append(&mut bytes, FILES_SECTION, archive);
    }
    bytes
}

const HEADER: &str =
    r#"{"format":1,"language":"python","entry":"main.py","runtime":null,"manifest":null}"#;

#[test]
fn what_was_packed_is_read_again() {
    let packed = small();
    let bytes = packed.to_bytes().unwrap();
    assert_eq!(bytes, packed.to_bytes().unwrap());
    assert_eq!(read(&bytes).unwrap().unwrap(), packed);
    assert!(bytes.len() < 500, "{}", bytes.len());
}

#[test]
fn the_component_inside_is_what_it_was() {
    let component = [PREAMBLE.as_slice(), b"\x00\x05\x04name"].concat();
    let compiled = Packed {
        component: Some(component.clone()),
        ..Packed::default()
    };
    let bytes = compiled.to_bytes().unwrap();
    assert!(bytes.starts_with(&component));
    assert_eq!(read(&bytes).unwrap().unwrap(), compiled);
    // What was packed before can be packed again.
    let again = Packed {
        component: Some(bytes.clone()),
        ..compiled
    };
    assert_eq!(again.to_bytes().unwrap(), bytes);
    let standalone = Packed {
        component: Some(component),
        ..small()
    };
    let bytes = standalone.to_bytes().unwrap();
    assert_eq!(read(&bytes).unwrap().unwrap(), standalone);
}

#[test]
fn an_ordinary_component_is_none() {
    for bytes in [
        &b""[..],
        b"\0asm",
        PREAMBLE,
        b"\0asm\x0d\0\x01\0\x00\x05\x04name",
        b"\0asm\x0d\0\x01\0\x07",
    ] {
        assert_eq!(read(bytes).unwrap(), None);
    }
}

#[test]
fn no_cut_is_read_as_a_program() {
    let bytes = small().to_bytes().unwrap();
    for n_bytes in 0..bytes.len() {
        // A cut inside the first section leaves an unreadable component, which the compiler refuses.
        assert!(!matches!(read(&bytes[..n_bytes]), Ok(Some(_))), "{n_bytes}");
    }
}

#[test]
fn no_changed_byte_does_harm() {
    let bytes = small().to_bytes().unwrap();
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            // Whatever comes of it is a program of bounded size or an error.
            if let Ok(Some(packed)) = read(&bytes) {
                assert!(packed.files.len() <= 2);
            }
        }
    }
}

#[test]
fn a_lying_header_is_refused() {
    let archive: &[u8] = &[0];
    for (header, expected) in [
        ("", "pie:program"),
        ("[]", "pie:program"),
        (
            r#"{"format":2,"anything":"else"}"#,
            "format 2, and this engine reads format 1",
        ),
        (r#"{"format":1}"#, "missing field"),
        (
            &HEADER.replace("python", "cobol"),
            "no runtime for the language \"cobol\"",
        ),
        (
            &HEADER.replace("\"runtime\":null", "\"runtime\":\"md5:00\""),
            "\"md5:00\", which is not a digest",
        ),
        (
            &HEADER.replace("python", "component"),
            "it has no code or has sources",
        ),
        (
            &HEADER.replace("\"manifest\":null", "\"manifest\":7"),
            "pie:program",
        ),
    ] {
        refused(
            &with(header, Some(archive)),
            ErrorCode::InvalidProgram,
            expected,
        );
    }
    // What was compiled has code, and no sources beside it.
    let compiled = HEADER.replace("python", "component");
    let code = b"\x00\x05\x04name";
    let with_sources = [with(&compiled, Some(archive)), code.to_vec()].concat();
    for odd in [with_sources, with(&compiled, None)] {
        let expected = "it has no code or has sources";
        refused(&odd, ErrorCode::InvalidProgram, expected);
    }
    let digest = HEADER.replace(
        "\"runtime\":null",
        &format!("\"runtime\":\"sha256:{}\"", "+f".repeat(32)),
    );
    refused(
        &with(&digest, Some(archive)),
        ErrorCode::InvalidProgram,
        "which is not a digest",
    );
    refused(
        &with(HEADER, None),
        ErrorCode::InvalidProgram,
        "holds no files",
    );
    let long = with(&" ".repeat(MAX_HEADER_BYTES + 1), Some(archive));
    refused(
        &long,
        ErrorCode::LimitProgram,
        "262145 bytes, more than 262144",
    );
}

#[test]
fn a_lying_archive_is_refused() {
    let file = |path: &str, content: &[u8]| {
        let mut bytes = Vec::new();
        path.encode(&mut bytes);
        content.encode(&mut bytes);
        bytes
    };
    let one = file("a", b"x");
    for (archive, expected) in [
        (vec![], "pie:files"),
        (vec![2], "pie:files"),
        ([&[2][..], &one].concat(), "unexpected end"),
        ([&[2][..], &one, &one].concat(), "\"a\" stands there twice"),
        (
            [&[1][..], &one, b"more"].concat(),
            "4 bytes follow the last file",
        ),
        (
            vec![1, 1, b'a', 0xff, 0xff, 0xff, 0xff, 0x0f],
            "unexpected end",
        ),
        (vec![1, 0xff, 0xff, 0xff, 0xff, 0x0f], "pie:files"),
        (vec![1, 2, 0xff, 0xfe, 0], "UTF-8"),
    ] {
        refused(
            &with(HEADER, Some(&archive)),
            ErrorCode::InvalidProgram,
            expected,
        );
    }
    let mut many = Vec::new();
    (MAX_FILES + 1).encode(&mut many);
    refused(
        &with(HEADER, Some(&many)),
        ErrorCode::LimitProgram,
        "10001 files, more than 10000",
    );
    let long_path = [&[1][..], &file(&"a".repeat(MAX_PATH_BYTES + 1), b"")].concat();
    refused(
        &with(HEADER, Some(&long_path)),
        ErrorCode::LimitProgram,
        "1025 bytes, more than 1024",
    );
    let large = [&[1][..], &file("a", &vec![0; ROOM + 1])].concat();
    refused(
        &with(HEADER, Some(&large)),
        ErrorCode::LimitProgram,
        "limits.source_bytes = 1048576",
    );
}

#[test]
fn sections_that_stand_twice_or_are_followed_by_garbage_are_refused() {
    let mut twice = with(HEADER, Some(&[0]));
    append(&mut twice, PROGRAM_SECTION, HEADER.as_bytes());
    refused(&twice, ErrorCode::InvalidProgram, "stands there twice");
    let followed = [with(HEADER, Some(&[0])), vec![0, 0xff, 0xff, 3, 1]].concat();
    refused(&followed, ErrorCode::InvalidProgram, "cut off or damaged");
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let no_code = Packed::default().to_bytes().unwrap_err();
    assert!(no_code.message.contains("from its component"));
    let no_component = Packed {
        component: Some(b"(module)".to_vec()),
        ..small()
    };
    assert!(
        no_component
            .to_bytes()
            .unwrap_err()
            .message
            .contains("not a WebAssembly component")
    );
    let mut far = small();
    far.files.insert("a".repeat(MAX_PATH_BYTES + 1), Vec::new());
    assert_eq!(far.to_bytes().unwrap_err().code, ErrorCode::LimitProgram);
    let long = Packed {
        manifest: Some("#".repeat(MAX_HEADER_BYTES)),
        ..small()
    };
    assert_eq!(long.to_bytes().unwrap_err().code, ErrorCode::LimitProgram);
}

#[test]
fn as_many_files_as_the_limit_says_are_packed_and_read() {
    let mut packed = small();
    let names = (packed.files.len()..MAX_FILES).map(|n| format!("{n}"));
    packed.files.extend(names.map(|name| (name, Vec::new())));
    let read = read(&packed.to_bytes().unwrap()).unwrap().unwrap();
    assert_eq!(read.files.len(), MAX_FILES);
    packed.files.insert("one more".to_owned(), Vec::new());
    let refused = packed.to_bytes().unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitProgram);
    assert!(
        refused.message.contains("10001 files"),
        "{}",
        refused.message
    );
}
