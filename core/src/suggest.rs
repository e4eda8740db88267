//! Did you mean: the known word that a person most likely mistyped.

/// The candidate nearest to `word`, if it is near enough to be a slip of the hand: one edit (insert, delete, replace,
/// swap two neighbours) in words of up to four characters, two up to eight, three above. The first of equals wins.
///
/// A word that is itself a candidate is no slip; the answer is `None` then too.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = strsim::osa_distance(word, candidate);
        if distance == 0 {
            return None;
        }
        // A candidate that shares nothing but its length with the word is not what was meant.
        let near = distance <= allowed && distance < candidate.chars().count();
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const WORDS: &[&str] = &["history", "status", "list", "diff", "cancel", "a"];

    #[rstest]
    #[case("histroy", Some("history"))]
    #[case("hsitory", Some("history"))]
    #[case("statsu", Some("status"))]
    #[case("cancle", Some("cancel"))]
    #[case("lst", Some("list"))]
    #[case("lits", Some("list"))]
    #[case("history", None)]
    #[case("payments", None)]
    #[case("web", None)]
    #[case("x", None)]
    #[case("", None)]
    fn finds_slips_and_nothing_else(#[case] word: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest(word, WORDS.iter().copied()), expected);
    }

    #[test]
    fn of_equals_the_first_wins() {
        assert_eq!(nearest("ab", ["ac", "ad"]), Some("ac"));
        assert_eq!(nearest("abcde", ["abxye", "abcd"]), Some("abcd"));
    }
}
