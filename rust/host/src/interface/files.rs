//! Which folders a program has (`wasi:filesystem/preopens`), and why it was refused something of them
//! (`pie:core/files`).

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceTableError};
use wasmtime_wasi::filesystem::Descriptor;

use super::bindings::pie::core::files;
use super::errors::CallResult;
use super::view::view;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;
use crate::scratch::descriptor::OpenDescriptor;
use crate::scratch::process_files::ProcessFiles;

/// Where programs ask for their folders.
const PREOPENS: &str = "wasi:filesystem/preopens@0.2.12";

/// Folders, each with the path at which the program finds it.
type Directories = Vec<(Resource<Descriptor>, String)>;

view! {
    /// The files of the program, and what it was told.
    Files { table: HandleTable, files: ProcessFiles }
}

impl files::Host for Files<'_> {
    fn check(&mut self) -> CallResult<()> {
        match self.files.refusals().last() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

impl Files<'_> {
    /// Gives the program its folders. They are looked for when it asks: most programs have no use for any.
    async fn directories(&mut self) -> wasmtime::Result<Directories> {
        self.files.find().await?;
        let table = &mut *self.table;
        let given = self.files.given().iter();
        given
            .map(|(dir, path)| Ok((handle(table, dir.clone())?, path.clone())))
            .collect()
    }
}

/// Gives a program a handle to what is open.
pub(super) fn handle(
    table: &mut HandleTable,
    open: Arc<OpenDescriptor>,
) -> Result<Resource<Descriptor>, ResourceTableError> {
    Ok(Resource::new_own(table.push(open)?.rep()))
}

/// Adds the interfaces to the linker, one of them in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    files::add_to_linker::<_, Files<'static>>(linker, Files::of)?;
    linker.allow_shadowing(true);
    linker.instance(PREOPENS)?.func_wrap_async(
        "get-directories",
        |mut store: StoreContextMut<'_, ProcessState>, (): ()| {
            Box::new(async move { Ok((Files::of(store.data_mut()).directories().await?,)) })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}
