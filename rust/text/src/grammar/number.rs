//! Numbers of schemas: values that are compared exactly, and patterns of ranges of integers.

use std::cmp::Ordering;

use serde_json::Number;

/// The most digits of an integer without a bound.
pub(super) const MAX_DIGITS: usize = 200;

/// A number of a schema or a document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Num {
    /// An integer, exactly.
    Int(i128),
    /// Any other number, as the nearest double.
    Float(f64),
}

impl Num {
    /// The value of a JSON number. `1.0` is the integer 1, as JSON Schema has it.
    pub(super) fn of(number: &Number) -> Self {
        if let Some(value) = number.as_i64() {
            return Self::Int(i128::from(value));
        }
        if let Some(value) = number.as_u64() {
            return Self::Int(i128::from(value));
        }
        let value = number.as_f64().unwrap_or(f64::INFINITY);
        // 2^100 is exact in both.
        if value.fract() == 0.0 && value.abs() < 1e30 {
            #[allow(clippy::cast_possible_truncation)]
            return Self::Int(value as i128);
        }
        Self::Float(value)
    }

    /// As a double.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Whether it is an integer: large doubles are.
    pub(super) fn is_integer(self) -> bool {
        match self {
            Self::Int(_) => true,
            Self::Float(value) => value.fract() == 0.0,
        }
    }

    /// Less, equal or greater.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(one), Self::Int(two)) => one.cmp(&two),
            _ => self.as_f64().total_cmp(&other.as_f64()),
        }
    }

    /// Whether it is `n` times `step`, by exact decimals where both are short, as they are written.
    pub(super) fn is_multiple_of(self, step: Self) -> bool {
        match (self, step) {
            (_, Self::Int(0)) => false,
            (Self::Int(value), Self::Int(step)) => value % step == 0,
            _ => {
                let (value, step) = (self.as_f64(), step.as_f64());
                match (decimal(value), decimal(step)) {
                    (Some(value), Some(step)) => {
                        let scale = value.1.max(step.1);
                        let scaled = |(digits, places): (i128, u32)| {
                            digits.checked_mul(10i128.checked_pow(scale - places)?)
                        };
                        match (scaled(value), scaled(step)) {
                            (Some(value), Some(step)) => value % step == 0,
                            _ => false,
                        }
                    }
                    _ => (value / step).fract() == 0.0,
                }
            }
        }
    }
}

