//! The text by which a kernel computes the elements of a source.
//!
//! The text replaces the line `#include "lib/source.cl"` of a kernel file. `lib/source.cl` is the text for an input in
//! memory, and has the same interface. The text declares the kernel's first parameters as `SOURCE_PARAMS`, and defines
//! `source_at`, the element at an index, and `load_source`, 16 bytes of elements. Memory, lengths, strides and captured
//! values are arguments, so the text does not depend on their values.

use std::{any::TypeId, fmt};

use bytemuck::Pod;

use super::{Expression, Item, Source, nodes::ENDLESS};
use crate::{
    Element, ElementType, Error, Input, Result,
    counted::{ClCount, Count},
    op::{MapText, argument_names},
    runtime::{
        AnyInput, Capabilities, ClInput, Identity, ProgramSpec,
        opencl::{ClDevice, Launch},
    },
    tuning::unit_type,
};

/// Returns the nearest f16, ties to even.
const TO_F16: &str = "static inline ushort source_to_f16(const float x)\n{\n    ushort bits;\n    \
    vstore_half_rte(x, 0, (half*)&bits);\n    return bits;\n}\n";

/// The order of a shuffled source.
const SHUFFLE: &str = kernel_text!("lib/shuffle.cl");

/// The type of a value in the text.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Element(ElementType),
    Struct(Struct),
}

/// A struct in OpenCL C.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    pub(crate) name: String,
    /// Text that defines the struct, and that a program may contain several times.
    pub(crate) definition: String,
    pub(crate) size: usize,
    pub(crate) needs_fp64: bool,
}

impl Struct {
    /// A struct that a device only copies. Its alignment is that of `T`.
    fn opaque<T>() -> Result<Self> {
        let size = size_of::<T>();
        if size == 0 {
            return Err(Error::unsupported("a device computes no elements of 0 bytes"));
        }
        let unit = align_of::<T>().min(8);
        let (count, name) = (size / unit, format!("source_bytes_{unit}_{size}"));
        let definition = format!(
            "#ifndef {name}_is_there\n#define {name}_is_there\ntypedef struct {{ {} x[{count}]; }} {name};\n#endif\n",
            unit_type(unit)
        );
        Ok(Self { name, definition, size, needs_fp64: false })
    }
}

impl Type {
    /// The type's name in OpenCL C; for `f16` and `bf16`, that of the integer type that holds their bits.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Element(element) => element.storage(),
            Self::Struct(of) => &of.name,
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Element(element) => element.size(),
            Self::Struct(of) => of.size,
        }
    }

    fn needs_fp64(&self) -> bool {
        match self {
            Self::Element(element) => element.needs_fp64(),
            Self::Struct(of) => of.needs_fp64,
        }
    }

    /// Elements that a kernel computes together.
    pub(super) fn per_vector(&self) -> usize {
        match self {
            Self::Element(element) => 16 / element.size(),
            Self::Struct(_) => 1,
        }
    }
}

impl From<ElementType> for Type {
    fn from(element: ElementType) -> Self {
        Self::Element(element)
    }
}

/// The type and the name of a value in the text.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Component {
    name: String,
    ty: Type,
    /// The argument of the memory and the type of its elements, if the value is element `i` of memory, unchanged or in
    /// a wider type.
    memory: Option<(usize, ElementType)>,
    /// The factors, if the value is a product at index `i`.
    factors: Option<Factors>,
    /// The function `f`, if the value is `f(e)` for a component `e` with `memory`, and `f` captures nothing.
    mapped: Option<Mapped>,
}

/// The names of a product's factors, and the length of the text that computes them.
#[derive(Clone, Debug)]
struct Factors {
    names: [String; 2],
    end: usize,
}

/// A function of elements in memory: the argument and type of the memory, and the text that defines `mapped`. Kernels
/// that load the memory themselves call `mapped`.
#[derive(Clone, Debug)]
struct Mapped {
    argument: usize,
    from: ElementType,
    prelude: String,
}

impl Component {
    /// The type of a value that is cast or multiplied.
    fn element(&self) -> ElementType {
        match &self.ty {
            Type::Element(element) => *element,
            Type::Struct(of) => unreachable!("{} is only read, copied or passed to a function", of.name),
        }
    }
}

