//! Scripts, as they come from anyone, and the worker that removes their types.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pie_host::{ErrorCode, Host, HostConfig, Language, SourceBundle};

use crate::written::{expanded, written};

/// What scripts are put together from: whatever opens, closes, nests, or is easily taken for something else.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "(", ")", "[", "]", "{", "}", "<", ">", "`", "${", "/", "/*", "*/", "//", "\n", " ", "\"", "'", "\\", ";", ",", ":", "?", "?.", "!", "=",
    "=>", "+", "-", "++", ".", "...", "1.", "0x1", "1e", "a", "if", "else ", "for", "while", "do ", "function ", "class ", "enum ", "type ",
    "interface ", "namespace ", "declare ", "abstract ", "let ", "const ", "export ", "import ", "async ", "await ", "yield ", "new ", "as ",
    "satisfies ", "keyof ", "infer ", "extends ", "in ", "of ", "return ", "typeof ", "void ", "<T>(", "A<", "f(()=>{", "a=>", "{a:", "a?b:",
    "@a ", "#!", "#a", "\u{feff}", "\u{2028}", "\u{e9}", "\0",
];
/// Bytes from here on repeat the piece before them.
const REPEATING: u8 = 240;
/// The longest script.
const MAX_BYTES: usize = 1 << 20;
/// How long a script may be read.
const COMPILE: Duration = Duration::from_secs(1);
/// How long the answer may take, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(300);

/// Has a worker, which `worker` is the command of, remove the types from a script. It ends with an answer or an error
/// of the script's own.
pub fn scripts(data: &[u8], worker: &[String]) {
    static HOST: Mutex<Option<Host>> = Mutex::new(None);
    let mut host = HOST.lock().unwrap();
    let host = host.get_or_insert_with(|| {
        let mut config = HostConfig {
            compiler: Some(worker.to_vec()),
            ..HostConfig::default()
        };
        config.limits.compile = COMPILE;
        Host::new(config).unwrap()
    });
    let bundle = SourceBundle {
        language: Language::JavaScript,
        files: Arc::new([("main.ts".to_owned(), script(data).into_bytes())].into()),
        entry: "main.ts".to_owned(),
    };
    let error = loop {
        let looked = host.check(bundle.clone().into(), "anyone").unwrap();
        let error = looked.wait_for(PATIENCE).unwrap_err();
        // The machine was busy with something else: that says nothing of the script.
        if error.code != ErrorCode::LimitQueue {
            break error;
        }
    };
    match error.code {
        // Its types are removed; there is no runtime to go on with.
        ErrorCode::InvalidConfig => {}
        ErrorCode::InvalidProgram | ErrorCode::LimitCompile => {
            assert!(error.message.starts_with("main.ts"), "{}", error.message);
        }
        _ => panic!("{error}"),
    }
}

/// The script that the bytes stand for.
fn script(data: &[u8]) -> String {
    if let Some(text) = written(data) {
        return String::from_utf8_lossy(&expanded(text, MAX_BYTES)).into_owned();
    }
    let (mut script, mut last) = (String::new(), "");
    for &byte in data {
        let times = if byte < REPEATING {
            last = PIECES[usize::from(byte) % PIECES.len()];
            1
        } else {
            1 << (byte - REPEATING)
        };
        for _ in 0..times {
            if script.len() + last.len() > MAX_BYTES {
                return script;
            }
            script.push_str(last);
        }
    }
    script
}
