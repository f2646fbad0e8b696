//! What a schema allows, as a union of shapes of each type of JSON.
//!
//! The values of properties and items stay unread in a shape: they are [`Node`]s, each a conjunction of places of the
//! schema, with or without a `not`. So shapes of recursive schemas are finite, and the shapes of two schemas that must
//! hold together follow from theirs alone.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::document::Place;
use super::equality::Whole;
use crate::grammar::number::Num;
use crate::grammar::pattern::Pattern;

/// A place of the schema that must hold, or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Literal {
    pub(super) place: Place,
    pub(super) negated: bool,
}

/// Places that must hold together; none: any JSON.
pub(super) type Node = BTreeSet<Literal>;

/// A union.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub(super) null: bool,
    /// Whether `false` and `true` are allowed.
    pub(super) booleans: [bool; 2],
    pub(super) numbers: Vec<Numbers>,
    pub(super) strings: Vec<Strings>,
    pub(super) arrays: Vec<Arrays>,
    pub(super) objects: Vec<Objects>,
    /// Arrays and objects that are given whole.
    pub(super) values: Vec<Rc<Whole>>,
    /// Texts were left out that may be of a format which is asked for, in a spelling that is not written. So it is not
    /// known to allow nothing.
    pub(super) doubt: bool,
}

/// Numbers for which all of this holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    pub(super) integer: bool,
    /// Not an integer.
    pub(super) fraction: bool,
    /// The bound, and whether it is left out itself.
    pub(super) min: Option<(Num, bool)>,
    pub(super) max: Option<(Num, bool)>,
    pub(super) multiples: Vec<Num>,
    /// Nothing but these, where it is given.
    pub(super) only: Option<Vec<Num>>,
    pub(super) except: Vec<Num>,
}

/// Strings for which all of this holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Strings {
    pub(super) min: usize,
    pub(super) max: Option<usize>,
    pub(super) all: Vec<Pattern>,
    pub(super) none: Vec<Pattern>,
    /// Nothing but these, where it is given.
    pub(super) only: Option<BTreeSet<String>>,
    pub(super) except: BTreeSet<String>,
}

/// Arrays for which all of this holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrays {
    pub(super) prefix: Vec<Node>,
    pub(super) items: Node,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
}

/// Objects for which all of this holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    /// In the order in which they are written.
    pub(super) properties: Vec<(String, Node)>,
    pub(super) required: BTreeSet<String>,
    /// What the values of all other keys must be.
    pub(super) layers: Vec<Layer>,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
}

/// What one schema says of keys that it does not name.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) names: BTreeSet<String>,
    pub(super) patterns: Vec<(Pattern, Node)>,
    /// For keys that no pattern matches.
    pub(super) additional: Node,
}

impl Shape {
    /// Any JSON.
    pub(super) fn any() -> Self {
        Self {
            null: true,
            booleans: [true, true],
            numbers: vec![Numbers::default()],
            strings: vec![Strings::default()],
            arrays: vec![Arrays::default()],
            objects: vec![Objects::default()],
            values: Vec::new(),
            doubt: false,
        }
    }

    /// How many alternatives it has.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
            + self.strings.len()
            + self.arrays.len()
            + self.objects.len()
            + self.values.len()
    }

    /// Adds the alternatives of another.
    pub(super) fn unite(&mut self, other: Self) {
        self.null |= other.null;
        self.booleans[0] |= other.booleans[0];
        self.booleans[1] |= other.booleans[1];
        self.numbers.extend(other.numbers);
        for strings in other.strings {
            // Texts that are given whole are one alternative: an enumeration may have thousands.
            let mine = self
                .strings
                .iter_mut()
                .find_map(|mine| mine.only.as_mut().filter(|_| strings.only.is_some()));
            match (mine, strings.only) {
                (Some(mine), Some(more)) => mine.extend(more),
                (_, only) => self.strings.push(Strings { only, ..strings }),
            }
        }
        self.arrays.extend(other.arrays);
        self.objects.extend(other.objects);
        self.values.extend(other.values);
        self.doubt |= other.doubt;
    }
}

