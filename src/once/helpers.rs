//! The helpers that translated functions call, in OpenCL C: one overload for each type. [`twin`](super::twin) has the
//! same helpers in Rust.

use std::collections::BTreeSet;

/// An integer type: its name, the unsigned type of its size, the type in which its sums wrap, and its bit count.
const INTEGERS: [(&str, &str, &str, u32); 8] = [
    ("char", "uchar", "uint", 8),
    ("short", "ushort", "uint", 16),
    ("int", "uint", "uint", 32),
    ("long", "ulong", "ulong", 64),
    ("uchar", "uchar", "uint", 8),
    ("ushort", "ushort", "uint", 16),
    ("uint", "uint", "uint", 32),
    ("ulong", "ulong", "ulong", 64),
];

/// A float type, the unsigned type of its size, and the bits of its sign and of infinity.
const FLOATS: [(&str, &str, &str, &str); 2] = [
    ("float", "uint", "0x80000000u", "0x7f800000u"),
    ("double", "ulong", "0x8000000000000000ul", "0x7ff0000000000000ul"),
];

/// `OCLP_FLOAT` is a number of type `type`, which is `float` or `double`. `OCLP_AT` is element `i` of an array; an
/// index out of range takes element 0.
const HEAD: &str = "#ifndef OCLP_FLOAT\n\
    #ifdef HAS_FP64\n\
    #define OCLP_FLOAT(type, single, twice) ((type)(sizeof(type) == 4 ? (single) : (twice)))\n\
    #else\n\
    #define OCLP_FLOAT(type, single, twice) ((type)(single))\n\
    #endif\n\
    #define OCLP_AT(array, i) (array).x[(i) < sizeof((array).x) / sizeof((array).x[0]) ? (i) : 0]\n\
    #define OCLP_OVERLOADED static inline __attribute__((overloadable))\n\
    #endif\n";

/// The text of the named helpers, each once in a program.
pub(super) fn text<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = HEAD.to_owned();
    for name in names.collect::<BTreeSet<_>>() {
        text += &format!("#ifndef oclp_{name}_is_there\n#define oclp_{name}_is_there\n#line 1 \"{name}\"\n");
        text += &one(name);
        text += "#endif\n";
    }
    text
}

/// The quotient of two 8-bit integers, truncated. Devices need not round a float quotient correctly, so 0.5 is added
/// to the dividend: the quotient is then never close to a whole number.
fn quotient_of_bytes() -> &'static str {
    "(((a < 0) == (b < 0) ? 1 : -1) * (int)(((float)(a < 0 ? -a : a) + 0.5f) / (float)(b < 0 ? -b : b)))"
}

