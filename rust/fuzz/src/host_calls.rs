//! Programs that call everything that there is to call, with handles that they hold and handles that they do not.
//!
//! The bytes choose the calls, one after the other. Arguments are drawn by what they may be in the canonical ABI: a handle from an
//! earlier call, an address, a length, or any number; the memory holds texts, small numbers and what is left of the bytes. Results, and
//! words that a call wrote to memory, become the handles of later calls.

use arbitrary::Unstructured;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection, Function,
    FunctionSection, GlobalSection, GlobalType, ImportSection, MemArg, MemorySection, MemoryType,
    Module, TypeSection, ValType,
};
use wasmparser::ValType as Parsed;

use crate::engine::engine;
use crate::world::{Import, World, world};

const MAX_CALLS: usize = 60;
/// Locals that hold handles. Parameters come before them.
const N_HANDLES: u32 = 8;
const FIRST_HANDLE: u32 = 2;
/// Where calls write what they answer, and where arguments that lie in memory are.
const RESULTS_AT: u32 = 4096;
const TEXTS_AT: u32 = 1024;
/// Where the memory that the program hands out begins.
const HEAP_AT: i32 = 32 << 10;
const TEXTS: &[u8] = b"dummytruehellouserassistant\"\\{}[0,1]\xff\xc3\x28 a long text to append, in which the model finds something to say";

/// Runs a program that makes the calls which the bytes say.
pub fn host_calls(data: &[u8]) {
    let world = world();
    let mut bytes = Unstructured::new(data);
    let Ok(module) = module(world, &mut bytes) else {
        return;
    };
    let component = world.component(module).unwrap();
    let code = engine().run(component);
    assert_ne!(
        code.as_deref(),
        Some("invalid-program"),
        "a program that only makes calls"
    );
}

fn module(world: &World, bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let mut types = TypeSection::new();
    let mut imports = ImportSection::new();
    for (index, import) in (0..).zip(&world.imports) {
        types.ty().function(
            import.params.iter().copied().map(encoded),
            import.results.iter().copied().map(encoded),
        );
        imports.import(&import.module, &import.name, EntityType::Function(index));
    }
    let n_imports = types.len();
    types.ty().function([ValType::I32; 2], [ValType::I32]);
    types.ty().function([ValType::I32; 4], [ValType::I32]);

    let mut functions = FunctionSection::new();
    functions.function(n_imports).function(n_imports + 1);
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: Some(32),
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut globals = GlobalSection::new();
    let heap = GlobalType {
        val_type: ValType::I32,
        mutable: true,
        shared: false,
    };
    globals.global(heap, &ConstExpr::i32_const(HEAP_AT));
    let mut exports = ExportSection::new();
    exports
        .export("memory", ExportKind::Memory, 0)
        .export("pie:inferlet/run@0.1.0#run", ExportKind::Func, n_imports)
        .export("cabi_realloc", ExportKind::Func, n_imports + 1);

    let mut code = CodeSection::new();
    code.function(&run(world, bytes)?).function(&realloc());
    let mut data = DataSection::new();
    data.active(
        0,
        &ConstExpr::i32_const(at(TEXTS_AT)),
        TEXTS.iter().copied(),
    );
    let rest = bytes.bytes(bytes.len().min(2048))?;
    data.active(
        0,
        &ConstExpr::i32_const(at(RESULTS_AT)),
        rest.iter().copied(),
    );

    let mut module = Module::new();
    module
        .section(&types)
        .section(&imports)
        .section(&functions)
        .section(&memories)
        .section(&globals)
        .section(&exports)
        .section(&code)
        .section(&data);
    Ok(module.finish())
}

/// The calls, and `true` as the answer.
fn run(world: &World, bytes: &mut Unstructured<'_>) -> arbitrary::Result<Function> {
    let mut function = Function::new([(N_HANDLES, ValType::I32)]);
    let n_calls = bytes.int_in_range(1..=MAX_CALLS)?;
    for _ in 0..n_calls {
        call(&mut function, world, bytes)?;
    }
    let mut code = function.instructions();
    // A `result<string, failure>` at address 0: ok, and the text.
    for (at, word) in [(0, 0), (4, at(TEXTS_AT) + 5), (8, 4)] {
        code.i32_const(at).i32_const(word).i32_store(word_at(0));
    }
    code.i32_const(0).end();
    Ok(function)
}

