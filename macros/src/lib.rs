//! Attributes that turn Rust functions and structs into operators of [`oclprim`](https://docs.rs/oclprim): the same source runs
//! on the CPU and on OpenCL devices. Use them through `oclprim` with its feature `macros`, where they are documented.

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Data, DeriveInput, Expr, ExprClosure, Fields, FnArg, ItemFn, Pat, ReturnType, Token, Type,
    parse::{Parse, ParseStream},
    parse_macro_input,
    spanned::Spanned,
    visit_mut::VisitMut,
};

mod lower;
mod twin;

use lower::{Lowered, Result};

/// `identity = value`.
struct Identity(Expr);

impl Parse for Identity {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let advice = "write the identity, as in #[operator(identity = 0)]";
        let name: syn::Ident = input.parse().map_err(|error| syn::Error::new(error.span(), advice))?;
        if name != "identity" {
            return Err(syn::Error::new(name.span(), advice));
        }
        input.parse::<Token![=]>()?;
        let value = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Self(value))
    }
}

/// See `oclprim::operator`.
#[proc_macro_attribute]
pub fn operator(attribute: TokenStream, item: TokenStream) -> TokenStream {
    if attribute.is_empty() {
        let error = syn::Error::new(Span::call_site(), "write the identity, as in #[operator(identity = 0)]");
        return error.into_compile_error().into();
    }
    let (identity, function) = (parse_macro_input!(attribute as Identity), parse_macro_input!(item as ItemFn));
    expanded(operator_of(&identity.0, function))
}

/// See `oclprim::order`.
#[proc_macro_attribute]
pub fn order(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    expanded(no_arguments(&attribute.into(), "order").and_then(|()| order_of(function)))
}

/// See `oclprim::device`.
#[proc_macro_attribute]
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    expanded(no_arguments(&attribute.into(), "device").and_then(|()| device_function(function)))
}

/// See `oclprim::map`.
#[proc_macro]
pub fn map(closure: TokenStream) -> TokenStream {
    let closure = parse_macro_input!(closure as ExprClosure);
    expanded(map_of(closure))
}

/// See `oclprim::Device`.
#[proc_macro_derive(Device)]
pub fn derive_device(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expanded(device_type(&item))
}

fn expanded(tokens: Result<Tokens>) -> TokenStream {
    tokens.unwrap_or_else(syn::Error::into_compile_error).into()
}

fn no_arguments(attribute: &Tokens, name: &str) -> Result<()> {
    if attribute.is_empty() {
        return Ok(());
    }
    Err(syn::Error::new(attribute.span(), format!("#[{name}] takes no arguments")))
}

/// The static description of a function's or a type's text.
fn item(name: &str, lowered: &Lowered) -> Tokens {
    let Lowered { text, helpers, functions, types } = lowered;
    quote! {
        &::oclprim::once::Item {
            name: #name,
            file: ::core::file!(),
            text: #text,
            helpers: &[#(#helpers),*],
            uses: &[
                #(<#types as ::oclprim::once::SharedType>::ITEM,)*
                #(<#functions as ::oclprim::once::Function>::ITEM,)*
            ],
            size: 0,
            fields: &[],
            fp64: false,
        }
    }
}

fn device_function(mut function: ItemFn) -> Result<Tokens> {
    let lowered = lower::lower(&function)?;
    let (name, visibility) = (&function.sig.ident, &function.vis);
    let item = item(&lower::function_name(name), &lowered);
    let marker = quote_spanned! {name.span()=>
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}
    };
    let implementation = quote! {
        impl ::oclprim::once::Function for #name {
            const ITEM: &'static ::oclprim::once::Item = #item;
        }
    };
    twin::Twin.visit_block_mut(&mut function.block);
    Ok(quote! {
        #[allow(clippy::all, unused_parens)]
        #function
        #marker
        #implementation
    })
}

