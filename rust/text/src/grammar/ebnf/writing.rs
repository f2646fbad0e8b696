//! A grammar in the `root ::=` dialect as one in the dialect of the engine.

use std::collections::HashMap;

use super::reading::MAX_NESTING;
use super::rule::{Part, Rule};

/// The longest regular expression that a grammar becomes.
const MAX_FOLDED_BYTES: usize = 64 << 10;

/// The text of a grammar that was checked and begins with the rule `start`.
pub(super) fn translated(rules: &[Rule], start: &str) -> String {
    let by_name: HashMap<&str, &Part> = rules
        .iter()
        .map(|it| (it.name.as_str(), &it.body))
        .collect();
    let mut under_way = Vec::new();
    let first = by_name.get(start).copied();
    if let Some(expression) = first.and_then(|it| folded(it, &by_name, &mut under_way)) {
        return format!("start: /{expression}/\n");
    }
    let names: HashMap<&str, usize> = rules
        .iter()
        .enumerate()
        .map(|(at, it)| (it.name.as_str(), at))
        .collect();
    let mut text = format!("start: g{}\n", names[start]);
    for (at, rule) in rules.iter().enumerate() {
        text.push_str(&format!("g{at}: {}\n", lark(&rule.body, &names)));
    }
    text
}

/// One regular expression for a part that does not recur; none where it does, or becomes long.
fn folded<'a>(
    part: &'a Part,
    rules: &HashMap<&str, &'a Part>,
    under_way: &mut Vec<&'a str>,
) -> Option<String> {
    let text = match part {
        Part::Terminal(_) => return None,
        Part::Characters(characters) => characters.concat(),
        Part::Name(name, _) => {
            if under_way.contains(&name.as_str()) || under_way.len() > MAX_NESTING {
                return None;
            }
            under_way.push(name);
            let text = folded(rules.get(name.as_str())?, rules, under_way)?;
            under_way.pop();
            format!("(?:{text})")
        }
        Part::Sequence(parts) => {
            let parts: Option<Vec<String>> = parts
                .iter()
                .map(|it| folded(it, rules, under_way))
                .collect();
            parts?.into_iter().map(|it| format!("(?:{it})")).collect()
        }
        Part::Options(parts) => {
            let parts: Option<Vec<String>> = parts
                .iter()
                .map(|it| folded(it, rules, under_way))
                .collect();
            format!("(?:{})", parts?.join("|"))
        }
        Part::Repeated(inner, min, max) => {
            let max = max.map(|max| max.to_string()).unwrap_or_default();
            format!("(?:{}){{{min},{max}}}", folded(inner, rules, under_way)?)
        }
    };
    (text.len() <= MAX_FOLDED_BYTES).then_some(text)
}

/// A part in the dialect of the engine, a lexeme a character.
fn lark(part: &Part, names: &HashMap<&str, usize>) -> String {
    match part {
        Part::Terminal(text) => text.clone(),
        Part::Characters(characters) if characters.is_empty() => "\"\"".to_owned(),
        Part::Characters(characters) => {
            let characters: Vec<String> = characters.iter().map(|it| format!("/{it}/")).collect();
            characters.join(" ")
        }
        Part::Name(name, _) => {
            format!("g{}", names.get(name.as_str()).copied().unwrap_or_default())
        }
        Part::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
        Part::Sequence(parts) => {
            let parts: Vec<String> = parts.iter().map(|it| lark(it, names)).collect();
            parts.join(" ")
        }
        Part::Options(parts) => {
            let parts: Vec<String> = parts.iter().map(|it| lark(it, names)).collect();
            format!("({})", parts.join(" | "))
        }
        Part::Repeated(inner, min, max) => {
            let max = max.map(|max| max.to_string()).unwrap_or_default();
            match (min, max.as_str()) {
                (0, "") => format!("({})*", lark(inner, names)),
                (1, "") => format!("({})+", lark(inner, names)),
                (0, "1") => format!("({})?", lark(inner, names)),
                (_, "") => format!("({}){{{min},}}", lark(inner, names)),
                _ => format!("({}){{{min},{max}}}", lark(inner, names)),
            }
        }
    }
}
