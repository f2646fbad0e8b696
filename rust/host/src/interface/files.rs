//! Which folders a program has (`wasi:filesystem/preopens`), and why it was refused something of them
//! (`pie:core/files`).

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::Descriptor;

use super::bindings::pie::core::files;
use super::errors::CallResult;
use super::view::view;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;
use crate::scratch::held::HeldFiles;

/// Where programs ask for their folders.
const PREOPENS: &str = "wasi:filesystem/preopens@0.2.12";

type Folders = Vec<(Resource<Descriptor>, String)>;

view! {
    /// The files of the program, and what it was told.
    Refused { table: HandleTable, files: HeldFiles }
}

impl files::Host for Refused<'_> {
    fn check(&mut self) -> CallResult<()> {
        match self.files.refusals().last() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

/// Gives a program its folders. They are looked for when it asks: most programs have no use for any.
async fn folders(mut store: StoreContextMut<'_, ProcessState>) -> wasmtime::Result<Folders> {
    store.data().count_arrival();
    let found = tokio::task::spawn_blocking(store.data().files.finding()).await?;
    let state = store.data_mut();
    let folders = state.files.keep(found)?;
    let table = &mut state.table;
    let lent = folders
        .into_iter()
        .map(|(dir, path)| Ok((table.push(Descriptor::Dir(dir))?, path)));
    lent.collect()
}

/// Adds the interfaces to the linker, one of them in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    files::add_to_linker::<_, Refused<'static>>(linker, Refused::of)?;
    linker.allow_shadowing(true);
    linker.instance(PREOPENS)?.func_wrap_async(
        "get-directories",
        |store: StoreContextMut<'_, ProcessState>, (): ()| {
            Box::new(async move { Ok((folders(store).await?,)) })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}
