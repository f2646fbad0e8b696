//! Has each instance of a component write to pages of its memory before anything reads them.
//!
//! An instance begins with an image of its memory, which all share until they write. The first read of a page maps the
//! shared one, with its neighbours. A write after that takes the mapping back, for which the kernel interrupts every
//! processor that may still use it: 20 us on a virtual machine of two. A page that is written first costs less than
//! 2 us. So a start function writes to each page that programs write to anyway, and changes nothing there.

use std::ops::Range;

use anyhow::{Context as _, Result, anyhow, bail};
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, Component, ConstExpr, CustomSection, Function, FunctionSection, GlobalSection,
    GlobalType, MemArg, Module, ModuleSection, RawSection, SectionId, StartSection, TypeSection,
    ValType,
};
use wasmparser::{
    Chunk, Data, DataKind, DataSectionReader, Operator, Parser, Payload, TypeRef, Validator,
    WasmFeatures,
};

/// Bytes of a page of the system on the machines for which this is done.
const PAGE_BYTES: u64 = 4096;

/// The custom section of a module that has the start function; it holds how many pages that writes to, in four bytes.
const MARK: &str = "pie-prefault";

/// The component, each instance of which first writes to these pages of the image of its memory. They count from the
/// page on which the first byte stands that is not zero, as the image of wasmtime does.
///
/// # Errors
/// Where none of its modules, or more than one, has a memory with an image; where that module starts with a function
/// already; where a page lies behind the image.
pub(crate) fn prefaulted(component: &[u8], pages: &[u64]) -> Result<Vec<u8>> {
    let mut out = Component::new();
    let mut n_written = 0;
    let (mut parser, mut at) = (Parser::new(0), 0);
    loop {
        let rest = component.get(at..).unwrap_or_default();
        let Chunk::Parsed { consumed, payload } = parser.parse(rest, true)? else {
            bail!("the component ends in the middle");
        };
        at += consumed;
        if matches!(payload, Payload::End(_)) {
            break;
        }
        let Some((id, range)) = payload.as_section() else {
            continue;
        };
        let data = within(component, range.clone())?;
        // What is in a module or a component is not a payload of the component around it.
        if let Payload::ModuleSection { .. } | Payload::ComponentSection { .. } = payload {
            at = range.end;
        }
        let Payload::ModuleSection { .. } = payload else {
            out.section(&RawSection { id, data });
            continue;
        };
        match Prefaulting::of(data, pages)? {
            Some(mut prefaulting) => {
                let mut module = Module::new();
                prefaulting
                    .parse_core_module(&mut module, Parser::new(0), data)
                    .map_err(|error| anyhow!("{error}"))?;
                out.section(&ModuleSection(&module));
                n_written += 1;
            }
            None => {
                out.section(&RawSection { id, data });
            }
        }
    }
    if n_written != 1 {
        bail!("{n_written} modules of the component have a memory with an image; one must");
    }
    let component = out.finish();
    Validator::new_with_features(WasmFeatures::all())
        .validate_all(&component)
        .context("what was made of the component is none")?;
    Ok(component)
}

/// Adds the start function to a module, by the indices that what is added gets.
struct Prefaulting {
    addresses: Vec<u64>,
    type_index: u32,
    function_index: u32,
    global_index: u32,
    /// Whether the start section has been written.
    starts: bool,
}

