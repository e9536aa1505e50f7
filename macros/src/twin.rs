//! The Rust side: the user's function, with the arithmetic that devices have.

use quote::{format_ident, quote_spanned};
use syn::{
    BinOp, Expr, Lit, UnOp,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

use crate::lower::{assigns, operator};

/// Replaces operators and methods whose results depend on the build profile or differ from OpenCL C. Integers wrap, an
/// integer divided by zero is 0, and shift counts are modulo the number of bits. min and max have the same bits
/// everywhere.
pub(crate) struct Twin;

/// Methods, each with the function of `oclprim::once` that replaces it.
const REPLACED: [(&str, &str); 6] = [
    ("abs", "abs"),
    ("min", "min"),
    ("max", "max"),
    ("clamp", "clamp"),
    ("wrapping_div", "div"),
    ("wrapping_rem", "rem"),
];

/// Comparisons become functions of scalars, too, so that rustc rejects comparisons of structs.
fn comparison(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Eq(_) => "eq",
        BinOp::Ne(_) => "ne",
        BinOp::Lt(_) => "lt",
        BinOp::Le(_) => "le",
        BinOp::Gt(_) => "gt",
        BinOp::Ge(_) => "ge",
        _ => return None,
    })
}

impl VisitMut for Twin {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        let at = expression.span();
        let new = match expression {
            Expr::Binary(binary) => {
                let Some(name) = operator(&binary.op).or(comparison(&binary.op)) else { return };
                let (name, left, right) = (format_ident!("{name}", span = at), &binary.left, &binary.right);
                if assigns(&binary.op) {
                    // The right side first, as in Rust.
                    let value = syn::Ident::new("right", proc_macro2::Span::mixed_site());
                    quote_spanned!(at=> {
                        let #value = #right;
                        #left = ::oclprim::once::#name(#left, #value);
                    })
                } else {
                    quote_spanned!(at=> ::oclprim::once::#name(#left, #right))
                }
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
                // A literal keeps its sign: the positive part of -2147483648 alone does not fit an i32.
                let mut inner = &*unary.expr;
                while let Expr::Group(group) = inner {
                    inner = &group.expr;
                }
                if matches!(inner, Expr::Lit(literal) if matches!(literal.lit, Lit::Int(_) | Lit::Float(_))) {
                    return;
                }
                let value = &unary.expr;
                quote_spanned!(at=> ::oclprim::once::neg(#value))
            }
            Expr::MethodCall(call) => {
                let method = call.method.to_string();
                let Some((_, name)) = REPLACED.iter().find(|(from, _)| *from == method) else { return };
                let (name, receiver, arguments) =
                    (format_ident!("{name}", span = at), &call.receiver, call.args.iter());
                quote_spanned!(at=> ::oclprim::once::#name(#receiver #(, #arguments)*))
            }
            _ => return,
        };
        *expression = Expr::Verbatim(new);
    }
}
