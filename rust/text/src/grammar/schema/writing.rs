//! From the shapes of a schema to the text of a grammar.
//!
//! Every node that a document may reach becomes a rule. Nodes that no finite document fits are left out, and with them
//! what needs them, so that no document that was begun cannot be finished. Properties are written in the order of the
//! schema, other keys behind them; nothing stands between the signs of a document.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use llguidance::derivre::{RegexAst, RegexBuilder};
use serde_json::{Value, json};

use super::document::{Checked, Refusal};
use super::reading::Reading;
use super::shape::{Arrays, Node, Numbers, Objects, Shape, Strings};
use crate::grammar::number::{MAX_DIGITS, Num, integers};
use crate::grammar::pattern::{JSON_CHARACTER, Pattern, literal};

/// The most rules of a grammar.
const MAX_RULES: usize = 50_000;
/// The most bytes of the text of a grammar.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// The most patterns of keys that may match the same key.
const MAX_KEY_PATTERNS: usize = 4;
/// The most states of an automaton that tells whether a pattern matches anything.
const MAX_STATES: u64 = 20_000;

/// The text of the grammar of a schema, in the dialect of the engine.
///
/// Names of rules begin with `prefix`, and `start` stands behind it for the whole schema.
pub(super) fn write(reading: &Reading<'_>, prefix: &str) -> Checked<String> {
    let mut nodes = Nodes::of(reading)?;
    nodes.find_productive();
    if !nodes.made[0].productive {
        return Err(Refusal(
            "no finite document fits the schema; look for required properties that allow nothing, for patterns and lengths \
             that exclude each other, and for schemas that need themselves without end"
                .to_owned(),
        ));
    }
    let mut text = Text {
        prefix: prefix.to_owned(),
        ..Text::default()
    };
    text.line(format!("{prefix}start: {}", text.of_node(0)))?;
    for (id, made) in nodes
        .made
        .iter()
        .enumerate()
        .filter(|(_, it)| it.productive)
    {
        text.node(id, made, &nodes)
            .map_err(|Refusal(why)| Refusal(format!("the schema at {}: {why}", made.pointer)))?;
    }
    Ok(text.finished())
}

/// All nodes that a document may reach.
struct Nodes {
    made: Vec<Made>,
}

/// A node with the nodes that its values are.
struct Made {
    /// Where the first of its places stands in the schema.
    pointer: String,
    shape: Rc<Shape>,
    /// Without those that no string matches.
    strings: Vec<Strings>,
    arrays: Vec<Items>,
    objects: Vec<Fields>,
    productive: bool,
}

/// The nodes of an array.
struct Items {
    prefix: Vec<usize>,
    rest: usize,
    min: usize,
    max: Option<usize>,
}

/// The nodes of an object.
struct Fields {
    named: Vec<Field>,
    /// The expressions of other keys, with the nodes of their values.
    others: Vec<(String, usize)>,
    min: usize,
    max: Option<usize>,
}

struct Field {
    name: String,
    node: usize,
    required: bool,
}

