//! From steps and data to results.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::{Node, Operator, Slice, Step};

/// A template that cannot be filled in with this data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A path that has to find something does not.
    #[error("{0} finds nothing")]
    Missing(String),
    /// An index or filter on something else.
    #[error("{0} is not an array")]
    NotAnArray(&'static str),
    /// An index outside of the array.
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds {
        /// The index.
        index: i64,
        /// The array's length.
        length: i64,
    },
    /// A slice that ends before it starts.
    #[error("starting index {0} is greater than ending index {1}")]
    Backwards(i64, i64),
    /// A slice that does not move.
    #[error("step must be > 0")]
    Step,
    /// A filter that compares several values.
    #[error("can only compare one element at a time")]
    Several,
    /// A filter that compares what cannot be compared.
    #[error("incompatible types for comparison: {0} and {1}")]
    Incompatible(&'static str, &'static str),
    /// More results than any sensible template has; a guard against hostile ones.
    #[error("more than {0} results")]
    TooMany(usize),
}

/// Most values that a step may find.
const MAX_RESULTS: usize = 10_000;

/// The results of one text or action.
pub(super) struct Block<'a> {
    /// The action's text.
    pub(super) source: String,
    pub(super) values: Vec<Cow<'a, Value>>,
}

type Found<'a> = Vec<Cow<'a, Value>>;

pub(super) fn blocks<'a>(nodes: &'a [Node], data: &'a Value) -> Result<Vec<Block<'a>>, EvalError> {
    let mut out = Vec::new();
    run(nodes, &[Cow::Borrowed(data)], &mut out)?;
    Ok(out)
}

fn run<'a>(nodes: &'a [Node], data: &[Cow<'a, Value>], out: &mut Vec<Block<'a>>) -> Result<(), EvalError> {
    for node in nodes {
        if out.len() > MAX_RESULTS {
            return Err(EvalError::TooMany(MAX_RESULTS));
        }
        match node {
            Node::Text(text) => {
                let text = Cow::Owned(Value::String(text.clone()));
                out.push(Block { source: String::new(), values: vec![text] });
            }
            Node::Action(source, steps) => {
                out.push(Block { source: source.clone(), values: walk(steps, data.to_vec())? });
            }
            Node::Range(steps, body) => {
                for item in walk(steps, data.to_vec())? {
                    run(body, &[item], out)?;
                }
            }
        }
    }
    Ok(())
}

fn walk<'a>(steps: &'a [Step], from: Found<'a>) -> Result<Found<'a>, EvalError> {
    steps.iter().try_fold(from, |found, step| {
        let found = apply(step, found)?;
        if found.len() > MAX_RESULTS { Err(EvalError::TooMany(MAX_RESULTS)) } else { Ok(found) }
    })
}

fn apply<'a>(step: &'a Step, from: Found<'a>) -> Result<Found<'a>, EvalError> {
    match step {
        Step::Field(name) => Ok(from.into_iter().filter_map(|value| field(value, name)).collect()),
        Step::Wildcard => Ok(from.into_iter().flat_map(children).collect()),
        Step::Recursive => {
            let mut found = Vec::new();
            for value in from {
                descend(value, &mut found)?;
            }
            Ok(found)
        }
        Step::Slice(slice) => {
            let mut found = Vec::new();
            for value in from.into_iter().filter(|value| !value.is_null()) {
                let length = value.as_array().ok_or_else(|| EvalError::NotAnArray(kind(&value)))?.len();
                found.extend(indices(*slice, length)?.into_iter().filter_map(|index| item(&value, index)));
            }
            Ok(found)
        }
        Step::Union(members) => {
            let mut found = Vec::new();
            for member in members {
                found.extend(walk(member, from.clone())?);
            }
            Ok(found)
        }
        Step::Filter(left, comparison) => {
            let mut found = Vec::new();
            for value in from {
                let length = value.as_array().ok_or_else(|| EvalError::NotAnArray(kind(&value)))?.len();
                for element in (0..length).filter_map(|index| item(&value, index)) {
                    if passes(left, comparison.as_ref(), element.clone())? {
                        found.push(element);
                    }
                }
            }
            Ok(found)
        }
        Step::Literal(value) => match value {
            // A quoted text stands for itself, whatever was found before it.
            Value::String(_) => Ok(vec![Cow::Borrowed(value)]),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Ok(from.iter().map(|_| Cow::Borrowed(value)).collect())
            }
        },
    }
}