fn call(
    function: &mut Function,
    world: &World,
    bytes: &mut Unstructured<'_>,
) -> arbitrary::Result<()> {
    // Mostly what lies nearest to the model: the imports of WASI are many.
    let ours: Vec<u32> = (0..)
        .zip(&world.imports)
        .filter(|(_, import)| import.module.starts_with("pie:"))
        .map(|(index, _)| index)
        .collect();
    let index = if bytes.ratio(7, 8)? {
        *bytes.choose(&ours)?
    } else {
        bytes.int_in_range(0..=u32::try_from(world.imports.len() - 1).unwrap_or(0))?
    };
    let import = &world.imports[index as usize];
    for (place, param) in import.params.iter().enumerate() {
        argument(function, import, place, *param, bytes)?;
    }
    let mut code = function.instructions();
    code.call(index);
    match import.results.as_slice() {
        [] => {}
        [Parsed::I32] => {
            let handle = FIRST_HANDLE + bytes.int_in_range(0..=N_HANDLES - 1)?;
            code.local_set(handle);
        }
        results => {
            for _ in results {
                code.drop();
            }
        }
    }
    if bytes.ratio(1, 2)? {
        let handle = FIRST_HANDLE + bytes.int_in_range(0..=N_HANDLES - 1)?;
        let offset = 4 * bytes.int_in_range(0..=3_u64)?;
        code.i32_const(at(RESULTS_AT))
            .i32_load(word_at(offset))
            .local_set(handle);
    }
    Ok(())
}

fn argument(
    function: &mut Function,
    import: &Import,
    place: usize,
    param: Parsed,
    bytes: &mut Unstructured<'_>,
) -> arbitrary::Result<()> {
    let mut code = function.instructions();
    let is_method =
        import.name.starts_with("[method]") || import.name.starts_with("[resource-drop]");
    match param {
        Parsed::I32 if place == 0 && is_method && bytes.ratio(15, 16)? => {
            code.local_get(FIRST_HANDLE + bytes.int_in_range(0..=N_HANDLES - 1)?);
        }
        // The last one is often where the answer is to be written.
        Parsed::I32 if place + 1 == import.params.len() && bytes.ratio(1, 2)? => {
            code.i32_const(at(RESULTS_AT));
        }
        Parsed::I32 => {
            match bytes.int_in_range(0..=7)? {
                0 | 1 => code.local_get(FIRST_HANDLE + bytes.int_in_range(0..=N_HANDLES - 1)?),
                2 | 3 => code.i32_const(at(TEXTS_AT) + bytes.int_in_range(0..=64)?),
                4 | 5 => code.i32_const(bytes.int_in_range(0..=16)?),
                6 => code.i32_const(at(RESULTS_AT) + 4 * bytes.int_in_range(0..=256)?),
                _ => code.i32_const(bytes.arbitrary()?),
            };
        }
        Parsed::I64 => {
            code.i64_const(if bytes.ratio(3, 4)? {
                bytes.int_in_range(0..=100_000)?
            } else {
                bytes.arbitrary()?
            });
        }
        Parsed::F32 => {
            let any: f32 = if bytes.ratio(3, 4)? {
                *bytes.choose(&[0.0, 0.5, 0.9, 1.0, 2.0])?
            } else {
                bytes.arbitrary()?
            };
            code.f32_const(any.into());
        }
        Parsed::F64 => {
            let any: f64 = bytes.arbitrary()?;
            code.f64_const(any.into());
        }
        Parsed::V128 | Parsed::Ref(_) => unreachable!("the canonical ABI has none"),
    }
    Ok(())
}

/// Hands out memory that it never takes back.
fn realloc() -> Function {
    let mut function = Function::new([(1, ValType::I32)]);
    let (size, address) = (3, 4);
    function
        .instructions()
        .global_get(0)
        .i32_const(7)
        .i32_add()
        .i32_const(-8)
        .i32_and()
        .local_tee(address)
        .local_get(size)
        .i32_add()
        .global_set(0)
        .local_get(address)
        .end();
    function
}

fn encoded(kind: Parsed) -> ValType {
    match kind {
        Parsed::I32 => ValType::I32,
        Parsed::I64 => ValType::I64,
        Parsed::F32 => ValType::F32,
        Parsed::F64 => ValType::F64,
        Parsed::V128 | Parsed::Ref(_) => unreachable!("the canonical ABI has none"),
    }
}

fn word_at(offset: u64) -> MemArg {
    MemArg {
        offset,
        align: 2,
        memory_index: 0,
    }
}

/// An address as the operand of an instruction.
fn at(address: u32) -> i32 {
    address.cast_signed()
}
