//! Puts operators that charge in the place of instructions that would make or walk values unseen.
//!
//! Every instruction of minijinja stands in one of two lists here: those that take a bounded time and make nothing that
//! was not charged before, and those that are replaced. A version of minijinja with another instruction does not
//! compile until it stands in one of them.

use std::collections::HashSet;

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::builtins::op;

/// The most values that an operator takes: items of a map, arguments of a call.
const MAX_OPERANDS: usize = u16::MAX as usize;

/// The same instructions with everything charged.
///
/// # Errors
/// Where an instruction has more operands than can be charged.
pub(super) fn charged<'s>(
    plain: &Instructions<'s>,
    name: &'s str,
    source: &'s str,
) -> Result<Instructions<'s>, Error> {
    let n_plain = (0_u32..).take_while(|&at| plain.get(at).is_some()).count();
    // Where each instruction begins once those before it are replaced. What jumps to one jumps to what charges for it.
    let joins = targets(plain, n_plain);
    let mut begins = Vec::with_capacity(n_plain + 1);
    let mut all = Vec::with_capacity(2 * n_plain);
    for at in 0..n_plain as u32 {
        begins.push(all.len() as u32);
        // Where nothing jumps here, the operand on top is what stands before.
        let before = at.checked_sub(1).filter(|_| !joins.contains(&at));
        let operand = before.and_then(|before| plain.get(before));
        match plain.get(at) {
            // `message['role'] == 'user'`: a short constant is looked up and compared in no time, and most templates do
            // little else.
            Some(cheap @ (Instruction::GetItem | Instruction::Eq | Instruction::Ne))
                if is_word(operand) =>
            {
                all.push((at, cheap.clone()))
            }
            // Numbers alone are added to numbers.
            Some(Instruction::Add) if is_number(operand) => {
                all.push((at, Instruction::Add));
            }
            Some(instruction) => replace(instruction, |new| all.push((at, new)))?,
            None => {}
        }
    }
    begins.push(all.len() as u32);
    let moved = |target: u32| begins.get(target as usize).copied().unwrap_or(u32::MAX);
    let mut result = Instructions::new(name, source);
    for (at, mut new) in all {
        match &mut new {
            Instruction::Iterate(target)
            | Instruction::Jump(target)
            | Instruction::JumpIfFalse(target)
            | Instruction::JumpIfFalseOrPop(target)
            | Instruction::JumpIfTrueOrPop(target)
            | Instruction::BuildMacro(_, target, _) => *target = moved(*target),
            _ => {}
        }
        match (plain.get_span(at), plain.get_line(at)) {
            (Some(span), _) => result.add_with_span(new, span),
            (None, Some(line)) => {
                result.add_with_line(new, u16::try_from(line).unwrap_or(u16::MAX))
            }
            (None, None) => result.add(new),
        };
    }
    Ok(result)
}

/// Where jumps lead to: an instruction there does not always follow the one before it.
fn targets(plain: &Instructions<'_>, n_plain: usize) -> HashSet<u32> {
    let target = |at| match plain.get(at)? {
        Instruction::Iterate(target)
        | Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::BuildMacro(_, target, _) => Some(*target),
        _ => None,
    };
    (0..n_plain as u32).filter_map(target).collect()
}

fn is_number(instruction: Option<&Instruction<'_>>) -> bool {
    matches!(instruction, Some(Instruction::LoadConst(value)) if value.is_number())
}

/// Whether an instruction puts a short text on the stack.
fn is_word(instruction: Option<&Instruction<'_>>) -> bool {
    const MAX_WORD_BYTES: usize = 256;
    match instruction {
        Some(Instruction::LoadConst(value)) => value
            .as_str()
            .is_some_and(|text| text.len() <= MAX_WORD_BYTES),
        _ => false,
    }
}

/// What stands in the place of an instruction. Every one is named, so that one that is new does not compile here.
#[rustfmt::skip]
fn replace<'s>(
    instruction: &Instruction<'s>,
    mut put: impl FnMut(Instruction<'s>),
) -> Result<(), Error> {
    use Instruction as I;
    match instruction {
        I::EmitRaw(_) | I::LoadConst(_) | I::StringConcat | I::GetItem | I::BuildMap(_) | I::BuildList(_) |
        I::UnpackLists(_) | I::MergeKwargs(_) | I::BuildMacro(..) => make(instruction, put),
        I::Add | I::Mul | I::Slice => operate(instruction, put),
        I::Eq | I::Ne | I::Gt | I::Gte | I::Lt | I::Lte | I::In | I::CompareAndPreserve(_) => compare(instruction, put),
        I::SetAttr(_) | I::UnpackList(_) | I::PushLoop(_) | I::FastRecurse | I::Include(_) | I::CallFunction(..) |
        I::CallMethod(..) => look(instruction, put),
        // These move, number or forget values that there are; jumps and frames are counted by the fuel and by the limit
        // of recursion, and what is printed or called charges by itself.
        I::StoreLocal(_) | I::Lookup(_) | I::GetAttr(_) | I::BuildKwargs(_) | I::Sub | I::Div | I::IntDiv | I::Rem |
        I::Pow | I::Neg | I::Not | I::ApplyFilter(..) | I::PerformTest(..) | I::Emit | I::PushWith | I::Iterate(_) |
        I::PushDidNotIterate | I::PopFrame | I::PopLoopFrame | I::Jump(_) | I::JumpIfFalse(_) |
        I::JumpIfFalseOrPop(_) | I::JumpIfTrueOrPop(_) | I::PushAutoEscape | I::PopAutoEscape | I::BeginCapture(_) |
        I::EndCapture | I::CallObject(_) | I::DupTop | I::DiscardTop | I::FastSuper | I::Swap | I::CallBlock(_) |
        I::LoadBlocks | I::ExportLocals | I::Return | I::IsUndefined | I::Enclose(_) | I::GetClosure => {
            put(instruction.clone());
            Ok(())
        }
    }
}

