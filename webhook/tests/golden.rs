//! Every rule of admission as a request and its answer: `tests/golden/*.json`.
//!
//! Each file holds the rule, the path, the name of a state in `tests/golden/states`, the review as the API server
//! sends it, and the answer. In the answer the patch is written out; on the wire it is base64. With
//! `UPDATE_GOLDEN=1` the answers are written anew: read the difference before you commit it.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use rollback_api::Backend;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use support::State;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// The rule that the pair shows.
    rule: String,
    path: String,
    state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backends: Option<Vec<Backend>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    naming: bool,
    /// How long the API server waits, if not for its usual ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    request: Value,
    #[serde(default)]
    response: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn state(name: &str) -> State {
    let file = folder().join("states").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("state {name}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("state {name}: {error}"))
}

/// The answer with its patch written out, after the patch was tried on the object that was sent.
async fn answer(pair: &Pair) -> Value {
    let backends = pair.backends.clone().unwrap_or_else(|| vec![Backend::Workload, Backend::Github]);
    let webhook = support::webhook(state(&pair.state), &backends, pair.naming);
    let path = match &pair.timeout {
        Some(timeout) => format!("{}?timeout={timeout}", pair.path),
        None => format!("{}?timeout=10s", pair.path),
    };
    let (code, body) = support::post(&webhook, &path, pair.request.to_string()).await;
    assert_eq!(code, 200, "{body}");
    let mut review: Value = serde_json::from_str(&body).unwrap();
    if let Some(patch) = review["response"].get_mut("patch") {
        let ByteString(bytes) = serde_json::from_value(patch.take()).expect("base64");
        *patch = serde_json::from_slice(&bytes).expect("a JSON patch");
        let operations: json_patch::Patch = serde_json::from_value(patch.clone()).expect("a JSON patch");
        let mut object = pair.request["request"]["object"].clone();
        json_patch::patch(&mut object, &operations).expect("a patch that fits the object that was sent");
    }
    review
}

#[tokio::test(start_paused = true)]
async fn every_rule_has_its_request_and_answer() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= 60, "only {} pairs were found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let pair: Pair = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let response = answer(&pair).await;
        if update {
            let updated = Pair { response, ..pair };
            std::fs::write(&file, serde_json::to_string_pretty(&updated).unwrap() + "\n").unwrap();
        } else if response != pair.response {
            wrong.push(format!("{name}: {}\nexpected {:#}\nactual   {response:#}", pair.rule, pair.response));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// C17: a dry run passes through the same rules with the same answer.
#[tokio::test(start_paused = true)]
async fn a_dry_run_gets_the_same_answer() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let mut pair: Pair = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let real = answer(&pair).await;
        pair.request["request"]["dryRun"] = Value::Bool(true);
        assert_eq!(answer(&pair).await, real, "{}", file.display());
    }
}