/// The first integer of a JSON text that is not read as it is written: a double stands for it that is another number.
pub(super) fn altered_integer(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut in_string) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'-' | b'0'..=b'9' if !in_string => {
                let is_part =
                    |it: &u8| matches!(it, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(|it| is_part(it)).count();
                let number = &text[at..end];
                if is_altered(number) {
                    return Some(number);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_altered(number: &str) -> bool {
    const SAFE_DIGITS: usize = 15;
    if number.len() <= SAFE_DIGITS || number.contains(['.', 'e', 'E']) {
        return false;
    }
    let is_integer = number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    let double = || number.parse::<f64>().unwrap_or(f64::NAN);
    !is_integer && format!("{:.0}", double()) != number
}

/// The digits of a double and how many of them stand behind the point, by its shortest spelling.
fn decimal(value: f64) -> Option<(i128, u32)> {
    let text = format!("{value}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if fraction.len() > 20 || whole.len() > 17 {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, u32::try_from(fraction.len()).ok()?))
}

/// The pattern of the integers from `min` to `max`, both included.
pub(super) fn integers(min: Option<i128>, max: Option<i128>) -> String {
    let mut options = Vec::new();
    let least = min.unwrap_or(i128::MIN);
    let most = max.unwrap_or(i128::MAX);
    if least < 0 {
        // The magnitudes of negative numbers, from the nearest to zero on.
        let from = if most < 0 { most.unsigned_abs() } else { 1 };
        let to = min.map(i128::unsigned_abs);
        options.push(format!("-(?:{})", magnitudes(from, to)));
    }
    if most >= 0 {
        let from = least.max(0).unsigned_abs();
        let to = max.map(i128::unsigned_abs);
        options.push(magnitudes(from, to));
    }
    format!("(?:{})", options.join("|"))
}

/// The decimals from `from` to `to`.
fn magnitudes(from: u128, to: Option<u128>) -> String {
    let mut options = Vec::new();
    let low = from.to_string();
    let high = to.map(|to| to.to_string());
    let longest = high.as_ref().map_or(low.len(), String::len);
    for len in low.len()..=longest {
        let least = if len == low.len() {
            low.clone()
        } else {
            format!("1{}", "0".repeat(len - 1))
        };
        let most = match &high {
            Some(high) if len == high.len() => high.clone(),
            _ => "9".repeat(len),
        };
        options.push(same_length(least.as_bytes(), most.as_bytes()));
    }
    if high.is_none() {
        // All that are longer.
        options.push(format!("[1-9][0-9]{{{},{}}}", longest, MAX_DIGITS - 1));
    }
    options.join("|")
}

/// The decimals between two of the same length.
fn same_length(least: &[u8], most: &[u8]) -> String {
    let (Some((&low, low_rest)), Some((&high, high_rest))) =
        (least.split_first(), most.split_first())
    else {
        return String::new();
    };
    if low == high {
        let rest = same_length(low_rest, high_rest);
        return format!("{}{rest}", char::from(low));
    }
    let n_rest = low_rest.len();
    let mut options = Vec::new();
    let mut first = low;
    let mut last = high;
    if low_rest.iter().any(|&digit| digit != b'0') {
        let nines = vec![b'9'; n_rest];
        options.push(format!(
            "{}{}",
            char::from(low),
            same_length(low_rest, &nines)
        ));
        first += 1;
    }
    let high_open = high_rest.iter().any(|&digit| digit != b'9');
    if high_open {
        last -= 1;
    }
    if first <= last {
        let rest = if n_rest == 0 {
            String::new()
        } else {
            format!("[0-9]{{{n_rest}}}")
        };
        options.push(format!(
            "[{}-{}]{rest}",
            char::from(first),
            char::from(last)
        ));
    }
    if high_open {
        let zeros = vec![b'0'; n_rest];
        options.push(format!(
            "{}{}",
            char::from(high),
            same_length(&zeros, high_rest)
        ));
    }
    format!("(?:{})", options.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: RS-130
    #[test]
    fn patterns_of_ranges_hold_what_lies_in_them() {
        let bounds = [-1205, -1000, -99, -10, -1, 0, 1, 7, 10, 99, 100, 1205];
        for min in bounds.map(Some).into_iter().chain([None]) {
            for max in bounds.map(Some).into_iter().chain([None]) {
                if matches!((min, max), (Some(min), Some(max)) if min > max) {
                    continue;
                }
                let pattern = regex::Regex::new(&format!("^{}$", integers(min, max))).unwrap();
                for value in -1300i128..1300 {
                    let inside =
                        min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max);
                    assert_eq!(
                        pattern.is_match(&value.to_string()),
                        inside,
                        "{min:?} {value} {max:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn integers_that_no_number_is_are_found() {
        let found = |text| altered_integer(text);
        assert_eq!(
            found("[123456789012345678901]"),
            Some("123456789012345678901")
        );
        assert_eq!(
            found("[1, -9223372036854775809]"),
            Some("-9223372036854775809")
        );
        for kept in [
            "[18446744073709551615, -9223372036854775808, 18446744073709551616]",
            "[1e400, 0.12345678901234567890, 1E5]",
            r#"["a\"123456789012345678901"]"#,
        ] {
            assert_eq!(found(kept), None, "{kept}");
        }
    }

    #[test]
    fn digits_of_a_double_are_known_within_bounds() {
        assert_eq!(decimal(-12.5), Some((-125, 1)));
        assert_eq!(decimal(1e16), Some((10_i128.pow(16), 0)));
        assert_eq!(decimal(1e17), None);
        assert_eq!(decimal(1e-20), Some((1, 20)));
        assert_eq!(decimal(1e-21), None);
    }

    // rows: RS-130
    #[test]
    fn decimals_are_divided_exactly() {
        let multiple = |value: f64, step: f64| Num::Float(value).is_multiple_of(Num::Float(step));
        assert!(multiple(0.3, 0.1));
        assert!(multiple(19.99, 0.01));
        assert!(!multiple(0.35, 0.1));
    }
}
