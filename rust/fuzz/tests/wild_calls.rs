//! Every function that programs can import, by itself, with arguments that no honest program gives. What is called
//! follows from the WIT: a new interface is among them.

use std::collections::BTreeMap;

use pie_fuzz::{Wild, functions, wild_call};

/// Where a program ends for something that is not an error of its own call: it did what it must not, or ran out.
const ENDINGS: [&str; 6] = [
    "trap",
    "limit-memory",
    "limit-wall",
    "limit-cpu",
    "limit-message",
    "limit-resources",
];

#[test]
fn no_function_takes_wild_arguments_for_good_ones() {
    let mut interfaces: BTreeMap<&str, u32> = BTreeMap::new();
    for (function, interface, name) in functions() {
        *interfaces.entry(interface).or_default() += 1;
        for wild in Wild::ALL {
            // Who names a handle that it does not hold is ended.
            let takes_handle = name.starts_with("[method]") || name.starts_with("[resource-drop]");
            let has_to_trap = takes_handle && wild != Wild::OfAnotherKind;
            let code = ended(function, wild, if has_to_trap { 10_000 } else { 100 });
            let is_ending = code.as_deref().is_none_or(|code| ENDINGS.contains(&code));
            assert!(is_ending, "{interface} {name} {wild:?}: {code:?}");
            if has_to_trap {
                assert_eq!(code.as_deref(), Some("trap"), "{interface} {name} {wild:?}");
            }
        }
    }
    assert!(interfaces.len() >= 11, "{interfaces:?}");
    assert!(interfaces.values().sum::<u32>() >= 129, "{interfaces:?}");
}

/// How a program ends that makes the call. Its time is so short that a busy machine may end it before: then it is tried
/// again.
fn ended(function: usize, wild: Wild, n_tries: u32) -> Option<String> {
    for _ in 0..n_tries {
        let code = wild_call(function, wild);
        if code.as_deref() != Some("limit-wall") {
            return code;
        }
    }
    // It waits, as it may where nothing is wrong with its arguments.
    Some("limit-wall".to_owned())
}
