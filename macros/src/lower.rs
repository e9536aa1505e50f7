//! From a Rust function to OpenCL C: statements, expressions and their types.
//!
//! Types of structs' fields and of other functions' results are not known here. Such a type is the text of a C
//! expression in [`Ty`], which the device's compiler evaluates. The C helpers are overloaded; that compiler picks one
//! by the types of its arguments.

use std::collections::HashMap;

use proc_macro2::Span;
use quote::ToTokens;
use syn::{
    BinOp, Block, Expr, ExprBinary, ExprBlock, ExprForLoop, ExprIf, ExprLit, ExprLoop, ExprMatch, ExprMethodCall,
    ExprPath, ExprRange, ExprStruct, ExprWhile, FnArg, Ident, ItemFn, Lit, Local, Member, Pat, Path, RangeLimits,
    ReturnType, Stmt, Type, UnOp, spanned::Spanned, visit_mut::VisitMut,
};

/// The scalar types: in Rust, in OpenCL C, and their bits.
const SCALARS: [(&str, &str, u32); 11] = [
    ("i8", "char", 8),
    ("i16", "short", 16),
    ("i32", "int", 32),
    ("i64", "long", 64),
    ("u8", "uchar", 8),
    ("u16", "ushort", 16),
    ("u32", "uint", 32),
    ("u64", "ulong", 64),
    ("f32", "float", 32),
    ("f64", "double", 64),
    ("bool", "bool", 8),
];

/// A method: its name in Rust, the helper that replaces it in OpenCL C, its arguments, and the type of its result.
pub(crate) const METHODS: [(&str, &str, Args, Out); 37] = {
    use Args::{Count, None, Same, Two};
    use Out::{Bool, Helper, Receiver, Uint};
    [
        ("abs", "abs", None, Receiver),
        ("abs_diff", "abs_diff", Same, Helper),
        ("ceil", "ceil", None, Receiver),
        ("clamp", "clamp", Two, Receiver),
        ("copysign", "copysign", Same, Receiver),
        ("count_ones", "count_ones", None, Uint),
        ("floor", "floor", None, Receiver),
        ("is_finite", "is_finite", None, Bool),
        ("is_infinite", "is_infinite", None, Bool),
        ("is_nan", "is_nan", None, Bool),
        ("is_sign_negative", "is_sign_negative", None, Bool),
        ("leading_zeros", "leading_zeros", None, Uint),
        ("max", "max", Same, Receiver),
        ("min", "min", Same, Receiver),
        ("mul_add", "mul_add", Two, Receiver),
        ("rotate_left", "rotate_left", Count, Receiver),
        ("rotate_right", "rotate_right", Count, Receiver),
        ("round_ties_even", "round_ties_even", None, Receiver),
        ("saturating_add", "saturating_add", Same, Receiver),
        ("saturating_sub", "saturating_sub", Same, Receiver),
        ("signum", "signum", None, Receiver),
        ("sqrt", "sqrt", None, Receiver),
        ("swap_bytes", "swap_bytes", None, Receiver),
        ("to_bits", "to_bits", None, Helper),
        ("trailing_zeros", "trailing_zeros", None, Uint),
        ("trunc", "trunc", None, Receiver),
        ("unsigned_abs", "unsigned_abs", None, Helper),
        ("wrapping_abs", "abs", None, Receiver),
        ("wrapping_add", "add", Same, Receiver),
        ("wrapping_div", "div", Same, Receiver),
        ("wrapping_mul", "mul", Same, Receiver),
        ("wrapping_neg", "neg", None, Receiver),
        ("wrapping_rem", "rem", Same, Receiver),
        ("wrapping_shl", "shl", Count, Receiver),
        ("wrapping_shr", "shr", Count, Receiver),
        ("wrapping_sub", "sub", Same, Receiver),
        ("is_sign_positive", "is_sign_positive", None, Bool),
    ]
};

/// The arguments of a method.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Args {
    None,
    /// One of the receiver's type.
    Same,
    /// Two of the receiver's type.
    Two,
    /// A `u32`.
    Count,
}

impl Args {
    pub(crate) fn number(self) -> usize {
        match self {
            Args::None => 0,
            Args::Same | Args::Count => 1,
            Args::Two => 2,
        }
    }
}

/// The type of a method's result.
#[derive(Clone, Copy)]
pub(crate) enum Out {
    Receiver,
    Bool,
    Uint,
    /// The result type of the overloaded helper.
    Helper,
}

/// The name of the helper that replaces an operator in Rust and in OpenCL C.
pub(crate) fn operator(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) | BinOp::AddAssign(_) => "add",
        BinOp::Sub(_) | BinOp::SubAssign(_) => "sub",
        BinOp::Mul(_) | BinOp::MulAssign(_) => "mul",
        BinOp::Div(_) | BinOp::DivAssign(_) => "div",
        BinOp::Rem(_) | BinOp::RemAssign(_) => "rem",
        BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => "and",
        BinOp::BitOr(_) | BinOp::BitOrAssign(_) => "or",
        BinOp::BitXor(_) | BinOp::BitXorAssign(_) => "xor",
        BinOp::Shl(_) | BinOp::ShlAssign(_) => "shl",
        BinOp::Shr(_) | BinOp::ShrAssign(_) => "shr",
        _ => return None,
    })
}

fn is_shift(name: &str) -> bool {
    name == "shl" || name == "shr"
}

pub(crate) fn assigns(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// The OpenCL C text of a type. It names no variable, so it is valid in every scope of the function.
#[derive(Clone, Debug, PartialEq)]
struct Ty(String);

impl Ty {
    fn scalar(name: &str) -> Option<Self> {
        SCALARS.iter().find(|(rust, ..)| *rust == name).map(|(_, c, _)| Self((*c).into()))
    }

    fn bool() -> Self {
        Self("bool".into())
    }

    fn field(&self, name: &str) -> Self {
        // The comma drops the address space.
        Self(format!("__typeof__((0, ((__private {}*)0)->{name}))", self.0))
    }

    /// The type of an array's elements. In OpenCL C an array is in a struct, so that it is copied as in Rust.
    fn element(&self) -> Self {
        Self(format!("__typeof__((0, ((__private {}*)0)->x[0]))", self.0))
    }

    fn is_float(&self) -> Option<bool> {
        match self.0.as_str() {
            "float" | "double" => Some(true),
            name if SCALARS.iter().any(|(_, c, _)| *c == name) => Some(false),
            _ => None,
        }
    }
}

/// A value: its text, which has no effects, and its type. `None` for a literal that fits several types.
struct Value {
    text: String,
    ty: Option<Ty>,
}

const TYPES: &str = "the device has i8 to i64, u8 to u64, f32, f64, bool, and structs with #[derive(SharedType)]";
const NO_PARAMETERS: &str = "a function for devices has no type or lifetime parameters: write a function for each type, or a macro that writes them";
const NO_MACROS: &str = "a device has no macros such as panic! and println!: remove it";

pub(crate) type Result<T> = std::result::Result<T, syn::Error>;

/// An error that points at all tokens of `at`.
fn refused<T>(at: impl ToTokens, what: impl std::fmt::Display) -> Result<T> {
    Err(syn::Error::new_spanned(at, what))
}

/// The OpenCL C text of a function, and the names that it uses.
pub(crate) struct Lowered {
    /// A typedef of the result's type, and the function.
    pub(crate) text: String,
    /// The helpers that the text calls.
    pub(crate) helpers: Vec<String>,
    /// The functions that the text calls, as the user wrote their names.
    pub(crate) functions: Vec<Path>,
    /// The types of arguments, result, variables and struct literals.
    pub(crate) types: Vec<Type>,
}

/// The name of a function or a struct in OpenCL C. `oclprim::once` appends a digest of its text to the name.
pub(crate) fn function_name(name: &Ident) -> String {
    format!("oclp_fn_{}", plain(name))
}

pub(crate) fn struct_name(name: &Ident) -> String {
    format!("oclp_ty_{}", plain(name))
}

pub(crate) fn field_name(name: &Ident) -> String {
    format!("f_{}", plain(name))
}

/// A name without `r#`, and in ASCII.
fn plain(name: &Ident) -> String {
    let name = name.to_string();
    name.trim_start_matches("r#")
        .chars()
        .map(|c| if c.is_ascii() { c.into() } else { format!("u{:x}", c as u32) })
        .collect()
}

/// A type without the groups that a macro or parentheses put around it.
pub(crate) fn ungrouped(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            _ => return ty,
        };
    }
}

