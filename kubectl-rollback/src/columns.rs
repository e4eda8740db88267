//! Text in columns, as kubectl prints it: no borders, three spaces between.

use comfy_table::Table;
use comfy_table::presets::NOTHING;

const GAP: u16 = 3;

/// A table with a heading; empty text if there are no rows.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = blank();
    table.set_header(header.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
    finish(table, rows)
}

/// Rows without a heading.
pub(crate) fn aligned(rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() { String::new() } else { finish(blank(), rows) }
}

fn blank() -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table
}

fn finish(mut table: Table, rows: Vec<Vec<String>>) -> String {
    for row in rows {
        table.add_row(row.iter().map(|cell| clean(cell)).collect::<Vec<_>>());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    table.trim_fmt()
}

/// Text of an object on one line: what it holds can neither break a line nor steer a terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect()
}

/// The same for text that may have several lines.
pub(crate) fn clean_lines(text: &str) -> String {
    text.chars().map(|c| if c != '\n' && is_unprintable(c) { ' ' } else { c }).collect()
}

/// Control characters, and those that change the direction of text.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![
            vec!["a".into(), "žluťoučký".into(), "x".into()],
            vec!["bbbb".into(), String::new(), "y".into()],
        ];
        assert_eq!(
            table(&["ONE", "TWO", "THREE"], rows),
            "ONE    TWO         THREE\na      žluťoučký   x\nbbbb               y"
        );
    }

    #[test]
    fn nothing_has_no_heading() {
        assert_eq!(table(&["ONE"], vec![]), "");
        assert_eq!(aligned(vec![]), "");
    }

    #[test]
    fn an_object_cannot_steer_the_terminal() {
        let evil = "a\u{1b}[31mred\r\nb\u{202e}c\u{7}";
        assert_eq!(clean(evil), "a [31mred  b c ");
        assert_eq!(aligned(vec![vec![evil.into()]]), "a [31mred  b c");
        assert_eq!(clean_lines("a\nb\rc"), "a\nb c");
    }
}
