//! The expansion of `#[inferlet::tool]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, Meta, Pat, Result, ReturnType,
};

/// The function under another name, and a unit struct of its name: the tool.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(
            arguments,
            "#[inferlet::tool] takes no arguments",
        ));
    }
    let mut item: ItemFn = syn::parse2(item)?;
    if !item.sig.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &item.sig.generics,
            "a tool cannot be generic",
        ));
    }
    if matches!(item.sig.output, ReturnType::Default) {
        return Err(Error::new_spanned(
            &item.sig,
            "a tool returns inferlet::Result<...> of what it answers",
        ));
    }
    let name = item.sig.ident.clone();
    let text = name.unraw().to_string();
    let visibility = item.vis.clone();
    let docs: Vec<Attribute> = take_docs(&mut item.attrs);
    let description = description(&docs);
    let mut names = Vec::new();
    let mut types = Vec::new();
    for input in &item.sig.inputs {
        let FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(
                input,
                "a tool is a function, not a method",
            ));
        };
        let Pat::Ident(pattern) = &*input.pat else {
            return Err(Error::new_spanned(
                &input.pat,
                "a parameter of a tool has a plain name",
            ));
        };
        names.push(pattern.ident.clone());
        types.push((*input.ty).clone());
    }
    let keys: Vec<String> = names.iter().map(|it| it.unraw().to_string()).collect();
    // Parameters may be called as these are: names of the expansion are its own.
    let hidden = |name: &str| Ident::new(name, Span::mixed_site());
    let (given, text_given, answer) = (hidden("given"), hidden("text"), hidden("answer"));
    let run = Ident::new("__run", Span::mixed_site());
    item.sig.ident = run.clone();
    let wait = item.sig.asyncness.map(|_| quote!(.await));
    Ok(quote! {
        #(#docs)*
        #[allow(non_camel_case_types, reason = "a tool is called as its function is")]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #name;

        impl #name {
            /// Calls the tool with the arguments that the model gave, a JSON object, and gives the text of its answer.
            ///
            /// # Errors
            /// `invalid-argument` for arguments that do not fit; else the error of the tool.
            #visibility async fn call(#text_given: &str) -> ::inferlet::Result<::std::string::String> {
                #item
                let mut #given = ::inferlet::tools::Arguments::parse(#text, #text_given)?;
                #(let #names = #given.take::<#types>(#keys)?;)*
                #given.end()?;
                let #answer = #run(#(#names),*) #wait?;
                ::inferlet::tools::answer_text(#text, &#answer)
            }
        }

        impl ::inferlet::tools::Tool for #name {
            fn schema(&self) -> ::std::string::String {
                ::inferlet::__private::tool_schema(#text, #description, &[
                    #((
                        #keys,
                        <#types as ::inferlet::tools::Parameter>::schema(),
                        <#types as ::inferlet::tools::Parameter>::absent().is_none(),
                    )),*
                ])
            }
        }
    })
}

fn take_docs(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let (docs, others) = std::mem::take(attributes)
        .into_iter()
        .partition(|attribute| attribute.path().is_ident("doc"));
    *attributes = others;
    docs
}

/// The documentation of the function, which the model is told.
fn description(docs: &[Attribute]) -> String {
    let lines = docs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(line),
                ..
            }) => Some(line.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(item: TokenStream) -> String {
        expand(TokenStream::new(), item).unwrap().to_string()
    }

    #[test]
    fn the_tool_has_the_name_and_the_words_of_its_function() {
        let text = expanded(quote! {
            /// The price of an item.
            pub async fn get_price(item: String, n: Option<u32>) -> Result<u32> { body() }
        });
        assert!(text.contains("pub struct get_price ;"), "{text}");
        assert!(text.contains("\"The price of an item.\""), "{text}");
        assert!(
            text.contains("take :: < Option < u32 > > (\"n\")"),
            "{text}"
        );
        assert!(text.contains("__run (item , n) . await ?"), "{text}");
    }

    #[test]
    fn names_are_told_without_the_marks_of_rust() {
        let text = expanded(quote! {
            /// Looks.
            async fn r#match(r#type: String) -> Result<u32> { body() }
        });
        assert!(text.contains("take :: < String > (\"type\")"), "{text}");
        assert!(text.contains("struct r#match ;"), "{text}");
        assert!(text.contains("tool_schema (\"match\""), "{text}");
    }

    #[test]
    fn what_cannot_be_a_tool_is_refused_with_the_remedy() {
        for (item, remedy) in [
            (
                quote! { fn a(self) -> Result<()> { Ok(()) } },
                "not a method",
            ),
            (
                quote! { fn a<T>(x: T) -> Result<()> { Ok(()) } },
                "cannot be generic",
            ),
            (quote! { fn a(x: u8) {} }, "inferlet::Result"),
            (
                quote! { fn a((x, y): (u8, u8)) -> Result<()> { Ok(()) } },
                "a plain name",
            ),
            (quote! { struct A; }, "expected `fn`"),
        ] {
            let error = expand(TokenStream::new(), item).unwrap_err().to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }
}
