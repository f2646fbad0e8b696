//! Removes the types from TypeScript sources: they are blanked in place, so that every line and column stays. Only
//! workers do this: the parser recurses, and takes what time a source makes it take.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use swc_common::errors::{DiagnosticBuilder, Emitter, Handler};
use swc_common::sync::Lrc;
use swc_common::{GLOBALS, Globals, SourceMap};
use swc_ts_fast_strip::{Mode, Options, operate};

use crate::sync::lock;

/// `source` without its types. JavaScript comes back as it was.
///
/// # Errors
/// What is wrong and where, as `path:line:column: message`; lines and columns count from 1.
pub(crate) fn strip_types(path: &str, source: String) -> Result<String, String> {
    catch_unwind(AssertUnwindSafe(|| strip(path, source)))
        .unwrap_or_else(|_| Err(format!("{path}: the file cannot be read as TypeScript")))
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
        let message = diagnostic.message();
        let remedy = remedy(&message);
        lock(&self.found).push((place, format!("{message}{remedy}")));
    }
}

/// What to write in the place of TypeScript that is more than types; nothing for other errors.
fn remedy(message: &str) -> &'static str {
    const REMEDIES: [(&str, &str); 5] = [
        (
            "TypeScript enum is",
            "; types are only removed: use a const object, as in `const Colour = { Red: 'red' } as const`",
        ),
        (
            "TypeScript namespace",
            "; types are only removed: use a module of its own, or a const object",
        ),
        (
            "TypeScript import equals",
            "; types are only removed: use `import ... from '...'`",
        ),
        (
            "TypeScript export assignment",
            "; types are only removed: use `export default ...`",
        ),
        (
            "TypeScript parameter property",
            "; types are only removed: declare the field, and assign it in the constructor",
        ),
    ];
    REMEDIES
        .iter()
        .find(|(begins, _)| message.starts_with(begins))
        .map_or("", |&(_, remedy)| remedy)
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
        assert!(
            error.ends_with("as in `const Colour = { Red: 'red' } as const`"),
            "{error}"
        );
    }

    #[test]
    fn what_is_more_than_types_names_what_to_write() {
        for (source, words) in [
            ("enum Color { Red }\n", "use a const object"),
            (
                "namespace A { export const b = 1; }\n",
                "use a module of its own",
            ),
            ("import fs = require('fs');\n", "use `import ... from"),
            ("export = 5;\n", "use `export default"),
            (
                "class A { constructor(private b: number) {} }\n",
                "declare the field",
            ),
        ] {
            let error = strip_types("main.ts", source.to_owned()).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
