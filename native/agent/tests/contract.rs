//! The agent's side of the contract.
//! `tests/contract/test_contract.py` reads the same files.

use std::fs;
use std::path::{Path, PathBuf};

use ajuste_agent::event::Event;
use ajuste_agent::plan::Plan;
use serde_json::Value;

fn contract(place: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract").join(place)
}

fn lines(place: &str) -> Vec<String> {
    let text = fs::read_to_string(contract(place)).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn every_plan_is_written_again_as_it_was_with_its_defaults() {
    let mut plans = 0;
    for entry in fs::read_dir(contract("plan")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|word| word != "json") {
            continue;
        }
        let document = fs::read(&path).unwrap();
        let written = serde_json::to_value(Plan::parse(&document).unwrap()).unwrap();
        let mut expected = defaults();
        merge(&mut expected, serde_json::from_slice(&document).unwrap());
        assert_eq!(written, expected, "{}", path.display());
        plans += 1;
    }
    assert!(plans >= 3);
}

/// A plan with nothing but its id, as in `src/ajuste/model/plan.py`.
fn defaults() -> Value {
    serde_json::json!({
        "version": 1, "reads": [], "keeps": [], "writes": [], "scratch": null, "before": [], "background": [],
        "ready": [], "ready_timeout_ns": 5_000_000_000_u64, "settle_ns": 0, "workload": null,
        "timeout_ns": 600_000_000_000_u64, "output_limit_bytes": 1_048_576, "counters": [],
        "samplers": [], "trace": null, "observe_ns": 0, "after": [],
        "perturbation": {"entropy": 0, "environment_bytes": 0, "start_delay_ns": 0},
    })
}

fn merge(base: &mut Value, over: Value) {
    let (Value::Object(base), Value::Object(over)) = (base, over) else { panic!("a plan is an object") };
    base.extend(over);
}

#[test]
fn every_event_is_written_again_as_it_was() {
    let lines = [lines("events/trial.jsonl"), lines("events/restore.jsonl")].concat();
    for line in &lines {
        let event: Event = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let expected: Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(event).unwrap(), expected);
    }
    assert!(lines.len() >= 16);
}

#[test]
fn no_malformed_event_is_read() {
    for line in lines("events/malformed.jsonl") {
        assert!(serde_json::from_str::<Event>(&line).is_err(), "{line}");
    }
}

#[test]
fn no_malformed_plan_is_read() {
    for line in lines("plan/malformed.jsonl") {
        assert!(Plan::parse(line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn what_only_the_agent_can_know_is_refused_too() {
    for (document, words) in [
        (r#"{"id":"m","counters":["cycels"]}"#, "unknown counter \"cycels\"; known are task-clock"),
        (r#"{"id":"m","workload":{"argv":["a\u0000b"]}}"#, "zero byte"),
        (r#"{"id":"m","workload":{"argv":["a"],"environment":{"A=B":""}}}"#, "environment variable"),
        (r#"{"id":"m","workload":{"argv":["a"],"directory":"b"}}"#, "not absolute"),
        (r#"{"id":"m","workload":{"argv":["a"],"attributes":{"affinity":[]}}}"#, "workload: affinity names no CPU"),
        (r#"{"id":"m","background":[{"argv":["a"],"attributes":{"priority":1}}]}"#, "background[0]: priority is for"),
        (
            r#"{"id":"m","writes":[{"tunable":"f","location":{"kind":"flag","path":"/sys/f","name":"F"},"value":"on"}]}"#,
            "f is a flag: its value is \"1\" or \"0\", not \"on\"",
        ),
    ] {
        let reason = Plan::parse(document.as_bytes()).unwrap_err();
        assert!(reason.contains(words), "{document}: {reason}");
    }
}
