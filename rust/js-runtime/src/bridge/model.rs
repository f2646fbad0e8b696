//! Models and their tokenizers.

use rquickjs::class::Trace;
use rquickjs::{Ctx, JsLifetime, Result, TypedArray, Value};

use super::{error::check, values};
use crate::bindings::pie::core::model::Model;
use crate::bindings::pie::core::tokenizer::Tokenizer;

/// A model.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct ModelHandle {
    #[qjs(skip_trace)]
    pub(super) model: Model,
}

/// A tokenizer.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct TokenizerHandle {
    #[qjs(skip_trace)]
    tokenizer: Tokenizer,
}

pub(super) fn load(ctx: Ctx<'_>, name: String) -> Result<ModelHandle> {
    let model = check(&ctx, Model::load(&name))?;
    Ok(ModelHandle { model })
}

#[rquickjs::methods(rename_all = "camelCase")]
impl ModelHandle {
    fn name(&self) -> String {
        self.model.name()
    }

    fn tokenizer(&self) -> TokenizerHandle {
        TokenizerHandle {
            tokenizer: self.model.tokenizer(),
        }
    }
}

#[rquickjs::methods(rename_all = "camelCase")]
impl TokenizerHandle {
    fn encode<'js>(&self, ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u32>> {
        values::token_array(&ctx, self.tokenizer.encode(&text))
    }

    fn decode<'js>(&self, ctx: Ctx<'js>, tokens: TypedArray<'js, u32>) -> Result<String> {
        check(&ctx, self.tokenizer.decode(&values::tokens(&ctx, &tokens)?))
    }

    fn vocabs<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        values::vocabulary(&ctx, self.tokenizer.vocabs())
    }

    fn special_tokens<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        values::vocabulary(&ctx, self.tokenizer.special_tokens())
    }

    fn split_regex(&self) -> String {
        self.tokenizer.split_regex()
    }
}