/// The index of an element in the text.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Index {
    /// `i`, the index that the kernel passes to the functions of the text.
    Own,
    /// A variable.
    Variable(String),
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "(ulong)i",
            Self::Variable(name) => name,
        })
    }
}

/// An argument of a kernel.
enum Argument {
    Memory(ClInput),
    /// The word that a kernel sets if an index is out of range.
    Outside,
    Scalar(Vec<u8>),
}

/// Memory that the text reads at index `i`.
struct Direct {
    element: ElementType,
    /// The number in the names of pointer and offset.
    number: usize,
    aligned: bool,
}

/// Memory among the parameters of the text. Arrays that occur several times share their parameters.
struct Declared {
    identity: Identity,
    ty: Type,
    /// The number in the names of pointer and offset.
    number: usize,
    /// The index of the argument; `None` without a device.
    argument: Option<usize>,
    aligned: bool,
}

/// The text of a load while it is made.
#[doc(hidden)]
pub struct Text<'d> {
    /// `None` if only the program is wanted.
    device: Option<&'d ClDevice>,
    /// Without a device: whether all memory counts as aligned.
    aligned: bool,
    parameters: Vec<String>,
    names: Vec<String>,
    arguments: Vec<Argument>,
    declared: Vec<Declared>,
    direct: Vec<Direct>,
    functions: String,
    /// The texts that `functions` already contains: those of `Map::with_functions`, and definitions of structs.
    known: Vec<String>,
    /// The structs whose fields the functions read.
    structs: Vec<(TypeId, Type)>,
    body: String,
    variables: usize,
    needs_fp64: bool,
    outside: Option<ClInput>,
    has_no_element: bool,
    to_f16: bool,
    shuffles: bool,
}

impl<'d> Text<'d> {
    fn new(device: Option<&'d ClDevice>, aligned: bool) -> Self {
        Self {
            device,
            aligned,
            parameters: Vec::new(),
            names: Vec::new(),
            arguments: Vec::new(),
            declared: Vec::new(),
            direct: Vec::new(),
            functions: String::new(),
            known: Vec::new(),
            structs: Vec::new(),
            body: String::new(),
            variables: 0,
            needs_fp64: false,
            outside: None,
            has_no_element: false,
            to_f16: false,
            shuffles: false,
        }
    }

    fn unique(&mut self) -> usize {
        self.variables += 1;
        self.variables - 1
    }

    fn parameter(&mut self, declaration: String, name: String) {
        self.parameters.push(declaration);
        self.names.push(name);
    }

    /// Declares a parameter with the bytes of `value`, and returns its name.
    fn plain(&mut self, ty: &str, value: &[u8]) -> String {
        let name = format!("p{}", self.unique());
        self.parameter(format!("const {ty} {name}"), name.clone());
        self.arguments.push(Argument::Scalar(value.to_vec()));
        name
    }

    pub(super) fn scalar<T: Element>(&mut self, element: ElementType, value: T) -> String {
        self.needs_fp64 |= element.needs_fp64();
        self.plain(element.storage(), bytemuck::bytes_of(&value))
    }

    /// Declares a 64-bit parameter.
    pub(super) fn number(&mut self, value: usize) -> String {
        self.plain("ulong", &(value as u64).to_ne_bytes())
    }

    /// Declares the structs in the items that a function takes. Memory of these structs is then read in their types,
    /// not as bytes.
    pub(super) fn declare<I: Item>(&mut self) {
        I::components(&mut self.structs);
    }

    /// Defines a type, if it is a struct.
    fn define(&mut self, ty: &Type) {
        self.needs_fp64 |= ty.needs_fp64();
        if let Type::Struct(Struct { definition, .. }) = ty
            && !self.known.contains(definition)
        {
            self.functions += definition;
            self.known.push(definition.clone());
        }
    }

    /// A variable.
    pub(super) fn value(&mut self, ty: impl Into<Type>, text: &str) -> Component {
        let (name, ty) = (format!("v{}", self.unique()), ty.into());
        self.define(&ty);
        self.body += &format!("    const {} {name} = {text};\n", ty.name());
        Component { name, ty, memory: None, factors: None, mapped: None }
    }

