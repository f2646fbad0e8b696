//! Programs that call everything that there is to call, with handles that they hold and handles that they do not.
//!
//! The bytes choose the calls, one after the other. Arguments are drawn by what they may be in the canonical ABI: a
//! handle from an earlier call, an address, a length, or any number; the memory holds texts, small numbers and what is
//! left of the bytes. Results, and words that a call wrote to memory, become the handles of later calls.

use std::collections::{BTreeMap, BTreeSet};

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
/// What is left of the bytes becomes memory, up to here.
const MAX_DATA_BYTES: usize = 2048;
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
    let Ok(calls) = calls(world, &mut bytes) else {
        return;
    };
    let rest = bytes.take_rest();
    let module = module(world, &calls, &rest[..rest.len().min(MAX_DATA_BYTES)]);
    let component = world.component(module).unwrap();
    let code = engine().run(component);
    assert_ne!(
        code.as_deref(),
        Some("invalid-program"),
        "a program that only makes calls"
    );
}

/// What stands in the place of every number of a wild call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wild {
    /// A handle that the program never got, and addresses and lengths beyond its memory.
    NeverHeld,
    /// The largest number there is, which is minus one for whoever reads it with a sign, and no number at all.
    Most,
    /// Zero: no handle, no length, and the first address.
    Nothing,
    /// The model that the program loaded, whatever it is taken for.
    OfAnotherKind,
}

impl Wild {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::NeverHeld,
        Self::Most,
        Self::Nothing,
        Self::OfAnotherKind,
    ];

    fn argument(self, kind: Parsed) -> Argument {
        let number = match self {
            Self::NeverHeld => 0x7000_0000,
            Self::Most => -1,
            Self::Nothing => 0,
            Self::OfAnotherKind if kind == Parsed::I32 => return Argument::Handle(FIRST_HANDLE),
            Self::OfAnotherKind => 1,
        };
        match kind {
            Parsed::I32 => Argument::I32(number),
            Parsed::I64 => Argument::I64(number.into()),
            Parsed::F32 if self == Self::Most => Argument::F32(f32::NAN),
            Parsed::F32 => Argument::F32(number as f32),
            Parsed::F64 if self == Self::Most => Argument::F64(f64::NAN),
            Parsed::F64 => Argument::F64(number.into()),
            Parsed::V128 | Parsed::Ref(_) => unreachable!("the canonical ABI has none"),
        }
    }
}

/// Every function that programs can import from us, by interface and name.
pub fn functions() -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    let all = world().imports.iter().enumerate();
    all.filter(|(_, import)| import.module.starts_with("pie:"))
        .map(|(place, import)| (place, import.module.as_str(), import.name.as_str()))
}

/// Runs a program that holds a model and a context and makes one wild call. Returns the code of the error with which it
/// ended.
pub fn wild_call(function: usize, wild: Wild) -> Option<String> {
    let world = world();
    let mut calls = beginning(world);
    let params = &world.imports[function].params;
    calls.push(Call {
        import: function,
        arguments: params.iter().map(|&kind| wild.argument(kind)).collect(),
        result: FIRST_HANDLE + 2,
        written: None,
    });
    let component = world.component(module(world, &calls, &[])).unwrap();
    engine().run(component)
}

/// A call of an import, by its place in the world.
struct Call {
    import: usize,
    arguments: Vec<Argument>,
    /// The handle that the result becomes, where it is one number.
    result: u32,
    /// A word that the call may have written, by its offset there, and the handle that it becomes.
    written: Option<(u64, u32)>,
}

enum Argument {
    Handle(u32),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
}

