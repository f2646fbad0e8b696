//! Prints the packages of a WIT folder, with everything that they name, as the JSON of `wit_parser::Resolve`.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use wit_parser::Resolve;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.context("usage: pie-wit-json FOLDER")?;
    let mut resolve = Resolve::default();
    resolve
        .push_dir(&folder)
        .with_context(|| format!("cannot read the WIT of {}", folder.display()))?;
    io::stdout().write_all(&serde_json::to_vec(&resolve)?)?;
    Ok(())
}