    /// A variable for an index.
    pub(super) fn index(&mut self, text: &str) -> Index {
        let name = format!("i{}", self.unique());
        self.body += &format!("    const ulong {name} = {text};\n");
        Index::Variable(name)
    }

    /// The element of `input` at an index.
    pub(super) fn elements<T: Pod>(&mut self, input: Input<'_, T>, index: &Index) -> Result<Vec<Component>> {
        let known = |&&(of, _): &&(TypeId, Type)| of == TypeId::of::<T>();
        let ty = match (ElementType::of::<T>(), self.structs.iter().find(known)) {
            (Some(element), _) => element.into(),
            (None, Some((_, ty))) => ty.clone(),
            (None, None) => Type::Struct(Struct::opaque::<T>()?),
        };
        self.elements_of(ty, input.any(), index)
    }

    /// [`Self::elements`] of a type.
    pub(super) fn elements_of(&mut self, ty: Type, input: AnyInput<'_>, index: &Index) -> Result<Vec<Component>> {
        let (number, argument, aligned) = self.memory(&ty, input)?;
        Ok(vec![match (index, ty) {
            (Index::Own, Type::Element(element)) => {
                if self.direct.iter().all(|one| one.number != number) {
                    self.direct.push(Direct { element, number, aligned });
                }
                let memory = argument.map(|argument| (argument, element));
                Component { name: format!("d{number}"), ty: element.into(), memory, factors: None, mapped: None }
            }
            (at, ty) => self.value(ty, &format!("s{number}[o{number} + {at}]")),
        }])
    }

    /// The number of the parameters for memory of a type, its argument, and whether it is aligned.
    fn memory(&mut self, ty: &Type, input: AnyInput<'_>) -> Result<(usize, Option<usize>, bool)> {
        let identity = input.identity();
        let known = |known: &&Declared| Some(known.identity) == identity && known.ty == *ty;
        if let Some(known) = self.declared.iter().find(known) {
            return Ok((known.number, known.argument, known.aligned));
        }
        let memory = self.device.map(|device| input.cl(device)).transpose()?;
        let number = self.unique();
        self.define(ty);
        let aligned = memory.as_ref().map_or(self.aligned, ClInput::aligned);
        let argument = memory.map(|memory| {
            self.arguments.push(Argument::Memory(memory));
            self.arguments.len() - 1
        });
        self.parameter(format!("__global const {} *qualifier s{number}", ty.name()), format!("s{number}"));
        self.parameter(format!("const ulong o{number}"), format!("o{number}"));
        self.declared.extend(identity.map(|identity| Declared { identity, ty: ty.clone(), number, argument, aligned }));
        Ok((number, argument, aligned))
    }

    /// The index that a reversed source reads, `len - 1 - index`.
    pub(super) fn reversed(&mut self, index: &Index, len: usize) -> Index {
        let last = self.number(len.wrapping_sub(1));
        self.index(&format!("{last} - {index}"))
    }

    /// The index that a strided source reads, `step * index`.
    pub(super) fn strided(&mut self, index: &Index, step: usize) -> Index {
        let step = self.number(step);
        self.index(&format!("{step} * {index}"))
    }

    /// The index that a gather reads from its table: `index`, or 0 if `index` is not below the length of the table. A
    /// kernel that would gather from an empty table must not run.
    pub(super) fn gathered(
        &mut self,
        index: &Component,
        table: Result<Option<usize>>,
        indices: Result<Option<usize>>,
    ) -> Result<Index> {
        let len = table?.unwrap_or(ENDLESS);
        self.has_no_element |= len == 0 && indices? != Some(0);
        if let Some(device) = self.device
            && self.outside.is_none()
        {
            let word = ClInput::pooled(device, 4, 4)?;
            device.fill(word.mem(), 0, 4, &[0; 4])?;
            self.outside = Some(word);
        }
        if !self.names.iter().any(|name| name == "outside") {
            self.parameter("volatile __global uint *outside".into(), "outside".into());
            self.arguments.push(Argument::Outside);
        }
        let (len, at) = (self.number(len), format!("i{}", self.unique()));
        let name = &index.name;
        self.body += &format!(
            "    ulong {at} = (ulong){name};\n    if ({at} >= {len}) {{\n        {at} = 0;\n        \
             atomic_xchg(outside, 1u);\n    }}\n"
        );
        Ok(Index::Variable(at))
    }

