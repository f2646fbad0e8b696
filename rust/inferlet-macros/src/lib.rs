//! The attribute macros of the `inferlet` crate, which re-exports them.

mod entry;
mod tool;

use proc_macro::TokenStream;

/// Makes a function the entry of the program.
///
/// The function may be `async` or not, takes nothing or one argument, and returns `inferlet::Result<T>`, or a `Result`
/// whose error can be displayed. The launch input, a JSON value, is deserialized into the argument; a `String` gets the
/// text itself: that of a JSON string, that of `{"input": text}`, else the input as it stands. The answer is serialized
/// to JSON. An error text that begins with `[code] `, as that of an error of the engine does, gives the failure that
/// code. Only codes that the engine gave this program count: with another one the failure is a `program-error`, and a
/// word in brackets that is not a code stays in the text.
///
/// ```ignore
/// #[derive(serde::Deserialize)]
/// struct Input { prompt: String }
///
/// #[inferlet::main]
/// async fn main(input: Input) -> inferlet::Result<usize> {
///     Ok(input.prompt.len())
/// }
/// ```
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(arguments.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a function a tool that the model can call.
///
/// The tool has the name of the function, is described to the model by its documentation, and its parameters are those
/// of the function, of types that implement `inferlet::tools::Parameter`; an `Option` may be left out. In the place of
/// the function stands a value of its name, for `Context::equip`, whose `call` takes the arguments of a call as JSON.
///
/// ```ignore
/// /// Get the price of an item.
/// #[inferlet::tool]
/// async fn get_price(item: String) -> inferlet::Result<u32> {
///     Ok(340)
/// }
///
/// ctx.equip(&[&get_price]);
/// let answer = get_price::call(r#"{"item": "violin"}"#).await?;
/// ```
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(arguments.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
