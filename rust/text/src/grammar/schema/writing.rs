//! From the shapes of a schema to the text of a grammar.
//!
//! Every node that a document may reach becomes a rule. Nodes that no finite document fits are left out, and with them
//! what needs them, so that no document that was begun cannot be finished. Properties are written in the order of the
//! schema, other keys behind them. Nothing stands around commas and colons but what the [`Spelling`] has there.

use std::collections::HashMap;

use serde_json::Value;

use super::document::{Checked, Refusal};
use super::nodes::{Field, Fields, Items, Nodes, Reached};
use super::productive::mark_productive;
use super::reading::Reading;
use super::shape::Numbers;
use super::size::{MAX_RULES, MAX_TEXT_BYTES, too_large};
use super::spelling::Spelling;
use super::terminals::{Expression, avoids, number_expression, string_expression};

/// The text of the grammar of a schema, in the dialect of the engine.
///
/// Names of rules begin with the prefix of the spelling, and `start` stands behind it for the whole schema.
pub(super) fn write(reading: &Reading<'_>, spelling: &Spelling) -> Checked<String> {
    let mut nodes = Nodes::of(reading, &spelling.avoided)?;
    mark_productive(&mut nodes);
    if !nodes.all[0].productive {
        return Err(Refusal(
            "no finite document fits the schema; look for required properties that allow nothing, for patterns and lengths \
             that exclude each other, and for schemas that need themselves without end"
                .to_owned(),
        ));
    }
    let mut text = Text {
        spelling: spelling.clone(),
        ..Text::default()
    };
    text.line(format!("{}start: {}", spelling.prefix, text.of_node(0)))?;
    for (id, reached) in nodes.all.iter().enumerate().filter(|(_, it)| it.productive) {
        text.node(id, reached, &nodes)
            .map_err(|Refusal(why)| reading.document.refusal(reached.place, &[], &why))?;
    }
    Ok(text.finished())
}

/// The rules of what follows, by how many properties stand before.
struct Counted {
    /// How many stand before the first of the rules.
    first: usize,
    rules: Vec<Option<String>>,
}

impl Counted {
    fn get(&self, n_before: usize) -> Option<&str> {
        self.rules
            .get(n_before.checked_sub(self.first)?)?
            .as_deref()
    }
}