    /// The index that a shuffle of `n` elements reads; `bits` bits hold the indices.
    pub(super) fn shuffled(&mut self, index: &Index, n: usize, bits: u32, seed: u64) -> Index {
        self.shuffles = true;
        let (n, bits) = (self.number(n), self.number(bits as usize));
        let seed = self.plain("ulong", &seed.to_ne_bytes());
        self.index(&format!("source_shuffled({index}, {n}, {bits}, {seed})"))
    }

    /// A call of a map's function.
    pub(super) fn call(
        &mut self,
        map: &MapText,
        arguments: &[Component],
        captured: &[(ElementType, [u8; 8])],
        result: Type,
    ) -> Component {
        let mapped = match (arguments, &result) {
            ([Component { memory: Some((argument, from)), ty: Type::Element(element), .. }], Type::Element(result))
                if captured.is_empty() =>
            {
                Some(Mapped { argument: *argument, from: *from, prelude: map.prelude(*element, *result) })
            }
            _ => None,
        };
        self.define(&result);
        let name = format!("source_f{}", self.unique());
        let captured: Vec<(ElementType, String)> = captured
            .iter()
            .map(|(element, bytes)| {
                self.needs_fp64 |= element.needs_fp64();
                (*element, self.plain(element.storage(), &bytes[..element.size()]))
            })
            .collect();
        let types = arguments.iter().map(|argument| argument.ty.name());
        let types = types.chain(captured.iter().map(|value| value.0.storage()));
        let parameters: Vec<String> = types
            .zip(argument_names(arguments.len(), captured.len()))
            .map(|(ty, name)| format!("{ty} {name}"))
            .collect();
        self.functions += &map.function(&name, &parameters.join(", "), result.name(), &mut self.known);
        let values = arguments.iter().map(|argument| argument.name.clone());
        let values: Vec<String> = values.chain(captured.into_iter().map(|(_, name)| name)).collect();
        Component { mapped, ..self.value(result, &format!("{name}({})", values.join(", "))) }
    }

    /// The values in another type, as Rust's `as`.
    pub(super) fn casts(&mut self, from: Vec<Component>, to: ElementType) -> Vec<Component> {
        from.into_iter().map(|one| self.cast(one, to)).collect()
    }

    fn cast(&mut self, from: Component, to: ElementType) -> Component {
        let element = from.element();
        let memory = from.memory.filter(|_| holds(to, element));
        if element == to {
            return Component { factors: None, ..from };
        }
        self.needs_fp64 |= to.needs_fp64();
        let (x, ty) = (widened(&from), to.storage());
        let text = match to {
            ElementType::F16 | ElementType::Bf16 => self.narrowed(to, &format!("(float){x}")),
            ElementType::F64 if element.is_float() && element != ElementType::F64 => {
                format!("float_to_double({x})")
            }
            _ if to.is_float() || !element.is_float() => format!("({ty}){x}"),
            _ => {
                // Mesa 25 crashes if it converts a float to an 8-bit integer.
                let one = self.value(element.accumulator(), &x).name;
                let inside = match to {
                    ElementType::I8 => format!("(char)clamp(convert_int_sat_rtz({one}), -128, 127)"),
                    ElementType::U8 => format!("(uchar)clamp(convert_int_sat_rtz({one}), 0, 255)"),
                    _ => format!("convert_{ty}_sat_rtz({one})"),
                };
                format!("{one} != {one} ? ({ty})0 : {inside}")
            }
        };
        Component { memory, ..self.value(to, &text) }
    }

    /// Text that rounds the float `x` to the type `to`, which is `f16` or `bf16`.
    fn narrowed(&mut self, to: ElementType, x: &str) -> String {
        self.to_f16 |= to == ElementType::F16;
        format!("{}({x})", if to == ElementType::F16 { "source_to_f16" } else { "float_to_bf16" })
    }

