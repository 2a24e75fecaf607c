//! `NextNodes`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, LitStr};

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(name, "NextNodes is derived for enums"));
    };
    let (mut names, mut arms) = (Vec::<LitStr>::new(), Vec::new());
    for variant in &data.variants {
        let ident = &variant.ident;
        let node = variant.attrs.iter().find(|a| a.path().is_ident("node"));
        match (&variant.fields, node) {
            (Fields::Unit, Some(attribute)) => {
                names.push(attribute.parse_args()?);
                let edge = names.len() as u16;
                arms.push(quote!(#name::#ident => ::shoal_graph::Edge(#edge)));
            }
            (Fields::Unnamed(fields), None) if fields.unnamed.len() == 1 => {
                arms.push(quote!(#name::#ident(edge) => edge));
            }
            _ => {
                let help = "a variant is either `#[node(\"name\")] Name` or `Name(Edge)`";
                return Err(Error::new_spanned(variant, help));
            }
        }
    }
    Ok(quote! {
        impl ::shoal_graph::NextNodes for #name {
            const NAMES: &'static [&'static str] = &[#(#names),*];

            #[inline(always)]
            fn edge(self) -> ::shoal_graph::Edge {
                match self {
                    #(#arms),*
                }
            }
        }
    })
}
