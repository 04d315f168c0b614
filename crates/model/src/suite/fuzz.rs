//! How large the cases of `fuzz` are, and what counts as a failure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the cases that are drawn for an op, and what fails. The suite's own shapes are run whatever the limits say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FuzzLimits {
    /// The largest size along each axis of the shape, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes_max: Vec<usize>,
    /// Most elements of the main input; of a declared op, of each tensor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements_max: Option<u64>,
    /// Most multiply-adds of attention's scores; of a declared op, the largest product of all sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_max: Option<u64>,
    /// Whether errors that are larger or more biased than they should be, yet within the tolerance, fail.
    #[serde(skip_serializing_if = "OnInaccurate::is_default")]
    pub accuracy: OnInaccurate,
}

impl FuzzLimits {
    /// The first value that makes no sense, for an op whose shape has so many sizes.
    pub fn check(&self, axes_count: usize) -> Result<(), String> {
        if !self.sizes_max.is_empty() && self.sizes_max.len() != axes_count {
            let count = self.sizes_max.len();
            return Err(format!("sizes_max has {count} sizes; the op's shape has {axes_count}"));
        }
        let zero = self.sizes_max.contains(&0) || [self.elements_max, self.operations_max].contains(&Some(0));
        if zero { Err("a limit of 0 leaves no case; give 1 or more".to_owned()) } else { Ok(()) }
    }
}

/// Consequence of errors that are larger than they should be, yet within the tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnInaccurate {
    /// They are named.
    #[default]
    Report,
    /// The kernel fails.
    Fail,
}

impl OnInaccurate {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::Suite;

    fn suite(limits: &str) -> Result<Suite, String> {
        let head =
            "schema_version = 1\nname = \"a\"\n[[workload]]\nname = \"w\"\nop = \"copy\"\nshape = [3]\n";
        Suite::parse(&format!("{head}{limits}")).map_err(|error| error.to_string())
    }

    #[test]
    fn limits_are_for_ops_of_the_suite_and_have_a_size_for_each_axis() {
        let read = suite("[fuzz.copy]\nsizes_max = [500]\nelements_max = 400\n").unwrap();
        assert_eq!(
            (&read.fuzz["copy"].sizes_max[..], read.fuzz["copy"].elements_max),
            (&[500][..], Some(400))
        );
        for (limits, word) in [
            ("[fuzz.softmax]\nsizes_max = [5]\n", "no workload"),
            ("[fuzz.copy]\nsizes_max = [5, 6]\n", "2 sizes"),
            ("[fuzz.copy]\nsizes_max = [0]\n", "1 or more"),
            ("[fuzz.copy]\noperations_max = 0\n", "1 or more"),
        ] {
            let error = suite(limits).unwrap_err();
            assert!(error.contains("fuzz.") && error.contains(word), "{limits}: {error}");
        }
    }
}