impl Nodes {
    fn of(reading: &Reading<'_>) -> Checked<Self> {
        let mut ids: HashMap<Node, usize> = HashMap::new();
        let mut queue = vec![reading.root()];
        ids.insert(reading.root(), 0);
        let mut made: Vec<Made> = Vec::new();
        while let Some(node) = queue.get(made.len()).cloned() {
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
                reading.charge(object.properties.len() + 8, place)?;
                objects.push(Fields::of(object, &mut id)?);
            }
            let mut strings = shape.strings.clone();
            let mut checked = Ok(());
            strings.retain(|it| match matches_nothing(it) {
                Ok(nothing) => !nothing,
                Err(refusal) => {
                    checked = Err(refusal);
                    false
                }
            });
            checked.map_err(|Refusal(why)| reading.document.refusal(place, &[], &why))?;
            made.push(Made {
                pointer: reading.document.at(place, &[]),
                shape,
                strings,
                arrays,
                objects,
                productive: false,
            });
            if made.len() > MAX_RULES {
                return Err(too_large());
            }
        }
        Ok(Self { made })
    }

    /// Finds the nodes that finite documents fit.
    fn find_productive(&mut self) {
        loop {
            let mut found = false;
            for id in 0..self.made.len() {
                if !self.made[id].productive && self.is_productive(id) {
                    self.made[id].productive = true;
                    found = true;
                }
            }
            if !found {
                return;
            }
        }
    }

    fn is_productive(&self, id: usize) -> bool {
        let made = &self.made[id];
        let shape = &made.shape;
        shape.null
            || shape.booleans[0]
            || shape.booleans[1]
            || !shape.numbers.is_empty()
            || !made.strings.is_empty()
            || !shape.values.is_empty()
            || made.arrays.iter().any(|it| self.array_is_productive(it))
            || made.objects.iter().any(|it| self.object_is_productive(it))
    }

    fn array_is_productive(&self, items: &Items) -> bool {
        let n_prefix = items.min.min(items.prefix.len());
        let mut needed = items.prefix.iter().take(n_prefix);
        needed.all(|&id| self.made[id].productive)
            && (items.min <= items.prefix.len() || self.made[items.rest].productive)
    }

    fn object_is_productive(&self, fields: &Fields) -> bool {
        let productive = |id: usize| self.made[id].productive;
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

impl Fields {
    fn of(objects: &Objects, id: &mut impl FnMut(&Node) -> usize) -> Checked<Self> {
        let mut named: Vec<Field> = Vec::new();
        let names: BTreeSet<&String> = objects.properties.iter().map(|(name, _)| name).collect();
        for (name, node) in &objects.properties {
            named.push(Field {
                name: name.clone(),
                node: id(node),
                required: objects.required.contains(name),
            });
        }
        for name in objects.required.iter().filter(|name| !names.contains(name)) {
            named.push(Field {
                name: name.clone(),
                node: id(&objects.value(name)),
                required: true,
            });
        }
        Ok(Self {
            others: other_keys(objects, &named, id)?,
            named,
            min: objects.min,
            max: objects.max,
        })
    }
}

/// The keys that an object does not name: an expression for those that match the same patterns, and what their values
/// are.
fn other_keys(
    objects: &Objects,
    named: &[Field],
    id: &mut impl FnMut(&Node) -> usize,
) -> Checked<Vec<(String, usize)>> {
    let mut patterns: Vec<&Pattern> = Vec::new();
    for (pattern, _) in objects.layers.iter().flat_map(|layer| &layer.patterns) {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    if patterns.len() > MAX_KEY_PATTERNS {
        return Err(Refusal(format!(
            "the keyword `patternProperties` cannot be enforced with {} patterns for the same object; use at most \
             {MAX_KEY_PATTERNS}",
            patterns.len()
        )));
    }
    let names: Vec<String> = named.iter().map(|it| literal(&it.name, true)).collect();
    let mut others = Vec::new();
    for matched in 0..1usize << patterns.len() {
        let is_matched = |pattern: &Pattern| {
            let at = patterns.iter().position(|it| *it == pattern);
            at.is_some_and(|at| matched >> at & 1 == 1)
        };
        let mut node = Node::new();
        for layer in &objects.layers {
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
        let (all, none): (Vec<Pattern>, Vec<Pattern>) = patterns
            .iter()
            .map(|it| (*it).clone())
            .partition(|it| is_matched(it));
        let keys = Strings {
            all,
            none,
            ..Strings::default()
        };
        if !patterns.is_empty() && matches_nothing(&keys)? {
            continue;
        }
        let mut expression = string_expression(&keys);
        if !names.is_empty() {
            expression.push_str(&format!(r" & ~/\x22(?:{})\x22/", names.join("|")));
        }
        others.push((expression, id(&node)));
    }
    Ok(others)
}

/// The lines of a grammar.
#[derive(Default)]
struct Text {
    prefix: String,
    lines: Vec<String>,
    n_bytes: usize,
    terminals: HashMap<String, usize>,
    n_rules: usize,
}

impl Text {
    fn line(&mut self, line: String) -> Checked<()> {
        self.n_bytes += line.len() + 1;
        if self.lines.len() >= MAX_RULES || self.n_bytes > MAX_TEXT_BYTES {
            return Err(too_large());
        }
        self.lines.push(line);
        Ok(())
    }

    fn finished(self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }

    /// The name of the rule of a node.
    fn of_node(&self, id: usize) -> String {
        format!("{}n{id}", self.prefix)
    }

    /// The name of a terminal.
    fn terminal(&mut self, expression: String) -> Checked<String> {
        let next = self.terminals.len();
        let prefix = self.prefix.to_ascii_uppercase();
        if let Some(at) = self.terminals.get(&expression) {
            return Ok(format!("{prefix}T{at}"));
        }
        self.line(format!("{prefix}T{next}: {expression}"))?;
        self.terminals.insert(expression, next);
        Ok(format!("{prefix}T{next}"))
    }

    /// The name of a rule of no node.
    fn rule(&mut self, body: &str) -> Checked<String> {
        self.n_rules += 1;
        let name = format!("{}r{}", self.prefix, self.n_rules);
        self.line(format!("{name}: {body}"))?;
        Ok(name)
    }

    fn node(&mut self, id: usize, made: &Made, nodes: &Nodes) -> Checked<()> {
        let shape = &made.shape;
        let mut options = Vec::new();
        let words = [
            (shape.null, "null"),
            (shape.booleans[0], "false"),
            (shape.booleans[1], "true"),
        ];
        let words: Vec<&str> = words
            .into_iter()
            .filter_map(|(is, word)| is.then_some(word))
            .collect();
        if !words.is_empty() {
            options.push(self.terminal(format!("/(?:{})/", words.join("|")))?);
        }
        for numbers in &shape.numbers {
            options.push(self.numbers(numbers)?);
        }
        for strings in &made.strings {
            options.push(self.terminal(string_expression(strings))?);
        }
        for items in made
            .arrays
            .iter()
            .filter(|it| nodes.array_is_productive(it))
        {
            options.push(self.array(items, nodes)?);
        }
        for fields in made
            .objects
            .iter()
            .filter(|it| nodes.object_is_productive(it))
        {
            options.push(self.object(fields, nodes)?);
        }
        for value in &shape.values {
            options.push(quoted(&value.to_string()));
        }
        self.line(format!("{}: {}", self.of_node(id), options.join(" | ")))
    }

    fn numbers(&mut self, numbers: &Numbers) -> Checked<String> {
        const FRACTION: &str = r"(?:\.[0-9]{1,40})?";
        if let Some(only) = &numbers.only {
            let texts: Vec<String> = only
                .iter()
                .map(|&it| literal(&spelled(it), false))
                .collect();
            return self.terminal(format!("/(?:{})/", texts.join("|")));
        }
        let bounded = numbers.min.is_some() || numbers.max.is_some();
        let simple = numbers.multiples.is_empty() && numbers.except.is_empty();
        if numbers.integer && numbers.multiples.is_empty() {
            let (least, most) = numbers.integer_bounds();
            let except = excluded_integers(&numbers.except);
            return self.terminal(format!("/{}/{except}", integers(least, most)));
        }
        if numbers.fraction {
            if bounded || !simple {
                return Err(Refusal(
                    "numbers that are not integers cannot be bounded; leave the opposite of `integer` out".to_owned(),
                ));
            }
            let whole = format!("-?(?:0|[1-9][0-9]{{0,{}}})", MAX_DIGITS - 1);
            return self.terminal(format!(r"/{whole}\.[0-9]{{0,40}}[1-9]/"));
        }
        if !bounded && simple {
            let whole = format!("-?(?:0|[1-9][0-9]{{0,{}}})", MAX_DIGITS - 1);
            return self.terminal(format!("/{whole}{FRACTION}(?:[eE][+-]?[0-9]{{1,2}})?/"));
        }
        if !bounded && numbers.multiples.is_empty() {
            let whole = format!("-?(?:0|[1-9][0-9]{{0,{}}})", MAX_DIGITS - 1);
            let except = excluded_numbers(&numbers.except);
            return self.terminal(format!("/{whole}{FRACTION}/{except}"));
        }
        if !numbers.except.is_empty() {
            return Err(Refusal(
                "single numbers cannot be excluded from numbers with bounds or multiples that are not integers; leave \
                 the opposite of `const` or `enum` out"
                    .to_owned(),
            ));
        }
        Ok(bounded_numbers(numbers))
    }

    fn array(&mut self, items: &Items, nodes: &Nodes) -> Checked<String> {
        let productive = |id: usize| nodes.made[id].productive;
        let mut prefix: Vec<usize> = items.prefix.clone();
        let mut max = items.max;
        if let Some(at) = prefix.iter().position(|&id| !productive(id)) {
            prefix.truncate(at);
            max = Some(at);
        } else if !productive(items.rest) {
            max = Some(max.map_or(prefix.len(), |max| max.min(prefix.len())));
        }
        if let Some(max) = max {
            prefix.truncate(max);
        }
        // From the end: what may follow when this many items stand before.
        let rest_min = items.min.saturating_sub(prefix.len());
        let rest_max = max.map(|max| max - prefix.len());
        let rest = self.of_node(items.rest);
        let mut tail = match (rest_min, rest_max) {
            (_, Some(0)) => String::new(),
            (min, max) if prefix.is_empty() => {
                let more = repeated(
                    &format!("(\",\" {rest})"),
                    min.saturating_sub(1),
                    max.map(|it| it - 1),
                );
                if min == 0 {
                    format!("({rest} {more})?")
                } else {
                    format!("{rest} {more}")
                }
            }
            (min, max) => repeated(&format!("(\",\" {rest})"), min, max),
        };
        for (at, id) in prefix.iter().enumerate().rev() {
            let comma = if at == 0 { "" } else { "\",\" " };
            tail = format!("{comma}{} {tail}", self.of_node(*id));
            if at >= items.min {
                tail = format!("({tail})?");
            }
            if tail.len() > 4096 {
                // Long lists become rules of their own, so that nothing is nested deeply.
                tail = self.rule(&tail)?;
            }
        }
        self.rule(&format!("\"[\" {tail} \"]\""))
    }

    fn object(&mut self, fields: &Fields, nodes: &Nodes) -> Checked<String> {
        let productive = |id: usize| nodes.made[id].productive;
        let named: Vec<&Field> = fields
            .named
            .iter()
            .filter(|it| productive(it.node))
            .collect();
        let others: Vec<&(String, usize)> =
            fields.others.iter().filter(|it| productive(it.1)).collect();
        let n_required = named.iter().filter(|it| it.required).count();
        if fields.max.is_some_and(|max| max < n_required) {
            return Err(Refusal(format!(
                "an object has {n_required} required properties and `maxProperties` below; raise it"
            )));
        }
        if !others.is_empty() && fields.min > n_required + 1 {
            return Err(Refusal(format!(
                "the keyword `minProperties` of {} cannot be enforced where keys are not all named; set \
                 additionalProperties to false",
                fields.min
            )));
        }
        let other = self.other(&others)?;
        // As many properties as matter: to the bound, or whether there is one at all.
        let most = fields.max.unwrap_or(fields.min.max(1));
        let mut after: Vec<Option<String>> = Vec::with_capacity(most + 1);
        for n_before in 0..=most {
            after.push(self.end(other.as_deref(), n_before, fields)?);
        }
        for (at, field) in named.iter().enumerate().rev() {
            let n_required_before = named[..at].iter().filter(|it| it.required).count();
            let mut before: Vec<Option<String>> = Vec::with_capacity(most + 1);
            for n_before in 0..=most {
                // States that no document reaches need no rule.
                if n_before > at || n_before < n_required_before.min(most) {
                    before.push(None);
                    continue;
                }
                let next = if n_before == most && fields.max.is_none() {
                    most
                } else {
                    n_before + 1
                };
                let comma = if n_before == 0 { "" } else { "," };
                let key = quoted(&format!("{comma}{}:", Value::from(field.name.as_str())));
                let mut options = Vec::new();
                if let Some(Some(rest)) = after.get(next) {
                    options.push(format!("{key} {} {rest}", self.of_node(field.node)));
                }
                if let (false, Some(rest)) = (field.required, &after[n_before]) {
                    options.push(rest.clone());
                }
                before.push(match options.as_slice() {
                    [] => None,
                    options => Some(self.rule(&options.join(" | "))?),
                });
            }
            after = before;
        }
        match &after[0] {
            Some(fields) => self.rule(&format!("\"{{\" {fields}")),
            None => Err(Refusal(
                "an object has fewer properties than its `minProperties`; lower it, or name more"
                    .to_owned(),
            )),
        }
    }

    /// The rule of one entry with another key.
    fn other(&mut self, others: &[&(String, usize)]) -> Checked<Option<String>> {
        let mut options = Vec::with_capacity(others.len());
        for (expression, node) in others {
            let key = self.terminal(expression.clone())?;
            options.push(format!("{key} \":\" {}", self.of_node(*node)));
        }
        match options.as_slice() {
            [] => Ok(None),
            options => self.rule(&options.join(" | ")).map(Some),
        }
    }

    /// What follows the named properties, when this many stand before; none where no document ends so.
    fn end(
        &mut self,
        other: Option<&str>,
        n_before: usize,
        fields: &Fields,
    ) -> Checked<Option<String>> {
        let missing = fields.min.saturating_sub(n_before);
        let room = fields.max.map(|max| max - n_before);
        let Some(other) = other.filter(|_| room != Some(0)) else {
            return Ok((missing == 0).then(|| "\"}\"".to_owned()));
        };
        if missing > 1 {
            return Ok(None);
        }
        let body = if n_before > 0 {
            repeated(&format!("(\",\" {other})"), missing, room)
        } else {
            let more = repeated(&format!("(\",\" {other})"), 0, room.map(|it| it - 1));
            let optional = if missing == 0 { "?" } else { "" };
            format!("({other} {more}){optional}")
        };
        self.rule(&format!("{body} \"}}\"")).map(Some)
    }
}

/// A text as a literal of the grammar.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Something between `min` and `max` times.
fn repeated(what: &str, min: usize, max: Option<usize>) -> String {
    match (min, max) {
        (0, None) => format!("{what}*"),
        (1, None) => format!("{what}+"),
        (_, Some(0)) => String::new(),
        (0, Some(1)) => format!("{what}?"),
        (1, Some(1)) => what.to_owned(),
        (min, None) => format!("{what}{{{min},}}"),
        (min, Some(max)) => format!("{what}{{{min},{max}}}"),
    }
}

/// The expression of a terminal for strings.
fn string_expression(strings: &Strings) -> String {
    if let Some(only) = &strings.only {
        let texts: Vec<String> = only.iter().map(|it| literal(it, true)).collect();
        return format!(r"/\x22(?:{})\x22/", texts.join("|"));
    }
    let mut parts: Vec<String> = Vec::new();
    let inside = |pattern: &str| format!(r"/\x22{pattern}\x22/");
    parts.extend(strings.all.iter().map(|it| inside(&it.quoted)));
    if strings.min > 0 || strings.max.is_some() || parts.is_empty() {
        let times = match (strings.min, strings.max) {
            (0, None) => "*".to_owned(),
            (min, None) => format!("{{{min},}}"),
            (min, Some(max)) => format!("{{{min},{max}}}"),
        };
        parts.push(inside(&format!("{JSON_CHARACTER}{times}")));
    }
    parts.extend(
        strings
            .none
            .iter()
            .map(|it| format!("~{}", inside(&it.quoted))),
    );
    if !strings.except.is_empty() {
        let texts: Vec<String> = strings.except.iter().map(|it| literal(it, true)).collect();
        parts.push(format!("~{}", inside(&format!("(?:{})", texts.join("|")))));
    }
    parts.join(" & ")
}

/// Whether patterns and lengths exclude each other.
fn matches_nothing(strings: &Strings) -> Checked<bool> {
    let n_patterns = strings.all.len() + strings.none.len();
    if strings.only.is_some() || n_patterns == 0 {
        return Ok(strings.is_empty());
    }
    let expression = |pattern: &str| RegexAst::Regex(pattern.to_owned());
    let mut parts: Vec<RegexAst> = strings.all.iter().map(|it| expression(&it.plain)).collect();
    if strings.min > 0 || strings.max.is_some() {
        let max = strings.max.map(|max| max.to_string()).unwrap_or_default();
        parts.push(expression(&format!(
            r"[\x{{0}}-\x{{10FFFF}}]{{{},{max}}}",
            strings.min
        )));
    } else {
        parts.push(expression(r"[\x{0}-\x{10FFFF}]*"));
    }
    let not = |pattern: &str| RegexAst::Not(Box::new(expression(pattern)));
    parts.extend(strings.none.iter().map(|it| not(&it.plain)));
    parts.extend(strings.except.iter().map(|it| not(&literal(it, false))));
    let mut builder = RegexBuilder::new();
    let too_complex = |_| {
        Refusal(
            "patterns and lengths that must hold together are too complex to tell whether they match anything; use \
             simpler ones"
                .to_owned(),
        )
    };
    let expression = builder.mk(&RegexAst::And(parts)).map_err(too_complex)?;
    let mut regex = builder
        .to_regex_limited(expression, MAX_STATES)
        .map_err(too_complex)?;
    Ok(regex.always_empty())
}

/// The shortest spelling of a number.
fn spelled(number: Num) -> String {
    match number {
        Num::Int(value) => value.to_string(),
        Num::Float(value) => json!(value).to_string(),
    }
}

fn excluded_integers(except: &[Num]) -> String {
    let texts: Vec<String> = except
        .iter()
        .filter(|it| it.is_integer())
        .map(|&it| literal(&spelled(it), false))
        .collect();
    if texts.is_empty() {
        String::new()
    } else {
        format!(" & ~/(?:{})/", texts.join("|"))
    }
}

/// Excludes all spellings without an exponent.
fn excluded_numbers(except: &[Num]) -> String {
    let spellings = except.iter().map(|it| {
        let text = format!("{}", it.as_f64());
        let text = if text == "0" || text == "-0" {
            "-?0".to_owned()
        } else {
            text.replace('.', r"\.")
        };
        if text.contains('.') {
            format!("{text}0*")
        } else {
            format!(r"{text}(?:\.0+)?")
        }
    });
    let spellings: Vec<String> = spellings.collect();
    format!(" & ~/(?:{})/", spellings.join("|"))
}

/// Numbers with bounds or multiples, which the engine has expressions for.
fn bounded_numbers(numbers: &Numbers) -> String {
    let value = |number: Num| match number {
        Num::Int(value) => {
            i64::try_from(value).map_or_else(|_| json!(number.as_f64()), |value| json!(value))
        }
        Num::Float(value) => json!(value),
    };
    let kind = if numbers.integer { "integer" } else { "number" };
    // Multiples are divided as doubles by those who read them, so they stay where doubles are exact.
    const EXACT: Num = Num::Int(1 << 53);
    const NEGATIVE_EXACT: Num = Num::Int(-(1 << 53));
    let mut numbers = numbers.clone();
    if !numbers.multiples.is_empty() {
        if numbers
            .min
            .is_none_or(|(min, _)| min.compare(NEGATIVE_EXACT).is_lt())
        {
            numbers.min = Some((NEGATIVE_EXACT, false));
        }
        if numbers
            .max
            .is_none_or(|(max, _)| max.compare(EXACT).is_gt())
        {
            numbers.max = Some((EXACT, false));
        }
    }
    let mut schema = json!({"type": kind});
    for (bound, plain, exclusive) in [
        (numbers.min, "minimum", "exclusiveMinimum"),
        (numbers.max, "maximum", "exclusiveMaximum"),
    ] {
        if let Some((bound, excluded)) = bound {
            schema[if excluded { exclusive } else { plain }] = value(bound);
        }
    }
    match numbers.multiples.as_slice() {
        [] => {}
        [one] => schema["multipleOf"] = value(*one),
        many => {
            let all = many
                .iter()
                .map(|&it| json!({"type": kind, "multipleOf": value(it)}));
            schema["allOf"] = Value::Array(all.collect());
        }
    }
    schema["x-guidance"] = json!({"whitespace_flexible": false});
    format!("%json {schema}")
}

fn too_large() -> Refusal {
    Refusal(format!(
        "the grammar of the schema has more than the limit of {MAX_RULES} rules or {MAX_TEXT_BYTES} bytes; use a smaller \
         schema"
    ))
}
