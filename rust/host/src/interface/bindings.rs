//! The Rust face of the WIT packages in `wit/`, generated at compile time.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "pie:inferlet/language-runtime",
    imports: {
        "pie:core/session.send": async | trappable,
        "pie:core/session.send-file": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    trappable_error_type: {
        "pie:core/types.error" => crate::interface::CallError,
    },
    with: {
        "wasi": wasmtime_wasi::p2::bindings,
        "pie:core/futures.future-unit": crate::interface::futures::FutureUnit,
        "pie:core/futures.future-string": crate::interface::futures::FutureString,
        "pie:core/futures.future-blob": crate::interface::futures::FutureBlob,
        "pie:core/model.model": crate::interface::model::ModelHandle,
        "pie:core/tokenizer.tokenizer": crate::interface::tokenizer::TokenizerHandle,
        "pie:core/context.context": crate::interface::context::ContextHandle,
        "pie:core/generation.generator": crate::interface::generation::GeneratorHandle,
        "pie:core/generation.future-event": crate::interface::generation::FutureEvent,
        "pie:instruct/chat.decoder": crate::interface::chat::DecoderHandle,
    },
    require_store_data_send: true,
});
