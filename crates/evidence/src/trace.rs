//! Selection traces: which tiles were chosen on which level, in which order, in the first seed's form.

use crate::EvidenceError;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What was chosen on one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    level: &'static str,
    indices: Vec<u32>,
    ordered_indices: Vec<u32>,
    meta: Map<String, Value>,
    budgets_used: BTreeMap<String, f64>,
}

impl Selection {
    /// A selection that makes sense.
    ///
    /// # Errors
    /// When the level is unknown, the order is of other tiles, or a budget is not a finite number from 0 on.
    pub fn new(
        level: &str,
        indices: Vec<u32>,
        ordered_indices: Vec<u32>,
        meta: Map<String, Value>,
        budgets_used: BTreeMap<String, f64>,
    ) -> Result<Self, EvidenceError> {
        let level = level.trim().to_lowercase();
        let level = ["l0", "l1", "l2"].into_iter().find(|known| *known == level);
        let level = level.ok_or(EvidenceError::Trace("level must be one of: l0, l1, l2"))?;
        let sorted = |ids: &[u32]| {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids
        };
        if sorted(&indices) != sorted(&ordered_indices) {
            return Err(EvidenceError::Trace("ordered_indices must be a permutation of indices"));
        }
        if budgets_used.values().any(|spent| !(spent.is_finite() && *spent >= 0.0)) {
            return Err(EvidenceError::Trace("budgets_used values must be finite and >= 0"));
        }
        Ok(Self { level, indices, ordered_indices, meta, budgets_used })
    }

    fn to_json(&self) -> Value {
        json!({
            "level": self.level,
            "indices": self.indices,
            "ordered_indices": self.ordered_indices,
            "meta": self.meta,
            "budgets_used": self.budgets_used,
        })
    }
}

/// A trace of these selections, as a document.
///
/// # Errors
/// When there are none.
pub fn trace(selections: &[Selection], run_meta: Map<String, Value>) -> Result<Value, EvidenceError> {
    if selections.is_empty() {
        return Err(EvidenceError::Trace("selections must not be empty"));
    }
    let selections: Vec<Value> = selections.iter().map(Selection::to_json).collect();
    Ok(json!({"run_meta": run_meta, "selections": selections}))
}

/// The text of a saved trace: two spaces of indent, keys sorted, ASCII, every element on a line, a line end.
///
/// # Errors
/// Never, for a trace is JSON.
pub fn saved(trace: &Value) -> Result<String, EvidenceError> {
    let canonical = crate::canonical::to_canonical(trace)?;
    let mut out = String::new();
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    let chars: Vec<char> = canonical.chars().collect();
    let new_line =
        |out: &mut String, depth: usize| out.extend(std::iter::once('\n').chain("  ".repeat(depth).chars()));
    for (at, &c) in chars.iter().enumerate() {
        if in_string {
            out.push(c);
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        let is_empty = |next: Option<&char>| matches!((c, next), ('{', Some('}')) | ('[', Some(']')));
        match c {
            '{' | '[' => {
                out.push(c);
                if !is_empty(chars.get(at + 1)) {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                if !matches!(chars[at - 1], '{' | '[') {
                    depth -= 1;
                    new_line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(level: &str, ordered: &[u32], spent: f64) -> Result<Selection, EvidenceError> {
        let budgets = [("b1".to_owned(), spent)].into();
        Selection::new(level, vec![3, 1, 1], ordered.to_vec(), Map::new(), budgets)
    }

    #[test]
    fn selections_that_make_no_sense_are_refused_in_the_seeds_words() {
        let words = |outcome: Result<Selection, EvidenceError>| outcome.unwrap_err().to_string();
        assert_eq!(words(selection("l3", &[1, 1, 3], 0.0)), "level must be one of: l0, l1, l2");
        let permutation = "ordered_indices must be a permutation of indices";
        assert_eq!(words(selection("l0", &[1, 3, 3], 0.0)), permutation);
        for spent in [f64::NAN, f64::INFINITY, -0.5] {
            assert_eq!(
                words(selection("l0", &[1, 1, 3], spent)),
                "budgets_used values must be finite and >= 0"
            );
        }
        assert!(selection(" L2 ", &[1, 1, 3], 0.0).is_ok());
        assert_eq!(trace(&[], Map::new()).unwrap_err().to_string(), "selections must not be empty");
    }

    #[test]
    fn a_saved_trace_is_laid_out_as_python_does_it() {
        let value = json!({"b": [], "a": {"x": [1, 2.0], "y": {}}, "c": "q\"[{,:\\"});
        let text = "{\n  \"a\": {\n    \"x\": [\n      1,\n      2.0\n    ],\n    \"y\": {}\n  },\n  \"b\": [],\n  \"c\": \"q\\\"[{,:\\\\\"\n}\n";
        assert_eq!(saved(&value).unwrap(), text);
    }
}