    /// The product of two values of one type. Integers wrap.
    pub(super) fn product(&mut self, x: &Component, y: &Component, index: &Index) -> Component {
        let (element, ty) = (x.element(), x.ty.name().to_owned());
        let text = format!("{} * {}", widened(x), widened(y));
        let text = match element {
            ElementType::F16 | ElementType::Bf16 => self.narrowed(element, &text),
            _ if element.is_float() => text,
            _ => {
                // C promotes 16-bit factors to int, and a product of ints can overflow. `* 1u` makes the product a
                // uint, which wraps.
                let unsigned = format!("u{}", ty.trim_start_matches('u'));
                format!("({ty})(({unsigned}){} * 1u * ({unsigned}){})", x.name, y.name)
            }
        };
        let names = [x.name.clone(), y.name.clone()];
        let factors = matches!(index, Index::Own).then(|| Factors { names, end: self.body.len() });
        Component { factors, ..self.value(element, &text) }
    }

    /// The texts for all arrays that are read at index `i`, joined.
    fn each(&self, text: &dyn Fn(&Direct) -> String) -> String {
        self.direct.iter().map(text).collect()
    }

    /// Parameters for the elements of these arrays.
    fn elements_declared(&self) -> String {
        self.each(&|one| format!("const {} d{}, ", one.element.storage(), one.number))
    }

    /// Arguments for these parameters: the elements at index `i`, or element `k` of those that [`Self::loads`] loads.
    fn elements_read(&self, loaded: bool) -> String {
        self.each(&|one| if loaded { format!("d{}[k], ", one.number) } else { format!("s{0}[o{0} + i], ", one.number) })
    }

    /// The text that loads `count` elements of each of these arrays, from index `i` on.
    fn loads(&self, count: usize) -> String {
        self.each(&|one| {
            let (ty, number) = (one.element.storage(), one.number);
            let unit = count.min(16 / one.element.size());
            let units = (0..count).step_by(unit).map(|at| {
                let from = format!("s{number} + o{number} + i + {at}");
                let value = if one.aligned {
                    format!("*(__global const {ty}{unit}*)({from})")
                } else {
                    format!("vload{unit}(0, {from})")
                };
                format!("    vstore{unit}({value}, 0, d{number} + {at});\n")
            });
            format!("    {ty} d{number}[{count}];\n{}", units.collect::<String>())
        })
    }

    /// The first lines of the text: functions that others call, and the kernel's first parameters.
    fn head(&self) -> String {
        format!(
            "{}{}#define SOURCE_PARAMS(qualifier) {}\n#define SOURCE_ARGS {}\n",
            if self.to_f16 { TO_F16 } else { "" },
            if self.shuffles { SHUFFLE } else { "" },
            self.parameters.join(", "),
            self.names.join(", ")
        )
    }

    /// The load with this text. `ty` is the type of the elements or, if they are tuples, of the largest component.
    fn load(self, include: &'static str, ty: Type, text: String) -> Load {
        Load {
            include,
            text,
            ty,
            functions: self.functions,
            arguments: self.arguments,
            needs_fp64: self.needs_fp64,
            outside: self.outside,
            has_no_element: self.has_no_element,
            memory: None,
            factors: None,
            four: String::new(),
            mapped: None,
        }
    }