/// All overloads of a helper.
fn one(name: &str) -> String {
    let mut text = String::new();
    let mut define = |ty: &str, result: &str, parameters: &[(&str, &str)], body: &str| {
        let parameters: Vec<String> = parameters.iter().map(|(ty, name)| format!("{ty} {name}")).collect();
        let one = format!("OCLP_OVERLOADED {result} oclp_{name}({}) {{ {body} }}\n", parameters.join(", "));
        text += &if ty == "double" { format!("#ifdef HAS_FP64\n{one}#endif\n") } else { one };
    };
    if let Some(to) = name.strip_prefix("to_").filter(|to| *to != "bits") {
        for ty in ["bool"].into_iter().chain(INTEGERS.map(|(ty, ..)| ty)).chain(["float", "double"]) {
            let body = match (ty, to) {
                ("float" | "double", "float" | "double") => format!("return ({to})a;"),
                ("float" | "double", "bool") => continue,
                // Mesa 25 crashes if it converts a float to an 8-bit integer, or divides 8-bit integers.
                ("float" | "double", "char") => {
                    "return a != a ? (char)0 : (char)clamp(convert_int_sat_rtz(a), -128, 127);".into()
                }
                ("float" | "double", "uchar") => {
                    "return a != a ? (uchar)0 : (uchar)clamp(convert_int_sat_rtz(a), 0, 255);".into()
                }
                ("float" | "double", _) => format!("return a != a ? ({to})0 : convert_{to}_sat_rtz(a);"),
                ("bool", _) | (_, "bool") => format!("return ({to})a;"),
                (_, "float" | "double") => format!("return convert_{to}_rte(a);"),
                _ => format!("return ({to})a;"),
            };
            // `define` guards an overload for `double`, so it gets `double` if either type is one.
            define(if to == "double" { to } else { ty }, to, &[(ty, "a")], &body);
        }
        return text;
    }
    for (ty, unsigned, wide, bits) in INTEGERS {
        let signed = ty != unsigned;
        let (one, two) = (&[(ty, "a")][..], &[(ty, "a"), (ty, "b")][..]);
        let shift = &[(ty, "a"), ("uint", "n")][..];
        let mask = bits - 1;
        let rotated = |left: &str, right: &str| {
            format!(
                "n &= {mask}; return n == 0 ? a : ({ty})((({wide})({unsigned})a {left} n) | (({wide})({unsigned})a {right} ({bits} - n)));"
            )
        };
        match name {
            "add" => define(ty, ty, two, &format!("return ({ty})(({wide})a + ({wide})b);")),
            "sub" => define(ty, ty, two, &format!("return ({ty})(({wide})a - ({wide})b);")),
            "mul" => define(ty, ty, two, &format!("return ({ty})(({wide})a * ({wide})b);")),
            "div" if bits == 8 => {
                define(ty, ty, two, &format!("return b == 0 ? ({ty})0 : ({ty})({});", quotient_of_bytes()));
            }
            "rem" if bits == 8 => {
                define(ty, ty, two, &format!("return b == 0 ? a : ({ty})(a - b * {});", quotient_of_bytes()));
            }
            "div" if signed => define(
                ty,
                ty,
                two,
                &format!("return b == 0 ? ({ty})0 : b == -1 ? ({ty})(({wide})0 - ({wide})a) : ({ty})(a / b);"),
            ),
            "div" => define(ty, ty, two, &format!("return b == 0 ? ({ty})0 : ({ty})(a / b);")),
            "rem" if signed => {
                define(ty, ty, two, &format!("return b == 0 ? a : b == -1 ? ({ty})0 : ({ty})(a % b);"));
            }
            "rem" => define(ty, ty, two, &format!("return b == 0 ? a : ({ty})(a % b);")),
            "neg" => define(ty, ty, one, &format!("return ({ty})(({wide})0 - ({wide})a);")),
            "abs" => define(ty, ty, one, &format!("return a < 0 ? ({ty})(({wide})0 - ({wide})a) : a;")),
            "unsigned_abs" => {
                define(ty, unsigned, one, &format!("return ({unsigned})(a < 0 ? ({wide})0 - ({wide})a : ({wide})a);"));
            }
            "abs_diff" => define(
                ty,
                unsigned,
                two,
                &format!("return ({unsigned})(a < b ? ({wide})b - ({wide})a : ({wide})a - ({wide})b);"),
            ),
            "and" => define(ty, ty, two, &format!("return ({ty})(a & b);")),
            "or" => define(ty, ty, two, &format!("return ({ty})(a | b);")),
            "xor" => define(ty, ty, two, &format!("return ({ty})(a ^ b);")),
            "not" => define(ty, ty, one, &format!("return ({ty})~a;")),
            "shl" => define(ty, ty, shift, &format!("return ({ty})(({wide})a << (n & {mask}));")),
            "shr" => define(ty, ty, shift, &format!("return ({ty})(a >> (n & {mask}));")),
            "rotate_left" => define(ty, ty, shift, &rotated("<<", ">>")),
            "rotate_right" => define(ty, ty, shift, &rotated(">>", "<<")),
            "min" => define(ty, ty, two, "return b < a ? b : a;"),
            "max" => define(ty, ty, two, "return b > a ? b : a;"),
            "clamp" => {
                define(ty, ty, &[(ty, "a"), (ty, "low"), (ty, "high")], "return a < low ? low : a > high ? high : a;")
            }
            "signum" => define(ty, ty, one, &format!("return ({ty})((a > 0) - (a < 0));")),
            "saturating_add" => define(ty, ty, two, "return add_sat(a, b);"),
            "saturating_sub" => define(ty, ty, two, "return sub_sat(a, b);"),
            "count_ones" => define(ty, "uint", one, &format!("return (uint)popcount(({unsigned})a);")),
            "leading_zeros" => define(ty, "uint", one, &format!("return (uint)clz(({unsigned})a);")),
            "trailing_zeros" => {
                define(ty, "uint", one, &format!("return (uint)popcount(({unsigned})(~({wide})a & (({wide})a - 1)));"));
            }
            "swap_bytes" => {
                let bytes = bits / 8;
                let parts: Vec<String> = (0..bytes)
                    .map(|byte| {
                        format!("((({wide})({unsigned})a >> {} & 255) << {})", 8 * byte, 8 * (bytes - 1 - byte))
                    })
                    .collect();
                define(ty, ty, one, &format!("return ({ty})({});", parts.join(" | ")));
            }
            _ => {}
        }
    }
    let (one, two) = (&[("bool", "a")][..], &[("bool", "a"), ("bool", "b")][..]);
    match name {
        "and" => define("bool", "bool", two, "return a && b;"),
        "or" => define("bool", "bool", two, "return a || b;"),
        "xor" => define("bool", "bool", two, "return a != b;"),
        "not" => define("bool", "bool", one, "return !a;"),
        _ => {}
    }
    for (ty, bits, sign, infinity) in FLOATS {
        let (one, two) = (&[(ty, "a")][..], &[(ty, "a"), (ty, "b")][..]);
        let three = |names: [&'static str; 3]| names.map(|name| (ty, name));
        match name {
            "add" => define(ty, ty, two, "return a + b;"),
            "sub" => define(ty, ty, two, "return a - b;"),
            "mul" => define(ty, ty, two, "return a * b;"),
            // OpenCL C rounds a quotient of doubles correctly. If both are floats, the quotient rounded to
            // `float` is the nearest float.
            "div" if ty == "float" => define(
                ty,
                ty,
                two,
                "\n#ifdef HAS_FP64\nreturn (float)((double)a / (double)b);\n#else\nreturn a / b;\n#endif\n",
            ),
            "div" => define(ty, ty, two, "return a / b;"),
            // Intel's runtime for CPUs returns `a` for some small `a` and `b` of equal magnitude.
            "rem" => define(
                ty,
                ty,
                two,
                &format!(
                    "{bits} size = as_{bits}(a) & ~{sign}; return size == (as_{bits}(b) & ~{sign}) && size != 0 && \
                     size < {infinity} ? as_{ty}(as_{bits}(a) & {sign}) : fmod(a, b);"
                ),
            ),
            "neg" => define(ty, ty, one, &format!("return as_{ty}(as_{bits}(a) ^ {sign});")),
            "abs" => define(ty, ty, one, &format!("return as_{ty}(as_{bits}(a) & ~{sign});")),
            "min" => define(
                ty,
                ty,
                two,
                &format!(
                    "return a < b ? a : b < a ? b : a == b ? as_{ty}(as_{bits}(a) | as_{bits}(b)) : a != a ? b : a;"
                ),
            ),
            "max" => define(
                ty,
                ty,
                two,
                &format!(
                    "return a > b ? a : b > a ? b : a == b ? as_{ty}(as_{bits}(a) & as_{bits}(b)) : a != a ? b : a;"
                ),
            ),
            "clamp" => {
                define(ty, ty, &three(["a", "low", "high"]), "return a < low ? low : a > high ? high : a;");
            }
            "signum" => define(
                ty,
                ty,
                one,
                &format!("return a != a ? a : as_{ty}((as_{bits}(a) & {sign}) | as_{bits}(({ty})1));"),
            ),
            "copysign" => {
                define(ty, ty, two, &format!("return as_{ty}((as_{bits}(a) & ~{sign}) | (as_{bits}(b) & {sign}));"));
            }
            "is_nan" => define(ty, "bool", one, &format!("return (as_{bits}(a) & ~{sign}) > {infinity};")),
            "is_finite" => define(ty, "bool", one, &format!("return (as_{bits}(a) & ~{sign}) < {infinity};")),
            "is_infinite" => define(ty, "bool", one, &format!("return (as_{bits}(a) & ~{sign}) == {infinity};")),
            "is_sign_negative" => define(ty, "bool", one, &format!("return (as_{bits}(a) & {sign}) != 0;")),
            "is_sign_positive" => define(ty, "bool", one, &format!("return (as_{bits}(a) & {sign}) == 0;")),
            "to_bits" => define(ty, bits, one, &format!("return as_{bits}(a);")),
            "mul_add" => define(ty, ty, &three(["a", "b", "c"]), "return fma(a, b, c);"),
            "sqrt" if ty == "float" => {
                define(
                    ty,
                    ty,
                    one,
                    "\n#ifdef HAS_FP64\nreturn (float)sqrt((double)a);\n#else\nreturn sqrt(a);\n#endif\n",
                );
            }
            "sqrt" => define(ty, ty, one, "return sqrt(a);"),
            "floor" => define(ty, ty, one, "return floor(a);"),
            "ceil" => define(ty, ty, one, "return ceil(a);"),
            "trunc" => define(ty, ty, one, "return trunc(a);"),
            "round_ties_even" => define(ty, ty, one, "return rint(a);"),
            _ => {}
        }
    }
    text
}
