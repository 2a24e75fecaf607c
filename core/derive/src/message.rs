//! `Value` and `Message`.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DataEnum, DataStruct, DeriveInput, Error, Field, Fields, GenericArgument, Ident, LitInt,
    LitStr, PathArguments, Token, Type,
};

use crate::error_counters::{doc, find, snake_case};

/// What `#[value(..)]` says.
#[derive(Default)]
struct Options {
    name: Option<String>,
    width: Option<Ident>,
    is_alias: bool,
    is_flags: bool,
    is_open: bool,
}

fn options(attributes: &[Attribute]) -> syn::Result<Options> {
    let mut options = Options::default();
    let Some(attribute) = find(attributes, "value") else { return Ok(options) };
    attribute.parse_nested_meta(|meta| {
        if meta.path.is_ident("name") {
            options.name = Some(meta.value()?.parse::<LitStr>()?.value());
        } else if meta.path.is_ident("width") {
            options.width = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("alias") {
            options.is_alias = true;
        } else if meta.path.is_ident("flags") {
            options.is_flags = true;
        } else if meta.path.is_ident("open") {
            options.is_open = true;
        } else {
            return Err(meta.error("it is name = \"..\", width = .., alias, flags or open"));
        }
        Ok(())
    })?;
    Ok(options)
}

pub fn expand_value(input: &DeriveInput) -> syn::Result<TokenStream> {
    let options = options(&input.attrs)?;
    let name = options.name.clone().unwrap_or_else(|| snake_case(&input.ident.to_string()));
    let parts = match &input.data {
        Data::Enum(data) => enumeration(input, data, &options)?,
        Data::Struct(data) if options.is_alias => alias(input, data)?,
        Data::Struct(data) if options.is_flags => flags(input, data, &quote!(Flags))?,
        Data::Struct(data) if options.is_open => flags(input, data, &quote!(Enum))?,
        Data::Struct(data) => structure(data)?,
        Data::Union(_) => {
            return Err(Error::new_spanned(&input.ident, "Value is derived for structs and enums"));
        }
    };
    let Parts { kind, least, decode, encode } = parts;
    let (ident, doc) = (&input.ident, documented(&input.attrs, &input.ident)?);
    Ok(quote! {
        impl ::shoal_message::Value for #ident {
            const TYPE: ::shoal_message::Type = ::shoal_message::Type::User(&::shoal_message::Definition {
                name: #name,
                doc: #doc,
                kind: #kind,
            });
            const LEAST: usize = #least;

            fn decode(input: &mut ::shoal_message::Input<'_>) -> ::core::result::Result<Self, ::shoal_message::Malformed> {
                #decode
            }

            fn encode(&self, to: &mut ::std::vec::Vec<u8>) {
                #encode
            }
        }
    })
}

