//! The runtime's own modules, compiled into it.

use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module, Object, Result};

/// The runtime's modules as bytecode, each as (length of name, name, length of bytecode, bytecode), lengths in four
/// bytes.
static BUILTINS: &[u8] = include_bytes!(env!("PIE_JS_BUILTINS"));

/// Reads a module of the runtime from its bytecode.
pub(crate) fn load_builtin<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>> {
    let bytecode = find_builtin(name).ok_or_else(|| Error::new_loading(name))?;
    // SAFETY: the bytes were written by the same version of QuickJS when this component was built.
    unsafe { Module::load(ctx.clone(), bytecode) }
}

fn find_builtin(wanted: &str) -> Option<&'static [u8]> {
    let mut rest = BUILTINS;
    while !rest.is_empty() {
        let name = take_block(&mut rest)?;
        let bytecode = take_block(&mut rest)?;
        if name == wanted.as_bytes() {
            return Some(bytecode);
        }
    }
    None
}

/// Splits off the next block: four bytes of length, then as many bytes.
fn take_block(rest: &mut &'static [u8]) -> Option<&'static [u8]> {
    let (length, tail) = rest.split_first_chunk::<4>()?;
    let (block, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = tail;
    Some(block)
}

/// Loads and runs a module of the runtime that awaits nothing; returns its exports.
pub(crate) fn import_now<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>> {
    let (module, finished) = load_builtin(ctx, name)?.eval()?;
    // Such a module has finished already, so that no job of the program runs here.
    finished
        .result::<rquickjs::Value>()
        .ok_or(Error::WouldBlock)??;
    module.namespace()
}
