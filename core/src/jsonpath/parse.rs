//! From text to steps.

use serde_json::Value;

use super::{Node, Operator, Slice, Step};

/// A template that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// `{` without `}`.
    #[error("unclosed action: a '{{' has no '}}'")]
    UnclosedAction,
    /// `[` without `]`.
    #[error("unterminated array: a '[' has no ']'")]
    UnterminatedArray,
    /// `[?(` without `)]`.
    #[error("unterminated filter: '[?(' has no ')]'")]
    UnterminatedFilter,
    /// A quote that is not closed.
    #[error("unterminated quoted string")]
    UnterminatedQuote,
    /// An escape in a quoted string that means nothing.
    #[error("unknown escape in the quoted string {0}")]
    BadQuote(String),
    /// A character that starts nothing.
    #[error("unrecognized character in action: {0:?}")]
    Character(char),
    /// Neither an index, a slice nor a quoted key.
    #[error("invalid array index {0}")]
    Index(String),
    /// Neither an integer nor a decimal.
    #[error("cannot parse number {0}")]
    Number(String),
    /// A word that is neither `range`, `end`, `true` nor `false`.
    #[error("unrecognized identifier {0}; a path begins with '.' or '$'")]
    Identifier(String),
    /// `{end}` without `{range}`.
    #[error("not in range, nothing to end")]
    NothingToEnd,
    /// `{range}` without `{end}`.
    #[error("range without end: add {{end}}")]
    OpenRange,
    /// `....`
    #[error("invalid multiple recursive descent")]
    MultipleRecursion,
    /// An operator in a filter that does not exist, such as `=` or `=~`.
    #[error("unrecognized filter operator {0}")]
    Operator(String),
    /// Ranges nested too deeply.
    #[error("more than {0} nested ranges")]
    TooDeep(usize),
}

/// Deepest nesting of ranges, filters and unions.
const MAX_DEPTH: usize = 32;

/// What one action turned out to be.
enum Action {
    Path(Vec<Step>),
    Range(Vec<Step>),
    End,
}

pub(super) fn template(text: &str) -> Result<Vec<Node>, ParseError> {
    let mut open: Vec<(Vec<Step>, Vec<Node>)> = Vec::new();
    let mut nodes = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        if start > 0 {
            nodes.push(Node::Text(rest[..start].to_owned()));
        }
        let mut cursor = Cursor { rest: &rest[start + 1..], depth: 0 };
        let action = cursor.action()?;
        let source = &rest[start..rest.len() - cursor.rest.len()];
        rest = cursor.rest;
        match action {
            Action::Path(steps) => nodes.push(Node::Action(source.to_owned(), steps)),
            Action::Range(steps) => {
                if open.len() >= MAX_DEPTH {
                    return Err(ParseError::TooDeep(MAX_DEPTH));
                }
                open.push((steps, std::mem::take(&mut nodes)));
            }
            Action::End => {
                let (steps, outer) = open.pop().ok_or(ParseError::NothingToEnd)?;
                let body = std::mem::replace(&mut nodes, outer);
                nodes.push(Node::Range(steps, body));
            }
        }
    }
    if !rest.is_empty() {
        nodes.push(Node::Text(rest.to_owned()));
    }
    // kubectl runs on to the end of the template and prints the rest once more; nobody means that.
    if !open.is_empty() {
        return Err(ParseError::OpenRange);
    }
    Ok(nodes)
}

