//! Golden fixtures of selection and order: chosen here by the built-in ops, hashed here, expected as Python has it
//! (`fixtures/make_golden.py`).

#![allow(clippy::unwrap_used)]

use holdpoint_evidence::{hash, replay};
use holdpoint_model::replay::ArtifactHash;
use holdpoint_ops::order::OrderMode;
use holdpoint_ops::select::{SplitInput, greedy, two_stage};
use holdpoint_ops::shape::Grid;
use serde_json::{Map, Value, json};

fn numbers(inputs: &Value, key: &str) -> Vec<f64> {
    inputs[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn number(inputs: &Value, key: &str) -> f64 {
    inputs[key].as_f64().unwrap()
}

fn count(inputs: &Value, key: &str) -> usize {
    usize::try_from(inputs[key].as_u64().unwrap()).unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The tiles chosen on one level, in Apex-X's form.
fn selection(level: &str, indices: &[u32], ordered: &[u32], meta: Value, budgets_used: Value) -> Value {
    json!({
        "level": level, "indices": indices, "ordered_indices": ordered, "meta": meta, "budgets_used": budgets_used
    })
}

fn trace(selections: &[Value], run_meta: Value) -> Value {
    json!({"run_meta": run_meta, "selections": selections})
}

/// The text of a saved trace, as Python lays it out.
fn saved(trace: &Value) -> String {
    serde_json::to_string_pretty(trace).unwrap() + "\n"
}

fn by_greedy(i: &Value) -> (Value, Vec<Value>) {
    let (u, d, kmax) = (numbers(i, "utilities"), numbers(i, "delta_costs"), count(i, "kmax"));
    let r = greedy(&u, &d, number(i, "budget"), kmax).unwrap();
    let summary = json!({
        "selected_indices": r.selected, "ordered_candidates": r.ordered_candidates, "kmax_buffer": r.kmax_buffer,
        "valid_count": r.valid_count(), "spent_budget": r.spent,
    });
    let meta =
        json!({"ordered_candidates": r.ordered_candidates, "kmax_buffer": r.kmax_buffer, "scores": r.scores});
    (summary, vec![selection("l0", &r.selected, &r.selected, meta, json!({"b1": r.spent}))])
}

fn by_two_stages(i: &Value) -> (Value, Vec<Value>) {
    let grid = Grid { rows: count(i, "l0_grid_h"), cols: count(i, "l0_grid_w"), tile: 16 };
    let (utilities, overheads) = (numbers(i, "split_utilities"), numbers(i, "split_overheads"));
    let split = SplitInput {
        utilities: &utilities,
        overheads: &overheads,
        budget: number(i, "budget_b2"),
        kmax: count(i, "kmax_l1"),
    };
    assert_eq!(i["l1_order_mode"], "hilbert");
    let first = (number(i, "budget_b1"), count(i, "kmax_l0"));
    let (u, d) = (numbers(i, "l0_utilities"), numbers(i, "l0_delta_costs"));
    let r = two_stage(&u, &d, first, &split, &grid, OrderMode::Hilbert).unwrap();
    let summary = json!({
        "l0_selected_indices": r.l0.selected, "l0_ordered_candidates": r.l0.ordered_candidates,
        "split_parent_indices": r.l1.parents, "split_parent_order": r.l1.parent_order,
        "l1_indices": r.l1.children, "l1_ordered_indices": r.l1.ordered, "l1_kmax_buffer": r.l1.kmax_buffer,
        "l1_valid_count": r.l1.children.len(), "spent_budget_b1": r.l0.spent, "spent_budget_b2": r.l1.spent,
    });
    let l0_meta = json!({
        "ordered_candidates": r.l0.ordered_candidates, "scores": r.l0.scores, "kmax_buffer": r.l0.kmax_buffer
    });
    let l1_meta = json!({
        "split_parent_indices": r.l1.parents, "split_parent_order": r.l1.parent_order, "l1_kmax_buffer": r.l1.kmax_buffer
    });
    let l0 = selection("l0", &r.l0.selected, &r.l0.selected, l0_meta, json!({"b1": r.l0.spent}));
    let l1 = selection("l1", &r.l1.children, &r.l1.ordered, l1_meta, json!({"b2": r.l1.spent}));
    (summary, vec![l0, l1])
}

#[test]
fn the_golden_fixtures_are_chosen_ordered_and_hashed_the_same() {
    for name in ["small", "two_stage", "medium"] {
        let path = format!("{}/tests/fixtures/replay_golden_{name}.json", env!("CARGO_MANIFEST_DIR"));
        let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let (expected, mode) = (&fixture["expected"], fixture["mode"].as_str().unwrap());
        let (summary, selections) = match mode {
            "greedy" => by_greedy(&fixture["inputs"]),
            _ => by_two_stages(&fixture["inputs"]),
        };
        assert_eq!(summary, expected["summary"], "{name}");
        let run_meta = json!({"fixture": fixture["name"], "seed": fixture["seed"], "mode": mode});
        let trace = trace(&selections, run_meta);
        assert_eq!(hash::json(&trace).unwrap(), expected["trace_sha256"], "{name}");
        // Saved to two places, it is the same evidence.
        let dir = tempfile::tempdir().unwrap();
        for place in ["one.json", "two/other.json"] {
            holdpoint_store::write_text(&dir.path().join(place), &saved(&trace)).unwrap();
            let (sha256, _) = hash::file(&dir.path().join(place)).unwrap();
            let artifact = ArtifactHash { path: place.to_owned(), sha256 };
            let seed = fixture["seed"].as_u64().unwrap();
            let manifest = replay::manifest(
                seed,
                map(fixture["config"].clone()),
                [("trace".to_owned(), artifact)].into(),
            );
            assert_eq!(manifest.unwrap().manifest_sha256, expected["manifest_sha256"], "{name} at {place}");
        }
    }
}

#[test]
fn the_files_of_the_seeds_vectors_have_their_hashes() {
    for (name, bytes, sha256) in [
        ("small", 644, "dcfd6f25d9f37b994c7f697694159646edfcdb3c500ab95f7c1236218b2df223"),
        ("two_stage", 1269, "a1913effd573c5fe45ce7a6f69be3db5441a180a485043e12851c5247b385a0c"),
    ] {
        let path = format!("{}/tests/fixtures/replay_golden_{name}.json", env!("CARGO_MANIFEST_DIR"));
        let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let (_, selections) = match name {
            "small" => by_greedy(&fixture["inputs"]),
            _ => by_two_stages(&fixture["inputs"]),
        };
        let run_meta = json!({"fixture": fixture["name"], "seed": fixture["seed"], "mode": fixture["mode"]});
        let text = saved(&trace(&selections, run_meta));
        assert_eq!((text.len(), hash::bytes(text.as_bytes()).as_str()), (bytes, sha256));
    }
}
