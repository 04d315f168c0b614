//! Makes a failing case small: smaller sizes, fewer parameters, plainer values, as long as it fails in the same way.

use super::Target;
use holdpoint_model::{FuzzCase, Values};
use serde_json::Value;

/// Runs that making one case small may take.
const RUNS_MAX: usize = 150;

/// The smallest case found that still fails; `fails` runs one.
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
    for name in case.params.keys() {
        let mut without = case.clone();
        without.params.remove(name);
        all.push(without);
    }
    for (name, value) in &case.params {
        let Value::Array(items) = value else { continue };
        for keep in [1, items.len() / 2] {
            if (1..items.len()).contains(&keep) {
                let mut fewer = case.clone();
                fewer.params[name] = Value::Array(items[..keep].to_vec());
                // Ids that no longer fit a smaller map are what keeps it large.
                all.push(fewer);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn case(shape: &[usize]) -> FuzzCase {
        let Value::Object(params) = json!({"causal": true}) else { unreachable!() };
        FuzzCase {
            op: "attention".to_owned(),
            shape: shape.to_vec(),
            dtype: "f32".to_owned(),
            params,
            seed: 1,
            values: Values::Large,
            offset: 0,
            kernel: None,
            declared: None,
        }
    }

    #[test]
    fn a_failure_from_17_steps_on_becomes_one_head_of_17_steps() {
        let small = shrink(&case(&[3, 4, 130, 64]), Target::Builtin, |case| case.shape[2] >= 17);
        assert_eq!(small.shape, [1, 1, 17, 1]);
        assert_eq!((small.values, small.params), (Values::Normal, Map::new()));
    }

    #[test]
    fn what_the_failure_needs_stays() {
        let small = shrink(&case(&[2, 2, 9, 8]), Target::Builtin, |case| {
            case.params.contains_key("causal") && case.values == Values::Large
        });
        assert_eq!((small.shape, small.values), (vec![1, 1, 1, 1], Values::Large));
        assert!(small.params.contains_key("causal"));
    }
}
