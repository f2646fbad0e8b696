//! The formats of strings and numbers that are enforced, as patterns of the whole text.

/// The years that calendars know: 0001 to 9999.
const YEAR: &str = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})";
/// Those of them that have 29 days in February.
const LEAP_YEAR: &str =
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
const TIME: &str = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
/// A part of a host's name. RFC 5890 (2.3.1) keeps two hyphens behind two characters for names in other scripts, whose
/// rest a pattern cannot check.
const LABEL: &str = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,2}[a-zA-Z0-9]|[a-zA-Z0-9-](?:[a-zA-Z0-9][a-zA-Z0-9-]|-[a-zA-Z0-9])[a-zA-Z0-9-]{0,58}[a-zA-Z0-9])?";
const IPV4: &str = r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
/// A character of a path, `pchar` of RFC 3986.
const UNRESERVED: &str = r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})";

/// The formats of strings.
pub(super) const STRING_FORMATS: [&str; 9] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
];

/// The pattern of the texts of a format, in the syntax of `pattern`; none for a format that is not enforced.
///
/// Dates exist (February has 29 days in leap years alone) and a minute has 60 seconds. Where a standard allows rare
/// spellings (leap seconds, addresses within brackets), those of daily use are written. The standards are RFC 3339 for
/// times, its appendix A for durations, RFC 5321 for addresses of mail, RFC 1123 for hosts, RFC 4291 for IPv6, RFC 9562
/// for UUIDs and RFC 3986 for URIs.
pub(super) fn of_string(format: &str) -> Option<String> {
    let date = format!(
        "(?:{YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|\
         02-(?:0[1-9]|1[0-9]|2[0-8]))|{LEAP_YEAR}-02-29)"
    );
    let pattern = match format {
        "date" => date,
        "time" => TIME.to_owned(),
        "date-time" => format!("{date}T{TIME}"),
        "duration" => {
            "P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)\
             (?:T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))?|\
             T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))"
                .to_owned()
        }
        "email" => format!(
            r"[a-zA-Z0-9!#$%*+/=?^_{{|}}~-]{{1,20}}(?:\.[a-zA-Z0-9!#$%*+/=?^_{{|}}~-]{{1,20}}){{0,2}}@{LABEL}(?:\.{LABEL}){{1,2}}"
        ),
        // Four labels of 63 characters are as long as a name may be.
        "hostname" => format!(r"{LABEL}(?:\.{LABEL}){{0,2}}"),
        "ipv4" => IPV4.to_owned(),
        "ipv6" => ipv6(),
        "uuid" => "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}".to_owned(),
        "uri" => format!(
            r"[a-zA-Z][a-zA-Z0-9+.-]{{0,20}}:(?://(?:{LABEL}(?:\.{LABEL}){{0,2}}(?::[0-9]{{1,5}})?)?(?:/{UNRESERVED}*)*|{UNRESERVED}+(?:/{UNRESERVED}*)*)(?:\?(?:{UNRESERVED}|[/?])*)?(?:#(?:{UNRESERVED}|[/?])*)?"
        ),
        _ => return None,
    };
    Some(format!("^(?:{pattern})$"))
}

/// Whether a text may be of a format in a spelling that its pattern leaves out; none where it leaves out none. Two
/// schemas are told apart by what a format has at most, and not by what is written of it.
pub(super) fn wide(format: &str) -> Option<fn(&str) -> bool> {
    fn time(text: &str) -> bool {
        let is_sign = |it: char| it.is_ascii_digit() || "+-:. TZtz".contains(it);
        !text.is_empty() && text.chars().all(is_sign)
    }
    fn duration(text: &str) -> bool {
        text.starts_with('P') && text.is_ascii()
    }
    fn email(text: &str) -> bool {
        text.contains('@')
    }
    fn hostname(text: &str) -> bool {
        let is_sign = |it: char| it.is_ascii_alphanumeric() || "-.".contains(it);
        !text.is_empty() && text.chars().all(is_sign)
    }
    fn with_colon(text: &str) -> bool {
        text.contains(':') && text.is_ascii()
    }
    let wide: fn(&str) -> bool = match format {
        "date" | "date-time" | "time" => time,
        "duration" => duration,
        "email" => email,
        "hostname" => hostname,
        "ipv6" | "uri" => with_colon,
        _ => return None,
    };
    Some(wide)
}

/// Eight groups, or fewer around one `::`.
fn ipv6() -> String {
    const GROUP: &str = "[0-9a-fA-F]{1,4}";
    let mut options = vec![format!("(?:{GROUP}:){{7}}{GROUP}")];
    for n_before in 0..=6usize {
        let before = match n_before {
            0 => String::new(),
            n => format!("{GROUP}(?::{GROUP}){{{}}}", n - 1),
        };
        let n_after = 6 - n_before;
        let after = match n_after {
            0 => String::new(),
            n => format!("(?:{GROUP}(?::{GROUP}){{0,{}}})?", n - 1),
        };
        options.push(format!("{before}::{after}"));
    }
    format!("(?:{})", options.join("|"))
}

/// The least and the greatest number of a format of integers, as code generators write them beside `integer`.
pub(super) fn of_integer(format: &str) -> Option<(i128, i128)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" | "int" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" | "uint" => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Whether a format says how a number is stored, which restricts nothing here.
pub(super) fn is_of_number(format: &str) -> bool {
    matches!(format, "float" | "double")
}
