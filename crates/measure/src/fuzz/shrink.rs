//! Shrinks a failing case: smaller sizes, plainer parameters and values, as long as it fails in the same way. Never
//! leaves a parameter out: a kernel's default may differ from the oracle's.

use super::Target;
use holdpoint_model::{FuzzCase, Values};
use serde_json::{Map, Value, json};

/// Most runs to shrink one case.
const RUNS_MAX: usize = 150;

/// Finds the smallest case for which `fails` still holds.
pub(super) fn shrink(case: &FuzzCase, target: Target, mut fails: impl FnMut(&FuzzCase) -> bool) -> FuzzCase {
    let mut best = case.clone();
    let mut runs = 0;
    'again: loop {
        for candidate in smaller(&best) {
            if runs == RUNS_MAX {
                return best;
            }
            if !target.takes(&candidate) {
                continue;
            }
            runs += 1;
            if fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

/// Cases that are smaller in one way, the boldest first.
fn smaller(case: &FuzzCase) -> Vec<FuzzCase> {
    let mut all = Vec::new();
    if case.values != Values::Normal {
        all.push(FuzzCase { values: Values::Normal, ..case.clone() });
    }
    if case.offset > 0 {
        all.push(FuzzCase { offset: 0, ..case.clone() });
    }
    let with = |params: Map<String, Value>| FuzzCase { params, ..case.clone() };
    // The meaning of a declared op's parameters is unknown.
    if case.declared.is_none() {
        all.extend(plainer(&case.params).into_iter().map(with));
        // Indices that do not fit a smaller map would keep it large.
        all.extend([1, 2].into_iter().filter_map(|part| fewer(&case.params, part)).map(with));
    }
    for at in 0..case.shape.len() {
        for size in
            [1, case.shape[at] / 2, case.shape[at] - case.shape[at] / 4, case.shape[at].saturating_sub(1)]
        {
            if size > 0 && size < case.shape[at] {
                let mut less = case.clone();
                less.shape[at] = size;
                all.push(less);
            }
        }
    }
    all
}

/// The plainest value of a parameter: where possible, the one that means the same as leaving it out.
fn plain(name: &str, value: &Value) -> Option<Value> {
    Some(match (name, value) {
        ("causal", _) => json!(false),
        ("order_mode", _) => json!("none"),
        ("overlap_mode", _) => json!("override"),
        ("direction", _) => json!("forward"),
        ("merge_mode", _) => json!("avg"),
        ("clamp_value", _) => json!(1e4),
        ("blend_alpha", _) => json!(0.5),
        ("value_scale" | "gate_scale" | "boundary_log_weight" | "uncertainty_log_weight", _) => json!(1.0),
        ("value_bias" | "gate_bias" | "bias", _) => json!(0.0),
        ("overlap_shift", _) => json!(0),
        ("levels", Value::Array(levels)) => json!(vec![0; levels.len()]),
        ("indices", Value::Array(ids)) => json!((0..ids.len()).collect::<Vec<_>>()),
        _ => return None,
    })
}

fn plainer(params: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let changed = params.iter().filter_map(|(name, value)| {
        let plain = plain(name, value).filter(|plain| plain != value)?;
        let mut params = params.clone();
        params[name] = plain;
        Some(params)
    });
    changed.collect()
}

/// Keeps one entry, or half of the entries, of every list: lists have an entry per tile and must stay equally long.
fn fewer(params: &Map<String, Value>, part: usize) -> Option<Map<String, Value>> {
    let mut fewer = params.clone();
    for value in fewer.values_mut() {
        let Value::Array(items) = value else { continue };
        let keep = if part == 1 { 1 } else { items.len() / part };
        items.truncate(keep.max(1));
    }
    (fewer != *params).then_some(fewer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(shape: &[usize]) -> FuzzCase {
        let case = json!({"op": "attention", "shape": shape, "dtype": "f32", "params": {"causal": true},
            "seed": 1, "values": "large"});
        serde_json::from_value(case).unwrap()
    }

    #[test]
    fn a_failure_from_17_steps_on_becomes_one_head_of_17_steps() {
        let small = shrink(&case(&[3, 4, 130, 64]), Target::Builtin, |case| case.shape[2] >= 17);
        assert_eq!(small.shape, [1, 1, 17, 1]);
        assert_eq!((small.values, &small.params["causal"]), (Values::Normal, &json!(false)));
    }

    #[test]
    fn what_the_failure_needs_stays() {
        let small = shrink(&case(&[2, 2, 9, 8]), Target::Builtin, |case| {
            case.params["causal"] == true && case.values == Values::Large
        });
        assert_eq!((small.shape, small.values), (vec![1, 1, 1, 1], Values::Large));
        assert_eq!(small.params["causal"], true);
    }

    #[test]
    fn no_parameter_is_left_out_and_lists_stay_as_long_as_each_other() {
        let params = json!({"tile_size": 2, "indices": [3, 0, 2], "levels": [1, 0, 2], "overlap_mode": "blend",
            "order_mode": "l2r", "blend_alpha": 0.3});
        let tiles = FuzzCase {
            op: "tile_unpack".to_owned(),
            params: params.as_object().unwrap().clone(),
            ..case(&[2, 3, 4, 4])
        };
        let mut seen = Vec::new();
        let small = shrink(&tiles, Target::External, |case| {
            seen.push(case.params.keys().cloned().collect::<Vec<_>>());
            true
        });
        assert!(seen.iter().all(|names| names.iter().eq(tiles.params.keys())), "{seen:?}");
        let plain = json!({"tile_size": 2, "indices": [0], "levels": [0], "overlap_mode": "override",
            "order_mode": "none", "blend_alpha": 0.5});
        assert_eq!((Value::Object(small.params), small.shape), (plain, vec![1, 1, 2, 2]));
    }
}