impl Numbers {
    /// Both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let mut both = Self {
            integer: self.integer || other.integer,
            fraction: self.fraction || other.fraction,
            min: tighter(self.min, other.min, true),
            max: tighter(self.max, other.max, false),
            multiples: self.multiples.clone(),
            only: None,
            except: self.except.clone(),
        };
        for &multiple in &other.multiples {
            let known = both.multiples.iter().any(|it| it.compare(multiple).is_eq());
            if !known {
                both.multiples.push(multiple);
            }
        }
        both.except.extend(&other.except);
        if let Some(listed) = self.only.as_ref().or(other.only.as_ref()) {
            let kept = listed
                .iter()
                .filter(|&&it| self.admits(it) && other.admits(it))
                .copied()
                .collect();
            both = Self {
                only: Some(kept),
                ..Self::default()
            };
        }
        (!both.is_empty()).then_some(both)
    }

    /// Whether a number is one of these.
    pub(super) fn admits(&self, value: Num) -> bool {
        let within = |bound: Option<(Num, bool)>, outside| {
            bound.is_none_or(|(bound, excluded)| {
                let order = value.compare(bound);
                order != outside && !(excluded && order.is_eq())
            })
        };
        (!self.integer || value.is_integer())
            && (!self.fraction || !value.is_integer())
            && within(self.min, std::cmp::Ordering::Less)
            && within(self.max, std::cmp::Ordering::Greater)
            && self.multiples.iter().all(|&it| value.is_multiple_of(it))
            && self
                .only
                .as_ref()
                .is_none_or(|only| only.iter().any(|it| it.compare(value).is_eq()))
            && !self.except.iter().any(|it| it.compare(value).is_eq())
    }

    /// Whether it is known that there are none.
    pub(super) fn is_empty(&self) -> bool {
        if let Some(only) = &self.only {
            return only.is_empty();
        }
        if self.integer && self.fraction {
            return true;
        }
        if self.integer {
            return match self.integer_bounds() {
                (Some(least), Some(most)) => self.leaves_nothing(least, most),
                _ => false,
            };
        }
        match (self.min, self.max) {
            (Some((min, min_excluded)), Some((max, max_excluded))) => match min.compare(max) {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => min_excluded || max_excluded || !self.admits(min),
                std::cmp::Ordering::Less => false,
            },
            _ => false,
        }
    }

    /// Whether no integer between these, both included, is one of these numbers: all are excepted, or of few none is a
    /// multiple.
    fn leaves_nothing(&self, least: i128, most: i128) -> bool {
        const MAX_TRIED: u128 = 1_000;
        if least > most {
            return true;
        }
        let n_all = most.abs_diff(least).saturating_add(1);
        let excepted = self.except.iter().filter_map(|it| match it {
            Num::Int(value) if (least..=most).contains(value) => Some(*value),
            _ => None,
        });
        let excepted: BTreeSet<i128> = excepted.collect();
        if excepted.len() as u128 == n_all {
            return true;
        }
        let is_multiple =
            |value: i128| (self.multiples.iter()).all(|&it| Num::Int(value).is_multiple_of(it));
        !self.multiples.is_empty()
            && n_all <= MAX_TRIED
            && !(least..=most).any(|it| !excepted.contains(&it) && is_multiple(it))
    }

    /// The least and the greatest integer. What a document has beyond 2^53 may be read as the nearest double, so that a
    /// double that is left out takes its neighbours with it.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn integer_bounds(&self) -> (Option<i128>, Option<i128>) {
        let least = self.min.map(|(bound, excluded)| match bound {
            Num::Int(value) => value + i128::from(excluded),
            Num::Float(value) if excluded => value.next_up().ceil() as i128,
            Num::Float(value) => value.ceil() as i128,
        });
        let most = self.max.map(|(bound, excluded)| match bound {
            Num::Int(value) => value - i128::from(excluded),
            Num::Float(value) if excluded => value.next_down().floor() as i128,
            Num::Float(value) => value.floor() as i128,
        });
        (least, most)
    }

    /// Whether all of them lie beyond the integers that can be told apart.
    pub(super) fn is_beyond_integers(&self) -> bool {
        const MOST: Num = Num::Int(i128::MAX);
        const LEAST: Num = Num::Int(i128::MIN);
        self.min.is_some_and(|(min, _)| min.compare(MOST).is_ge())
            || self.max.is_some_and(|(max, _)| max.compare(LEAST).is_le())
    }

    /// About how much is looked at where they are put together with others.
    pub(super) fn n_listed(&self) -> usize {
        self.only.as_ref().map_or(0, Vec::len) + self.except.len()
    }
}

/// The tighter of two bounds.
fn tighter(
    one: Option<(Num, bool)>,
    two: Option<(Num, bool)>,
    is_min: bool,
) -> Option<(Num, bool)> {
    let (Some(first), Some(second)) = (one, two) else {
        return one.or(two);
    };
    let order = first.0.compare(second.0);
    let order = if is_min { order } else { order.reverse() };
    Some(match order {
        std::cmp::Ordering::Greater => first,
        std::cmp::Ordering::Less => second,
        std::cmp::Ordering::Equal => (first.0, first.1 || second.1),
    })
}

