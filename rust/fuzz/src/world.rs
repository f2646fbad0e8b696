//! The world of programs as core modules see it.

use std::path::Path;
use std::sync::OnceLock;

use wasmparser::{CompositeInnerType, Parser, Payload, TypeRef, ValType};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId};

/// A function that programs may import.
pub(crate) struct Import {
    pub(crate) module: String,
    pub(crate) name: String,
    pub(crate) params: Vec<ValType>,
    pub(crate) results: Vec<ValType>,
}

/// The world `pie:inferlet/inferlet`.
pub(crate) struct World {
    resolve: Resolve,
    id: WorldId,
    /// A core module that imports all that there is to import and exports all that a program has to.
    pub(crate) shape: Vec<u8>,
    /// What it imports.
    pub(crate) imports: Vec<Import>,
}

/// The world, read once.
pub(crate) fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let mut resolve = Resolve::default();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let (package, _) = resolve.push_dir(folder).unwrap();
        let id = resolve.select_world(&[package], Some("inferlet")).unwrap();
        let shape = dummy_module(&resolve, id, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
        let imports = imports(&shape);
        World {
            resolve,
            id,
            shape,
            imports,
        }
    })
}

impl World {
    /// The component of a core module that has the imports and exports of this world.
    ///
    /// # Errors
    /// What does not fit, as where an export is missing.
    pub(crate) fn component(&self, mut module: Vec<u8>) -> Result<Vec<u8>, String> {
        embed_component_metadata(&mut module, &self.resolve, self.id, StringEncoding::UTF8)
            .and_then(|()| ComponentEncoder::default().module(&module))
            .and_then(|mut encoder| encoder.encode())
            .map_err(|error| format!("{error:#}"))
    }
}

fn imports(module: &[u8]) -> Vec<Import> {
    let mut types = Vec::new();
    let mut imports = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload.unwrap() {
            Payload::TypeSection(section) => {
                for group in section {
                    for item in group.unwrap().into_types() {
                        let CompositeInnerType::Func(function) = item.composite_type.inner else {
                            panic!("a type that is no function");
                        };
                        types.push(function);
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.unwrap();
                    let TypeRef::Func(index) = import.ty else {
                        panic!("an import that is no function");
                    };
                    let function = &types[index as usize];
                    imports.push(Import {
                        module: import.module.to_owned(),
                        name: import.name.to_owned(),
                        params: function.params().to_vec(),
                        results: function.results().to_vec(),
                    });
                }
            }
            _ => {}
        }
    }
    imports
}
