//! `TraceLine`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, LitStr};

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let lines: Vec<LitStr> = input
        .attrs
        .iter()
        .filter(|a| a.path().is_ident("line"))
        .map(Attribute::parse_args)
        .collect::<Result<_, _>>()?;
    if lines.is_empty() {
        return Err(Error::new_spanned(name, "say what the trace prints: #[line(\"ttl {ttl}\")]"));
    }
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => named.named.iter().filter_map(|f| f.ident.clone()).collect::<Vec<_>>(),
            Fields::Unit => Vec::new(),
            Fields::Unnamed(_) => {
                return Err(Error::new_spanned(name, "fields need names to stand in a line"));
            }
        },
        _ => return Err(Error::new_spanned(name, "TraceLine is derived for structs")),
    };
    let breaks = (0..lines.len()).map(|i| if i == 0 { quote!() } else { quote!(f.write_str("\n")?;) });
    let (generics, types, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::core::fmt::Display for #name #types #bounds {
            #[allow(unused_variables)]
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let Self { #(#fields),* } = self;
                #(#breaks ::core::write!(f, #lines)?;)*
                Ok(())
            }
        }
    })
}
