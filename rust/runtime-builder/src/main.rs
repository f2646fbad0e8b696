//! Host tool of the builds of the language runtimes.
//!
//! `builder bytecode OUT PREFIX=FOLDER...` compiles every `.js` file of the folders as the module `PREFIX/<file>`;
//! `builder encode CORE OUT` makes a component of a core module, which begins where its `initialize` has ended;
//! `builder prefault COMPONENT OUT PAGE...` has each instance of a component first write to these pages of its image.

mod initialized;
mod prefault;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use initialized::initialized;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions, WriteOptionsEndianness};
use rquickjs::{CatchResultExt, Context, Ctx, Module, Runtime};
use wit_component::ComponentEncoder;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["bytecode", out, folders @ ..] if !folders.is_empty() => bytecode(Path::new(out), folders),
        ["encode", core, out] => encode(Path::new(core), Path::new(out)),
        ["prefault", component, out, pages @ ..] if !pages.is_empty() => {
            prefault(Path::new(component), Path::new(out), pages)
        }
        _ => bail!(
            "usage: builder bytecode OUT PREFIX=FOLDER... | builder encode CORE OUT | builder prefault COMPONENT OUT PAGE..."
        ),
    }
}

/// Writes each module as (length of name, name, length of bytecode, bytecode), lengths in four bytes, in the order of
/// names.
fn bytecode(out: &Path, folders: &[&str]) -> Result<()> {
    let mut blocks = Vec::new();
    for folder in folders {
        let (prefix, folder) = folder
            .split_once('=')
            .context("a folder is written PREFIX=FOLDER")?;
        for (file, source) in sources(Path::new(folder))? {
            let name = format!("{prefix}/{file}");
            for block in [name.as_bytes(), &compile(&name, &source)?] {
                blocks.extend(u32::try_from(block.len())?.to_le_bytes());
                blocks.extend(block);
            }
        }
    }
    fs::write(out, blocks).with_context(|| format!("cannot write {}", out.display()))
}

/// The `.js` files of a folder with their text, in the order of their names.
fn sources(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "js") {
            let name = path
                .file_name()
                .context("a file without a name")?
                .to_string_lossy()
                .into_owned();
            sources.push((name, fs::read_to_string(&path)?));
        }
    }
    sources.sort();
    Ok(sources)
}

/// The bytecode of one module. What it imports is looked up when the runtime loads it, not here.
fn compile(name: &str, source: &str) -> Result<Vec<u8>> {
    let runtime = Runtime::new()?;
    runtime.set_loader(AnyModule, AnyModule);
    Context::full(&runtime)?.with(|ctx| {
        let module = Module::declare(ctx.clone(), name, source)
            .catch(&ctx)
            .map_err(|error| anyhow!("{name}: {error}"))?;
        let options = WriteOptions {
            endianness: WriteOptionsEndianness::Little,
            strip_source: true,
            strip_debug: true,
            ..WriteOptions::default()
        };
        Ok(module.write(options)?)
    })
}

/// Stands in for whatever a module imports.
struct AnyModule;

impl Resolver for AnyModule {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        Ok(name.to_owned())
    }
}

impl Loader for AnyModule {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        Module::declare(ctx.clone(), name, "")
    }
}

fn encode(core: &Path, out: &Path) -> Result<()> {
    let module = fs::read(core).with_context(|| format!("cannot read {}", core.display()))?;
    let component = ComponentEncoder::default()
        .validate(true)
        .module(&initialized(&module)?)?
        .encode()?;
    fs::write(out, component).with_context(|| format!("cannot write {}", out.display()))
}

fn prefault(component: &Path, out: &Path, pages: &[&str]) -> Result<()> {
    let content =
        fs::read(component).with_context(|| format!("cannot read {}", component.display()))?;
    let pages: Vec<u64> = pages
        .iter()
        .map(|page| {
            page.parse()
                .with_context(|| format!("{page:?} is not the number of a page"))
        })
        .collect::<Result<_>>()?;
    let prefaulted = prefault::prefaulted(&content, &pages)?;
    fs::write(out, prefaulted).with_context(|| format!("cannot write {}", out.display()))
}