/// The types of a function's two parameters, which are the same.
fn two_of_a_type(function: &ItemFn, what: &str) -> Result<Type> {
    let parameters: Vec<&FnArg> = function.sig.inputs.iter().collect();
    let [FnArg::Typed(a), FnArg::Typed(b)] = parameters[..] else {
        return Err(syn::Error::new(function.sig.ident.span(), format!("{what} takes two values of one type")));
    };
    let (first, second) = (&a.ty, &b.ty);
    if quote!(#first).to_string() != quote!(#second).to_string() {
        return Err(syn::Error::new(b.ty.span(), format!("{what} takes two values of one type")));
    }
    Ok((*a.ty).clone())
}

fn operator_of(identity: &Expr, mut function: ItemFn) -> Result<Tokens> {
    let ty = two_of_a_type(&function, "an operator")?;
    match &function.sig.output {
        ReturnType::Type(_, result) if quote!(#result).to_string() == quote!(#ty).to_string() => {}
        output => return Err(syn::Error::new(output.span(), "an operator returns the type of its arguments")),
    }
    let lowered = lower::lower(&function)?;
    let (name, attributes, visibility) = (function.sig.ident.clone(), function.attrs.clone(), function.vis.clone());
    let (text, c) = (name.to_string(), lower::function_name(&name));
    let item = item(&c, &lowered);
    twin::Twin.visit_block_mut(&mut function.block);
    let (inputs, body) = (&function.sig.inputs, &function.block);
    let test = format_ident!("{}_on_devices_is_that_of_rust", name);
    Ok(quote! {
        #(#attributes)*
        #visibility fn #name() -> ::oclprim::op::Operator<#ty, fn(#ty, #ty) -> #ty> {
            #[allow(clippy::all, unused_parens)]
            fn combine(#inputs) -> #ty #body
            ::oclprim::once::operator(#text, #identity, combine as fn(#ty, #ty) -> #ty, #item)
        }
        #[cfg(test)]
        #[test]
        fn #test() {
            ::oclprim::once::test_operator(&#name());
        }
    })
}

fn order_of(mut function: ItemFn) -> Result<Tokens> {
    let ty = two_of_a_type(&function, "an order")?;
    match &function.sig.output {
        ReturnType::Type(_, result) if quote!(#result).to_string() == "bool" => {}
        output => return Err(syn::Error::new(output.span(), "an order returns bool: true if a comes before b")),
    }
    let lowered = lower::lower(&function)?;
    let (name, attributes, visibility) = (function.sig.ident.clone(), function.attrs.clone(), function.vis.clone());
    let (text, c) = (name.to_string(), lower::function_name(&name));
    let item = item(&c, &lowered);
    twin::Twin.visit_block_mut(&mut function.block);
    let (inputs, body) = (&function.sig.inputs, &function.block);
    let test = format_ident!("{}_on_devices_is_that_of_rust", name);
    Ok(quote! {
        #(#attributes)*
        #visibility fn #name() -> ::oclprim::op::Less<fn(&#ty, &#ty) -> bool> {
            #[allow(clippy::all, unused_parens)]
            fn less(#inputs) -> bool #body
            let by_reference: fn(&#ty, &#ty) -> bool = |a, b| less(*a, *b);
            ::oclprim::once::order::<#ty>(#text, by_reference, #item)
        }
        #[cfg(test)]
        #[test]
        fn #test() {
            ::oclprim::once::test_order::<#ty>(&#name());
        }
    })
}

fn map_of(mut closure: ExprClosure) -> Result<Tokens> {
    if closure.inputs.len() != 1 {
        return Err(syn::Error::new(closure.inputs_end.span(), "a map has one argument, as in map!(|x: f32| x * x)"));
    }
    if let Some(capture) = &closure.capture {
        return Err(syn::Error::new(
            capture.span(),
            "a map captures nothing: values of the program are not in its text",
        ));
    }
    // The text decides the name: a program may have several maps.
    let text = quote!(#closure).to_string();
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let name = format!("oclp_map_{hash:016x}");
    let lowered = lower::lower_closure(&closure, &name)?;
    let item = item(&name, &lowered);
    let argument = match &closure.inputs[0] {
        Pat::Type(typed) => (*typed.ty).clone(),
        other => return Err(syn::Error::new(other.span(), "write the type of the argument, as in |x: f32|")),
    };
    twin::Twin.visit_expr_mut(&mut closure.body);
    Ok(quote!({
        // A closure that captures a variable is no function pointer.
        #[allow(clippy::all, unused_parens)]
        let function: fn(#argument) -> _ = #closure;
        ::oclprim::once::map(function, #item)
    }))
}

fn device_type(input: &DeriveInput) -> Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new(input.ident.span(), "#[derive(Device)] is for structs"));
    };
    if let Some(first) = input.generics.params.first() {
        return Err(syn::Error::new(first.span(), "a struct with parameters has no twin in OpenCL C"));
    }
    let mut plain = false;
    for attribute in &input.attrs {
        if attribute.path().is_ident("repr") {
            attribute.parse_nested_meta(|meta| {
                plain |= meta.path.is_ident("C");
                if meta.path.is_ident("packed") || meta.path.is_ident("align") {
                    return Err(meta.error("a struct for devices has the layout of #[repr(C)] alone"));
                }
                Ok(())
            })?;
        }
    }
    if !plain {
        return Err(syn::Error::new(input.ident.span(), "write #[repr(C)]: the layout must be that of OpenCL C"));
    }
    let name = &input.ident;
    let c = lower::struct_name(name);
    let (mut text, mut types, mut fields) = (String::new(), Vec::new(), Vec::new());
    let (mut compared, mut made) = (Vec::new(), Vec::new());
    for (index, field) in data.fields.iter().enumerate() {
        let (member, field_text) = match &field.ident {
            Some(name) => (quote!(#name), lower::field_name(name)),
            None => {
                let index = syn::Index::from(index);
                (quote!(#index), format!("f_{}", index.index))
            }
        };
        let (element, length) = match &field.ty {
            Type::Array(array) => {
                let Expr::Lit(length) = &array.len else {
                    return Err(syn::Error::new(array.len.span(), "write the length as a number"));
                };
                let syn::Lit::Int(length) = &length.lit else {
                    return Err(syn::Error::new(length.span(), "write the length as a number"));
                };
                (&*array.elem, format!("[{}]", length.base10_digits()))
            }
            ty => (ty, String::new()),
        };
        text += &format!("    {} {field_text}{length};\n", lower::type_text(element)?);
        types.push(element.clone());
        fields.push(quote!((#field_text, ::core::mem::offset_of!(#name, #member))));
        if length.is_empty() {
            compared.push(quote!(<#element as ::oclprim::once::SharedType>::same(&a.#member, &b.#member)));
            made.push(quote!(#member: <#element as ::oclprim::once::SharedType>::edge(next)));
        } else {
            compared.push(quote!(
                a.#member.iter().zip(&b.#member).all(|(a, b)| <#element as ::oclprim::once::SharedType>::same(a, b))
            ));
            made.push(quote!(
                #member: ::core::array::from_fn(|_| <#element as ::oclprim::once::SharedType>::edge(next))
            ));
        }
    }
    if matches!(data.fields, Fields::Unit) || fields.is_empty() {
        return Err(syn::Error::new(name.span(), "a struct for devices has a field"));
    }
    let text = format!("typedef struct {{\n{text}}} {c};\n");
    Ok(quote! {
        impl ::oclprim::once::SharedType for #name {
            const ITEM: &'static ::oclprim::once::Item = &::oclprim::once::Item {
                name: #c,
                file: ::core::file!(),
                text: #text,
                helpers: &[],
                uses: &[#(<#types as ::oclprim::once::SharedType>::ITEM),*],
                size: ::core::mem::size_of::<#name>(),
                fields: &[#(#fields),*],
                fp64: false,
            };

            fn same(a: &Self, b: &Self) -> bool {
                #(#compared)&&*
            }

            fn edge(next: &mut dyn ::core::ops::FnMut() -> u64) -> Self {
                Self { #(#made),* }
            }
        }
    })
}