struct Cursor<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// One action, up to and with its closing brace.
    fn action(&mut self) -> Result<Action, ParseError> {
        let mut words = Vec::new();
        let steps = self.steps(&mut words)?;
        if self.rest.is_empty() {
            return Err(ParseError::UnclosedAction);
        }
        self.take(1);
        match words.as_slice() {
            [] => Ok(Action::Path(steps)),
            [word] if word == "range" => Ok(Action::Range(steps)),
            [word] if word == "end" => Ok(Action::End),
            [word, ..] => Err(ParseError::Identifier(word.clone())),
        }
    }

    /// Steps up to a closing brace or the end of the text.
    fn steps(&mut self, words: &mut Vec<String>) -> Result<Vec<Step>, ParseError> {
        let mut steps = Vec::new();
        while let Some(next) = self.rest.chars().next() {
            match next {
                '}' => break,
                '[' if self.rest.starts_with("[?(") => steps.push(self.filter()?),
                '.' if self.rest.starts_with("..") => {
                    if steps.last() == Some(&Step::Recursive) {
                        return Err(ParseError::MultipleRecursion);
                    }
                    self.take(2);
                    steps.push(Step::Recursive);
                    if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                        steps.push(self.field());
                    }
                }
                ' ' | '@' | '$' => {
                    self.take(1);
                }
                '[' => self.array(&mut steps)?,
                '"' | '\'' => steps.push(self.quote(next)?),
                '.' => {
                    self.take(1);
                    steps.push(self.field());
                }
                '+' | '-' | '0'..='9' => steps.push(self.number()?),
                '\r' | '\n' => return Err(ParseError::UnclosedAction),
                c if c == '_' || c.is_alphanumeric() => {
                    let word = self.word();
                    match word {
                        "true" => steps.push(Step::Literal(Value::Bool(true))),
                        "false" => steps.push(Step::Literal(Value::Bool(false))),
                        other => words.push(other.to_owned()),
                    }
                }
                other => return Err(ParseError::Character(other)),
            }
        }
        Ok(steps)
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        self.take(end)
    }

    /// A field's name: up to a terminator that no backslash precedes.
    fn field(&mut self) -> Step {
        let mut end = self.rest.len();
        let mut escaped = false;
        for (at, character) in self.rest.char_indices() {
            if escaped {
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if is_terminator(character) {
                end = at;
                break;
            }
        }
        match self.take(end) {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "")),
        }
    }

    fn number(&mut self) -> Result<Step, ParseError> {
        let signed = self.rest.starts_with(['+', '-']);
        let digits = self.rest[usize::from(signed)..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |at| at + usize::from(signed)));
        let bare = text.strip_prefix('+').unwrap_or(text);
        if let Ok(integer) = bare.parse::<i64>() {
            return Ok(Step::Literal(integer.into()));
        }
        let number = bare.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
        number
            .map(|number| Step::Literal(Value::Number(number)))
            .ok_or_else(|| ParseError::Number(text.to_owned()))
    }

    fn quote(&mut self, quote: char) -> Result<Step, ParseError> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find_map(|(at, character)| match character {
            '\n' => Some(None),
            _ if escaped => {
                escaped = false;
                None
            }
            '\\' => {
                escaped = true;
                None
            }
            other => (other == quote).then_some(Some(at)),
        });
        let end = end.flatten().ok_or(ParseError::UnterminatedQuote)?;
        let text = self.take(end + 1);
        unquote(&text[1..end])
            .map(|text| Step::Literal(Value::String(text)))
            .ok_or_else(|| ParseError::BadQuote(text.to_owned()))
    }

    /// `[...]` other than a filter.
    fn array(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseError> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'));
        let text = self.take(end.ok_or(ParseError::UnterminatedArray)? + 1);
        let inside = &text[1..text.len() - 1];
        if inside.contains(',') {
            let members =
                inside.split(',').map(|member| self.nested(&format!("[{}]", member.trim_matches(' '))));
            steps.push(Step::Union(members.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = inside
            .strip_prefix('\'')
            .and_then(|key| key.strip_suffix('\''))
            .filter(|key| !key.contains('\''));
        if let Some(key) = key {
            steps.extend(self.nested(&format!(".{key}"))?);
            return Ok(());
        }
        steps.push(Step::Slice(slice(inside)?));
        Ok(())
    }

    /// Steps in a text of their own.
    fn nested(&self, text: &str) -> Result<Vec<Step>, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::TooDeep(MAX_DEPTH));
        }
        let mut words = Vec::new();
        let mut cursor = Cursor { rest: text, depth: self.depth + 1 };
        let steps = cursor.steps(&mut words)?;
        match words.into_iter().next() {
            Some(word) => Err(ParseError::Identifier(word)),
            None if cursor.rest.is_empty() => Ok(steps),
            None => Err(ParseError::Character('}')),
        }
    }

    fn filter(&mut self) -> Result<Step, ParseError> {
        self.take("[?(".len());
        let end = filter_end(self.rest).ok_or(ParseError::UnterminatedFilter)?;
        let text = self.take(end);
        self.take(")".len());
        if !self.rest.starts_with(']') {
            return Err(ParseError::UnterminatedFilter);
        }
        self.take(1);
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let comparison = text.find(is_operator).filter(|at| *at > 0).and_then(|at| {
            let length = text[at..].find(|c| !is_operator(c))?;
            Some((&text[..at], &text[at..at + length], &text[at + length..]))
        });
        let Some((left, operator, right)) = comparison else {
            return Ok(Step::Filter(self.nested(text)?, None));
        };
        let operator = match operator {
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            ">=" => Operator::GreaterOrEqual,
            ">" => Operator::Greater,
            other => return Err(ParseError::Operator(other.to_owned())),
        };
        Ok(Step::Filter(self.nested(left)?, Some((operator, self.nested(right)?))))
    }
}

/// Where the filter's closing parenthesis is: one that is not inside the one quoted text a filter may hold.
fn filter_end(text: &str) -> Option<usize> {
    let mut quote: Option<char> = None;
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        match (character, quote) {
            ('\n', _) => return None,
            ('"' | '\'', None) => quote = Some(character),
            (_, Some(open)) if character == open && previous != '\\' => quote = None,
            (')', None) => return Some(at),
            _ => {}
        }
        previous = character;
    }
    None
}

fn slice(text: &str) -> Result<Slice, ParseError> {
    let bad = || ParseError::Index(text.to_owned());
    if text == "*" {
        return Ok(Slice { start: None, end: None, step: None, index: false });
    }
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: Option<&&str>| match part {
        None | Some(&"") => Ok(None),
        Some(digits) => digits.parse::<i64>().map(Some).map_err(|_| bad()),
    };
    match parts.len() {
        1 => {
            let start = number(parts.first())?.unwrap_or(0);
            Ok(Slice { start: Some(start), end: Some(start.saturating_add(1)), step: None, index: true })
        }
        2 | 3 => Ok(Slice {
            start: number(parts.first())?,
            end: number(parts.get(1))?,
            step: number(parts.get(2))?,
            index: false,
        }),
        _ => Err(bad()),
    }
}

fn is_terminator(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// The text that a quoted string stands for, with Go's escapes.
fn unquote(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let mut characters = rest[at + 1..].chars();
        let kind = characters.next()?;
        let tail = characters.as_str();
        let hex = |digits: usize| {
            let code = u32::from_str_radix(tail.get(..digits)?, 16).ok()?;
            Some((char::from_u32(code)?, tail.get(digits..)?))
        };
        let (character, tail) = match kind {
            'n' => ('\n', tail),
            't' => ('\t', tail),
            'r' => ('\r', tail),
            'a' => ('\u{7}', tail),
            'b' => ('\u{8}', tail),
            'f' => ('\u{c}', tail),
            'v' => ('\u{b}', tail),
            '\\' | '"' | '\'' => (kind, tail),
            'x' => hex(2)?,
            'u' => hex(4)?,
            'U' => hex(8)?,
            _ => return None,
        };
        out.push(character);
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}
