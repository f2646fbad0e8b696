//! Programs of random code, by wasm-smith: with the world's imports and exports, or with any.

use arbitrary::{Arbitrary, Unstructured};
use wasm_smith::{Config, Module};

use crate::engine::engine;
use crate::world::world;

/// Runs a program of random code. Most have the exports of a program and call what they like; some are any component at
/// all.
pub fn components(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let Ok(component) = program(&mut bytes) else {
        return;
    };
    if let Some(component) = component {
        engine().run(component);
    }
}

fn program(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Option<Vec<u8>>> {
    if bytes.ratio(1, 4)? {
        let component = wasm_smith::Component::new(swarm(bytes)?, bytes)?;
        return Ok(Some(component.to_bytes()));
    }
    let module = Module::new(config(bytes)?, bytes)?;
    // A module that cannot be a program, as without the memory that its imports need, is no news.
    Ok(world().component(module.to_bytes()).ok())
}

/// What a core module of a program may be.
fn config(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Config> {
    let shape = world().shape.clone();
    Ok(Config {
        available_imports: Some(shape.clone()),
        exports: Some(shape),
        ..swarm(bytes)?
    })
}

/// Random limits and proposals; mostly without the proposals that the engine does not have, which it would only refuse.
fn swarm(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Config> {
    let swarm = Config::arbitrary(bytes)?;
    if bytes.ratio(1, 8)? {
        return Ok(swarm);
    }
    Ok(Config {
        custom_page_sizes_enabled: false,
        exceptions_enabled: false,
        gc_enabled: false,
        memory64_enabled: false,
        shared_everything_threads_enabled: false,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..swarm
    })
}
