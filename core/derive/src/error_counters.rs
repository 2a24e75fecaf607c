//! `ErrorCounters`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Expr, ExprLit, Fields, Ident, Lit, LitStr, Meta};

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(name, "ErrorCounters is derived for enums"));
    };
    let (mut counters, mut arms) = (Vec::new(), Vec::new());
    for (i, variant) in data.variants.iter().enumerate() {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "a counter's variant holds nothing"));
        }
        let ident = &variant.ident;
        let description = doc(&variant.attrs).ok_or_else(|| {
            Error::new_spanned(
                variant,
                "a doc line is missing: it is what an operator reads in `show errors`",
            )
        })?;
        let counter = match find(&variant.attrs, "counter") {
            Some(attribute) => attribute.parse_args::<LitStr>()?.value(),
            None => snake_case(&ident.to_string()),
        };
        let at = if let Some(attribute) = find(&variant.attrs, "at") {
            let node = attribute.parse_args::<LitStr>()?;
            quote!(Some(#node))
        } else {
            quote!(None)
        };
        let severity = severity(&variant.attrs)?;
        counters.push(quote! {
            ::shoal_graph::ErrorCounter {
                name: #counter,
                description: #description,
                severity: ::shoal_graph::Severity::#severity,
                at: #at,
            }
        });
        let index = i as u32;
        arms.push(quote!(#name::#ident => #index));
    }
    Ok(quote! {
        impl ::shoal_graph::ErrorCounters for #name {
            const COUNTERS: &'static [::shoal_graph::ErrorCounter] = &[#(#counters),*];

            #[inline(always)]
            fn index(self) -> u32 {
                match self {
                    #(#arms),*
                }
            }
        }
    })
}

pub(crate) fn find<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|a| a.path().is_ident(name))
}

/// What `#[severity(...)]` says; a counter without one is an error's.
fn severity(attributes: &[Attribute]) -> syn::Result<TokenStream> {
    let Some(attribute) = find(attributes, "severity") else { return Ok(quote!(Error)) };
    match attribute.parse_args::<Ident>()?.to_string().as_str() {
        "error" => Ok(quote!(Error)),
        "warn" => Ok(quote!(Warn)),
        "info" => Ok(quote!(Info)),
        _ => Err(Error::new_spanned(attribute, "severity is error, warn or info")),
    }
}

/// The doc comment's first line.
pub(crate) fn doc(attributes: &[Attribute]) -> Option<String> {
    let Meta::NameValue(pair) = &find(attributes, "doc")?.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    let text = text.value().trim().trim_end_matches('.').to_owned();
    (!text.is_empty()).then_some(text)
}

pub(crate) fn snake_case(camel: &str) -> String {
    let mut snake = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}