    /// The load of a source with these elements.
    fn finish(self, item: Component) -> Load {
        let ty = item.ty.name();
        let (declared, read, held) = (self.elements_declared(), self.elements_read(false), self.elements_read(true));
        let several = |name: &str, count: usize| {
            let loads = self.loads(count);
            format!(
                "INLINED void {name}(const OFFSET_T i, {ty}* x, SOURCE_PARAMS())\n{{\n{loads}    \
                 for (uint k = 0; k < {count}; k++) {{\n        x[k] = source_of(i + k, {held}SOURCE_ARGS);\n    }}\n}}\n"
            )
        };
        let (inlined, loads, load_source, four) = match &item.ty {
            Type::Element(element) => {
                let count = 16 / element.size();
                ("INLINED", self.loads(count), several("load_source", count), several("load_source_four", 4))
            }
            // Oclgrind does not inline functions that return structs.
            Type::Struct(_) => ("static inline", String::new(), String::new(), String::new()),
        };
        let factors = item.factors.map(|Factors { names: [x, y], end }| {
            let to = format!("{ty}* x, {ty}* y");
            format!(
                "INLINED void source_factors_of(const OFFSET_T i, {declared}{to}, SOURCE_PARAMS())\n{{\n{}    *x = {x};\n    \
                 *y = {y};\n}}\n\
                 INLINED void source_factors_at(const OFFSET_T i, {to}, SOURCE_PARAMS())\n{{\n    \
                 source_factors_of(i, {read}x, y, SOURCE_ARGS);\n}}\n\
                 INLINED void load_source_factors(const OFFSET_T i, {to}, SOURCE_PARAMS())\n{{\n{loads}    \
                 for (uint k = 0; k < {}; k++) {{\n        \
                 source_factors_of(i + k, {held}x + k, y + k, SOURCE_ARGS);\n    }}\n}}\n",
                &self.body[..end],
                16 / item.ty.size()
            )
        });
        let text = format!(
            "{}{inlined} {ty} source_of(const OFFSET_T i, {declared}SOURCE_PARAMS())\n{{\n{}    return {};\n}}\n\
             {inlined} {ty} source_at(const OFFSET_T i, SOURCE_PARAMS())\n{{\n    return source_of(i, {read}SOURCE_ARGS);\n}}\n{load_source}",
            self.head(),
            self.body,
            item.name
        );
        Load { memory: item.memory, factors, four, mapped: item.mapped, ..self.load("lib/source.cl", item.ty, text) }
    }

    /// The load of a source of tuples. Each component has an output of its own. `aligned` says which outputs take
    /// 16-byte stores. With a struct among the components, a kernel writes the elements one by one.
    fn finish_several(self, items: &[Component], aligned: &[bool]) -> Load {
        let types = || items.iter().map(|item| &item.ty);
        let of_struct = types().find(|ty| matches!(ty, Type::Struct(_)));
        let largest = of_struct.or_else(|| types().max_by_key(|ty| ty.size())).cloned();
        let largest = largest.unwrap_or_else(|| ElementType::U8.into());
        let per_vector = largest.per_vector();
        let list = |text: &dyn Fn(usize, &str) -> String| -> Vec<String> {
            types().enumerate().map(|(k, ty)| text(k, ty.name())).collect()
        };
        let all = |text: &dyn Fn(usize, &str) -> String| list(text).concat();
        let joined = |text: &dyn Fn(usize, &str) -> String| list(text).join(", ");
        let (declared, read, held) = (self.elements_declared(), self.elements_read(false), self.elements_read(true));
        let values = joined(&|k, ty| format!("{ty}* y{k}"));
        let outputs = joined(&|k, ty| format!("__global {ty} *qualifier t{k}, const ulong q{k}"));
        let stores = all(&|k, ty| {
            let to = format!("t{k} + q{k} + i");
            if aligned[k] {
                format!("    *(__global {ty}{per_vector}*)({to}) = vload{per_vector}(0, y{k});\n")
            } else {
                format!("    vstore{per_vector}(vload{per_vector}(0, y{k}), 0, {to});\n")
            }
        });
        let vectors = format!(
            "#define SOURCE_VALUES(each) {}\n#define SOURCE_VALUES_AT(e) {}\n\
             INLINED void load_sources(const OFFSET_T i, {values}, SOURCE_PARAMS())\n{{\n{}    \
             for (uint k = 0; k < {per_vector}; k++) {{\n        sources_of(i + k, {held}{}, SOURCE_ARGS);\n    }}\n}}\n\
             INLINED void store_sources(const OFFSET_T i, {values}, OUTPUT_PARAMS())\n{{\n{stores}}}\n",
            all(&|k, ty| format!("{ty} y{k}[each][{per_vector}]; ")),
            joined(&|k, _| format!("y{k}[e]")),
            self.loads(per_vector),
            joined(&|k, _| format!("y{k} + k")),
        );
        let text = format!(
            "{}#define OUTPUT_PARAMS(qualifier) {outputs}\n#define OUTPUT_ARGS {}\n\
             INLINED void sources_of(const OFFSET_T i, {declared}{values}, SOURCE_PARAMS())\n{{\n{}{}}}\n\
             INLINED void transform_at(const OFFSET_T i, OUTPUT_PARAMS(), SOURCE_PARAMS())\n{{\n{}    \
             sources_of(i, {read}{}, SOURCE_ARGS);\n{}}}\n{}",
            self.head(),
            joined(&|k, _| format!("t{k}, q{k}")),
            self.body,
            all(&|k, _| format!("    *y{k} = {};\n", items[k].name)),
            all(&|k, ty| format!("    {ty} y{k};\n")),
            joined(&|k, _| format!("&y{k}")),
            all(&|k, _| format!("    t{k}[q{k} + i] = y{k};\n")),
            if of_struct.is_none() { &vectors } else { "" },
        );
        self.load("lib/sources.cl", largest, text)
    }
}

