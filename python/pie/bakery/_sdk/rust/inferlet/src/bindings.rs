//! The WIT packages as wit-bindgen writes them: the raw calls into the engine, documented where the WIT is.

wit_bindgen::generate!({
    path: "../../wit",
    world: "pie:inferlet/inferlet",
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_program",
    default_bindings_module: "inferlet::bindings",
});
