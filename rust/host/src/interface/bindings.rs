//! The Rust face of the WIT packages in `wit/`, generated at compile time: for what runs by itself and for language
//! runtimes alike. The export `check` of a runtime is looked up by name, since one that was kept from an older engine
//! may have none.

wasmtime::component::bindgen!({
    inline: "
        package pie:host;

        world program {
            include pie:inferlet/capabilities@0.1.0;
            import pie:inferlet/source@0.1.0;
            export pie:inferlet/run@0.1.0;
        }
    ",
    path: "../../wit",
    world: "pie:host/program",
    imports: {
        "pie:core/runtime.spawn": async | trappable,
        "pie:core/session.send": async | trappable,
        "pie:core/session.send-json": async | trappable,
        "pie:core/session.print": async | trappable,
        "pie:core/session.message": async | trappable,
        "pie:core/session.send-file": async | trappable,
        "pie:core/messaging.push": async | trappable,
        "pie:core/tokenizer.[method]tokenizer.encode": async | trappable,
        "pie:core/tokenizer.[method]tokenizer.try-encode": async | trappable,
        "pie:core/context.[method]context.append-text": async | trappable,
        "pie:core/context.[method]context.save": async | trappable,
        "pie:core/context.[method]context.snapshot": async | trappable,
        "pie:core/context.[static]context.open": async | trappable,
        "pie:core/context.[static]context.take": async | trappable,
        "pie:core/context.[static]context.delete": async | trappable,
        "pie:core/context.[static]context.snapshots": async | trappable,
        "pie:core/adapter.[static]adapter.create": async | trappable,
        "pie:core/adapter.[method]adapter.save": async | trappable,
        "pie:core/adapter.[method]adapter.load": async | trappable,
        "pie:core/adapter.[method]adapter.change": async | trappable,
        "pie:core/grammar.[static]grammar.create": async | trappable,
        "pie:core/grammar.[method]grammar.matcher": async | trappable,
        "pie:core/grammar.[method]matcher.accept": async | trappable,
        "pie:instruct/chat.fill": async | trappable,
        "pie:instruct/chat.message-tokens": async | trappable,
        "pie:instruct/tools.equip": async | trappable,
        "pie:instruct/tools.answer": async | trappable,
        "pie:instruct/tools.equip-tokens": async | trappable,
        "pie:instruct/tools.answer-tokens": async | trappable,
        "pie:instruct/tools.parse-call": async | trappable,
        "pie:instruct/tools.native-grammar": async | trappable,
        "pie:instruct/tools.choice-grammar": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    trappable_error_type: {
        "pie:core/types.error" => crate::interface::errors::CallError,
    },
    with: {
        "wasi": wasmtime_wasi::p2::bindings,
        "pie:core/futures.future-unit": crate::interface::futures::FutureUnit,
        "pie:core/futures.future-string": crate::interface::futures::FutureString,
        "pie:core/futures.future-blob": crate::interface::futures::FutureBlob,
        "pie:core/runtime.child": crate::process::child::Child,
        "pie:core/messaging.subscription": crate::bus::place::SubscriptionHandle,
        "pie:core/messaging.future-message": crate::interface::messaging::FutureMessage,
        "pie:core/model.model": crate::interface::model::ModelHandle,
        "pie:core/tokenizer.tokenizer": crate::interface::tokenizer::TokenizerHandle,
        "pie:core/context.context": crate::interface::context::ContextHandle,
        "pie:core/adapter.adapter": crate::interface::adapter::AdapterHandle,
        "pie:core/grammar.grammar": crate::interface::grammar::GrammarHandle,
        "pie:core/grammar.matcher": crate::interface::grammar::MatcherHandle,
        "pie:core/forward.forward-pass": crate::interface::forward::ForwardPassHandle,
        "pie:core/forward.future-pass-output": crate::interface::forward::FuturePassOutput,
        "pie:core/generation.generator": crate::interface::generation::GeneratorHandle,
        "pie:core/generation.future-output": crate::interface::advancing::FutureOutput,
        "pie:core/generation.future-tokens": crate::interface::advancing::FutureTokens,
        "pie:core/generation.future-text": crate::interface::advancing::FutureText,
        "pie:core/http.exchange": crate::network::exchange::Exchange,
        "pie:core/http.future-written": crate::interface::http::FutureWritten,
        "pie:core/http.future-head": crate::interface::http::FutureHead,
        "pie:core/http.future-part": crate::interface::http::FuturePart,
        "pie:core/http-server.incoming-request": crate::http_in::incoming::IncomingRequest,
        "pie:core/http-server.future-request": crate::interface::http_server::FutureRequest,
        "pie:core/http-server.future-gone": crate::interface::http_server::FutureGone,
        "pie:instruct/chat.decoder": crate::interface::chat::ChatDecoderHandle,
        "pie:instruct/reasoning.reasoning-decoder": crate::interface::reasoning::ReasoningDecoderHandle,
        "pie:instruct/tools.tool-decoder": crate::interface::tools::ToolDecoderHandle,
        "pie:mcp/client.mcp-session": crate::mcp::session::McpSession,
    },
    require_store_data_send: true,
});
