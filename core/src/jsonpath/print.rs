//! How a result is printed.

use serde_json::Value;

/// Strings bare, objects and arrays as JSON, numbers as Go prints them.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(decimal) if number.is_f64() => decimal_text(decimal),
            Some(_) | None => number.to_string(),
        },
        Value::Array(_) | Value::Object(_) => escape_html(&value.to_string()),
    }
}

/// Go's `%v` of a decimal: the shortest text that reads back, in exponent form below 1e-4 and from 1e21 on.
fn decimal_text(decimal: f64) -> String {
    let magnitude = decimal.abs();
    if decimal != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{decimal:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{decimal}")
}

/// JSON as Go writes it, with the characters escaped that matter in HTML.
fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}
