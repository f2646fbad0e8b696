//! Which nodes finite documents fit.
//!
//! An array or an object can be finished once the nodes that it needs can. Each way to fill a node counts what it still
//! lacks, and a node that can be finished is counted once where it is needed, so that all of this takes as long as
//! there are items and properties, in whatever order they need each other.

use super::nodes::{Fields, Items, Nodes, Reached};

/// A way to fill a node: an array or an object.
struct Way {
    node: usize,
    /// How many of the items or properties that it needs cannot be finished yet.
    n_needed: usize,
    /// How many further properties it needs, of any name.
    n_missing: usize,
}

/// What a node means to a way.
#[derive(Clone, Copy)]
enum Part {
    Needed,
    /// A property that is named; the flag tells whether it is needed as well.
    Named(bool),
    /// The value of all keys that are not named, of which there are as many as one likes.
    Other,
}

#[derive(Default)]
struct Ways {
    all: Vec<Way>,
    /// For each node, the ways that it is a part of.
    of_nodes: Vec<Vec<(usize, Part)>>,
}

/// Marks the nodes that finite documents fit.
pub(super) fn mark_productive(nodes: &mut Nodes) {
    for id in productive(&nodes.all) {
        nodes.all[id].productive = true;
    }
}

fn productive(nodes: &[Reached]) -> Vec<usize> {
    let mut ways = Ways {
        of_nodes: nodes.iter().map(|_| Vec::new()).collect(),
        ..Ways::default()
    };
    let mut found: Vec<usize> = Vec::new();
    for (node, reached) in nodes.iter().enumerate() {
        reached
            .arrays
            .iter()
            .for_each(|it| ways.add_array(node, it));
        reached
            .objects
            .iter()
            .for_each(|it| ways.add_object(node, it));
        if has_scalars(reached) {
            found.push(node);
        }
    }
    let is_filled = |way: &Way| way.n_needed == 0 && way.n_missing == 0;
    found.extend(ways.all.iter().filter(|it| is_filled(it)).map(|it| it.node));
    let mut is_known = vec![false; nodes.len()];
    let mut productive = Vec::new();
    while let Some(node) = found.pop() {
        if std::mem::replace(&mut is_known[node], true) {
            continue;
        }
        productive.push(node);
        for &(way, part) in &ways.of_nodes[node] {
            let way = &mut ways.all[way];
            way.learn(part);
            if is_filled(way) {
                found.push(way.node);
            }
        }
    }
    productive
}

/// Whether a node allows something that has no parts, or is given whole.
fn has_scalars(reached: &Reached) -> bool {
    let shape = &reached.shape;
    shape.null
        || shape.booleans[0]
        || shape.booleans[1]
        || !shape.numbers.is_empty()
        || !reached.strings.is_empty()
        || !shape.values.is_empty()
}

impl Way {
    fn learn(&mut self, part: Part) {
        if let Part::Needed | Part::Named(true) = part {
            self.n_needed -= 1;
        }
        match part {
            Part::Needed => {}
            Part::Named(_) => self.n_missing = self.n_missing.saturating_sub(1),
            Part::Other => self.n_missing = 0,
        }
    }
}

impl Ways {
    fn add(&mut self, way: Way, parts: impl Iterator<Item = (usize, Part)>) {
        let place = self.all.len();
        self.all.push(way);
        for (node, part) in parts {
            self.of_nodes[node].push((place, part));
        }
    }

    fn add_array(&mut self, node: usize, items: &Items) {
        let prefix = items.prefix.iter().take(items.min);
        let rest = (items.min > items.prefix.len()).then_some(&items.rest);
        let needed: Vec<usize> = prefix.chain(rest).copied().collect();
        let way = Way {
            node,
            n_needed: needed.len(),
            n_missing: 0,
        };
        self.add(way, needed.into_iter().map(|it| (it, Part::Needed)));
    }

    fn add_object(&mut self, node: usize, fields: &Fields) {
        let way = Way {
            node,
            n_needed: fields.named.iter().filter(|it| it.required).count(),
            n_missing: fields.min,
        };
        let named = fields.named.iter();
        let named = named.map(|it| (it.node, Part::Named(it.required)));
        let others = fields.others.iter().map(|(_, id)| (*id, Part::Other));
        self.add(way, named.chain(others));
    }
}