/// The calls: mostly after those that give a model and a context.
fn calls(world: &World, bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<Call>> {
    let mut calls = if bytes.ratio(7, 8)? {
        beginning(world)
    } else {
        Vec::new()
    };
    // Mostly what lies nearest to the model: the imports of WASI are many.
    let ours: Vec<usize> = (0..world.imports.len())
        .filter(|&import| world.imports[import].module.starts_with("pie:"))
        .collect();
    for _ in 0..bytes.int_in_range(1..=MAX_CALLS)? {
        let import = if bytes.ratio(7, 8)? {
            *bytes.choose(&ours)?
        } else {
            bytes.int_in_range(0..=world.imports.len() - 1)?
        };
        let params = &world.imports[import].params;
        let arguments = (0..params.len())
            .map(|place| argument(&world.imports[import], place, bytes))
            .collect::<Result<_, _>>()?;
        let result = handle(bytes)?;
        let written = if bytes.ratio(1, 2)? {
            Some((4 * bytes.int_in_range(0..=3)?, handle(bytes)?))
        } else {
            None
        };
        calls.push(Call {
            import,
            arguments,
            result,
            written,
        });
    }
    Ok(calls)
}

/// Loads the model into the first handle, makes a context of it in the second, and appends a text to that.
fn beginning(world: &World) -> Vec<Call> {
    let (model, context) = (FIRST_HANDLE, FIRST_HANDLE + 1);
    let import = |module: &str, name: &str| {
        let mut imports = world.imports.iter();
        imports
            .position(|import| import.module.contains(module) && import.name == name)
            .unwrap()
    };
    let text = |length| [Argument::I32(at(TEXTS_AT)), Argument::I32(length)];
    let results = || Argument::I32(at(RESULTS_AT));
    let call = |import, arguments, written| Call {
        import,
        arguments,
        result: FIRST_HANDLE,
        written,
    };
    let [name, n_bytes] = text(5);
    let [words, length] = text(40);
    vec![
        call(
            import("core/model", "[static]model.load"),
            vec![name, n_bytes, results()],
            Some((4, model)),
        ),
        call(
            import("core/context", "[static]context.create"),
            vec![Argument::Handle(model), results()],
            Some((4, context)),
        ),
        call(
            import("core/context", "[method]context.append-text"),
            vec![Argument::Handle(context), words, length, results()],
            None,
        ),
    ]
}

fn argument(
    import: &Import,
    place: usize,
    bytes: &mut Unstructured<'_>,
) -> arbitrary::Result<Argument> {
    let takes_self =
        import.name.starts_with("[method]") || import.name.starts_with("[resource-drop]");
    Ok(match import.params[place] {
        Parsed::I32 if place == 0 && takes_self && bytes.ratio(15, 16)? => {
            Argument::Handle(handle(bytes)?)
        }
        // The last one is often where the answer is to be written.
        Parsed::I32 if place + 1 == import.params.len() && bytes.ratio(1, 2)? => {
            Argument::I32(at(RESULTS_AT))
        }
        Parsed::I32 => match bytes.int_in_range(0..=7)? {
            0 | 1 => Argument::Handle(handle(bytes)?),
            2 | 3 => Argument::I32(at(TEXTS_AT) + bytes.int_in_range(0..=64)?),
            4 | 5 => Argument::I32(bytes.int_in_range(0..=16)?),
            6 => Argument::I32(at(RESULTS_AT) + 4 * bytes.int_in_range(0..=256)?),
            _ => Argument::I32(bytes.arbitrary()?),
        },
        Parsed::I64 if bytes.ratio(3, 4)? => Argument::I64(bytes.int_in_range(0..=100_000)?),
        Parsed::I64 => Argument::I64(bytes.arbitrary()?),
        Parsed::F32 if bytes.ratio(3, 4)? => {
            Argument::F32(*bytes.choose(&[0.0, 0.5, 0.9, 1.0, 2.0])?)
        }
        Parsed::F32 => Argument::F32(bytes.arbitrary()?),
        Parsed::F64 => Argument::F64(bytes.arbitrary()?),
        Parsed::V128 | Parsed::Ref(_) => unreachable!("the canonical ABI has none"),
    })
}

fn handle(bytes: &mut Unstructured<'_>) -> arbitrary::Result<u32> {
    bytes.int_in_range(FIRST_HANDLE..=FIRST_HANDLE + N_HANDLES - 1)
}

/// A core module that makes the calls and answers `true`. It imports what it calls and no more, which is much faster to
/// compile.
fn module(world: &World, calls: &[Call], content: &[u8]) -> Vec<u8> {
    let called: BTreeSet<usize> = calls.iter().map(|call| call.import).collect();
    let indices: BTreeMap<usize, u32> = called.into_iter().zip(0..).collect();
    let mut types = TypeSection::new();
    let mut imports = ImportSection::new();
    for (&place, &index) in &indices {
        let import = &world.imports[place];
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
    code.function(&run(world, calls, &indices))
        .function(&realloc());
    let mut data = DataSection::new();
    for (address, bytes) in [(TEXTS_AT, TEXTS), (RESULTS_AT, content)] {
        data.active(0, &ConstExpr::i32_const(at(address)), bytes.iter().copied());
    }

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
    module.finish()
}

/// The calls, and `true` as the answer.
fn run(world: &World, calls: &[Call], indices: &BTreeMap<usize, u32>) -> Function {
    let mut function = Function::new([(N_HANDLES, ValType::I32)]);
    let mut code = function.instructions();
    for call in calls {
        for argument in &call.arguments {
            match *argument {
                Argument::Handle(handle) => code.local_get(handle),
                Argument::I32(number) => code.i32_const(number),
                Argument::I64(number) => code.i64_const(number),
                Argument::F32(number) => code.f32_const(number.into()),
                Argument::F64(number) => code.f64_const(number.into()),
            };
        }
        code.call(indices[&call.import]);
        match world.imports[call.import].results.as_slice() {
            [Parsed::I32] => {
                code.local_set(call.result);
            }
            results => {
                for _ in results {
                    code.drop();
                }
            }
        }
        if let Some((offset, handle)) = call.written {
            code.i32_const(at(RESULTS_AT))
                .i32_load(word_at(offset))
                .local_set(handle);
        }
    }
    // A `result<string, failure>` at address 0: ok, and the text.
    for (address, word) in [(0, 0), (4, at(TEXTS_AT) + 5), (8, 4)] {
        code.i32_const(address)
            .i32_const(word)
            .i32_store(word_at(0));
    }
    code.i32_const(0).end();
    function
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