/// The only component of an element.
pub(super) fn only(mut components: Vec<Component>) -> Component {
    debug_assert_eq!(components.len(), 1, "an element has one component");
    components.swap_remove(0)
}

/// The value in the type in which it is computed.
fn widened(from: &Component) -> String {
    match from.element() {
        ElementType::F16 => format!("f16_to_float({})", from.name),
        ElementType::Bf16 => format!("bf16_to_float({})", from.name),
        _ => from.name.clone(),
    }
}

/// Returns whether `to` has every value of `from`.
pub(super) fn holds(to: ElementType, from: ElementType) -> bool {
    let bits = |element: ElementType| 8 * element.size() as i32 - element.is_signed() as i32;
    match (from.is_float(), to.is_float()) {
        (false, false) => bits(to) >= bits(from) && (to.is_signed() || !from.is_signed()),
        (false, true) => bits(from) <= to.precision(),
        (true, true) => from.precision() <= to.precision() && from.least_exponent() >= to.least_exponent(),
        (true, false) => false,
    }
}

/// The text by which a kernel computes the elements of a source, and its arguments.
pub struct Load {
    /// The file that the text replaces.
    include: &'static str,
    text: String,
    ty: Type,
    functions: String,
    arguments: Vec<Argument>,
    needs_fp64: bool,
    /// A word that a kernel sets if an index is out of range.
    outside: Option<ClInput>,
    has_no_element: bool,
    memory: Option<(usize, ElementType)>,
    /// The functions that compute the factors of products.
    factors: Option<String>,
    /// The function that loads four elements.
    four: String,
    mapped: Option<Mapped>,
}

impl Load {
    /// The type of the elements, or the largest type of their components.
    pub(crate) fn ty(&self) -> &Type {
        &self.ty
    }

    /// The load of a source whose elements are of one component.
    pub(crate) fn of<T>(source: &dyn Expression<T>, device: &ClDevice) -> Result<Self> {
        Self::made(source, Text::new(Some(device), false))
    }

    /// The load of a source whose elements are tuples, for an output of each component. `aligned` says which outputs take
    /// 16-byte stores.
    pub(crate) fn of_several<T>(source: &dyn Expression<T>, device: &ClDevice, aligned: &[bool]) -> Result<Self> {
        let mut text = Text::new(Some(device), false);
        let items = source.emitted(&mut text)?;
        Ok(text.finish_several(&items, aligned))
    }

    /// The load without arguments, for its program alone.
    pub fn without_device<S: Source>(source: &S, aligned: bool) -> Result<Self> {
        Self::made(source, Text::new(None, aligned))
    }

    /// [`Self::without_device`] for a source whose elements are tuples.
    pub fn several_without_device<S: Source>(source: &S, aligned: bool) -> Result<Self> {
        let mut text = Text::new(None, aligned);
        let items = source.emitted(&mut text)?;
        let aligned = vec![aligned; items.len()];
        Ok(text.finish_several(&items, &aligned))
    }

    fn made<T>(source: &dyn Expression<T>, mut text: Text<'_>) -> Result<Self> {
        let item = only(source.emitted(&mut text)?);
        Ok(text.finish(item))
    }

    /// The program with the load's text.
    pub(crate) fn program(&self, program: ProgramSpec, caps: &Capabilities) -> Result<ProgramSpec> {
        self.put(program, self.text.clone(), caps)
    }

    fn put(&self, program: ProgramSpec, text: String, caps: &Capabilities) -> Result<ProgramSpec> {
        self.supported(caps)?;
        Ok(program.replace(self.include, text, &self.functions))
    }