impl Prefaulting {
    /// None where the module has no memory of its own, or no image in it.
    fn of(module: &[u8], pages: &[u64]) -> Result<Option<Self>> {
        let (mut n_types, mut n_functions, mut n_globals, mut n_memories) = (0, 0, 0, 0);
        let mut image = None;
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section {
                        n_types += u32::try_from(group?.types().len())?;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        match import?.ty {
                            TypeRef::Func(_) | TypeRef::FuncExact(_) => n_functions += 1,
                            TypeRef::Global(_) => n_globals += 1,
                            TypeRef::Table(_) | TypeRef::Memory(_) | TypeRef::Tag(_) => {}
                        }
                    }
                }
                Payload::FunctionSection(section) => n_functions += section.count(),
                Payload::GlobalSection(section) => n_globals += section.count(),
                Payload::MemorySection(section) => n_memories += section.count(),
                Payload::DataSection(section) => image = image_of(section)?,
                Payload::StartSection { .. } if n_memories > 0 => {
                    bail!("the module with the memory starts with a function already");
                }
                _ => {}
            }
        }
        let Some(image) = image.filter(|_| n_memories > 0) else {
            return Ok(None);
        };
        let first = image.start / PAGE_BYTES;
        let addresses: Vec<u64> = pages
            .iter()
            .map(|page| (first + page) * PAGE_BYTES)
            .collect();
        if let Some(behind) = addresses.iter().find(|address| **address >= image.end) {
            bail!(
                "the page at {behind:#x} lies behind the image, which ends at {:#x}",
                image.end
            );
        }
        Ok(Some(Self {
            addresses,
            type_index: n_types,
            function_index: n_functions,
            global_index: n_globals,
            starts: false,
        }))
    }

    /// Adds zero to a word of each page. A compiler could tell a constant and would leave the write out, so the zero
    /// stands in a global that could change. Where the processor adds to memory in one instruction, wasmtime uses it,
    /// and the first thing that happens to the page is a write; elsewhere nothing is gained.
    fn body(&self) -> Function {
        let mut body = Function::new([]);
        let mut instructions = body.instructions();
        for address in &self.addresses {
            let place = MemArg {
                offset: *address,
                align: 2,
                memory_index: 0,
            };
            instructions
                .i32_const(0)
                .i32_const(0)
                .i32_load(place)
                .global_get(self.global_index)
                .i32_add()
                .i32_store(place);
        }
        instructions.end();
        body
    }
}

impl Reencode for Prefaulting {
    type Error = std::convert::Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([], []);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.type_index);
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: wasmparser::GlobalSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_global_section(self, globals, section)?;
        let zero = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        globals.global(zero, &ConstExpr::i32_const(0));
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_code_section(self, code, section)?;
        code.function(&self.body());
        Ok(())
    }

    fn intersperse_section_hook(
        &mut self,
        module: &mut Module,
        _after: Option<SectionId>,
        before: Option<SectionId>,
    ) -> Result<(), Error> {
        match before {
            // The start section stands before each of these.
            Some(SectionId::Element | SectionId::DataCount | SectionId::Code) if !self.starts => {
                self.starts = true;
                module.section(&StartSection {
                    function_index: self.function_index,
                });
            }
            None => {
                let n_pages = self.addresses.len() as u32;
                module.section(&CustomSection {
                    name: MARK.into(),
                    data: n_pages.to_le_bytes().as_slice().into(),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

/// The addresses from the first byte that is not zero to the end of the last segment that has one; none without such.
fn image_of(section: DataSectionReader<'_>) -> Result<Option<Range<u64>>> {
    let mut image: Option<Range<u64>> = None;
    for data in section {
        let data = data?;
        let n_zeros = data.data.iter().position(|byte| *byte != 0);
        if let (Some(address), Some(n_zeros)) = (address(&data)?, n_zeros) {
            let (start, end) = (address + n_zeros as u64, address + data.data.len() as u64);
            image = Some(image.map_or(start..end, |image| {
                image.start.min(start)..image.end.max(end)
            }));
        }
    }
    Ok(image)
}

/// Where an active segment is put; none for a passive one.
fn address(data: &Data<'_>) -> Result<Option<u64>> {
    let DataKind::Active { offset_expr, .. } = &data.kind else {
        return Ok(None);
    };
    match offset_expr.get_operators_reader().read()? {
        // Addresses of 32 bits are unsigned, whatever the constant says.
        Operator::I32Const { value } => Ok(Some(u64::from(value.cast_unsigned()))),
        other => {
            bail!("a segment of the memory is put where {other:?} says, which is not a constant")
        }
    }
}

fn within(bytes: &[u8], range: Range<usize>) -> Result<&[u8]> {
    bytes
        .get(range)
        .context("a section of the component reaches beyond its end")
}