impl Strings {
    /// Both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let mut both = Self {
            min: self.min.max(other.min),
            max: least(self.max, other.max),
            all: self.all.clone(),
            none: self.none.clone(),
            only: None,
            except: &self.except | &other.except,
        };
        for (mine, more) in [(&mut both.all, &other.all), (&mut both.none, &other.none)] {
            let new: Vec<Pattern> = more
                .iter()
                .filter(|it| !mine.contains(it))
                .cloned()
                .collect();
            mine.extend(new);
        }
        if let Some(listed) = self.only.as_ref().or(other.only.as_ref()) {
            let kept = listed
                .iter()
                .filter(|it| self.admits(it) && other.admits(it))
                .cloned()
                .collect();
            both = Self {
                only: Some(kept),
                ..Self::default()
            };
        }
        (!both.is_empty()).then_some(both)
    }

    /// Whether a text that one of them lists may be one of both, though it is not taken for one.
    pub(super) fn doubts(&self, other: &Self) -> bool {
        let is_narrow = |it: &Self| it.all.iter().any(Pattern::is_narrow);
        let Some(listed) = self.only.as_ref().or(other.only.as_ref()) else {
            return false;
        };
        (is_narrow(self) || is_narrow(other))
            && listed.iter().any(|text| {
                let is_taken = self.admits(text) && other.admits(text);
                let may_be = |it: &Self| it.admits_by(text, Pattern::may_match);
                !is_taken && may_be(self) && may_be(other)
            })
    }

    /// Whether a text is one of these.
    pub(super) fn admits(&self, text: &str) -> bool {
        self.admits_by(text, Pattern::matches)
    }

    fn admits_by(&self, text: &str, matches: impl Fn(&Pattern, &str) -> bool) -> bool {
        let len = text.chars().count();
        len >= self.min
            && self.max.is_none_or(|max| len <= max)
            && self.only.as_ref().is_none_or(|only| only.contains(text))
            && !self.except.contains(text)
            && self.all.iter().all(|it| matches(it, text))
            && !self.none.iter().any(|it| it.matches(text))
    }

    /// Whether it is known without looking at patterns that there are none.
    pub(super) fn is_empty(&self) -> bool {
        match &self.only {
            Some(only) => only.is_empty(),
            None => self
                .max
                .is_some_and(|max| max < self.min || (max == 0 && self.except.contains(""))),
        }
    }

    /// About how much is looked at where they are put together with others.
    pub(super) fn n_listed(&self) -> usize {
        self.only.as_ref().map_or(0, BTreeSet::len) + self.except.len()
    }
}

impl Arrays {
    /// Both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let n_prefix = self.prefix.len().max(other.prefix.len());
        let prefix = (0..n_prefix).map(|at| self.item(at) | other.item(at));
        let both = Self {
            prefix: prefix.collect(),
            items: &self.items | &other.items,
            min: self.min.max(other.min),
            max: least(self.max, other.max),
        };
        both.max.is_none_or(|max| max >= both.min).then_some(both)
    }

    /// What the item at an index must be.
    pub(super) fn item(&self, at: usize) -> &Node {
        self.prefix.get(at).unwrap_or(&self.items)
    }
}

impl Objects {
    /// Both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let names = self.properties.iter().map(|(name, _)| name);
        let more = other.properties.iter().map(|(name, _)| name);
        let more = more.filter(|name| self.property(name).is_none());
        let properties: Vec<(String, Node)> = names
            .chain(more)
            .map(|name| (name.clone(), &self.value(name) | &other.value(name)))
            .collect();
        let both = Self {
            properties,
            required: &self.required | &other.required,
            layers: self.layers.iter().chain(&other.layers).cloned().collect(),
            min: self.min.max(other.min),
            max: least(self.max, other.max),
        };
        both.max.is_none_or(|max| max >= both.min).then_some(both)
    }

    /// What a property that is named must be.
    pub(super) fn property(&self, name: &str) -> Option<&Node> {
        let mut properties = self.properties.iter();
        properties.find_map(|(it, node)| (it == name).then_some(node))
    }

    /// Bytes of the names.
    pub(super) fn name_bytes(&self) -> usize {
        let names = self.properties.iter().map(|(name, _)| name.len());
        names.chain(self.required.iter().map(String::len)).sum()
    }

    /// The steps of finding what the value of a key must be.
    pub(super) fn n_steps(&self, name: &str) -> usize {
        let patterns = self.layers.iter().flat_map(|layer| &layer.patterns);
        let patterns = patterns.map(|(pattern, _)| 1 + pattern.n_steps(name.len()));
        1 + self.properties.len() / 8 + patterns.sum::<usize>()
    }

    /// What the value of any key must be.
    pub(super) fn value(&self, name: &str) -> Node {
        if let Some(node) = self.property(name) {
            return node.clone();
        }
        let mut node = Node::new();
        for layer in &self.layers {
            if !layer.names.contains(name) {
                node.extend(layer.value(name));
            }
        }
        node
    }
}

impl Layer {
    fn value(&self, name: &str) -> Node {
        let mut node = Node::new();
        let mut matched = false;
        for (pattern, value) in &self.patterns {
            if pattern.matches(name) {
                matched = true;
                node.extend(value);
            }
        }
        if !matched {
            node.extend(&self.additional);
        }
        node
    }
}

fn least(one: Option<usize>, two: Option<usize>) -> Option<usize> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        _ => one.or(two),
    }
}