/// The lines of a grammar.
#[derive(Default)]
struct Text {
    spelling: Spelling,
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
        format!("{}n{id}", self.spelling.prefix)
    }

    /// The name of a terminal.
    fn terminal(&mut self, expression: String) -> Checked<String> {
        let next = self.terminals.len();
        let prefix = self.spelling.prefix.to_ascii_uppercase();
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
        let name = format!("{}r{}", self.spelling.prefix, self.n_rules);
        self.line(format!("{name}: {body}"))?;
        Ok(name)
    }

    fn node(&mut self, id: usize, reached: &Reached, nodes: &Nodes) -> Checked<()> {
        let shape = &reached.shape;
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
        for strings in &reached.strings {
            options.push(self.terminal(string_expression(strings, &self.spelling.avoided))?);
        }
        for items in reached
            .arrays
            .iter()
            .filter(|it| nodes.array_is_productive(it))
        {
            options.push(self.array(items, nodes)?);
        }
        for fields in reached
            .objects
            .iter()
            .filter(|it| nodes.object_is_productive(it))
        {
            options.push(self.object(fields, nodes)?);
        }
        for whole in &shape.values {
            let text = self.spelling.of_value(&whole.value);
            if avoids(&text, &self.spelling.avoided) {
                options.push(quoted(&text));
            }
        }
        self.line(format!("{}: {}", self.of_node(id), options.join(" | ")))
    }

    fn numbers(&mut self, numbers: &Numbers) -> Checked<String> {
        match number_expression(numbers)? {
            Expression::Terminal(expression) => self.terminal(expression),
            Expression::Nested(part) => Ok(part),
        }
    }

    fn array(&mut self, items: &Items, nodes: &Nodes) -> Checked<String> {
        let productive = |id: usize| nodes.all[id].productive;
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
        let comma = quoted(self.spelling.comma);
        let mut tail = match (rest_min, rest_max) {
            (_, Some(0)) => String::new(),
            (min, max) if prefix.is_empty() => {
                let more = repeated(
                    &format!("({comma} {rest})"),
                    min.saturating_sub(1),
                    max.map(|it| it - 1),
                );
                if min == 0 {
                    format!("({rest} {more})?")
                } else {
                    format!("{rest} {more}")
                }
            }
            (min, max) => repeated(&format!("({comma} {rest})"), min, max),
        };
        for (at, id) in prefix.iter().enumerate().rev() {
            let comma = if at == 0 { "" } else { comma.as_str() };
            tail = format!("{comma} {} {tail}", self.of_node(*id));
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
        let productive = |id: usize| nodes.all[id].productive;
        let named: Vec<&Field> = fields
            .named
            .iter()
            .filter(|it| productive(it.node))
            .collect();
        let others: Vec<&(String, usize)> =
            fields.others.iter().filter(|it| productive(it.1)).collect();
        let n_required = named.iter().filter(|it| it.required).count();
        check_counts(fields, n_required, !others.is_empty())?;
        let other = self.other(&others)?;
        // As many properties as matter: to the bound, or whether there is one at all. There are no more than are named.
        let bound = fields.max.unwrap_or(fields.min.max(1));
        let most = bound.min(named.len());
        let mut after = Counted {
            first: 0,
            rules: Vec::with_capacity(most + 1),
        };
        for n_before in 0..=most {
            after
                .rules
                .push(self.end(other.as_deref(), n_before, fields)?);
        }
        let mut n_required_before = n_required;
        for (at, field) in named.iter().enumerate().rev() {
            n_required_before -= usize::from(field.required);
            // States that no document reaches need no rule.
            let first = n_required_before.min(most);
            let mut before = Counted {
                first,
                rules: Vec::new(),
            };
            for n_before in first..=most.min(at) {
                let is_counted = n_before < bound || fields.max.is_some();
                let next = if is_counted { n_before + 1 } else { bound };
                before
                    .rules
                    .push(self.field(field, n_before, &after, next)?);
            }
            after = before;
        }
        match after.get(0) {
            Some(fields) => self.rule(&format!("\"{{\" {fields}")),
            None => Err(Refusal(
                "an object has fewer properties than its `minProperties`; lower it, or name more"
                    .to_owned(),
            )),
        }
    }

    /// The rule of a property and what follows it, when this many stand before; none where no document goes on so.
    fn field(
        &mut self,
        field: &Field,
        n_before: usize,
        after: &Counted,
        next: usize,
    ) -> Checked<Option<String>> {
        let comma = if n_before == 0 {
            ""
        } else {
            self.spelling.comma
        };
        let name = Value::from(field.name.as_str());
        let key = quoted(&format!("{comma}{name}{}", self.spelling.colon));
        let mut options = Vec::new();
        if let Some(rest) = after.get(next) {
            options.push(format!("{key} {} {rest}", self.of_node(field.node)));
        }
        if let (false, Some(rest)) = (field.required, after.get(n_before)) {
            options.push(rest.to_owned());
        }
        match options.as_slice() {
            [] => Ok(None),
            options => self.rule(&options.join(" | ")).map(Some),
        }
    }

    /// The rule of one entry with another key.
    fn other(&mut self, others: &[&(String, usize)]) -> Checked<Option<String>> {
        let colon = quoted(self.spelling.colon);
        let mut options = Vec::with_capacity(others.len());
        for (expression, node) in others {
            let key = self.terminal(expression.clone())?;
            options.push(format!("{key} {colon} {}", self.of_node(*node)));
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
        let comma = quoted(self.spelling.comma);
        let missing = fields.min.saturating_sub(n_before);
        let room = fields.max.map(|max| max - n_before);
        let Some(other) = other.filter(|_| room != Some(0)) else {
            return Ok((missing == 0).then(|| "\"}\"".to_owned()));
        };
        if missing > 1 {
            return Ok(None);
        }
        let body = if n_before > 0 {
            repeated(&format!("({comma} {other})"), missing, room)
        } else {
            let more = repeated(&format!("({comma} {other})"), 0, room.map(|it| it - 1));
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

/// Checks that the bounds of an object can be enforced that has so many required properties.
fn check_counts(fields: &Fields, n_required: usize, has_others: bool) -> Checked<()> {
    if fields.max.is_some_and(|max| max < n_required) {
        return Err(Refusal(format!(
            "an object has {n_required} required properties and `maxProperties` below; raise it"
        )));
    }
    if has_others && fields.min > n_required + 1 {
        return Err(Refusal(format!(
            "the keyword `minProperties` of {} cannot be enforced where keys are not all named; set \
             additionalProperties to false",
            fields.min
        )));
    }
    Ok(())
}
