//! Panics of libraries, which the engine catches where it runs what users supply.

use std::path::Path;

/// Lets the engine catch the panics of libraries. libFuzzer has every panic end the process, and goes on with our own.
pub fn spare_libraries() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(|location| Path::new(location.file()));
        // The crates of the workspace are compiled by relative paths.
        if place.is_none_or(Path::is_relative) {
            end(panic);
        }
    }));
}
