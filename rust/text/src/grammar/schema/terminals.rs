//! The expressions of strings and numbers, in the dialect of the engine.

use llguidance::derivre::{RegexAst, RegexBuilder};
use serde_json::{Value, json};

use super::document::{Checked, Refusal};
use super::shape::{Numbers, Strings};
use crate::grammar::number::{MAX_DIGITS, Num, integers};
use crate::grammar::pattern::{JSON_CHARACTER, literal};

/// The most states of an automaton that tells whether a pattern matches anything.
const MAX_STATES: u64 = 20_000;

/// What stands for values of one type.
pub(super) enum Expression {
    /// The expression of a terminal.
    Terminal(String),
    /// Part of a rule.
    Nested(String),
}

/// The expression of strings, none of which holds a text of `avoided`.
pub(super) fn string_expression(strings: &Strings, avoided: &[String]) -> String {
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
    parts.extend(avoided.iter().map(|text| {
        let around = format!("(?:{JSON_CHARACTER})*");
        format!(
            "~{}",
            inside(&format!("{around}{}{around}", literal(text, true)))
        )
    }));
    parts.join(" & ")
}

/// Whether a text holds none of those of `avoided`.
pub(super) fn avoids(text: &str, avoided: &[String]) -> bool {
    !avoided.iter().any(|it| text.contains(it.as_str()))
}

/// Whether patterns and lengths exclude each other.
///
/// It returns with it what that took, as the steps of reading a schema count it.
pub(super) fn matches_nothing(strings: &Strings) -> Checked<(bool, usize)> {
    /// What the automata count for a step.
    const COST_A_STEP: u64 = 20;
    let n_patterns = strings.all.len() + strings.none.len();
    if strings.only.is_some() || n_patterns == 0 {
        return Ok((strings.is_empty(), 0));
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
    let n_steps = usize::try_from(regex.cost() / COST_A_STEP).unwrap_or(usize::MAX);
    Ok((regex.always_empty(), 1 + n_steps))
}

/// The expression of numbers.
///
/// # Errors
/// Where they have none.
pub(super) fn number_expression(numbers: &Numbers) -> Checked<Expression> {
    const FRACTION: &str = r"(?:\.[0-9]{1,40})?";
    let whole = || format!("-?(?:0|[1-9][0-9]{{0,{}}})", MAX_DIGITS - 1);
    let terminal = |pattern: String| Ok(Expression::Terminal(pattern));
    if let Some(only) = &numbers.only {
        let texts: Vec<String> = only
            .iter()
            .map(|&it| literal(&spelled(it), false))
            .collect();
        return terminal(format!("/(?:{})/", texts.join("|")));
    }
    let bounded = numbers.min.is_some() || numbers.max.is_some();
    let simple = numbers.multiples.is_empty() && numbers.except.is_empty();
    if numbers.integer && numbers.is_beyond_integers() {
        return Err(Refusal(
            "integers beyond 2^127 cannot be bounded; use a smaller bound".to_owned(),
        ));
    }
    if numbers.integer && numbers.multiples.is_empty() {
        let (least, most) = numbers.integer_bounds();
        let except = excluded_integers(&numbers.except);
        return terminal(format!("/{}/{except}", integers(least, most)));
    }
    if numbers.fraction {
        if bounded || !simple {
            return Err(Refusal(
                "numbers that are not integers cannot be bounded; leave the opposite of `integer` out".to_owned(),
            ));
        }
        return terminal(format!(r"/{}\.[0-9]{{0,40}}[1-9]/", whole()));
    }
    if !bounded && simple {
        return terminal(format!("/{}{FRACTION}(?:[eE][+-]?[0-9]{{1,2}})?/", whole()));
    }
    if !bounded && numbers.multiples.is_empty() {
        let except = excluded_numbers(&numbers.except);
        return terminal(format!("/{}{FRACTION}/{except}", whole()));
    }
    if !numbers.except.is_empty() {
        return Err(Refusal(
            "single numbers cannot be excluded from numbers with bounds or multiples that are not integers; leave the \
             opposite of `const` or `enum` out"
                .to_owned(),
        ));
    }
    Ok(Expression::Nested(bounded_numbers(numbers)))
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
