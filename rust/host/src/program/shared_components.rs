//! Components by their digest: processes that run the same one hold its bytes once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::opened::LazyComponent;
use super::{Form, Program};
use crate::sync::lock;

/// Entries beyond which those of components that nobody holds are looked for.
const FEW: usize = 64;

/// The components that somebody holds.
#[derive(Debug, Default)]
pub(crate) struct SharedComponents(Mutex<HashMap<[u8; 32], Weak<LazyComponent>>>);

impl SharedComponents {
    /// The program, with the component that others hold already in the place of its own where they are equal.
    pub(crate) fn shared(&self, program: Program) -> Program {
        let Form::Component(own) = &program.form else {
            return program;
        };
        let mut known = lock(&self.0);
        if let Some(other) = known.get(&own.digest()).and_then(Weak::upgrade) {
            return Program {
                form: Form::Component(other),
                ..program
            };
        }
        if known.len() >= FEW.max(known.capacity() / 2) {
            known.retain(|_, component| component.strong_count() > 0);
        }
        known.insert(own.digest(), Arc::downgrade(own));
        drop(known);
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Component;

    #[test]
    fn equal_components_are_held_once() {
        let shared = SharedComponents::default();
        let program = |bytes: &[u8]| shared.shared(Component::new(bytes.to_vec()).into());
        let form = |program: &Program| match &program.form {
            Form::Component(component) => component.clone(),
            Form::Source(..) => panic!("it is a component"),
        };
        let (one, same, other) = (program(b"a"), program(b"a"), program(b"b"));
        assert!(Arc::ptr_eq(&form(&one), &form(&same)));
        assert!(!Arc::ptr_eq(&form(&one), &form(&other)));
        drop((one, same, other));
        for n in 0..1000_u32 {
            program(&n.to_le_bytes());
        }
        assert!(lock(&shared.0).len() < 300);
    }
}
