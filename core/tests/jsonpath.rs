//! kubectl's own answers are the specification of the JSONPath dialect.
//!
//! `jsonpath/golden.json` holds what `kubectl annotate --local -f data.json zz- -o jsonpath=TEMPLATE` (v1.37.2)
//! printed; `tests/e2e` asks the kubectl of the test rig again, so the file cannot drift.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use proptest::prelude::*;
use rollback_core::jsonpath::{EvalError, ParseError, Template};
use serde_json::{Value, json};

fn data() -> Value {
    serde_json::from_str(include_str!("jsonpath/data.json")).unwrap()
}

fn render(template: &str) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    template.render(&data()).map_err(|error| error.to_string())
}

#[test]
fn answers_as_kubectl_does() {
    let golden: Vec<Value> = serde_json::from_str(include_str!("jsonpath/golden.json")).unwrap();
    assert!(golden.len() > 85, "{} cases", golden.len());
    let mut wrong = Vec::new();
    for case in &golden {
        let template = case["template"].as_str().unwrap();
        let ours = render(template);
        let theirs = case["output"].as_str();
        if ours.as_deref().ok() != theirs {
            wrong.push(format!("{template}\n  kubectl: {theirs:?}\n  ours:    {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Bad templates and their exact errors.
#[test]
fn refuses_with_a_sentence() {
    for (template, error) in [
        ("{", ParseError::UnclosedAction),
        ("{.a", ParseError::UnclosedAction),
        ("{.a\n}", ParseError::UnclosedAction),
        ("{.a[0}", ParseError::UnterminatedArray),
        ("{.a[?(@.b==1}", ParseError::UnterminatedFilter),
        ("{.a[?(@.b==\"x]}", ParseError::UnterminatedFilter),
        ("{\"x}", ParseError::UnterminatedQuote),
        ("{\"\\q\"}", ParseError::BadQuote("\"\\q\"".into())),
        ("{\"\\ud800\"}", ParseError::BadQuote("\"\\ud800\"".into())),
        ("{#}", ParseError::Character('#')),
        ("{.a[b]}", ParseError::Index("b".into())),
        ("{.a[1:2:3:4]}", ParseError::Index("1:2:3:4".into())),
        ("{.a[99999999999999999999]}", ParseError::Index("99999999999999999999".into())),
        ("{1.2.3}", ParseError::Number("1.2.3".into())),
        ("{config}", ParseError::Identifier("config".into())),
        ("{end}", ParseError::NothingToEnd),
        ("{range .a}", ParseError::OpenRange),
        ("{.a....b}", ParseError::MultipleRecursion),
        ("{.a[?(@.b=1)]}", ParseError::Operator("=".into())),
        (&"{range .a}".repeat(40), ParseError::TooDeep(32)),
    ] {
        assert_eq!(Template::parse(template), Err(error), "{template}");
    }
    let eval = |template: &str| Template::parse(template).unwrap().render(&data()).unwrap_err();
    assert_eq!(eval("{.metadata[0]}"), EvalError::NotAnArray("an object"));
    assert_eq!(eval("{.config.revisions[9]}"), EvalError::OutOfBounds { index: 9, length: 3 });
    assert_eq!(eval("{.config.revisions[2:1]}"), EvalError::Backwards(2, 1));
    assert_eq!(eval("{.config.revisions[0:2:0]}"), EvalError::Step);
    assert_eq!(
        eval("{.config.revisions[?(@.weight==\"3\")]}"),
        EvalError::Incompatible("an integer", "a string")
    );
}

#[test]
fn a_hostile_template_is_bounded() {
    let wide = json!({ "a": vec![vec![vec![1; 30]; 30]; 30] });
    let template = Template::parse("{..[*]..[*]..[*]}").unwrap();
    // Whatever it is, it is an answer and not a hang.
    let _ = template.render(&wide);
    let template = Template::parse("{.a[*][*][*]}").unwrap();
    assert_eq!(template.render(&wide), Err(EvalError::TooMany(10_000)));
}

#[test]
fn what_must_be_found_keeps_its_type() {
    let resolve = |template: &str| Template::parse(template).unwrap().resolve(&data());
    assert_eq!(resolve("{.config.revisions[1].id}"), Ok(json!("1.10")));
    assert_eq!(resolve("{.config.revisions[2].id}"), Ok(json!("0001234")));
    assert_eq!(resolve("{.metadata.generation}"), Ok(json!(7)));
    assert_eq!(resolve("v{.metadata.generation}"), Ok(json!("v7")));
    assert_eq!(resolve("{.config.revisions[*].id}"), Ok(json!("9f8e7d6 1.10 0001234")));
    assert_eq!(resolve("300"), Ok(json!("300")));
    assert_eq!(resolve("{.config.nope}"), Err(EvalError::Missing("{.config.nope}".into())));
    assert_eq!(
        resolve("x{.config.revisions[?(@.name==\"nope\")].id}"),
        Err(EvalError::Missing("{.config.revisions[?(@.name==\"nope\")].id}".into()))
    );
}

#[test]
fn relaxed_paths_may_leave_braces_out() {
    for text in ["metadata.name", ".metadata.name", "$.metadata.name", "{.metadata.name}"] {
        assert_eq!(
            Template::parse_relaxed(text).unwrap().render(&data()).unwrap(),
            "payments-c329c3b",
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn never_panics(text in "[{}\\[\\].@$?()'\"a-z0-9:,*=<>! \\\\-]{0,40}") {
        if let Ok(template) = Template::parse(&text) {
            let _ = template.render(&data());
            let _ = template.resolve(&data());
        }
    }

    #[test]
    fn never_panics_on_any_text(text in ".{0,40}") {
        let _ = Template::parse(&text).map(|template| template.render(&data()));
        let _ = Template::parse(&format!("{{{text}}}")).map(|template| template.render(&data()));
    }
}
