//! The question before a rollback.
//!
//! Read as a whole line: a prompt library would hide the cursor and leave it hidden after Ctrl-C.

use std::io::BufRead;

use crate::failure::Failure;
use crate::preview::Preview;
use crate::printer::Printer;

/// Asks a person; refuses where there is nobody to ask.
pub(super) fn confirm(target: &str, preview: &Preview<'_>, printer: &mut Printer) -> Result<(), Failure> {
    if !printer.is_interactive() {
        return Err(super::needs_yes(target, preview.from(), preview.to(), &preview.place.cluster));
    }
    answered(target, printer, &mut std::io::stdin().lock())
}

/// Only a clear yes is one; the end of the input is none.
fn answered(target: &str, printer: &mut Printer, input: &mut impl BufRead) -> Result<(), Failure> {
    loop {
        printer.ask(&format!("Roll back {target}? [y/N] "))?;
        let mut line = String::new();
        let read = input
            .read_line(&mut line)
            .map_err(|error| Failure::error(format!("the answer cannot be read: {error}")))?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(()),
            "" | "n" | "no" => return Err(Failure::refused("you said no. Nothing was changed.")),
            _ if read == 0 => return Err(Failure::refused("no answer. Nothing was changed.")),
            _ => printer.note("Please answer y or n.")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::printer::tests::captured;

    #[rstest]
    #[case("y\n", true, 1)]
    #[case("YES\n", true, 1)]
    #[case("\n", false, 1)]
    #[case("n\n", false, 1)]
    #[case("", false, 1)]
    #[case("what\ny\n", true, 2)]
    #[case("yess\n", false, 2)]
    fn only_a_clear_yes_is_one(#[case] typed: &str, #[case] yes: bool, #[case] asked: usize) {
        let (mut printer, out, err) = captured();
        let result = answered("payments", &mut printer, &mut typed.as_bytes());
        assert_eq!(result.is_ok(), yes);
        assert_eq!(result.err().map(|failure| failure.kind.code()), (!yes).then_some(2));
        assert_eq!(err.text().matches("Roll back payments? [y/N] ").count(), asked);
        assert_eq!(out.text(), "");
    }
}
