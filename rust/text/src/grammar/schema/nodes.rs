//! The nodes that a document may reach, and which of them finite documents fit.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::document::{Checked, Place};
use super::reading::{Reading, never};
use super::shape::{Arrays, Node, Objects, Shape, Strings};
use super::size::{MAX_RULES, too_large};
use super::terminals::{avoids, string_expression};
use crate::grammar::pattern::{Pattern, literal};

/// The most patterns of keys that may match the same key.
const MAX_KEY_PATTERNS: usize = 4;

/// All nodes that a document may reach.
pub(super) struct Nodes {
    /// The whole schema first.
    pub(super) all: Vec<Reached>,
}

/// A node that a document reaches, with the nodes of its items and properties.
pub(super) struct Reached {
    /// The first of its places in the schema.
    pub(super) place: Place,
    pub(super) shape: Rc<Shape>,
    /// Without those that no string matches.
    pub(super) strings: Vec<Strings>,
    pub(super) arrays: Vec<Items>,
    pub(super) objects: Vec<Fields>,
    /// Whether a finite document fits it.
    pub(super) productive: bool,
}

/// The nodes of an array.
pub(super) struct Items {
    pub(super) prefix: Vec<usize>,
    pub(super) rest: usize,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
}

/// The nodes of an object.
pub(super) struct Fields {
    pub(super) named: Vec<Field>,
    /// The expressions of other keys, with the nodes of their values.
    pub(super) others: Vec<(String, usize)>,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
}

pub(super) struct Field {
    pub(super) name: String,
    pub(super) node: usize,
    pub(super) required: bool,
}

/// Those that a string without the texts of `avoided` matches.
fn matched(
    strings: &[Strings],
    reading: &Reading<'_>,
    place: Place,
    avoided: &[String],
) -> Checked<Vec<Strings>> {
    let mut matched = Vec::with_capacity(strings.len());
    for strings in strings {
        let mut strings = strings.clone();
        if let Some(only) = &mut strings.only {
            only.retain(|text| avoids(text, avoided));
        }
        if !reading.matches_nothing(&strings, place)? {
            matched.push(strings);
        }
    }
    Ok(matched)
}

impl Nodes {
    /// Those of a schema. No string of a document may hold one of the texts of `avoided`.
    pub(super) fn of(reading: &Reading<'_>, avoided: &[String]) -> Checked<Self> {
        let mut ids: HashMap<Node, usize> = HashMap::new();
        let mut queue = vec![reading.root()];
        ids.insert(reading.root(), 0);
        let mut all: Vec<Reached> = Vec::new();
        while let Some(node) = queue.get(all.len()).cloned() {
            let root = reading.document.root();
            let place = node.first().map_or(root, |literal| literal.place);
            let mut id = |node: &Node| -> usize {
                let next = ids.len();
                *ids.entry(node.clone()).or_insert_with(|| {
                    queue.push(node.clone());
                    next
                })
            };
            let shape = reading.shape(&node)?;
            let arrays = shape
                .arrays
                .iter()
                .map(|it| Items::of(it, &mut id))
                .collect();
            let mut objects = Vec::with_capacity(shape.objects.len());
            for object in &shape.objects {
                let n_steps = object.properties.len() + object.name_bytes() / 64 + 8;
                reading.charge(n_steps, place)?;
                let named = named_fields(object, avoided, &mut id);
                let keys = OtherKeys::of(object, &named, avoided);
                objects.push(Fields {
                    others: keys.read(reading, place, &mut id)?,
                    named,
                    min: object.min,
                    max: object.max,
                });
            }
            all.push(Reached {
                place,
                strings: matched(&shape.strings, reading, place, avoided)?,
                shape,
                arrays,
                objects,
                productive: false,
            });
            if all.len() > MAX_RULES {
                return Err(too_large());
            }
        }
        Ok(Self { all })
    }

    pub(super) fn array_is_productive(&self, items: &Items) -> bool {
        let n_prefix = items.min.min(items.prefix.len());
        let mut needed = items.prefix.iter().take(n_prefix);
        needed.all(|&id| self.all[id].productive)
            && (items.min <= items.prefix.len() || self.all[items.rest].productive)
    }

