//! Checks of what a user supplies as a component, before and after it is compiled.

use pie_core::ErrorCode;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::Error;
use crate::Limits;

/// The first bytes of every WebAssembly file.
const MAGIC: &[u8; 4] = b"\0asm";
/// The four bytes after the magic of a core module, and of a component.
const CORE_MODULE: &[u8; 4] = &[1, 0, 0, 0];
const COMPONENT: &[u8; 4] = &[0x0d, 0, 1, 0];

/// Checks that `bytes` look like a component.
///
/// # Errors
/// `invalid-program`, saying what they are instead. What was compiled before is refused: it is machine code, which
/// nothing can check.
pub(crate) fn check_bytes(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    if bytes.len() > limits.component_bytes {
        return Err(Error::new(
            ErrorCode::LimitProgram,
            format!(
                "the component has {} bytes, more than limits.component_bytes = {}; make it smaller, or raise the limit",
                bytes.len(),
                limits.component_bytes
            ),
        ));
    }
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(invalid("the file was compiled to machine code before; give the WebAssembly component that it was made from".to_owned()));
    }
    let kind = bytes
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.first_chunk::<4>());
    match kind {
        Some(COMPONENT) => Ok(()),
        Some(CORE_MODULE) => Err(invalid(
            "the file is a core WebAssembly module, not a component; build it for wasm32-wasip2, or make a component of it with wasm-tools".to_owned(),
        )),
        Some(version) => Err(invalid(format!("the file is WebAssembly of the unknown kind {version:02x?}; build it again with current tools"))),
        None => Err(invalid(format!("the file is not WebAssembly: its {} bytes do not begin with \\0asm and a version; give what `pie build` makes of a program", bytes.len()))),
    }
}

/// What a component is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum World {
    /// What programs get.
    Program,
    /// What language runtimes get: the same, and the sources of their program.
    Runtime,
}

/// What binds compiled components to what a host offers them.
pub(crate) trait Binder: Send + Sync + 'static {
    /// A program that is ready to be instantiated.
    type Prepared: Send + Sync + 'static;

    /// Binds a component.
    ///
    /// # Errors
    /// `invalid-program`, naming the import that the host lacks or the export that the component lacks.
    fn bind(&self, component: &Component, world: World) -> Result<Self::Prepared, Error>;

    /// Bytes of the machine code and data of a program.
    fn image_bytes(prepared: &Self::Prepared) -> u64;
}

/// Compiles a component.
///
/// # Errors
/// `invalid-program` when it is damaged or too large for the sandbox.
pub(crate) fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, Error> {
    Component::from_binary(engine, bytes).map_err(|error| damaged(&error))
}

/// The machine code of a component, without a place to run it.
///
/// # Errors
/// As [`compile`].
pub(crate) fn precompile(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    engine
        .precompile_component(bytes)
        .map_err(|error| damaged(&error))
}

/// The error and its causes in one line.
pub(crate) fn causes(error: &wasmtime::Error) -> String {
    const LONGEST: usize = 600;
    format!("{error:#}")
        .replace('\n', " ")
        .chars()
        .take(LONGEST)
        .collect()
}

fn damaged(error: &wasmtime::Error) -> Error {
    invalid(format!(
        "the component is damaged or cut off, or is not valid: {}",
        causes(error)
    ))
}

pub(crate) fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidProgram, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_component_is_named() {
        let cases: [(&[u8], &str); 5] = [
            (b"", "is not WebAssembly"),
            (b"print('hello')", "is not WebAssembly"),
            (b"\0asm", "is not WebAssembly"),
            (b"\0asm\x01\0\0\0", "core WebAssembly module"),
            (b"\0asm\x0e\0\x01\0", "unknown kind"),
        ];
        for (bytes, expected) in cases {
            let error = check_bytes(bytes, &Limits::default()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidProgram);
            assert!(error.message.contains(expected), "{}", error.message);
            let is_told_of_building = error.message.contains("`pie build`");
            assert_eq!(is_told_of_building, expected == "is not WebAssembly");
        }
    }

    #[test]
    fn machine_code_is_refused() {
        let engine = Engine::default();
        let compiled = engine.precompile_component(b"(component)").unwrap();
        let error = check_bytes(&compiled, &Limits::default()).unwrap_err();
        assert!(error.message.contains("machine code"), "{}", error.message);
    }

    #[test]
    fn a_truncated_component_is_damaged() {
        let engine = Engine::default();
        let error = compile(&engine, b"\0asm\x0d\0\x01\0\x07").unwrap_err();
        assert!(
            error.message.contains("damaged or cut off"),
            "{}",
            error.message
        );
    }
}