fn field<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.as_object()?.get(name).cloned().map(Cow::Owned),
    }
}

fn item<'a>(value: &Cow<'a, Value>, index: usize) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.get(index).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(index).cloned().map(Cow::Owned),
    }
}

fn children(value: Cow<'_, Value>) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(fields)) => fields.into_iter().map(|(_, value)| Cow::Owned(value)).collect(),
        Cow::Borrowed(_) | Cow::Owned(_) => Vec::new(),
    }
}

/// The value and everything in it that is not empty, outermost first.
fn descend<'a>(value: Cow<'a, Value>, found: &mut Found<'a>) -> Result<(), EvalError> {
    let inner = children(value.clone());
    // kubectl counts a text as a list of bytes, so it is found as well.
    if inner.is_empty() && value.as_str().is_none_or(str::is_empty) {
        return Ok(());
    }
    if found.len() > MAX_RESULTS {
        return Err(EvalError::TooMany(MAX_RESULTS));
    }
    found.push(value);
    inner.into_iter().try_for_each(|child| descend(child, found))
}

fn indices(slice: Slice, length: usize) -> Result<Vec<usize>, EvalError> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let from_end = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let start = from_end(slice.start.unwrap_or(0));
    let end = match slice.end {
        None => length,
        // The end of the bare index -1 is 0, which means the end of the array.
        Some(0) if slice.index => length,
        Some(end) => from_end(end),
    };
    if start == end {
        return Ok(Vec::new());
    }
    if start >= length || start < 0 {
        return Err(EvalError::OutOfBounds { index: start, length });
    }
    if end > length || end < 0 {
        return Err(EvalError::OutOfBounds { index: end.saturating_sub(1), length });
    }
    if start > end {
        return Err(EvalError::Backwards(start, end));
    }
    let step =
        usize::try_from(slice.step.unwrap_or(1)).ok().filter(|step| *step > 0).ok_or(EvalError::Step)?;
    Ok((start..end).step_by(step).filter_map(|index| usize::try_from(index).ok()).collect())
}

fn passes<'a>(
    left: &'a [Step],
    comparison: Option<&'a (Operator, Vec<Step>)>,
    element: Cow<'a, Value>,
) -> Result<bool, EvalError> {
    let lefts = walk(left, vec![element.clone()]);
    let Some((operator, right)) = comparison else {
        // A test for existence that fails finds nothing.
        return Ok(lefts.is_ok_and(|found| !found.is_empty()));
    };
    let (lefts, rights) = (lefts?, walk(right, vec![element])?);
    match (lefts.as_slice(), rights.as_slice()) {
        ([], _) => Ok(false),
        ([_, _, ..], _) | (_, [_, _, ..]) => Err(EvalError::Several),
        (_, []) => Ok(false),
        ([left], [right]) => compare(*operator, left, right),
    }
}

fn compare(operator: Operator, left: &Value, right: &Value) -> Result<bool, EvalError> {
    let incompatible = || EvalError::Incompatible(kind(left), kind(right));
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => match operator {
            Operator::Equal | Operator::NotEqual => left.cmp(right),
            Operator::Less | Operator::LessOrEqual | Operator::GreaterOrEqual | Operator::Greater => {
                return Err(incompatible());
            }
        },
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            (None, None) => left
                .as_f64()
                .zip(right.as_f64())
                .and_then(|(left, right)| left.partial_cmp(&right))
                .ok_or_else(incompatible)?,
            // An integer and a decimal are different kinds in Go.
            (Some(_), None) | (None, Some(_)) => return Err(incompatible()),
        },
        (_, _) => return Err(incompatible()),
    };
    Ok(match operator {
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::GreaterOrEqual => order != Ordering::Less,
        Operator::Greater => order == Ordering::Greater,
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
