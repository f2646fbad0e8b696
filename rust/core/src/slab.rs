//! Values under names that are never reused: a entry index in the low half of the name, its generation in the high
//! half.

/// A store of values by name. Insertion, lookup and removal take constant time; entries are reused, names are not.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, value: T) -> u64 {
        if let Some(index) = self.free.pop()
            && let Some(entry) = self.entries.get_mut(index as usize)
        {
            entry.generation = entry.generation.wrapping_add(1);
            entry.value = Some(value);
            return name(index, entry.generation);
        }
        let index = self.entries.len() as u32;
        self.entries.push(Entry {
            generation: 1,
            value: Some(value),
        });
        name(index, 1)
    }

    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        let entry = self.entries.get(id as u32 as usize)?;
        if entry.generation == (id >> 32) as u32 {
            entry.value.as_ref()
        } else {
            None
        }
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let entry = self.entries.get_mut(id as u32 as usize)?;
        if entry.generation == (id >> 32) as u32 {
            entry.value.as_mut()
        } else {
            None
        }
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let index = id as u32;
        let entry = self.entries.get_mut(index as usize)?;
        if entry.generation != (id >> 32) as u32 {
            return None;
        }
        let value = entry.value.take()?;
        self.free.push(index);
        Some(value)
    }

    /// The names, in no order that means anything.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.iter().map(|(id, _)| id).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                entry
                    .value
                    .as_ref()
                    .map(|value| (name(index as u32, entry.generation), value))
            })
    }
}

const fn name(index: u32, generation: u32) -> u64 {
    ((generation as u64) << 32) | index as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_map_whose_names_are_new(choices in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..200)) {
            let (mut slab, mut oracle, mut names) = (Slab::new(), HashMap::new(), Vec::<u64>::new());
            for (step, (insert, which)) in choices.into_iter().enumerate() {
                if insert || names.is_empty() {
                    let name = slab.insert(step);
                    prop_assert!(!names.contains(&name));
                    oracle.insert(name, step);
                    names.push(name);
                } else {
                    let name = names[which.index(names.len())];
                    prop_assert_eq!(slab.remove(name), oracle.remove(&name));
                }
                prop_assert_eq!(slab.len(), oracle.len());
                for name in &names {
                    prop_assert_eq!(slab.get(*name), oracle.get(name));
                }
                prop_assert_eq!(slab.iter().count(), oracle.len());
            }
        }
    }
}
