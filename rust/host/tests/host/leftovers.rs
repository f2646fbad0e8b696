//! Nothing of one instance is left in what another one gets: the pools hand memories, tables and stacks on.

use crate::guest::{host_with, plain, returned};

/// Fills its memory to the end, its table with a function, and its stack with a pattern.
const FILLS: &str = r#"
    (table $t 1000 90000 funcref)
    (elem declare func $deep)
    (func $deep (param $n i32) (param $a i64) (param $b i64) (result i64)
      (if (result i64) (i32.eqz (local.get $n))
        (then (local.get $a))
        (else (i64.add (local.get $b)
          (call $deep (i32.sub (local.get $n) (i32.const 1)) (local.get $b) (local.get $a))))))
    (func (export "run") (param i32 i32) (result i32)
      (drop (table.grow $t (ref.func $deep) (i32.const 50000)))
      (table.fill $t (i32.const 0) (ref.func $deep) (table.size $t))
      (drop (call $deep (i32.const 10000) (i64.const 0x5a5a5a5a5a5a5a5a) (i64.const 0x5a5a5a5a5a5a5a5a)))
      (drop (memory.grow (i32.const 500)))
      (memory.fill (i32.const 40000) (i32.const 0x5a) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 40000)))
      (call $ok (i32.const 1024) (i32.const 4)))"#;

/// Traps at the first byte or element that is not as a fresh one: a local that is not zero would be one of the stack.
const LOOKS: &str = r#"
    (table $t 1000 90000 funcref)
    (func $fresh (param $n i32)
      (local $a i64) (local $b i64) (local $c i64)
      (if (i64.ne (i64.or (local.get $a) (i64.or (local.get $b) (local.get $c))) (i64.const 0)) (then unreachable))
      (if (local.get $n) (then (call $fresh (i32.sub (local.get $n) (i32.const 1))))))
    (func (export "run") (param i32 i32) (result i32)
      (local $at i32) (local $end i32)
      (drop (table.grow $t (ref.null func) (i32.const 50000)))
      (local.set $at (i32.const 0))
      (loop $elements
        (if (i32.eqz (ref.is_null (table.get $t (local.get $at)))) (then unreachable))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $elements (i32.lt_u (local.get $at) (table.size $t))))
      (call $fresh (i32.const 10000))
      (drop (memory.grow (i32.const 500)))
      (local.set $end (i32.mul (memory.size) (i32.const 65536)))
      (local.set $at (i32.const 40000))
      (loop $bytes
        (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (br_if $bytes (i32.lt_u (local.get $at) (local.get $end))))
      (call $ok (i32.const 1024) (i32.const 4)))"#;

#[test]
fn an_instance_finds_nothing_of_the_ones_before() {
    // One place in each pool, so that the second program gets what the first one had.
    let host = host_with(|config| config.max_processes = 1);
    let (fills, looks) = (plain(FILLS), plain(LOOKS));
    for _ in 0..3 {
        for program in [&fills, &looks, &looks] {
            assert_eq!(returned(&host, program, "null"), "true");
        }
    }
}
