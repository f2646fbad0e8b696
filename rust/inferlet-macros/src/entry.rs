//! The expansion of `#[inferlet::main]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, Result, ReturnType, Signature};

/// The function as it stands, and the export that calls it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(
            arguments,
            "#[inferlet::main] takes no arguments",
        ));
    }
    let item: ItemFn = syn::parse2(item)?;
    check(&item.sig)?;
    let name = &item.sig.ident;
    let call = match item.sig.inputs.first() {
        Some(argument) => {
            // The span makes the compiler point at the argument when its type cannot be deserialized.
            let run = quote_spanned!(argument.span()=> ::inferlet::__private::run);
            let call = awaited(&item.sig, quote!(#name(argument)));
            quote!(#run(&input, |argument| async move { #call }))
        }
        None => {
            let call = awaited(&item.sig, quote!(#name()));
            quote!(::inferlet::__private::run(&input, |_: ::inferlet::__private::Anything| async move { #call }))
        }
    };
    Ok(quote! {
        #item

        const _: () = {
            struct Program;

            impl ::inferlet::__private::Guest for Program {
                fn run(input: ::std::string::String) -> ::std::result::Result<::std::string::String, ::inferlet::__private::Failure> {
                    #call
                }
            }

            #[cfg(target_family = "wasm")]
            ::inferlet::__private::export_program!(Program with_types_in ::inferlet::bindings);
            // The names of the exports are none that every other linker takes, as where the tests of a program are
            // built for its machine.
            #[cfg(not(target_family = "wasm"))]
            const _: fn(::std::string::String) -> ::std::result::Result<::std::string::String, ::inferlet::__private::Failure> =
                <Program as ::inferlet::__private::Guest>::run;
        };
    })
}

fn awaited(signature: &Signature, call: TokenStream) -> TokenStream {
    if signature.asyncness.is_some() {
        quote!(#call.await)
    } else {
        call
    }
}

/// Refuses what the export could not call, with an error at the place of the mistake.
fn check(signature: &Signature) -> Result<()> {
    if let Some(second) = signature.inputs.iter().nth(1) {
        return Err(Error::new_spanned(
            second,
            "the entry takes one argument at most; put the fields of the input in a struct that derives Deserialize",
        ));
    }
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        return Err(Error::new_spanned(
            receiver,
            "the entry is a function, not a method",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "the entry cannot be generic",
        ));
    }
    if matches!(signature.output, ReturnType::Default) {
        return Err(Error::new_spanned(
            signature,
            "the entry returns inferlet::Result<...>; inferlet::Result<()> where it has no answer",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(item: TokenStream) -> String {
        expand(TokenStream::new(), item).unwrap().to_string()
    }

    fn refused(item: TokenStream) -> String {
        expand(TokenStream::new(), item).unwrap_err().to_string()
    }

    #[test]
    fn the_function_stays_and_an_export_calls_it() {
        let text = expanded(quote! { async fn main(input: Input) -> Result<Output> { body() } });
        assert!(
            text.starts_with("async fn main (input : Input) -> Result < Output > { body () }"),
            "{text}"
        );
        assert!(
            text.contains("| argument | async move { main (argument) . await }"),
            "{text}"
        );
        assert!(text.contains("export_program ! (Program"), "{text}");
    }

    #[test]
    fn a_function_that_is_not_async_is_not_awaited() {
        let text = expanded(quote! { fn start(input: String) -> Result<u32> { Ok(1) } });
        assert!(text.contains("async move { start (argument) }"), "{text}");
    }

    #[test]
    fn an_entry_without_argument_takes_any_input() {
        let text = expanded(quote! { async fn main() -> Result<()> { Ok(()) } });
        assert!(
            text.contains("Anything | async move { main () . await }"),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_called_is_refused_with_the_remedy() {
        for (item, remedy) in [
            (
                quote! { async fn main(a: u8, b: u8) -> Result<()> { Ok(()) } },
                "one argument at most",
            ),
            (
                quote! { async fn main(self) -> Result<()> { Ok(()) } },
                "not a method",
            ),
            (
                quote! { async fn main<T>(a: T) -> Result<()> { Ok(()) } },
                "cannot be generic",
            ),
            (quote! { async fn main(a: u8) {} }, "inferlet::Result<()>"),
            (quote! { struct Main; }, "expected `fn`"),
        ] {
            let error = refused(item);
            assert!(error.contains(remedy), "{error}");
        }
        let arguments = expand(
            quote!(flavor = "x"),
            quote! { fn main() -> Result<()> { Ok(()) } },
        );
        assert!(
            arguments
                .unwrap_err()
                .to_string()
                .contains("takes no arguments")
        );
    }
}
