//! The shape of a component: how many parts it has. Looked at before it is compiled, in one pass over its sections,
//! since what is compiled takes time and memory by its parts.

use wasmparser::{Parser, Payload};

use pie_core::ErrorCode;

use crate::Error;
use crate::Limits;

/// Modules and components within one another.
const MAX_DEPTH: usize = 16;
/// Modules and components in all.
const MAX_MODULES: usize = 1000;
/// Local variables of one function, and of all together. The CPython interpreter has fewer than a million.
const MAX_LOCALS: u64 = 50_000;
const MAX_ALL_LOCALS: u64 = 4_000_000;
/// Bytes of the code of one function; the largest of the CPython interpreter has a quarter of a million.
const MAX_CODE_BYTES: usize = 4 << 20;
/// Entries of all other sections: types, imports, exports, globals, segments, instances.
const MAX_ENTRIES: u64 = 500_000;

/// What has been counted.
#[derive(Default)]
struct Shape {
    n_functions: u64,
    n_locals: u64,
    n_entries: u64,
    n_modules: usize,
    depth: usize,
}

/// Refuses a component with too many parts. What is damaged passes: compiling it says how.
///
/// # Errors
/// `limit-program`, naming the part, its number and the limit.
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    let mut shape = Shape::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else {
            return Ok(());
        };
        shape.add(&payload)?;
        let most = limits.functions;
        if shape.n_functions > most as u64 {
            return Err(Error::new(
                ErrorCode::LimitProgram,
                format!(
                    "the component has {} functions or more, above limits.functions = {most}; make it smaller, or raise the limit",
                    shape.n_functions
                ),
            ));
        }
    }
    Ok(())
}

impl Shape {
    fn add(&mut self, payload: &Payload<'_>) -> Result<(), Error> {
        match payload {
            Payload::Version { .. } => {
                self.n_modules += 1;
                self.depth += 1;
                at_most(
                    "modules and components",
                    self.n_modules as u64,
                    MAX_MODULES as u64,
                )?;
                at_most(
                    "modules and components within one another",
                    self.depth as u64,
                    MAX_DEPTH as u64,
                )
            }
            Payload::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(())
            }
            Payload::FunctionSection(section) => {
                self.n_functions += u64::from(section.count());
                Ok(())
            }
            Payload::CodeSectionEntry(body) => {
                at_most(
                    "bytes of code in one function",
                    body.range().len() as u64,
                    MAX_CODE_BYTES as u64,
                )?;
                let n_locals = body.get_locals_reader().map_or(0, |locals| {
                    locals
                        .into_iter()
                        .map_while(Result::ok)
                        .map(|(count, _)| u64::from(count))
                        .sum()
                });
                at_most("local variables in one function", n_locals, MAX_LOCALS)?;
                self.n_locals = self.n_locals.saturating_add(n_locals);
                at_most("local variables", self.n_locals, MAX_ALL_LOCALS)
            }
            _ => {
                self.n_entries += u64::from(n_entries(payload));
                at_most(
                    "types, imports, exports and segments",
                    self.n_entries,
                    MAX_ENTRIES,
                )
            }
        }
    }
}

/// Entries of a section that is a list.
fn n_entries(payload: &Payload<'_>) -> u32 {
    match payload {
        Payload::TypeSection(section) => section.count(),
        Payload::ImportSection(section) => section.count(),
        Payload::TableSection(section) => section.count(),
        Payload::MemorySection(section) => section.count(),
        Payload::GlobalSection(section) => section.count(),
        Payload::ExportSection(section) => section.count(),
        Payload::ElementSection(section) => section.count(),
        Payload::DataSection(section) => section.count(),
        Payload::InstanceSection(section) => section.count(),
        Payload::CoreTypeSection(section) => section.count(),
        Payload::ComponentInstanceSection(section) => section.count(),
        Payload::ComponentAliasSection(section) => section.count(),
        Payload::ComponentTypeSection(section) => section.count(),
        Payload::ComponentCanonicalSection(section) => section.count(),
        Payload::ComponentImportSection(section) => section.count(),
        Payload::ComponentExportSection(section) => section.count(),
        _ => 0,
    }
}

fn at_most(what: &str, n: u64, most: u64) -> Result<(), Error> {
    if n <= most {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::LimitProgram,
        format!(
            "the component has {n} {what}, more than the {most} that a program may have; make it smaller"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = check(&wat::parse_str(text).unwrap(), &Limits::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitProgram);
        error.message
    }

    #[test]
    fn parts_are_counted_through_all_modules() {
        let module = format!("(core module {})", "(func)".repeat(40_000));
        assert!(
            refused(&format!("(component {module} {module})")).contains("limits.functions = 60000")
        );
        check(
            &wat::parse_str(format!("(component {module})")).unwrap(),
            &Limits::default(),
        )
        .unwrap();
    }

    #[test]
    fn locals_depth_and_entries_are_bounded() {
        let locals = format!(
            "(component (core module (func (local {}))))",
            "i32 ".repeat(50_001)
        );
        assert!(refused(&locals).contains("50001 local variables in one function"));
        let deep = format!("{}{}", "(component ".repeat(17), ")".repeat(17));
        assert!(refused(&deep).contains("17 modules and components within one another"));
        let entries = format!(
            "(component (core module {}))",
            "(global i32 (i32.const 0))".repeat(500_001)
        );
        assert!(refused(&entries).contains("500001 types"));
    }

    #[test]
    fn what_is_damaged_is_left_to_the_compiler() {
        check(b"\0asm\x0d\0\x01\0\xff\xff", &Limits::default()).unwrap();
        check(b"", &Limits::default()).unwrap();
    }
}
