//! What the engine would tell late or not at all of a grammar in EBNF.

use std::collections::{HashMap, HashSet};

use super::rule::{Part, Rule};

/// The most characters that a grammar may stand for with its counts written out.
const MAX_WEIGHT: u64 = 100_000;
/// How deep the groups of all rules may stand in each other, summed over the rules: each rule may stand in the one
/// before.
const MAX_DEPTH: usize = 10_000;

/// Checks rules.
///
/// # Errors
/// What is wrong, and on which line.
pub(super) fn check(rules: &[Rule], start: &str, imported: &HashSet<String>) -> Result<(), String> {
    let by_name: HashMap<&str, &Rule> = rules.iter().map(|it| (it.name.as_str(), it)).collect();
    if !by_name.contains_key(start) {
        return Err(format!(
            "the grammar has no rule {start:?}; name the one to begin with so"
        ));
    }
    for rule in rules {
        check_names(&rule.body, &by_name, imported)?;
        let weight = weight(&rule.body);
        if weight > MAX_WEIGHT {
            return Err(format!(
                "line {}: the rule {:?} stands for {weight} characters with its counts written out, and the limit is \
                 {MAX_WEIGHT}; use smaller counts",
                rule.line, rule.name
            ));
        }
    }
    let depth: usize = rules.iter().map(|it| 1 + depth(&it.body)).sum();
    if depth > MAX_DEPTH {
        return Err(format!(
            "the groups of the rules stand {depth} deep in each other, rule by rule, and the limit is {MAX_DEPTH}; use \
             fewer rules or groups"
        ));
    }
    let mut productive: HashSet<&str> = HashSet::new();
    loop {
        let found: Vec<&str> = rules
            .iter()
            .filter(|it| !productive.contains(it.name.as_str()))
            .filter(|it| is_productive(&it.body, &productive, imported))
            .map(|it| it.name.as_str())
            .collect();
        if found.is_empty() {
            break;
        }
        productive.extend(found);
    }
    match rules
        .iter()
        .find(|it| !productive.contains(it.name.as_str()))
    {
        None => Ok(()),
        Some(rule) => Err(format!(
            "line {}: no text follows from the rule {:?}, which needs itself without end; give it another option",
            rule.line, rule.name
        )),
    }
}

fn check_names(
    part: &Part,
    rules: &HashMap<&str, &Rule>,
    imported: &HashSet<String>,
) -> Result<(), String> {
    match part {
        Part::Terminal(_) | Part::Characters(_) => Ok(()),
        Part::Name(name, line) => {
            if rules.contains_key(name.as_str()) || imported.contains(name) {
                Ok(())
            } else {
                Err(format!(
                    "line {line}: {name:?} is not a rule of the grammar; write it, or correct the name"
                ))
            }
        }
        Part::Sequence(parts) | Part::Options(parts) => parts
            .iter()
            .try_for_each(|it| check_names(it, rules, imported)),
        Part::Repeated(inner, _, _) => check_names(inner, rules, imported),
    }
}

fn is_productive(part: &Part, productive: &HashSet<&str>, imported: &HashSet<String>) -> bool {
    match part {
        Part::Terminal(_) | Part::Characters(_) => true,
        Part::Name(name, _) => productive.contains(name.as_str()) || imported.contains(name),
        Part::Sequence(parts) => parts
            .iter()
            .all(|it| is_productive(it, productive, imported)),
        Part::Options(parts) => parts
            .iter()
            .any(|it| is_productive(it, productive, imported)),
        Part::Repeated(inner, min, _) => *min == 0 || is_productive(inner, productive, imported),
    }
}

fn weight(part: &Part) -> u64 {
    match part {
        Part::Terminal(_) | Part::Name(_, _) => 1,
        Part::Characters(characters) => characters.len() as u64,
        Part::Sequence(parts) | Part::Options(parts) => parts
            .iter()
            .fold(1, |sum, it| sum.saturating_add(weight(it))),
        Part::Repeated(inner, min, max) => {
            let times = max.unwrap_or(*min).max(1);
            weight(inner).saturating_mul(u64::from(times))
        }
    }
}

/// How deep groups stand in each other.
fn depth(part: &Part) -> usize {
    match part {
        Part::Terminal(_) | Part::Characters(_) | Part::Name(_, _) => 0,
        Part::Sequence(parts) | Part::Options(parts) => {
            1 + parts.iter().map(depth).max().unwrap_or(0)
        }
        Part::Repeated(inner, _, _) => 1 + depth(inner),
    }
}
