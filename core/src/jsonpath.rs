//! kubectl's JSONPath dialect: text with `{...}` actions, `range`/`end`, filters, unions, slices.
//!
//! No library speaks it: those on RFC 9535 differ in syntax and in what a missing key or an index out of
//! range means. The golden cases in `tests/jsonpath.rs` were answered by kubectl itself.

mod eval;
mod parse;
mod print;

use serde_json::Value;

pub use eval::EvalError;
pub use parse::ParseError;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<Node>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Text outside of braces.
    Text(String),
    /// `{...}`: the source text and the steps.
    Action(String, Vec<Step>),
    /// `{range ...}` up to its `{end}`.
    Range(Vec<Step>, Vec<Node>),
}

/// One step of a path, applied to each value that the steps before found.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name`, `['name']`.
    Field(String),
    /// `.*`.
    Wildcard,
    /// `..`.
    Recursive,
    /// `[n]`, `[a:b:c]`, `[*]`.
    Slice(Slice),
    /// `[a,b]`.
    Union(Vec<Vec<Step>>),
    /// `[?(left op right)]`; without an operator the left side only has to find something.
    Filter(Vec<Step>, Option<(Operator, Vec<Step>)>),
    /// A quoted text, a number, `true` or `false`.
    Literal(Value),
}

/// The bounds of a slice. A bare index `n` is `n:n+1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    /// Whether `end` was derived from a bare index.
    index: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { nodes: parse::template(text)? })
    }

    /// Parses what kubectl takes after `-o jsonpath=`: the same, but the braces and the leading dot may be left out.
    pub fn parse_relaxed(text: &str) -> Result<Self, ParseError> {
        if text.contains('{') {
            return Self::parse(text);
        }
        let path = text.trim_start_matches('$');
        let dot = if path.is_empty() || path.starts_with(['.', '[']) { "" } else { "." };
        Self::parse(&format!("{{{dot}{path}}}"))
    }

    /// Fills the template in. What a path does not find prints nothing, as in kubectl.
    pub fn render(&self, data: &Value) -> Result<String, EvalError> {
        let mut out = String::new();
        for results in eval::blocks(&self.nodes, data)? {
            let texts: Vec<String> = results.values.iter().map(|value| print::text(value)).collect();
            out.push_str(&texts.join(" "));
        }
        Ok(out)
    }

    /// Fills the template in where nothing may be missing. A template that is one action with one result keeps
    /// that result's JSON type; everything else is a string.
    ///
    /// The error of a path that finds nothing names it.
    pub fn resolve(&self, data: &Value) -> Result<Value, EvalError> {
        let blocks = eval::blocks(&self.nodes, data)?;
        if let Some(missing) = blocks.iter().find(|block| block.values.is_empty()) {
            return Err(EvalError::Missing(missing.source.clone()));
        }
        match blocks.as_slice() {
            [block] if matches!(self.nodes.as_slice(), [Node::Action(..)]) => match block.values.as_slice() {
                [value] => Ok(value.clone().into_owned()),
                values => {
                    Ok(Value::String(values.iter().map(|v| print::text(v)).collect::<Vec<_>>().join(" ")))
                }
            },
            _ => self.render(data).map(Value::String),
        }
    }
}