/// Instructions that make a value: it is charged.
fn make<'s>(
    instruction: &Instruction<'s>,
    mut put: impl FnMut(Instruction<'s>),
) -> Result<(), Error> {
    use Instruction as I;
    match instruction {
        // Text of the template's is written as a value is, which is charged.
        I::EmitRaw(text) => {
            put(I::LoadConst(Value::from(*text)));
            put(I::Emit);
        }
        // A sum or a product of constant lists, which the compiler computed.
        I::LoadConst(value) if value.kind() == ValueKind::Iterable => {
            put(I::LoadConst(Value::from(
                value.try_iter()?.collect::<Vec<Value>>(),
            )));
        }
        I::StringConcat => put(apply(op::CONCAT, 2)?),
        I::GetItem => put(apply(op::ITEM, 2)?),
        I::BuildMap(n_pairs) => put(apply(op::MAP, n_pairs.saturating_mul(2))?),
        I::BuildList(n_items) if *n_items != Some(0) => {
            put(instruction.clone());
            put(apply(op::MADE, 1)?);
        }
        I::UnpackLists(n_lists) => {
            put(apply(op::SPREAD, *n_lists)?);
            put(I::UnpackLists(1));
        }
        I::MergeKwargs(n_maps) => {
            put(apply(op::SPREAD_NAMED, *n_maps)?);
            put(I::MergeKwargs(1));
        }
        I::BuildMacro(..) => {
            put(instruction.clone());
            put(apply(op::MACRO, 1)?);
        }
        _ => put(instruction.clone()),
    }
    Ok(())
}

/// Operators on texts, lists and numbers: their operands are charged before, and what they make afterwards.
fn operate<'s>(
    instruction: &Instruction<'s>,
    mut put: impl FnMut(Instruction<'s>),
) -> Result<(), Error> {
    let (operator, n_operands) = match instruction {
        Instruction::Add => (op::BEFORE_ADD, 2),
        Instruction::Mul => (op::BEFORE_MUL, 2),
        _ => (op::BEFORE_SLICE, 4),
    };
    before(operator, n_operands, &mut put)?;
    put(instruction.clone());
    put(apply(op::GATHERED, 1)?);
    Ok(())
}

/// Comparisons: what they look at is charged.
fn compare<'s>(
    instruction: &Instruction<'s>,
    mut put: impl FnMut(Instruction<'s>),
) -> Result<(), Error> {
    use Instruction as I;
    match instruction {
        I::Eq => put(test("==")),
        I::Ne => put(test("!=")),
        I::Gt => put(test(">")),
        I::Gte => put(test(">=")),
        I::Lt => put(test("<")),
        I::Lte => put(test("<=")),
        I::In => put(test("in")),
        _ => {
            before(op::BEFORE_COMPARE, 2, &mut put)?;
            put(instruction.clone());
        }
    }
    Ok(())
}

/// Instructions that look into a value or keep it: it is charged before.
fn look<'s>(
    instruction: &Instruction<'s>,
    mut put: impl FnMut(Instruction<'s>),
) -> Result<(), Error> {
    use Instruction as I;
    match instruction {
        I::SetAttr(_) => {
            put(I::Swap);
            put(apply(op::STORED, 1)?);
            put(I::Swap);
        }
        I::UnpackList(_) => put(apply(op::UNPACKED, 1)?),
        // A text is counted before its characters are walked. What is called may be a loop, which walks its argument.
        I::PushLoop(_) | I::FastRecurse | I::Include(_) | I::CallFunction(_, Some(1)) => {
            put(apply(op::WALK, 1)?);
        }
        I::CallMethod("changed", Some(n_arguments)) => {
            before(op::REMEMBERED, *n_arguments, &mut put)?;
        }
        I::CallMethod("changed", None) => {
            return Err(refused("loop.changed with a list of arguments"));
        }
        _ => {}
    }
    put(instruction.clone());
    Ok(())
}

/// Has an operator see the top `n_operands` values, which it gives back.
fn before<'s>(
    name: &'static str,
    n_operands: u16,
    put: &mut impl FnMut(Instruction<'s>),
) -> Result<(), Error> {
    put(apply(name, n_operands.into())?);
    // What is first in the list comes to lie on top.
    put(Instruction::UnpackList(n_operands.into()));
    Ok(())
}

/// An operator on the top values. What is looked up anew each time has no number.
fn apply(name: &'static str, n_operands: usize) -> Result<Instruction<'static>, Error> {
    const NOT_KEPT: u8 = u8::MAX;
    match u16::try_from(n_operands) {
        Ok(n_operands) => Ok(Instruction::ApplyFilter(name, Some(n_operands), NOT_KEPT)),
        Err(_) => Err(refused(&format!(
            "an expression with {n_operands} parts (the limit is {MAX_OPERANDS})"
        ))),
    }
}

fn test(name: &'static str) -> Instruction<'static> {
    Instruction::PerformTest(name, Some(2), u8::MAX)
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::SyntaxError, format!("{what} is not supported"))
}
