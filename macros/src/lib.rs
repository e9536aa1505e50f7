//! Macros of [`oclprim`](https://docs.rs/oclprim) that translate Rust functions and structs to OpenCL C, so that the
//! same source runs on the CPU and on OpenCL devices. Use them through `oclprim` with its feature `macros`, where they
//! are documented.

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::{
    Data, DeriveInput, Expr, ExprClosure, Fields, FnArg, ItemFn, Pat, ReturnType, Token, Type,
    parse::{Parse, ParseStream},
    parse_macro_input,
    visit_mut::VisitMut,
};

mod lower;
mod twin;

use lower::{Lowered, Result};

/// `identity = value`, and `test = false`.
struct Arguments {
    identity: Option<Expr>,
    test: bool,
}

impl Parse for Arguments {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut arguments = Self { identity: None, test: true };
        while !input.is_empty() {
            let name: syn::Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match name.to_string().as_str() {
                "identity" => arguments.identity = Some(input.parse()?),
                "test" => arguments.test = input.parse::<syn::LitBool>()?.value,
                _ => {
                    return Err(syn::Error::new_spanned(
                        name,
                        "the arguments are `identity = value` and `test = false`",
                    ));
                }
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(arguments)
    }
}

/// See `oclprim::operator`.
#[proc_macro_attribute]
pub fn operator(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let (arguments, function) = (parse_macro_input!(attribute as Arguments), parse_macro_input!(item as ItemFn));
    let Some(identity) = &arguments.identity else {
        let error = syn::Error::new(Span::call_site(), "write the identity, as in #[operator(identity = 0)]");
        return error.into_compile_error().into();
    };
    expanded(operator_of(identity, arguments.test, function))
}

/// See `oclprim::order`.
#[proc_macro_attribute]
pub fn order(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let (arguments, function) = (parse_macro_input!(attribute as Arguments), parse_macro_input!(item as ItemFn));
    if let Some(identity) = &arguments.identity {
        return syn::Error::new_spanned(identity, "an order has no identity: remove it").into_compile_error().into();
    }
    expanded(order_of(arguments.test, function))
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
    let MapArguments { closure, captured } = parse_macro_input!(closure as MapArguments);
    expanded(map_of(closure, &captured))
}

/// See `oclprim::SharedType`.
#[proc_macro_derive(SharedType)]
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
    Err(syn::Error::new_spanned(attribute, format!("#[{name}] takes no arguments")))
}