pub fn expand_message(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "Message is derived for structs"));
    };
    let Heading { name, header, service, reply, details } = heading(input)?;
    let Members { fields, least, decode, encode } = members(data)?;
    let (ident, doc) = (&input.ident, documented(&input.attrs, &input.ident)?);
    let reply = reply.map(|of| quote!(impl ::shoal_message::Answered for #ident { type Reply = #of; }));
    let details = details.map(|of| quote!(impl ::shoal_message::Detailed for #ident { type Details = #of; }));
    Ok(quote! {
        #reply
        #details
        impl ::shoal_message::Message for #ident {
            const NAME: &'static str = #name;
            const DOC: &'static str = #doc;
            const HEADER: ::shoal_message::Header = ::shoal_message::Header::#header;
            const FIELDS: &'static [::shoal_message::Field] = &[#(#fields),*];
            const SERVICE: ::core::option::Option<::shoal_message::Service> = #service;
            const LEAST: usize = #least;

            fn decode(input: &mut ::shoal_message::Input<'_>) -> ::core::result::Result<Self, ::shoal_message::Malformed> {
                #decode
            }

            fn encode(&self, to: &mut ::std::vec::Vec<u8>) {
                #encode
            }
        }
    })
}

/// What `#[message(..)]` says.
struct Heading {
    name: String,
    header: Ident,
    service: TokenStream,
    /// Its answer's type; nothing for a message that has none.
    reply: Option<TokenStream>,
    details: Option<Type>,
}

fn heading(input: &DeriveInput) -> syn::Result<Heading> {
    let mut name = snake_case(&input.ident.to_string());
    let (mut header, mut reply, mut details, mut events) = (None, None, None, Vec::new());
    let mut is_unanswered = false;
    if let Some(attribute) = find(&input.attrs, "message") {
        attribute.parse_nested_meta(|meta| {
            let kinds = [
                ("request", "Request"),
                ("reply", "Reply"),
                ("indexed", "Indexed"),
                ("event", "Event"),
                ("bare", "Bare"),
            ];
            let kind = kinds.iter().find(|(word, _)| meta.path.is_ident(word));
            if meta.path.is_ident("name") {
                name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("unanswered") {
                is_unanswered = true;
            } else if meta.path.is_ident("details") {
                details = Some(meta.value()?.parse::<Type>()?);
            } else if meta.path.is_ident("events") {
                events.push(meta.value()?.parse::<Type>()?);
            } else if meta.path.is_ident("reply") && meta.input.peek(Token![=]) {
                reply = Some(meta.value()?.parse::<Type>()?);
            } else if let Some((_, kind)) = kind {
                header = Some(format_ident!("{kind}"));
            } else {
                return Err(meta.error(
                    "it is request, reply, indexed, event or bare; name = \"..\"; of a request also reply, details or events = TYPE, or unanswered",
                ));
            }
            Ok(())
        })?;
    }
    let missing = "`#[message(request)]` is missing; or reply, event, bare";
    let header: Ident = header.ok_or_else(|| Error::new_spanned(&input.ident, missing))?;
    let answers = reply.iter().chain(&details).chain(&events).next();
    // The first message of a client has no client's index yet and is answered.
    let is_asking = header == "Request" || (header == "Bare" && (reply.is_some() || is_unanswered));
    if !is_asking {
        if let Some(of) = answers {
            return Err(Error::new_spanned(of, "only a request is answered"));
        }
        let service = quote!(::core::option::Option::None);
        return Ok(Heading { name, header, service, reply: None, details: None });
    }
    let named = |of: &Type| quote!(<#of as ::shoal_message::Message>::NAME);
    let answer = match (&reply, &details) {
        (Some(of), _) => Some(of.to_token_stream()),
        (None, None) if !is_unanswered => Some(quote!(())),
        (None, _) => None,
    };
    let described = details.as_ref().map(named);
    let reply = match (&reply, &details) {
        (Some(of), _) => {
            let of = named(of);
            quote!(::shoal_message::Reply::Message(#of))
        }
        (None, None) if !is_unanswered => quote!(::shoal_message::Reply::Done),
        (None, _) => quote!(::shoal_message::Reply::None),
    };
    let described = described
        .map_or_else(|| quote!(::core::option::Option::None), |of| quote!(::core::option::Option::Some(#of)));
    let events = events.iter().map(named);
    let service = quote! {
        ::core::option::Option::Some(::shoal_message::Service {
            reply: #reply,
            details: #described,
            events: &[#(#events),*],
        })
    };
    Ok(Heading { name, header, service, reply: answer, details })
}

fn documented(attributes: &[Attribute], ident: &Ident) -> syn::Result<String> {
    let missing =
        || Error::new_spanned(ident, "a doc line is missing: it is what the reference of the API says");
    doc(attributes).ok_or_else(missing)
}

/// What is known of a value.
struct Parts {
    kind: TokenStream,
    least: TokenStream,
    decode: TokenStream,
    encode: TokenStream,
}

fn structure(data: &DataStruct) -> syn::Result<Parts> {
    let Members { fields, least, decode, encode } = members(data)?;
    let kind = quote!(::shoal_message::Kind::Struct(&[#(#fields),*]));
    Ok(Parts { kind, least, decode, encode })
}

/// A struct with one field that has no name.
fn only<'a>(input: &DeriveInput, data: &'a DataStruct) -> syn::Result<&'a Type> {
    let Fields::Unnamed(fields) = &data.fields else { return Err(not_one(input)) };
    match fields.unnamed.first() {
        Some(field) if fields.unnamed.len() == 1 => Ok(&field.ty),
        _ => Err(not_one(input)),
    }
}

fn not_one(input: &DeriveInput) -> Error {
    Error::new_spanned(&input.ident, "it is a struct of one field without a name")
}

fn alias(input: &DeriveInput, data: &DataStruct) -> syn::Result<Parts> {
    let of = only(input, data)?;
    let value = quote!(<#of as ::shoal_message::Value>);
    Ok(Parts {
        kind: quote!(::shoal_message::Kind::Alias(#value::TYPE, #value::SHAPE)),
        least: quote!(#value::LEAST),
        decode: quote!(::core::result::Result::Ok(Self(#value::decode(input)?))),
        encode: quote!(#value::encode(&self.0, to)),
    })
}

/// `#[entry("NAME")]`, `#[entry("NAME", 4)]`, each with `late` behind it.
fn entry(attribute: &Attribute) -> syn::Result<(LitStr, Option<LitInt>, bool)> {
    attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
        let name: LitStr = input.parse()?;
        let (mut value, mut late) = (None, false);
        while input.parse::<Option<Token![,]>>()?.is_some() {
            if input.peek(LitInt) {
                value = Some(input.parse()?);
            } else {
                let word: Ident = input.parse()?;
                if word != "late" {
                    return Err(Error::new_spanned(&word, "it is `late`, or the value"));
                }
                late = true;
            }
        }
        Ok((name, value, late))
    })
}

/// Any number; some have names. `kind` is what descriptions call it.
fn flags(input: &DeriveInput, data: &DataStruct, kind: &TokenStream) -> syn::Result<Parts> {
    let of = only(input, data)?;
    let mut entries = Vec::new();
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("entry")) {
        let (name, value, late) = entry(attribute)?;
        let value = value.ok_or_else(|| Error::new_spanned(attribute, "its bit is missing"))?;
        entries.push(quote!(::shoal_message::Entry { name: #name, value: #value, late: #late }));
    }
    let value = quote!(<#of as ::shoal_message::Value>);
    Ok(Parts {
        kind: quote!(::shoal_message::Kind::#kind(#value::TYPE, &[#(#entries),*])),
        least: quote!(#value::LEAST),
        decode: quote!(::core::result::Result::Ok(Self(#value::decode(input)?))),
        encode: quote!(#value::encode(&self.0, to)),
    })
}

fn enumeration(input: &DeriveInput, data: &DataEnum, options: &Options) -> syn::Result<Parts> {
    let of = options.width.clone().unwrap_or_else(|| format_ident!("u32"));
    let (mut entries, mut decode, mut encode) = (Vec::new(), Vec::new(), Vec::new());
    for variant in &data.variants {
        let attribute = find(&variant.attrs, "entry");
        let attribute =
            attribute.ok_or_else(|| Error::new_spanned(variant, "`#[entry(\"NAME\")]` is missing"))?;
        let (name, _, late) = entry(attribute)?;
        let value = variant.discriminant.as_ref().map(|(_, value)| value);
        let value = value.ok_or_else(|| Error::new_spanned(variant, "its value is missing"))?;
        let ident = &variant.ident;
        entries.push(quote!(::shoal_message::Entry { name: #name, value: #value, late: #late }));
        decode.push(quote!(#value => ::core::result::Result::Ok(Self::#ident)));
        encode.push(quote!(Self::#ident => #value));
    }
    let value = quote!(<#of as ::shoal_message::Value>);
    let name = options.name.clone().unwrap_or_else(|| snake_case(&input.ident.to_string()));
    Ok(Parts {
        kind: quote!(::shoal_message::Kind::Enum(#value::TYPE, &[#(#entries),*])),
        least: quote!(#value::LEAST),
        decode: quote! {
            match #value::decode(input)? {
                #(#decode,)*
                other => ::core::result::Result::Err(::shoal_message::Malformed::NoSuchValue {
                    of: #name,
                    value: ::core::primitive::u64::from(other),
                }),
            }
        },
        encode: quote! {
            let value: #of = match self { #(#encode),* };
            #value::encode(&value, to);
        },
    })
}

/// What is known of the fields of a struct.
struct Members {
    fields: Vec<TokenStream>,
    least: TokenStream,
    decode: TokenStream,
    encode: TokenStream,
}

fn members(data: &DataStruct) -> syn::Result<Members> {
    let all = match &data.fields {
        Fields::Named(fields) => &fields.named,
        Fields::Unit => &Punctuated::new(),
        Fields::Unnamed(fields) => return Err(Error::new_spanned(fields, "fields have names")),
    };
    let mut members = Members { fields: Vec::new(), least: quote!(0), decode: quote!(), encode: quote!() };
    let mut idents = Vec::new();
    for field in all {
        let Some(ident) = &field.ident else { continue };
        member(field, ident, all, &mut members)?;
        idents.push(ident.clone());
    }
    let decode = std::mem::take(&mut members.decode);
    members.decode = quote! {
        #decode
        ::core::result::Result::Ok(Self { #(#idents),* })
    };
    Ok(members)
}

fn member(
    field: &Field,
    ident: &Ident,
    all: &Punctuated<Field, Token![,]>,
    members: &mut Members,
) -> syn::Result<()> {
    let text = ident.to_string();
    let name = text.strip_prefix("r#").unwrap_or(&text);
    let doc = doc(&field.attrs).unwrap_or_default();
    let default = default(field)?;
    let default = default.map_or_else(
        || quote!(::core::option::Option::None),
        |text| quote!(::core::option::Option::Some(#text)),
    );
    let of = &field.ty;
    let Members { fields, least, decode, encode } = members;
    if let Some(attribute) = find(&field.attrs, "counted_by") {
        let by: Ident = attribute.parse_args()?;
        let element = argument(of).ok_or_else(|| Error::new_spanned(of, "what is counted is a Vec"))?;
        if !all
            .iter()
            .take_while(|other| other.ident.as_ref() != Some(ident))
            .any(|f| f.ident.as_ref() == Some(&by))
        {
            return Err(Error::new_spanned(&by, "there is no such field before this one"));
        }
        let (count, by) = (format_ident!("count_{by}"), by.to_string());
        fields.push(quote!(::shoal_message::Field {
            name: #name,
            doc: #doc,
            of: <#element as ::shoal_message::Value>::TYPE,
            shape: ::shoal_message::Shape::Counted(#by),
            default: #default,
        }));
        decode.extend(quote!(let #ident = input.many::<#element>(#count)?;));
        encode.extend(quote! {
            for one in self.#ident.iter().take(#count) {
                ::shoal_message::Value::encode(one, to);
            }
        });
        return Ok(());
    }
    let counted = all.iter().find(|other| counter_of(other).is_some_and(|by| by == *ident));
    let is_count = is_count(of);
    if counted.is_some() != is_count {
        return Err(Error::new_spanned(of, "a Count belongs to the one field that is `counted_by` it"));
    }
    if let Some(counted) = counted.and_then(|field| field.ident.as_ref()) {
        let count = format_ident!("count_{ident}");
        fields.push(quote!(::shoal_message::Field {
            name: #name,
            doc: #doc,
            of: <#of>::OF,
            shape: <#of>::SHAPE,
            default: #default,
        }));
        least.extend(quote!(+ <#of>::LEAST));
        decode.extend(quote! {
            let #count = <#of>::decode(input)?;
            let #ident = ::core::default::Default::default();
        });
        // The field holds nothing; naming it keeps it from being called unused.
        encode.extend(quote!(let _ = &self.#ident; let #count = <#of>::encode(self.#counted.len(), to);));
        return Ok(());
    }
    fields.push(quote!(::shoal_message::Field {
        name: #name,
        doc: #doc,
        of: <#of as ::shoal_message::Value>::TYPE,
        shape: <#of as ::shoal_message::Value>::SHAPE,
        default: #default,
    }));
    least.extend(quote!(+ <#of as ::shoal_message::Value>::LEAST));
    decode.extend(quote!(let #ident = <#of as ::shoal_message::Value>::decode(input)?;));
    encode.extend(quote!(::shoal_message::Value::encode(&self.#ident, to);));
    Ok(())
}

/// `#[preset(7)]`, `#[preset("true")]`: what clients send if they were given nothing, as JSON.
fn default(field: &Field) -> syn::Result<Option<String>> {
    if let Some(other) = find(&field.attrs, "message") {
        return Err(Error::new_spanned(
            other,
            "it stands on a struct; what a field is by default is `#[preset(7)]`",
        ));
    }
    let Some(attribute) = find(&field.attrs, "preset") else { return Ok(None) };
    Ok(Some(match attribute.parse_args::<syn::Lit>()? {
        syn::Lit::Int(number) => number.base10_digits().to_owned(),
        syn::Lit::Float(number) => number.base10_digits().to_owned(),
        syn::Lit::Bool(truth) => truth.value.to_string(),
        syn::Lit::Str(text) => format!("\"{}\"", text.value()),
        other => return Err(Error::new_spanned(other, "it is a number, a truth or a text")),
    }))
}

fn counter_of(field: &Field) -> Option<Ident> {
    find(&field.attrs, "counted_by")?.parse_args().ok()
}

fn is_count(of: &Type) -> bool {
    let Type::Path(path) = of else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "Count")
}

/// What is between the angle brackets of a type.
fn argument(of: &Type) -> Option<TokenStream> {
    let Type::Path(path) = of else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(of) => Some(of.to_token_stream()),
        _ => None,
    }
}