    pub(super) fn object_is_productive(&self, fields: &Fields) -> bool {
        let productive = |id: usize| self.all[id].productive;
        let mut required = fields.named.iter().filter(|it| it.required);
        let n_named = fields.named.iter().filter(|it| productive(it.node)).count();
        let open = fields.others.iter().any(|(_, id)| productive(*id));
        required.all(|it| productive(it.node)) && (open || n_named >= fields.min)
    }
}

impl Items {
    fn of(arrays: &Arrays, id: &mut impl FnMut(&Node) -> usize) -> Self {
        Self {
            prefix: arrays.prefix.iter().map(&mut *id).collect(),
            rest: id(&arrays.items),
            min: arrays.min,
            max: arrays.max,
        }
    }
}

/// The properties of an object that are named or required.
fn named_fields(
    objects: &Objects,
    avoided: &[String],
    id: &mut impl FnMut(&Node) -> usize,
) -> Vec<Field> {
    let mut named: Vec<Field> = Vec::new();
    let names: BTreeSet<&String> = objects.properties.iter().map(|(name, _)| name).collect();
    // A key that may not be written is one that no document has.
    let value = |name: &str, node: &Node| match avoids(name, avoided) {
        true => node.clone(),
        false => never(),
    };
    for (name, node) in &objects.properties {
        named.push(Field {
            name: name.clone(),
            node: id(&value(name, node)),
            required: objects.required.contains(name),
        });
    }
    for name in objects.required.iter().filter(|name| !names.contains(name)) {
        named.push(Field {
            name: name.clone(),
            node: id(&value(name, &objects.value(name))),
            required: true,
        });
    }
    named
}

/// The keys that an object does not name.
struct OtherKeys<'a> {
    objects: &'a Objects,
    /// The expression of the names that it has; none where it has none.
    names: Option<String>,
    avoided: &'a [String],
}

impl<'a> OtherKeys<'a> {
    fn of(objects: &'a Objects, named: &[Field], avoided: &'a [String]) -> Self {
        let names: Vec<String> = named.iter().map(|it| literal(&it.name, true)).collect();
        Self {
            objects,
            names: (!names.is_empty()).then(|| names.join("|")),
            avoided,
        }
    }

    /// An expression for those that match the same patterns, and what their values are.
    fn read(
        &self,
        reading: &Reading<'_>,
        place: Place,
        id: &mut impl FnMut(&Node) -> usize,
    ) -> Checked<Vec<(String, usize)>> {
        let layers = &self.objects.layers;
        let mut patterns: Vec<&Pattern> = Vec::new();
        for (pattern, _) in layers.iter().flat_map(|layer| &layer.patterns) {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        if patterns.len() > MAX_KEY_PATTERNS {
            return Err(reading.document.cannot(
                place,
                "patternProperties",
                &format!(
                    "there are {} patterns for the same object; use at most {MAX_KEY_PATTERNS}",
                    patterns.len()
                ),
            ));
        }
        let mut others = Vec::new();
        for matched in 0..1usize << patterns.len() {
            let is_matched = |pattern: &Pattern| {
                let at = patterns.iter().position(|it| *it == pattern);
                at.is_some_and(|at| matched >> at & 1 == 1)
            };
            let (all, none): (Vec<Pattern>, Vec<Pattern>) = patterns
                .iter()
                .map(|it| (*it).clone())
                .partition(|it| is_matched(it));
            let keys = Strings {
                all,
                none,
                ..Strings::default()
            };
            if !patterns.is_empty() && reading.matches_nothing(&keys, place)? {
                continue;
            }
            let mut expression = string_expression(&keys, self.avoided);
            if let Some(names) = &self.names {
                reading.charge(names.len() / 256, place)?;
                expression.push_str(&format!(r" & ~/\x22(?:{names})\x22/"));
            }
            others.push((expression, id(&self.value(is_matched))));
        }
        Ok(others)
    }

    /// What the values of those must be that match these patterns.
    fn value(&self, is_matched: impl Fn(&Pattern) -> bool) -> Node {
        let mut node = Node::new();
        for layer in &self.objects.layers {
            let values = layer.patterns.iter().filter(|(it, _)| is_matched(it));
            let mut any = false;
            for (_, value) in values {
                any = true;
                node.extend(value);
            }
            if !any {
                node.extend(&layer.additional);
            }
        }
        node
    }
}