/// The static `Item` of a function: its text, and the helpers, types and functions that the text uses.
fn item(name: &str, lowered: &Lowered) -> Tokens {
    let Lowered { text, helpers, functions, types } = lowered;
    quote! {
        &::oclprim::once::Item {
            name: #name,
            file: ::core::file!(),
            text: #text,
            helpers: &[#(#helpers),*],
            types: &[#(<#types as ::oclprim::once::SharedType>::ITEM),*],
            functions: &[#(<#functions as ::oclprim::once::Function>::ITEM),*],
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
    // Only the name has a span of the user's code, so lints of the user's crate ignore the rest.
    let marker = quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #visibility enum #name {}
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

/// The type of a function's two parameters, or an error if they differ.
fn two_of_a_type(function: &ItemFn, what: &str) -> Result<Type> {
    let parameters: Vec<&FnArg> = function.sig.inputs.iter().collect();
    let [FnArg::Typed(a), FnArg::Typed(b)] = parameters[..] else {
        return Err(syn::Error::new_spanned(&function.sig.ident, format!("{what} takes two values of one type")));
    };
    let (first, second) = (&a.ty, &b.ty);
    if quote!(#first).to_string() != quote!(#second).to_string() {
        return Err(syn::Error::new_spanned(&b.ty, format!("{what} takes two values of one type")));
    }
    Ok((*a.ty).clone())
}

/// The parts of an operator or an order.
struct Parts {
    ty: Type,
    item: Tokens,
    /// The Rust function, under its own name and without attributes.
    twin: Tokens,
}

fn parts(function: &mut ItemFn, what: &str) -> Result<Parts> {
    let ty = two_of_a_type(function, what)?;
    let lowered = lower::lower(function)?;
    let name = &function.sig.ident;
    let item = item(&lower::function_name(name), &lowered);
    twin::Twin.visit_block_mut(&mut function.block);
    let (signature, body) = (&function.sig, &function.block);
    let twin = quote! {
        #[allow(clippy::all, unused_parens)]
        #signature #body
    };
    Ok(Parts { ty, item, twin })
}

/// The test that compares the function on devices with Rust.
fn test(wanted: bool, name: &syn::Ident, call: &Tokens) -> Tokens {
    let test = format_ident!("{}_on_devices_equals_rust", name);
    if !wanted {
        return Tokens::new();
    }
    quote! {
        #[cfg(test)]
        #[test]
        fn #test() {
            ::oclprim::once::#call(&#name());
        }
    }
}

fn operator_of(identity: &Expr, tested: bool, mut function: ItemFn) -> Result<Tokens> {
    let Parts { ty, item, twin } = parts(&mut function, "an operator")?;
    match &function.sig.output {
        ReturnType::Type(_, result) if quote!(#result).to_string() == quote!(#ty).to_string() => {}
        output => return Err(syn::Error::new_spanned(output, "an operator returns the type of its arguments")),
    }
    let (name, attributes, visibility) = (&function.sig.ident, &function.attrs, &function.vis);
    let (text, test) = (name.to_string(), test(tested, name, &quote!(test_operator)));
    Ok(quote! {
        #(#attributes)*
        #visibility fn #name() -> ::oclprim::op::Operator<
            #ty,
            impl ::core::ops::Fn(#ty, #ty) -> #ty + ::core::marker::Copy + ::core::marker::Send + ::core::marker::Sync,
        > {
            let identity: #ty = { #identity };
            let combine = {
                #twin
                #name
            };
            ::oclprim::once::operator(#text, identity, combine, #item)
        }
        #test
    })
}

fn order_of(tested: bool, mut function: ItemFn) -> Result<Tokens> {
    let Parts { ty, item, twin } = parts(&mut function, "an order")?;
    match &function.sig.output {
        ReturnType::Type(_, result) if quote!(#result).to_string() == "bool" => {}
        output => return Err(syn::Error::new_spanned(output, "an order returns bool: true if a comes before b")),
    }
    let (name, attributes, visibility) = (&function.sig.ident, &function.attrs, &function.vis);
    let (text, test) = (name.to_string(), test(tested, name, &quote!(test_order::<#ty, _>)));
    Ok(quote! {
        #(#attributes)*
        #visibility fn #name() -> ::oclprim::op::Less<
            impl ::core::ops::Fn(&#ty, &#ty) -> bool + ::core::marker::Copy + ::core::marker::Send + ::core::marker::Sync,
        > {
            let less = {
                #twin
                |a: &#ty, b: &#ty| #name(*a, *b)
            };
            ::oclprim::once::order::<#ty, _>(#text, less, #item)
        }
        #test
    })
}

/// A closure, and the variables that it captures, each with its type.
struct MapArguments {
    closure: ExprClosure,
    captured: Vec<(syn::Ident, Type)>,
}

impl Parse for MapArguments {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let (closure, mut captured) = (input.parse()?, Vec::new());
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let name = input.parse()?;
            input.parse::<Token![:]>()?;
            captured.push((name, input.parse()?));
        }
        Ok(Self { closure, captured })
    }
}

fn map_of(mut closure: ExprClosure, captured: &[(syn::Ident, Type)]) -> Result<Tokens> {
    if closure.inputs.len() != 1 {
        return Err(syn::Error::new_spanned(&closure.inputs, "a map has one argument, as in map!(|x: f32| x * x)"));
    }
    if let Some(capture) = closure.capture.take()
        && captured.is_empty()
    {
        return Err(syn::Error::new_spanned(
            capture,
            "name the captured variables and their types: map!(move |x: f32| scale * x, scale: f32)",
        ));
    }
    let (lowered, components) = lower::lower_closure(&closure, captured)?;
    let item = item("oclp_map", &lowered);
    let argument = match &closure.inputs[0] {
        Pat::Type(typed) => (*typed.ty).clone(),
        other => return Err(syn::Error::new_spanned(other, "write the type of the argument, as in |x: f32|")),
    };
    twin::Twin.visit_expr_mut(&mut closure.body);
    if !captured.is_empty() {
        let (variables, types): (Vec<_>, Vec<_>) = captured.iter().map(|(name, ty)| (name, ty)).unzip();
        let (pattern, output, body) = (&closure.inputs[0], &closure.output, &closure.body);
        // A closure with a type for its result has a block for its body.
        let body = match (output, &**body) {
            (ReturnType::Type(..), Expr::Block(_)) | (ReturnType::Default, _) => quote!(#body),
            (ReturnType::Type(..), _) => quote!({ #body }),
        };
        return Ok(quote!({
            #[allow(clippy::all, unused_parens)]
            let oclprim_function = |#pattern, #(#variables: #types),*| #output #body;
            // A closure that captures another variable is no function pointer.
            let _: fn(#argument, #(#types),*) -> _ = oclprim_function;
            #(let #variables: #types = #variables;)*
            let oclprim_captured = ::std::vec![#(::oclprim::once::captured::<#types>(#variables)),*];
            // Names that no captured variable has.
            let oclprim_map = move |oclprim_argument: #argument| oclprim_function(oclprim_argument, #(#variables),*);
            ::oclprim::once::capturing_map(oclprim_map, #item, #components, oclprim_captured)
        }));
    }
    Ok(quote!({
        #[allow(clippy::all, unused_parens)]
        let function = #closure;
        // A closure that captures a variable is no function pointer.
        let _: fn(#argument) -> _ = function;
        ::oclprim::once::map(function, #item, #components)
    }))
}

fn device_type(input: &DeriveInput) -> Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(&input.ident, "#[derive(SharedType)] is for structs"));
    };
    if let Some(first) = input.generics.params.first() {
        return Err(syn::Error::new_spanned(
            first,
            "a generic struct has no equivalent in OpenCL C: write a struct for each type",
        ));
    }
    let mut plain = false;
    for attribute in &input.attrs {
        if attribute.path().is_ident("repr") {
            attribute.parse_nested_meta(|meta| {
                plain |= meta.path.is_ident("C");
                if meta.path.is_ident("packed") || meta.path.is_ident("align") {
                    return Err(
                        meta.error("remove `packed` and `align`: a struct for devices has the plain #[repr(C)] layout")
                    );
                }
                Ok(())
            })?;
        }
    }
    if !plain {
        return Err(syn::Error::new_spanned(&input.ident, "write #[repr(C)]: the layout must be that of OpenCL C"));
    }
    let name = &input.ident;
    let c = lower::struct_name(name);
    let (mut text, mut arrays, mut types, mut fields) = (String::new(), String::new(), Vec::new(), Vec::new());
    let (mut compared, mut made) = (Vec::new(), Vec::new());
    for (index, field) in data.fields.iter().enumerate() {
        let (member, field_text) = match &field.ident {
            Some(name) => (quote!(#name), lower::field_name(name)),
            None => {
                let index = syn::Index::from(index);
                (quote!(#index), format!("f_{}", index.index))
            }
        };
        let (element, length) = match lower::ungrouped(&field.ty) {
            Type::Array(array) => {
                let Expr::Lit(length) = &array.len else {
                    return Err(syn::Error::new_spanned(&array.len, "write the length as a number"));
                };
                let syn::Lit::Int(length) = &length.lit else {
                    return Err(syn::Error::new_spanned(length, "write the length as a number"));
                };
                (&*array.elem, length.base10_digits().to_owned())
            }
            ty => (ty, String::new()),
        };
        let of = lower::type_text(element, &mut types)?;
        if length.is_empty() {
            text += &format!("    {of} {field_text};\n");
        } else {
            // A struct around each array, so that OpenCL C copies the array as Rust does.
            let array = format!("oclp_array_{length}_{of}");
            arrays += &format!(
                "#ifndef {array}_is_there\n#define {array}_is_there\n\
                 typedef struct {{ {of} x[{length}]; }} {array};\n#endif\n"
            );
            text += &format!("    {array} {field_text};\n");
        }
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
        return Err(syn::Error::new_spanned(name, "a struct for devices has at least one field"));
    }
    let text = format!("{arrays}typedef struct {{\n{text}}} @self@;\n");
    Ok(quote! {
        impl ::oclprim::once::SharedType for #name {
            const ITEM: &'static ::oclprim::once::Item = &::oclprim::once::Item {
                name: #c,
                file: ::core::file!(),
                text: #text,
                helpers: &[],
                types: &[#(<#types as ::oclprim::once::SharedType>::ITEM),*],
                functions: &[],
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

        impl ::oclprim::source::Item for #name {
            fn components(all: &mut ::std::vec::Vec<::oclprim::once::Component>) {
                all.push(::oclprim::once::component::<Self>());
            }
        }
        impl ::oclprim::source::Computed for #name {}
        impl ::oclprim::source::Returned for #name {}
        impl ::oclprim::op::Combinable for #name {}
        impl ::oclprim::op::Tested for #name {
            type Argument = Self;

            fn argument(self) -> Self {
                self
            }
        }
    })
}
