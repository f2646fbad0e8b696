//! Removes the types from TypeScript sources: they are blanked in place, so that every line and column stays.

use std::sync::{Arc, Mutex};

use swc_common::errors::{DiagnosticBuilder, Emitter, Handler};
use swc_common::sync::Lrc;
use swc_common::{GLOBALS, Globals, SourceMap};
use swc_ts_fast_strip::{Mode, Options, operate};

use super::nesting;
use crate::sync::lock;

/// The longest file that is accepted, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Stack of the thread that parses: some hundred kilobytes for each level that a source may nest, of which a few are used.
const STACK_BYTES: usize = 256 << 20;

/// `source` without its types. JavaScript comes back as it was.
///
/// # Errors
/// What is wrong and where, as `path:line:column: message`; lines and columns count from 1.
pub(crate) fn strip_types(path: &str, source: String) -> Result<String, String> {
    if source.len() > MAX_FILE_BYTES {
        return Err(format!(
            "{path}: the file has {} bytes, more than the {MAX_FILE_BYTES} that a source file may have; split it",
            source.len()
        ));
    }
    nesting::check(&source).map_err(|(line, message)| format!("{path}:{line}: {message}"))?;
    let path = path.to_owned();
    let fault = format!("{path}: the file cannot be read as TypeScript");
    // The parser recurses; a stack of its own keeps a hostile source from ending the engine.
    let thread = std::thread::Builder::new()
        .name("pie-strip".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || strip(&path, source));
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) | Err(_) => Err(fault),
    }
}

fn strip(path: &str, source: String) -> Result<String, String> {
    let map: Lrc<SourceMap> = Lrc::default();
    let found = Arc::new(Mutex::new(Vec::new()));
    let handler = Handler::with_emitter(
        true,
        false,
        Box::new(Collector {
            map: map.clone(),
            found: found.clone(),
        }),
    );
    let options = Options {
        module: Some(true),
        filename: Some(path.to_owned()),
        mode: Mode::StripOnly,
        ..Options::default()
    };
    let result = GLOBALS.set(&Globals::new(), || operate(&map, &handler, source, options));
    match result {
        Ok(output) => Ok(output.code),
        Err(error) => Err(match lock(&found).first() {
            Some((place, message)) => format!("{path}{place}: {message}"),
            None => format!("{path}: {}", error.message),
        }),
    }
}

/// Keeps the errors with their places.
struct Collector {
    map: Lrc<SourceMap>,
    found: Arc<Mutex<Vec<(String, String)>>>,
}

impl Emitter for Collector {
    fn emit(&mut self, diagnostic: &mut DiagnosticBuilder<'_>) {
        let place = diagnostic
            .span
            .primary_span()
            .map_or_else(String::new, |span| {
                let at = self.map.lookup_char_pos(span.lo);
                format!(":{}:{}", at.line, at.col.0 + 1)
            });
        lock(&self.found).push((place, diagnostic.message()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: Result<&str, &str>) {
        let stripped = strip_types("main.ts", source.to_owned());
        assert_eq!(stripped.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn types_become_blanks_and_places_stay() {
        check("const x: number = 1;\n", Ok("const x         = 1;\n"));
        check(
            "import type { A } from 'a';\nf<string>(1 as any);\n",
            Ok(";                          \nf        (1       );\n"),
        );
    }

    #[test]
    fn javascript_stays_as_it_is() {
        let source =
            "export async function main({ a = 1 }) {\n  using x = open();\n  return a ?? x;\n}\n";
        check(source, Ok(source));
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let error = strip_types("src/main.ts", "let ok = 1;\nlet = = 2;\n".to_owned()).unwrap_err();
        assert!(error.starts_with("src/main.ts:2:"), "{error}");
        let error = strip_types("main.ts", "enum Color { Red }\n".to_owned()).unwrap_err();
        assert!(error.starts_with("main.ts:1:1: "), "{error}");
        assert!(error.contains("enum"), "{error}");
    }

    #[test]
    fn the_deepest_source_that_is_accepted_fits_the_stack() {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("f(()=>{", "})"),
            ("let x: A<", ">"),
            ("!", ""),
            ("a=>", ""),
            ("a:", ""),
            ("1+", ""),
            ("a?b:", ""),
            ("if(a)", ""),
        ] {
            let nested = |n| open.repeat(n) + "1" + &close.repeat(n);
            let is_accepted = |n: &usize| nesting::check(&nested(*n)).is_ok();
            let deepest = (0..nesting::MAX_LEVELS).rev().find(is_accepted);
            let source = nested(deepest.unwrap());
            // Whether it is TypeScript does not matter: the engine lives on.
            drop(strip_types("main.ts", source));
        }
    }

    #[test]
    fn a_source_that_nests_too_deeply_is_refused_with_its_line() {
        for hostile in ["let x: A<", "a:", "(", "!", "a=>"] {
            let error =
                strip_types("main.ts", format!("1;\n{}", hostile.repeat(100_000))).unwrap_err();
            assert!(error.starts_with("main.ts:2: "), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_too_long_is_named_with_the_limit() {
        let error = strip_types("big.ts", " ".repeat(MAX_FILE_BYTES + 1)).unwrap_err();
        assert_eq!(
            error,
            "big.ts: the file has 1048577 bytes, more than the 1048576 that a source file may have; split it"
        );
    }
}