    /// Returns whether the elements are products, whose factors [`Self::with_factors`] computes.
    pub(crate) fn has_factors(&self) -> bool {
        self.factors.is_some()
    }

    /// The program with the load's text, and with functions that compute the factors of products:
    ///
    /// ```text
    /// source_factors_at(i, &x, &y, args)      x * y is element i
    /// load_source_factors(i, x, y, args)      x[k] * y[k] is element i + k, for the VEC elements of 16 bytes
    /// ```
    pub(crate) fn with_factors(&self, program: ProgramSpec, caps: &Capabilities) -> Result<ProgramSpec> {
        let text = self.factors.iter().fold(self.text.clone(), |text, factors| text + factors);
        self.put(program, text, caps)
    }

    /// The program with the load's text, and with a function that loads four elements:
    ///
    /// ```text
    /// load_source_four(i, x, args)      x[k] = element i + k, for k < 4; i is a multiple of 4
    /// ```
    pub(crate) fn with_four(&self, program: ProgramSpec, caps: &Capabilities) -> Result<ProgramSpec> {
        self.put(program, self.text.clone() + &self.four, caps)
    }

    /// Sets the kernel's first arguments.
    pub(crate) fn arguments<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        self.arguments.iter().fold(launch, |launch, argument| match argument {
            Argument::Memory(memory) => launch.mem(memory.mem()).scalar(memory.offset() as u64),
            Argument::Outside => self.outside.iter().fold(launch, |launch, word| launch.mem(word.mem())),
            Argument::Scalar(bytes) => launch.plain(bytes),
        })
    }

    /// The memory and its element type, if element i is `memory[i]`, unchanged or in a wider type.
    pub(crate) fn memory(&self) -> Option<(&ClInput, ElementType)> {
        let (argument, element) = self.memory?;
        match self.arguments.get(argument)? {
            Argument::Memory(memory) if self.arguments.len() == 1 => Some((memory, element)),
            _ => None,
        }
    }

    /// The memory, its element type and the text of `mapped`, if element i is `f(memory[i])`.
    pub(crate) fn mapped(&self, caps: &Capabilities) -> Result<Option<(&ClInput, ElementType, &str)>> {
        let Some(Mapped { argument, from, prelude }) = &self.mapped else { return Ok(None) };
        match self.arguments.get(*argument) {
            Some(Argument::Memory(memory)) if self.arguments.len() == 1 => {
                self.supported(caps)?;
                Ok(Some((memory, *from, prelude)))
            }
            _ => Ok(None),
        }
    }

    /// Returns an error if a type of the expression is not one of the device.
    fn supported(&self, caps: &Capabilities) -> Result<()> {
        if self.needs_fp64 { caps.supports(ElementType::F64) } else { Ok(()) }
    }

    /// The memory that kernels read.
    pub(crate) fn inputs(&self) -> Vec<&ClInput> {
        let memory = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Memory(memory) => Some(memory),
            _ => None,
        });
        memory.collect()
    }

    /// The number of elements for launches: `n`, or with a count at most `n`. A call with a gather waits anyway. So it reads the
    /// count, and its kernels get a number.
    pub(crate) fn length(
        &self,
        device: &ClDevice,
        n: usize,
        count: Option<Count<'_>>,
    ) -> Result<(usize, Option<ClCount>)> {
        let count = count.map(|count| count.cl(device)).transpose()?;
        match count {
            Some(count) if self.outside.is_some() => Ok((count.read(device, n)?, None)),
            count => Ok((n, count)),
        }
    }

    /// Runs `launches` and, if an index of a gather is out of range, returns an error. Waits only if there is a gather.
    pub(crate) fn run<T>(
        &self,
        device: &ClDevice,
        source: &dyn Expression<T>,
        n: usize,
        launches: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        if !self.has_no_element || n == 0 {
            launches()?;
            let Some(word) = &self.outside else { return Ok(()) };
            let mut found = [0u8; 4];
            device.read(word.mem(), 0, &mut found)?;
            if found == [0; 4] {
                return Ok(());
            }
        }
        source.find(device, n)?;
        // The indices changed after the kernel read them: the output overlaps them.
        Err(Error::invalid("an index of a gather was out of range when it was read"))
    }
}