/// The C text of a type: a scalar's name, or a placeholder for one of `types`, whose name is known when a program is
/// made.
pub(crate) fn type_text(ty: &Type, types: &mut Vec<Type>) -> Result<String> {
    let ty = ungrouped(ty);
    if matches!(ty, Type::Reference(_)) {
        return refused(ty, "references are not in the subset: take the value");
    }
    let Type::Path(path) = ty else {
        return refused(ty, format!("this type has no equivalent in OpenCL C: {TYPES}"));
    };
    let Some(last) = path.path.segments.last().filter(|last| last.arguments.is_empty() && path.qself.is_none()) else {
        return refused(ty, format!("a generic type has no equivalent in OpenCL C: {TYPES}"));
    };
    let scalar = Ty::scalar(&last.ident.to_string()).filter(|_| path.path.segments.len() == 1);
    match last.ident.to_string().as_str() {
        "usize" | "isize" => {
            return refused(ty, "usize is only for indices: write u64 or u32, and x[i as usize]");
        }
        "i128" | "u128" | "char" | "str" | "String" | "f16" | "bf16" => {
            return refused(ty, format!("`{}` has no equivalent in OpenCL C: {TYPES}", last.ident));
        }
        _ => {}
    }
    let tokens = quote::quote!(#ty).to_string();
    let known = types.iter().position(|known| quote::quote!(#known).to_string() == tokens);
    let index = known.unwrap_or_else(|| {
        types.push(ty.clone());
        types.len() - 1
    });
    Ok(scalar.map_or_else(|| format!("@t{index}@"), |Ty(text)| text))
}

/// Refuses names such as `ref x` and `x @ 1`.
fn plain_name(name: &syn::PatIdent) -> Result<()> {
    if name.by_ref.is_some() || name.subpat.is_some() {
        return refused(name, "a variable is a plain name: no `ref`, no `@`");
    }
    Ok(())
}

/// Refuses `#[cfg]`: the text is made before the compiler applies it.
struct Cfg(Option<syn::Attribute>);

impl VisitMut for Cfg {
    fn visit_attribute_mut(&mut self, attribute: &mut syn::Attribute) {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            self.0 = Some(attribute.clone());
        }
    }
}

impl Cfg {
    fn result(self) -> Result<()> {
        match self.0 {
            Some(at) => refused(
                at,
                "#[cfg] inside a function for devices does not change its OpenCL C: write two functions, each under its own #[cfg]",
            ),
            None => Ok(()),
        }
    }
}

pub(crate) fn lower(function: &ItemFn) -> Result<Lowered> {
    let mut cfg = Cfg(None);
    let mut body = function.clone();
    cfg.visit_block_mut(&mut body.block);
    cfg.visit_signature_mut(&mut body.sig);
    cfg.result()?;
    let signature = &function.sig;
    if let Some(first) = signature.generics.params.first() {
        return refused(first, NO_PARAMETERS);
    }
    let unsafety = if let syn::Safety::Unsafe(token) = &signature.safety { Some(token) } else { None };
    let words = [
        signature.constness.to_token_stream(),
        signature.asyncness.to_token_stream(),
        unsafety.to_token_stream(),
        signature.abi.to_token_stream(),
    ];
    if let Some(word) = words.iter().find(|word| !word.is_empty()) {
        return refused(word, format!("a function for devices is not `{word}`: remove the word"));
    }
    let ReturnType::Type(_, result) = &signature.output else {
        return refused(&signature.ident, "a function for devices returns a value: write its type, as in `-> f32`");
    };
    let mut lowering = Lowering { name: Some(signature.ident.clone()), ..Lowering::default() };
    lowering.result = lowering.ty(result)?;
    lowering.scopes.push(HashMap::new());
    let mut parameters = Vec::new();
    for input in &signature.inputs {
        let FnArg::Typed(input) = input else {
            return refused(input, "a function for devices has no self: take the value as a parameter");
        };
        let Pat::Ident(name) = &*input.pat else {
            return refused(&input.pat, "a parameter is a plain name: read its fields in the body");
        };
        plain_name(name)?;
        let ty = lowering.ty(&input.ty)?;
        let c = lowering.declare(&name.ident, ty.clone());
        parameters.push(format!("{} {c}", ty.0));
    }
    let expected = lowering.result.clone();
    let value = lowering.block(&function.block, true, Some(&expected))?;
    if let Some(value) = value {
        lowering.line(function.block.span(), &format!("return {};", value.text));
    }
    Ok(lowering.finish(&parameters))
}

/// A closure. The type of its result need not be written.
///
/// Each component of a tuple is a parameter of its own, and the captured variables follow. Returns the number of
/// components, too.
pub(crate) fn lower_closure(closure: &syn::ExprClosure, captured: &[(Ident, Type)]) -> Result<(Lowered, usize)> {
    let mut cfg = Cfg(None);
    cfg.visit_expr_closure_mut(&mut closure.clone());
    cfg.result()?;
    let mut lowering = Lowering::default();
    lowering.scopes.push(HashMap::new());
    let mut parameters = Vec::new();
    for input in &closure.inputs {
        let Pat::Type(typed) = input else {
            return refused(input, "write the type of the argument, as in |x: f32|");
        };
        lowering.argument(&typed.pat, &typed.ty, &mut parameters)?;
    }
    let components = parameters.len();
    for (name, ty) in captured {
        let known =
            SCALARS.iter().any(|(rust, ..)| matches!(ungrouped(ty), Type::Path(path) if path.path.is_ident(rust)));
        if !known || matches!(ungrouped(ty), Type::Path(path) if path.path.is_ident("bool")) {
            return refused(ty, "a captured variable is i8 to i64, u8 to u64, f32 or f64");
        }
        let ty = lowering.ty(ty)?;
        let c = lowering.declare(name, ty.clone());
        parameters.push(format!("{} {c}", ty.0));
    }
    let expected = match &closure.output {
        ReturnType::Type(_, ty) => Some(lowering.ty(ty)?),
        ReturnType::Default => None,
    };
    if let Some(expected) = &expected {
        lowering.result = expected.clone();
    }
    let value = lowering.expression(&closure.body, expected.as_ref())?;
    let Some(ty) = expected.or(value.ty) else {
        return refused(
            &closure.body,
            "the type of the result is not determined: write it, as in |x: f32| -> f32 { ... }",
        );
    };
    lowering.result = ty;
    lowering.line(closure.body.span(), &format!("return {};", value.text));
    Ok((lowering.finish(&parameters), components))
}

#[derive(Default)]
struct Lowering {
    scopes: Vec<HashMap<String, (String, Ty)>>,
    /// The number of variables so far: each has a name of its own.
    variables: usize,
    out: String,
    /// The line number that a compiler gives to the next line of `out`, by its last `#line`; 0 if unknown.
    last: usize,
    helpers: Vec<String>,
    functions: Vec<Path>,
    types: Vec<Type>,
    result: Ty,
    /// The name of the function, which it must not call.
    name: Option<Ident>,
}

impl Default for Ty {
    fn default() -> Self {
        Self("void".into())
    }
}

impl Lowering {
    /// The type, or its placeholder.
    fn ty(&mut self, ty: &Type) -> Result<Ty> {
        type_text(ty, &mut self.types).map(Ty)
    }

    /// Declares the argument of a closure: a name, or a tuple of arguments.
    fn argument(&mut self, pattern: &Pat, ty: &Type, parameters: &mut Vec<String>) -> Result<()> {
        match (pattern, ungrouped(ty)) {
            (Pat::Paren(inner), ty) => self.argument(&inner.pat, ty, parameters),
            (Pat::Tuple(names), Type::Tuple(types)) if names.elems.len() == types.elems.len() => {
                names.elems.iter().zip(&types.elems).try_for_each(|(name, ty)| self.argument(name, ty, parameters))
            }
            (_, Type::Tuple(_)) => refused(pattern, "name each part of the tuple, as in |(a, b): (f32, f32)|"),
            (Pat::Ident(name), ty) => {
                plain_name(name)?;
                let ty = self.ty(ty)?;
                let c = self.declare(&name.ident, ty.clone());
                parameters.push(format!("{} {c}", ty.0));
                Ok(())
            }
            (Pat::Wild(_), ty) => {
                let Ty(ty) = self.ty(ty)?;
                self.variables += 1;
                parameters.push(format!("{ty} unused_{}", self.variables));
                Ok(())
            }
            _ => refused(pattern, "the argument is a name, or a tuple of names"),
        }
    }

    fn finish(self, parameters: &[String]) -> Lowered {
        let Self { out, result: Ty(result), helpers, functions, types, .. } = self;
        let parameters = parameters.join(", ");
        let text = format!("typedef {result} @self@_r;\nstatic inline @self@_r @self@({parameters})\n{{\n{out}}}\n");
        Lowered { text, helpers, functions, types }
    }

    /// Writes a statement, after the number of its line in the user's file.
    fn line(&mut self, at: Span, text: &str) {
        // Outside a procedural macro, as in unit tests, a span has no line number.
        let line = if cfg!(test) { 0 } else { at.unwrap().line() };
        if line != self.last && line > 0 {
            self.out += &format!("#line {line}\n");
            self.last = line;
        }
        self.out += text;
        self.out.push('\n');
        self.last += 1;
    }

    fn fresh(&mut self, name: &str) -> String {
        self.variables += 1;
        format!("v{}_{name}", self.variables)
    }

    fn declare(&mut self, name: &Ident, ty: Ty) -> String {
        let c = self.fresh(&plain(name));
        self.scopes.last_mut().expect("a scope").insert(name.to_string(), (c.clone(), ty));
        c
    }

    fn find(&self, name: &Ident) -> Option<&(String, Ty)> {
        let name = name.to_string();
        self.scopes.iter().rev().find_map(|scope| scope.get(&name))
    }

    fn helper(&mut self, name: &str) -> String {
        if !self.helpers.iter().any(|known| known == name) {
            self.helpers.push(name.into());
        }
        format!("oclp_{name}")
    }

    /// A variable that keeps a value.
    fn kept(&mut self, at: Span, value: Value) -> Result<Value> {
        let Some(ty) = value.ty else { return Ok(value) };
        let c = self.fresh("kept");
        self.line(at, &format!("const {} {c} = {};", ty.0, value.text));
        Ok(Value { text: c, ty: Some(ty) })
    }

    /// Values of several expressions, from left to right: what a later one writes does not change an earlier one.
    fn values(&mut self, expressions: &[(&Expr, Option<Ty>)]) -> Result<Vec<Value>> {
        let mut values: Vec<Value> = Vec::new();
        for (expression, expected) in expressions {
            let (before, last) = (std::mem::take(&mut self.out), self.last);
            let value = self.expression(expression, expected.as_ref());
            let added = std::mem::replace(&mut self.out, before);
            let value = value?;
            if !added.is_empty() {
                let after = std::mem::replace(&mut self.last, last);
                values = values.into_iter().map(|value| self.kept(expression.span(), value)).collect::<Result<_>>()?;
                self.out += &added;
                self.last = after;
            }
            values.push(value);
        }
        Ok(values)
    }

    /// A block in a scope of its own, and its value, if it ends in one.
    fn block(&mut self, block: &Block, wanted: bool, expected: Option<&Ty>) -> Result<Option<Value>> {
        self.scopes.push(HashMap::new());
        let mut value = None;
        for (i, statement) in block.stmts.iter().enumerate() {
            let last = i + 1 == block.stmts.len();
            match statement {
                Stmt::Local(local) => self.local(local)?,
                Stmt::Expr(expression, None) if last && !is_statement(expression, wanted) => {
                    value = Some(self.expression(expression, expected)?);
                }
                Stmt::Expr(expression, _) => self.statement(expression)?,
                Stmt::Item(syn::Item::Const(item)) => {
                    return refused(item, "constants are not in the subset: write `let`, with its type");
                }
                Stmt::Item(item) => {
                    return refused(item, "items are not allowed here: move this one out of the function");
                }
                Stmt::Macro(call) => return refused(call, NO_MACROS),
            }
        }
        self.scopes.pop();
        Ok(value)
    }

    fn local(&mut self, local: &Local) -> Result<()> {
        let (pattern, annotated) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        let Pat::Ident(name) = pattern else {
            return refused(pattern, "a variable is a name: write a `let` for each variable");
        };
        plain_name(name)?;
        let expected = match annotated {
            Some(ty) => Some(self.ty(ty)?),
            None => None,
        };
        let Some(init) = &local.init else {
            let Some(ty) = expected else { return refused(local, "write the type: `let name: f32;`") };
            let c = self.declare(&name.ident, ty.clone());
            self.line(local.span(), &format!("{} {c};", ty.0));
            return Ok(());
        };
        if let Some((otherwise, _)) = &init.diverge {
            return refused(otherwise, "let ... else is not in the subset: write `if`");
        }
        let value = self.expression(&init.expr, expected.as_ref())?;
        let Some(ty) = expected.or(value.ty) else {
            return refused(&init.expr, "the type of this number is not determined: write it, as in `let n: u32 = 0`");
        };
        let c = self.declare(&name.ident, ty.clone());
        self.line(local.span(), &format!("{} {c} = {};", ty.0, value.text));
        Ok(())
    }

    fn statement(&mut self, expression: &Expr) -> Result<()> {
        let at = expression.span();
        match expression {
            Expr::Assign(assign) => {
                let (place, ty) = self.place_without_effects(&assign.left)?;
                let value = self.expression(&assign.right, Some(&ty))?;
                self.line(at, &format!("{place} = {};", value.text));
            }
            Expr::Binary(ExprBinary { left, op, right, .. }) if assigns(op) => {
                let name = operator(op).expect("an operator that assigns");
                let (place, ty) = self.place_without_effects(left)?;
                // As in Rust, the right side is computed before the place is read.
                let value = self.binary(name, Value { text: place.clone(), ty: Some(ty) }, right)?;
                self.line(at, &format!("{place} = {};", value.text));
            }
            Expr::If(branch) => self.branch(branch, None, None)?,
            Expr::Match(choice) => self.choice(choice, None, None)?,
            Expr::While(ExprWhile { label: Some(label), .. })
            | Expr::Loop(ExprLoop { label: Some(label), .. })
            | Expr::ForLoop(ExprForLoop { label: Some(label), .. })
            | Expr::Block(ExprBlock { label: Some(label), .. }) => {
                return refused(label, "labels are not in the subset: leave the outer loop by a variable of type bool");
            }
            Expr::Block(block) => {
                self.line(at, "{");
                self.block(&block.block, false, None)?;
                self.out += "}\n";
            }
            Expr::While(repeat) => {
                self.line(at, "while (true) {");
                let condition = self.expression(&repeat.cond, Some(&Ty::bool()))?;
                self.line(repeat.cond.span(), &format!("if (!({})) break;", condition.text));
                self.body(&repeat.body)?;
            }
            Expr::Loop(repeat) => {
                self.line(at, "while (true) {");
                self.body(&repeat.body)?;
            }
            Expr::ForLoop(repeat) => self.for_loop(repeat)?,
            Expr::Break(end) if end.label.is_none() && end.expr.is_none() => self.line(at, "break;"),
            Expr::Continue(next) if next.label.is_none() => self.line(at, "continue;"),
            Expr::Return(end) => {
                let Some(value) = &end.expr else { return refused(expression, "write the value to return") };
                let result = self.result.clone();
                if result == Ty::default() {
                    return refused(expression, "write the type of the result, as in |x: f32| -> f32 { ... }");
                }
                let value = self.expression(value, Some(&result))?;
                self.line(at, &format!("return {};", value.text));
            }
            Expr::Paren(inner) => self.statement(&inner.expr)?,
            _ => {
                let value = self.expression(expression, None)?;
                self.line(at, &format!("(void)({});", value.text));
            }
        }
        Ok(())
    }

    /// A loop's body, and its end.
    fn body(&mut self, block: &Block) -> Result<()> {
        if let Some(value) = self.block(block, false, None)? {
            self.line(block.span(), &format!("(void)({});", value.text));
        }
        self.out += "}\n";
        Ok(())
    }

    fn for_loop(&mut self, repeat: &ExprForLoop) -> Result<()> {
        let mut range = &*repeat.expr;
        while let Expr::Paren(inner) = range {
            range = &inner.expr;
        }
        let Expr::Range(ExprRange { start: Some(start), end: Some(end), limits, .. }) = range else {
            return refused(range, "a loop runs over a range with both ends, such as 0..n");
        };
        let Pat::Ident(name) = &*repeat.pat else {
            if matches!(&*repeat.pat, Pat::Wild(_)) {
                return refused(&repeat.pat, "give the variable a name, such as _i");
            }
            return refused(&repeat.pat, "the variable of a loop is a name");
        };
        plain_name(name)?;
        let mut bounds = self.values(&[(start, None), (end, None)])?;
        let Some(ty) = bounds[0].ty.clone().or(bounds[1].ty.clone()) else {
            return refused(range, "the type of these numbers is not determined: write it, as in 0..3u32");
        };
        for (bound, expression) in bounds.iter_mut().zip([start, end]) {
            if bound.ty.is_none() {
                *bound = self.expression(expression, Some(&ty))?;
            }
        }
        let counter = self.fresh("at");
        let last = self.fresh("end");
        self.line(repeat.span(), "{");
        self.out += &format!("{} {counter} = {};\nconst {} {last} = {};\n", ty.0, bounds[0].text, ty.0, bounds[1].text);
        self.scopes.push(HashMap::new());
        let c = self.declare(&name.ident, ty.clone());
        // The counter never passes the last number, which may be the largest of its type.
        let (test, step) = match limits {
            RangeLimits::HalfOpen(_) => (format!("{counter} < {last}"), format!("{counter}++")),
            RangeLimits::Closed(_) => {
                let more = self.fresh("more");
                self.out += &format!("bool {more} = {counter} <= {last};\n");
                (more.clone(), format!("{more} = {counter} < {last}, {counter} += {more}"))
            }
        };
        self.line(repeat.span(), &format!("for (; {test}; {step}) {{"));
        self.out += &format!("{} {c} = {counter};\n", ty.0);
        self.body(&repeat.body)?;
        self.scopes.pop();
        self.out += "}\n";
        self.last = 0;
        Ok(())
    }

    fn place_without_effects(&mut self, expression: &Expr) -> Result<(String, Ty)> {
        let written = self.out.len();
        let place = self.place(expression)?;
        if self.out.len() != written {
            return refused(expression, "compute the index in a statement before this one");
        }
        Ok(place)
    }

    /// A place that can be written: a variable, a field, an element of an array.
    fn place(&mut self, expression: &Expr) -> Result<(String, Ty)> {
        match expression {
            Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => {
                let value = self.expression(expression, None)?;
                let Some(ty) = value.ty else { return refused(expression, "this is not a variable") };
                Ok((value.text, ty))
            }
            Expr::Paren(inner) => self.place(&inner.expr),
            _ => refused(expression, "only a variable, a field or an element of an array can be assigned to"),
        }
    }

    fn expression(&mut self, expression: &Expr, expected: Option<&Ty>) -> Result<Value> {
        let at = expression.span();
        match expression {
            Expr::Lit(literal) => self.literal(literal, false, expected),
            Expr::Paren(inner) => self.expression(&inner.expr, expected),
            Expr::Group(inner) => self.expression(&inner.expr, expected),
            Expr::Path(path) => self.path(path),
            Expr::Unary(unary) => match unary.op {
                UnOp::Neg(_) => {
                    if let Expr::Lit(literal) = &*unary.expr {
                        return self.literal(literal, true, expected);
                    }
                    let value = self.expression(&unary.expr, expected)?;
                    let name = self.helper("neg");
                    Ok(Value { text: format!("{name}({})", value.text), ty: value.ty })
                }
                UnOp::Not(_) => {
                    let value = self.expression(&unary.expr, expected)?;
                    let name = self.helper("not");
                    Ok(Value { text: format!("{name}({})", value.text), ty: value.ty })
                }
                _ => refused(expression, "references are not in the subset: write the value itself"),
            },
            Expr::Binary(ExprBinary { left, op, right, .. }) => match op {
                BinOp::And(_) | BinOp::Or(_) => self.logic(matches!(op, BinOp::And(_)), left, right),
                BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => {
                    let [a, b] = self.pair(left, right, None)?;
                    let sign = match op {
                        BinOp::Eq(_) => "==",
                        BinOp::Ne(_) => "!=",
                        BinOp::Lt(_) => "<",
                        BinOp::Le(_) => "<=",
                        BinOp::Gt(_) => ">",
                        _ => ">=",
                    };
                    Ok(Value { text: format!("(bool)({} {sign} {})", a.text, b.text), ty: Some(Ty::bool()) })
                }
                op if assigns(op) => refused(expression, "an assignment has no value: write it as a statement"),
                op => {
                    let name = operator(op)
                        .ok_or_else(|| syn::Error::new_spanned(expression, "this operator is not in the subset"))?;
                    if is_shift(name) {
                        let operands = [(&**left, expected.cloned()), (&**right, Some(Ty("uint".into())))];
                        let values = self.values(&operands)?;
                        if values[0].ty.is_none() {
                            return refused(left, "the type of this number is not determined: write it, as in 1u32");
                        }
                        let text = self.applied(name, &values[0].text, &values[1].text);
                        return Ok(Value { text, ty: values[0].ty.clone() });
                    }
                    let [a, b] = self.pair(left, right, expected)?;
                    Ok(Value { text: self.applied(name, &a.text, &b.text), ty: a.ty.or(b.ty) })
                }
            },
            Expr::Cast(cast) => {
                let Ty(to) = self.ty(&cast.ty)?;
                if to.starts_with('@') {
                    return refused(
                        &cast.ty,
                        "`as` needs the name of a scalar type, such as f32, not an alias or a struct",
                    );
                }
                let value = self.expression(&cast.expr, None)?;
                let value = match value.ty {
                    Some(_) => value,
                    // As in Rust, a literal without a type takes the target type if both are integers or both are
                    // floats, else i32 or f64.
                    None => self.typed_literal(&cast.expr, &to)?,
                };
                let name = self.helper(&format!("to_{to}"));
                Ok(Value { text: format!("{name}({})", value.text), ty: Some(Ty(to)) })
            }
            Expr::MethodCall(call) => self.method(call, expected),
            Expr::Call(call) => {
                let Expr::Path(ExprPath { path, qself: None, .. }) = &*call.func else {
                    return refused(&call.func, "only functions with #[device] can be called");
                };
                let arguments: Vec<&Expr> = call.args.iter().collect();
                self.call(path, &arguments)
            }
            Expr::Field(field) => {
                let value = self.expression(&field.base, None)?;
                let Some(ty) = value.ty else { return refused(expression, "a number has no fields") };
                let name = match &field.member {
                    Member::Named(name) => field_name(name),
                    Member::Unnamed(index) => format!("f_{}", index.index),
                };
                Ok(Value { text: format!("{}.{name}", value.text), ty: Some(ty.field(&name)) })
            }
            Expr::Index(index) => {
                let value = self.expression(&index.expr, None)?;
                let Some(ty) = value.ty else { return refused(expression, "a number has no elements") };
                let place = self.index(&index.index)?;
                Ok(Value { text: format!("OCLP_AT({}, {place})", value.text), ty: Some(ty.element()) })
            }
            Expr::Struct(literal) => self.struct_literal(literal),
            Expr::If(branch) => {
                let (kept, ty) = self
                    .result_of(expression, expected, |lowering, into| lowering.branch(branch, Some(into), expected))?;
                Ok(Value { text: kept, ty: Some(ty) })
            }
            Expr::Match(choice) => {
                let (kept, ty) = self
                    .result_of(expression, expected, |lowering, into| lowering.choice(choice, Some(into), expected))?;
                Ok(Value { text: kept, ty: Some(ty) })
            }
            Expr::Block(block) if block.label.is_none() => {
                let (kept, ty) = self.result_of(expression, expected, |lowering, into| {
                    lowering.line(at, "{");
                    lowering.store_block(&block.block, Some(into), expected)?;
                    lowering.out += "}\n";
                    Ok(())
                })?;
                Ok(Value { text: kept, ty: Some(ty) })
            }
            Expr::Reference(_) => refused(expression, "references are not in the subset: pass the value"),
            Expr::Closure(_) => refused(expression, "closures are not in the subset: write a function with #[device]"),
            Expr::Tuple(_) => {
                refused(expression, "tuples are not in the subset: write a struct with #[derive(SharedType)]")
            }
            Expr::Array(array) => {
                let Some(ty) = expected else {
                    return refused(expression, "an array literal is only allowed as the value of a struct field");
                };
                let elements: Vec<_> = array.elems.iter().map(|element| (element, Some(ty.element()))).collect();
                let texts: Vec<String> = self.values(&elements)?.into_iter().map(|value| value.text).collect();
                Ok(Value { text: format!("({}){{ {{ {} }} }}", ty.0, texts.join(", ")), ty: Some(ty.clone()) })
            }
            Expr::Repeat(repeat) => {
                let Some(ty) = expected else {
                    return refused(expression, "an array literal is only allowed as the value of a struct field");
                };
                let length = match &*repeat.len {
                    Expr::Lit(ExprLit { lit: Lit::Int(length), .. }) => length.base10_parse::<usize>()?,
                    len => return refused(len, "write the length as a number"),
                };
                let value = self.expression(&repeat.expr, Some(&ty.element()))?;
                let texts = vec![value.text; length].join(", ");
                Ok(Value { text: format!("({}){{ {{ {texts} }} }}", ty.0), ty: Some(ty.clone()) })
            }
            Expr::Macro(_) => refused(expression, NO_MACROS),
            Expr::Loop(_) => refused(expression, "a loop has no value here: assign to a variable before break"),
            Expr::Unsafe(_) => refused(expression, "unsafe blocks are not in the subset: remove `unsafe`"),
            Expr::Try(fallible) => {
                refused(fallible.question_token, "`?` is not in the subset: a device has no errors, so return a value")
            }
            Expr::Break(_) | Expr::Continue(_) => refused(
                expression,
                "labels and values of break are not in the subset: assign to a variable before break",
            ),
            Expr::Return(_) => refused(expression, "write this as a statement, with a semicolon"),
            _ => refused(expression, "this expression is not in the subset that devices run"),
        }
    }

    /// Declares a variable that `fill` assigns to. Returns its name and its type: the expected type, or that of the
    /// first value with a type.
    fn result_of(
        &mut self,
        expression: &Expr,
        expected: Option<&Ty>,
        fill: impl Fn(&mut Self, &mut Place) -> Result<()>,
    ) -> Result<(String, Ty)> {
        let mut into = Place { name: self.fresh("value"), ty: expected.cloned() };
        let (before, last) = (std::mem::take(&mut self.out), self.last);
        self.last = 0;
        let mut filled = fill(self, &mut into);
        // A literal may precede the first value with a type. Now the type is known, so the text is made again.
        if filled.is_ok() && expected.is_none() && into.ty.is_some() {
            self.out.clear();
            filled = fill(self, &mut into);
        }
        let added = std::mem::replace(&mut self.out, before);
        let after = std::mem::replace(&mut self.last, last);
        filled?;
        let Some(ty) = into.ty else {
            return refused(
                expression,
                "the type of this value is not determined: give it to a variable, as in `let x: f32 = ...`",
            );
        };
        self.line(expression.span(), &format!("{} {};", ty.0, into.name));
        self.out += &added;
        self.last = after;
        Ok((into.name, ty))
    }

    /// A block whose value, if it has one, goes to `into`.
    fn store_block(&mut self, block: &Block, into: Option<&mut Place>, expected: Option<&Ty>) -> Result<()> {
        let known = into.as_ref().and_then(|into| into.ty.clone());
        let expected = known.as_ref().or(expected);
        let value = self.block(block, into.is_some(), expected)?;
        self.store(block.span(), value, into)
    }

    fn store(&mut self, at: Span, value: Option<Value>, into: Option<&mut Place>) -> Result<()> {
        match (value, into) {
            (Some(value), Some(into)) => {
                if into.ty.is_none() {
                    into.ty = value.ty;
                }
                self.line(at, &format!("{} = {};", into.name, value.text));
            }
            (Some(value), None) => self.line(at, &format!("(void)({});", value.text)),
            // There is no value to store: the block is a statement, or it returns, breaks or continues.
            (None, _) => {}
        }
        Ok(())
    }

    fn branch(&mut self, branch: &ExprIf, mut into: Option<&mut Place>, expected: Option<&Ty>) -> Result<()> {
        if let Expr::Let(pattern) = &*branch.cond {
            return refused(pattern, "if let is not in the subset: write a comparison, or `match`");
        }
        let condition = self.expression(&branch.cond, Some(&Ty::bool()))?;
        self.line(branch.cond.span(), &format!("if ({}) {{", condition.text));
        self.store_block(&branch.then_branch, into.as_deref_mut(), expected)?;
        match &branch.else_branch {
            None => self.out += "}\n",
            Some((_, otherwise)) => {
                self.out += "} else {\n";
                match &**otherwise {
                    Expr::Block(block) => self.store_block(&block.block, into, expected)?,
                    Expr::If(next) => self.branch(next, into, expected)?,
                    _ => return refused(otherwise, "else is followed by a block"),
                }
                self.out += "}\n";
            }
        }
        self.last = 0;
        Ok(())
    }

    fn choice(&mut self, choice: &ExprMatch, mut into: Option<&mut Place>, expected: Option<&Ty>) -> Result<()> {
        let value = self.expression(&choice.expr, None)?;
        let Some(ty) = value.ty.clone() else { return refused(&choice.expr, "write the type of this number") };
        if ty.is_float() == Some(true) {
            return refused(&choice.expr, "match is for integers and bool: compare floats by if");
        }
        let subject = self.kept(choice.expr.span(), value)?;
        let mut open = 0;
        for arm in &choice.arms {
            let test = self.pattern(&arm.pat, &subject.text, &ty)?;
            self.line(arm.pat.span(), &format!("if ({test}) {{"));
            let known = into.as_ref().and_then(|into| into.ty.clone());
            match &*arm.body {
                Expr::Block(block) if block.label.is_none() => {
                    self.store_block(&block.block, into.as_deref_mut(), expected)?;
                }
                body if into.is_none() || is_statement(body, true) => self.statement(body)?,
                body => {
                    let value = self.expression(body, known.as_ref().or(expected))?;
                    self.store(body.span(), Some(value), into.as_deref_mut())?;
                }
            }
            self.out += "} else {\n";
            open += 1;
        }
        self.out += &"}\n".repeat(open);
        self.last = 0;
        Ok(())
    }

    /// The test of a pattern.
    fn pattern(&mut self, pattern: &Pat, subject: &str, ty: &Ty) -> Result<String> {
        Ok(match pattern {
            Pat::Wild(_) => "true".into(),
            Pat::Lit(literal) => {
                let value = self.literal(literal, false, Some(ty))?;
                format!("{subject} == {}", value.text)
            }
            Pat::Range(range) => {
                let mut parts = Vec::new();
                if let Some(start) = &range.start {
                    let value = self.expression(start, Some(ty))?;
                    parts.push(format!("{subject} >= {}", value.text));
                }
                if let Some(end) = &range.end {
                    let value = self.expression(end, Some(ty))?;
                    let sign = if matches!(range.limits, RangeLimits::Closed(_)) { "<=" } else { "<" };
                    parts.push(format!("{subject} {sign} {}", value.text));
                }
                parts.join(" && ")
            }
            Pat::Or(any) => {
                let tests = any.cases.iter().map(|case| Ok(format!("({})", self.pattern(case, subject, ty)?)));
                tests.collect::<Result<Vec<_>>>()?.join(" || ")
            }
            Pat::Paren(inner) => self.pattern(&inner.pat, subject, ty)?,
            Pat::Path(path) => {
                let value = self.path(path)?;
                format!("{subject} == {}", value.text)
            }
            Pat::Guard(guard) => {
                return refused(guard.if_token, "guards are not in the subset: write `if` within the arm");
            }
            _ => return refused(pattern, "a pattern is a number, a range, several of them by |, or _"),
        })
    }

    /// `&&` and `||`: the right side runs only if the left one does not decide the result.
    fn logic(&mut self, and: bool, left: &Expr, right: &Expr) -> Result<Value> {
        let a = self.expression(left, Some(&Ty::bool()))?;
        let (before, last) = (std::mem::take(&mut self.out), self.last);
        self.last = 0;
        let b = self.expression(right, Some(&Ty::bool()));
        let added = std::mem::replace(&mut self.out, before);
        self.last = last;
        let b = b?;
        let ty = Some(Ty::bool());
        if added.is_empty() {
            let sign = if and { "&&" } else { "||" };
            return Ok(Value { text: format!("(bool)({} {sign} {})", a.text, b.text), ty });
        }
        let c = self.fresh("value");
        self.line(left.span(), &format!("bool {c} = {};", a.text));
        self.out += &format!("if ({}{c}) {{\n{added}{c} = {};\n}}\n", if and { "" } else { "!" }, b.text);
        self.last = 0;
        Ok(Value { text: c, ty })
    }

    /// Two operands of one type. A literal takes the type of the other.
    fn pair(&mut self, left: &Expr, right: &Expr, expected: Option<&Ty>) -> Result<[Value; 2]> {
        let expected = expected.cloned();
        let values = self.values(&[(left, None), (right, None)])?;
        let Some(ty) = values[0].ty.clone().or(values[1].ty.clone()).or(expected) else {
            return refused(left, "the type of these numbers is not determined: write it, as in 1u32");
        };
        let mut values = values.into_iter().zip([left, right]).map(|(value, expression)| match value.ty {
            Some(_) => Ok(value),
            None => self.expression(expression, Some(&ty)),
        });
        let (a, b) = (values.next().expect("two"), values.next().expect("two"));
        Ok([a?, b?])
    }

    /// The call of the helper of operator `name`. `a` is the left operand, which is already lowered.
    fn binary(&mut self, name: &str, a: Value, right: &Expr) -> Result<Value> {
        let expected = if is_shift(name) { Some(Ty("uint".into())) } else { a.ty.clone() };
        let b = self.expression(right, expected.as_ref())?;
        Ok(Value { text: self.applied(name, &a.text, &b.text), ty: a.ty })
    }

    /// The call of an operator's helper. The count of a shift may have any integer type.
    fn applied(&mut self, name: &str, a: &str, b: &str) -> String {
        let helper = self.helper(name);
        if is_shift(name) { format!("{helper}({a}, (uint)({b}))") } else { format!("{helper}({a}, {b})") }
    }

    fn method(&mut self, call: &ExprMethodCall, expected: Option<&Ty>) -> Result<Value> {
        let name = call.method.to_string();
        let Some((_, helper, args, out)) = METHODS.iter().find(|(method, ..)| *method == name) else {
            let all: Vec<&str> = METHODS.iter().map(|(method, ..)| *method).collect();
            return refused(&call.method, format!("devices have no method `{name}`; they have {}", all.join(", ")));
        };
        if call.args.len() != args.number() {
            let number = ["no arguments", "1 argument", "2 arguments"][args.number()];
            return refused(&call.method, format!("`{name}` takes {number} besides the receiver"));
        }
        let receiver_type = match out {
            Out::Receiver => expected.cloned(),
            _ => None,
        };
        let expressions: Vec<&Expr> = std::iter::once(&*call.receiver).chain(&call.args).collect();
        let counted = *args == Args::Count;
        let wanted: Vec<(&Expr, Option<Ty>)> = expressions
            .iter()
            .enumerate()
            .map(|(i, expression)| (*expression, (counted && i == 1).then(|| Ty("uint".into()))))
            .collect();
        let mut values = self.values(&wanted)?;
        let same = values.iter().take(if counted { 1 } else { values.len() }).find_map(|value| value.ty.clone());
        let Some(ty) = same.or(receiver_type) else {
            return refused(&call.receiver, "the type of this number is not determined: write it, as in 1.0f32");
        };
        for (value, expression) in values.iter_mut().zip(&expressions) {
            if value.ty.is_none() {
                *value = self.expression(expression, Some(&ty))?;
            }
        }
        let helper = self.helper(helper);
        let texts: Vec<String> = values.into_iter().map(|value| value.text).collect();
        let result = match out {
            Out::Receiver => ty.clone(),
            Out::Bool => Ty::bool(),
            Out::Uint => Ty("uint".into()),
            Out::Helper => {
                let zeros = vec![format!("({})0", ty.0); texts.len()].join(", ");
                Ty(format!("__typeof__({helper}({zeros}))"))
            }
        };
        Ok(Value { text: format!("{helper}({})", texts.join(", ")), ty: Some(result) })
    }

    fn call(&mut self, path: &Path, arguments: &[&Expr]) -> Result<Value> {
        let last = path.segments.last().expect("a path has a name");
        if !last.arguments.is_empty() {
            return refused(path, NO_PARAMETERS);
        }
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [ty @ ("f32" | "f64"), "from_bits"] = names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            let [bits] = arguments else { return refused(path, "from_bits takes one argument") };
            let (float, unsigned) = if ty == "f32" { ("float", "uint") } else { ("double", "ulong") };
            self.types.push(syn::parse_str(ty)?);
            let value = self.expression(bits, Some(&Ty(unsigned.into())))?;
            return Ok(Value { text: format!("as_{float}(({unsigned})({}))", value.text), ty: Some(Ty(float.into())) });
        }
        let of_scalar = names.len() >= 2 && Ty::scalar(&names[names.len() - 2]).is_some();
        let of_std = matches!(names[0].as_str(), "std" | "core");
        if of_scalar && last.ident == "from" {
            return refused(path, format!("devices have no `from`: write `x as {}`", names[names.len() - 2]));
        }
        if (of_scalar && names.len() == 2) || of_std {
            return refused(path, format!("call it as a method, such as x.{}(...)", last.ident));
        }
        if path.get_ident().is_some() && path.get_ident() == self.name.as_ref() {
            return refused(path, "a device has no recursion: write a loop");
        }
        let wanted: Vec<(&Expr, Option<Ty>)> = arguments.iter().map(|argument| (*argument, None)).collect();
        let values = self.values(&wanted)?;
        let mut texts = Vec::new();
        for (value, argument) in values.into_iter().zip(arguments) {
            // C converts a literal to the parameter's type.
            texts.push(match value.ty {
                Some(_) => value.text,
                None => self.untyped(argument)?,
            });
        }
        let tokens = quote::quote!(#path).to_string();
        let known = self.functions.iter().position(|path| quote::quote!(#path).to_string() == tokens);
        let index = known.unwrap_or_else(|| {
            self.functions.push(path.clone());
            self.functions.len() - 1
        });
        let text = format!("@f{index}@({})", texts.join(", "));
        Ok(Value { text, ty: Some(Ty(format!("@f{index}@_r"))) })
    }

    /// An index, as an unsigned number.
    fn index(&mut self, index: &Expr) -> Result<String> {
        let index = unparenthesised(index);
        if let Expr::Cast(cast) = index {
            let target = &cast.ty;
            if quote::quote!(#target).to_string() == "usize" {
                let value = self.expression(&cast.expr, None)?;
                let value = if value.ty.is_some() { value } else { self.typed_literal(&cast.expr, "ulong")? };
                let name = self.helper("to_ulong");
                return Ok(format!("{name}({})", value.text));
            }
        }
        let value = self.expression(index, Some(&Ty("ulong".into())))?;
        if value.ty != Some(Ty("ulong".into())) {
            return refused(index, "an index is a usize: write x[i as usize]");
        }
        Ok(value.text)
    }

    fn struct_literal(&mut self, literal: &ExprStruct) -> Result<Value> {
        if let Some(rest) = &literal.rest {
            return refused(rest, "write every field: `..` is not in the subset");
        }
        let ty = Type::Path(syn::TypePath { attrs: Vec::new(), qself: None, path: literal.path.clone() });
        let c = self.ty(&ty)?;
        let mut fields = Vec::new();
        for field in &literal.fields {
            let name = match &field.member {
                Member::Named(name) => field_name(name),
                Member::Unnamed(index) => format!("f_{}", index.index),
            };
            let of = c.field(&name);
            fields.push((name, of, &field.expr));
        }
        let wanted: Vec<(&Expr, Option<Ty>)> = fields.iter().map(|(_, of, value)| (*value, Some(of.clone()))).collect();
        let values = self.values(&wanted)?;
        let texts = fields.iter().zip(values).map(|((name, ..), value)| format!(".{name} = {}", value.text));
        let text = format!("({}){{ {} }}", c.0, texts.collect::<Vec<_>>().join(", "));
        Ok(Value { text, ty: Some(c) })
    }

    fn path(&mut self, path: &ExprPath) -> Result<Value> {
        let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [_] = &names[..] {
            let name = path.path.get_ident().expect("one name");
            let Some((text, ty)) = self.find(name).cloned() else {
                // Only functions have names.
                let advice = match self.name {
                    Some(_) => "constants and statics are not in the subset, so write the value",
                    None => {
                        "name what the closure captures, as in map!(move |x: f32| scale * x, scale: f32); \
                         a constant needs a variable, as in `let scale = SCALE`"
                    }
                };
                return refused(path, format!("`{name}` is not a variable here: {advice}"));
            };
            return Ok(Value { text, ty: Some(ty) });
        }
        let [ty, constant] = &names[..] else { return refused(path, "this path is not in the subset") };
        let Some((_, c, bits)) = SCALARS.iter().find(|(rust, ..)| rust == ty) else {
            return refused(path, "constants of types other than numbers are not in the subset: write the value");
        };
        let float = matches!(*c, "float" | "double");
        let unsigned = c.starts_with('u');
        let of_bits = |single: u32, double: u64| match *bits {
            32 => format!("as_float({single:#x}u)"),
            _ => format!("as_double({double:#x}ul)"),
        };
        let text = match (constant.as_str(), float) {
            ("BITS", false) => return Ok(Value { text: format!("{bits}u"), ty: Some(Ty("uint".into())) }),
            ("MAX", false) if unsigned => format!("({c}){:#x}ul", u64::MAX >> (64 - bits)),
            ("MAX", false) => format!("({c}){:#x}l", u64::MAX >> (65 - bits)),
            ("MIN", false) if unsigned => format!("({c})0"),
            ("MIN", false) => format!("({c})(-{:#x}l - 1)", u64::MAX >> (65 - bits)),
            ("MAX", true) => of_bits(f32::MAX.to_bits(), f64::MAX.to_bits()),
            ("MIN", true) => of_bits(f32::MIN.to_bits(), f64::MIN.to_bits()),
            ("INFINITY", true) => of_bits(f32::INFINITY.to_bits(), f64::INFINITY.to_bits()),
            ("NEG_INFINITY", true) => of_bits(f32::NEG_INFINITY.to_bits(), f64::NEG_INFINITY.to_bits()),
            ("NAN", true) => of_bits(f32::NAN.to_bits(), f64::NAN.to_bits()),
            ("EPSILON", true) => of_bits(f32::EPSILON.to_bits(), f64::EPSILON.to_bits()),
            ("MIN_POSITIVE", true) => of_bits(f32::MIN_POSITIVE.to_bits(), f64::MIN_POSITIVE.to_bits()),
            _ => return refused(path, format!("the constant {ty}::{constant} is not in the subset: write its value")),
        };
        self.types.push(syn::parse_str(ty)?);
        Ok(Value { text: format!("({text})"), ty: Some(Ty((*c).into())) })
    }

    fn literal(&mut self, literal: &ExprLit, negative: bool, expected: Option<&Ty>) -> Result<Value> {
        let of = |ty: Ty, digits: &str, float: bool| -> Result<Value> {
            // In patterns the sign is a part of the literal.
            let (negative, digits) = match digits.strip_prefix('-') {
                Some(digits) => (!negative, digits),
                None => (negative, digits),
            };
            let sign = if negative { "-" } else { "" };
            let text = match ty.0.as_str() {
                "float" => single(&format!("{sign}{digits}"), literal)?,
                "double" => double(&format!("{sign}{digits}"), literal)?,
                // The type is not known here, such as a field's. OCLP_FLOAT picks f32 or f64 by its size.
                c if ty.is_float().is_none() && float => {
                    let number = format!("{sign}{digits}");
                    let (f, d) = (single(&number, literal)?, double(&number, literal)?);
                    format!("OCLP_FLOAT({c}, {f}, {d})")
                }
                "bool" => return refused(literal, "a bool is true or false"),
                c => {
                    let Ok(value) = digits.parse::<u64>() else {
                        return refused(literal, "this number is too large");
                    };
                    let value = if negative { value.wrapping_neg() } else { value };
                    format!("(({c}){value:#x}ul)")
                }
            };
            Ok(Value { text, ty: Some(ty) })
        };
        match &literal.lit {
            Lit::Bool(value) if !negative => {
                Ok(Value { text: format!("(bool){}", u8::from(value.value)), ty: Some(Ty::bool()) })
            }
            Lit::Int(number) => {
                let ty = match number.suffix() {
                    "" => expected.cloned(),
                    suffix => match Ty::scalar(suffix) {
                        Some(ty) => {
                            self.types.push(syn::parse_str(suffix)?);
                            Some(ty)
                        }
                        None if suffix == "usize" => Some(Ty("ulong".into())),
                        None => return refused(literal, format!("devices have no type `{suffix}`: {TYPES}")),
                    },
                };
                match ty {
                    Some(ty) if ty.is_float() == Some(true) && number.suffix().is_empty() => {
                        refused(literal, format!("a float is written with a point: {}.0", number.base10_digits()))
                    }
                    Some(ty) => of(ty, number.base10_digits(), false),
                    None => Ok(Value { text: String::new(), ty: None }),
                }
            }
            Lit::Float(number) => {
                let ty = match number.suffix() {
                    "" => expected.cloned(),
                    suffix => {
                        self.types.push(syn::parse_str(suffix)?);
                        Ty::scalar(suffix)
                    }
                };
                match ty {
                    Some(ty) => of(ty, number.base10_digits(), true),
                    None => Ok(Value { text: String::new(), ty: None }),
                }
            }
            Lit::Byte(byte) if !negative => {
                Ok(Value { text: format!("((uchar){})", byte.value()), ty: Ty::scalar("u8") })
            }
            _ => refused(literal, "a device has numbers and bools, no text"),
        }
    }

    /// The value of a literal without a type, which `as` converts to the type `to`.
    fn typed_literal(&mut self, expression: &Expr, to: &str) -> Result<Value> {
        let target = Ty(to.into());
        let whole = is_whole(expression);
        let ty = match (whole, target.is_float()) {
            (true, Some(false)) if to != "bool" => target,
            (true, _) => Ty("int".into()),
            (false, Some(true)) => target,
            (false, _) => {
                self.types.push(syn::parse_str("f64")?);
                Ty("double".into())
            }
        };
        self.expression(expression, Some(&ty))
    }

    /// A literal argument, which C converts.
    fn untyped(&mut self, expression: &Expr) -> Result<String> {
        if is_whole(expression) {
            Ok(self.expression(expression, Some(&Ty("long".into())))?.text)
        } else {
            refused(expression, "write the type of this number, as in 1.0f32")
        }
    }
}

/// The variable to which a value is assigned.
struct Place {
    name: String,
    ty: Option<Ty>,
}

/// Returns true if the last expression of a block is a statement: it has no value, or none is wanted.
fn is_statement(expression: &Expr, wanted: bool) -> bool {
    match expression {
        Expr::Assign(_) | Expr::While(_) | Expr::ForLoop(_) | Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => {
            true
        }
        Expr::Loop(_) => true,
        Expr::Binary(binary) => assigns(&binary.op),
        Expr::If(branch) => branch.else_branch.is_none() || !wanted,
        Expr::Match(_) | Expr::Block(_) => !wanted,
        _ => false,
    }
}

fn unparenthesised(mut expression: &Expr) -> &Expr {
    loop {
        expression = match expression {
            Expr::Paren(inner) => &inner.expr,
            Expr::Group(inner) => &inner.expr,
            _ => return expression,
        };
    }
}

/// Returns true for a literal without a point or an exponent, such as `1`. It also returns true for an operation whose
/// leftmost operand is such a literal, such as `-1` and `1 + x`.
fn is_whole(expression: &Expr) -> bool {
    match unparenthesised(expression) {
        Expr::Lit(ExprLit { lit: Lit::Int(_), .. }) => true,
        Expr::Unary(unary) => is_whole(&unary.expr),
        Expr::Binary(binary) => is_whole(&binary.left),
        _ => false,
    }
}

fn single(number: &str, at: &ExprLit) -> Result<String> {
    let value: f32 = number.parse().map_err(|_| syn::Error::new(at.span(), "this is not an f32"))?;
    Ok(format!("as_float({:#x}u)", value.to_bits()))
}

fn double(number: &str, at: &ExprLit) -> Result<String> {
    let value: f64 = number.parse().map_err(|_| syn::Error::new(at.span(), "this is not an f64"))?;
    Ok(format!("as_double({:#x}ul)", value.to_bits()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lowered(function: &str) -> Result<String> {
        lower(&syn::parse_str(function)?).map(|lowered| lowered.text)
    }

    #[test]
    fn a_function_lowers_to_the_expected_text() {
        let text =
            lowered("fn f(a: u32, b: u32) -> u32 { let mut x = a + b; x <<= 3; if x > 5 { x } else { b } }").unwrap();
        let want = "typedef uint @self@_r;\n\
            static inline @self@_r @self@(uint v1_a, uint v2_b)\n{\n\
            uint v3_x = oclp_add(v1_a, v2_b);\n\
            v3_x = oclp_shl(v3_x, (uint)(((uint)0x3ul)));\n\
            uint v4_value;\n\
            if ((bool)(v3_x > ((uint)0x5ul))) {\nv4_value = v3_x;\n} else {\nv4_value = v2_b;\n}\n\
            return v4_value;\n}\n";
        assert_eq!(text, want);
    }

    #[test]
    fn what_a_later_operand_writes_does_not_change_an_earlier_one() {
        let text = lowered("fn f(a: u32) -> u32 { let mut x = a; x + { x = 2; x } }").unwrap();
        assert!(text.contains("const uint v4_kept = v2_x;"), "{text}");
        let text = lowered("fn f(a: u32) -> u32 { let mut x = a; x << { x = 2; 1 } }").unwrap();
        assert!(text.contains("const uint v4_kept = v2_x;"), "{text}");
    }

    #[test]
    fn what_is_outside_the_subset_is_refused() {
        for (function, message) in [
            ("fn f(a: u32) {}", "returns a value"),
            ("fn f<T>(a: T) -> T { a }", "no type or lifetime parameters"),
            ("unsafe fn f(a: u32) -> u32 { a }", "is not `unsafe`"),
            ("fn f(a: &u32) -> u32 { *a }", "take the value"),
            ("fn f(a: (u32, u32)) -> u32 { 1 }", "no equivalent in OpenCL C"),
            ("fn f(a: usize) -> u32 { 0 }", "write u64 or u32"),
            ("fn f(a: u128) -> u32 { 0 }", "`u128` has no equivalent"),
            ("fn f((a, b): Pair) -> u32 { a }", "read its fields in the body"),
            ("fn f(a: u32) -> u32 { let x = 0; a }", "the type of this number is not determined"),
            ("fn f(a: u32) -> u32 { let (x, y) = a; x }", "write a `let` for each variable"),
            ("fn f(a: u32) -> u32 { panic!() }", "no macros"),
            ("fn f(a: u32) -> u32 { a.pow(2) }", "devices have no method `pow`"),
            ("fn f(a: u32) -> u32 { a.min(1, 2) }", "takes 1 argument besides"),
            ("fn f(a: f32) -> f32 { a + 1 }", "written with a point: 1.0"),
            ("fn f(a: f32) -> f32 { match a { _ => a } }", "compare floats by if"),
            ("fn f(a: u32) -> u32 { match a { 1 if a > 0 => 2, _ => 3 } }", "guards"),
            ("fn f(a: u32) -> u32 { for i in 0..3 { } a }", "as in 0..3u32"),
            ("fn f(a: u32) -> u32 { for i in a { } a }", "both ends"),
            ("fn f(a: u32) -> u32 { 'x: loop { break 'x; } a }", "labels"),
            ("fn f(a: u32) -> u32 { LIMIT + a }", "constants and statics"),
            ("fn f(a: u32) -> u32 { u32::max(a, 1) }", "call it as a method, such as x.max(...)"),
            ("fn f(a: u16) -> u32 { u32::from(a) }", "write `x as u32`"),
            ("fn f(a: u16) -> u64 { std::primitive::u64::from(a) }", "write `x as u64`"),
            ("fn f(a: u32) -> u32 { (|x: u32| x)(a) }", "only functions with #[device]"),
            ("fn f(a: u32) -> u32 { let x = [a, a]; a }", "an array literal is only allowed"),
            ("fn f(a: u32) -> u32 { if let x = a { a } else { a } }", "if let"),
            ("fn f(a: P) -> P { P { x: 1, ..a } }", "write every field"),
            ("fn f(a: u32) -> u32 { g(1.5); a }", "write the type of this number"),
            ("fn f(a: u32) -> u32 { a? }", "a device has no errors"),
            ("fn f(a: u32) -> u32 { f(a) }", "no recursion"),
            ("fn f(a: u32) -> u32 { std::cmp::max(a, 1) }", "call it as a method"),
            ("fn f(a: &P) -> u32 { a.x }", "take the value"),
            ("fn f(a: u32) -> u32 { #[cfg(x)] { return 1; } a }", "write two functions"),
            ("fn f(a: u32) -> u32 { let ref mut x = a; x }", "no `ref`"),
            ("fn f(a: P) -> P { let mut x = a; x.k[{ x.n = 1; 0usize }] = 2; x }", "in a statement before this one"),
            ("fn f(a: P) -> u32 { a.x[a.n] }", "write x[i as usize]"),
            ("fn f(a: u32) -> u32 { const N: u32 = 4; a }", "write `let`"),
        ] {
            let error = lowered(function).expect_err(function).to_string();
            assert!(error.contains(message), "{function}: {error}");
        }
    }

    #[test]
    fn numbers_have_the_bits_that_rust_gives_them() {
        for (body, want) in [
            ("a + 0.1", "as_float(0x3dcccccdu)"),
            ("a * -0.0", "as_float(0x80000000u)"),
            ("a * f32::MAX", "as_float(0x7f7fffffu)"),
            ("a + 1e39", "as_float(0x7f800000u)"),
            ("(i64::MIN as f32) + a", "((long)(-0x7fffffffffffffffl - 1))"),
            ("(-1i8 as f32) + a", "((char)0xfffffffffffffffful)"),
        ] {
            let text = lowered(&format!("fn f(a: f32) -> f32 {{ {body} }}")).unwrap();
            assert!(text.contains(want), "{body}: {text}");
        }
    }
}
