//! An op of the user's own: its tensors, and who knows the right answer.

use super::{CheckSpec, Size};
use crate::values::Values;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An op's inputs and outputs; the right answer comes from another worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpSpec {
    /// Names of the sizes in a workload's `shape`, in order.
    pub sizes: Vec<String>,
    /// The inputs by name, each with its sizes: numbers or expressions such as `"m"` or `"2 * k"`. A worker gets them in this order.
    pub inputs: IndexMap<String, Vec<Size>>,
    /// The outputs likewise.
    pub outputs: IndexMap<String, Vec<Size>>,
    /// The worker from `[workers]` that computes the right answer: asked by `evaluate` in f32, it should compute in more.
    pub oracle: String,
    /// Conditions on the sizes, such as `"k % 8 == 0"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Size>,
    /// The tolerance, where that of the element type does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckSpec>,
    /// The kinds of values that inputs are given.
    #[serde(default = "default_values")]
    pub values: Vec<Values>,
}

/// The kinds for which a common tolerance makes sense, whatever the op.
fn default_values() -> Vec<Values> {
    vec![Values::Normal, Values::Uniform, Values::Zero, Values::Constant, Values::Nan, Values::Infinite]
}

/// Tensors by name, with their sizes.
pub type Shapes = Vec<(String, Vec<usize>)>;

impl OpSpec {
    /// The first value that makes no sense, whatever the sizes.
    pub fn check(&self) -> Result<(), String> {
        if self.sizes.is_empty()
            || self.inputs.is_empty()
            || self.outputs.is_empty()
            || self.values.is_empty()
        {
            return Err("sizes, inputs, outputs and values must each have at least one".to_owned());
        }
        let tensors = self.inputs.values().chain(self.outputs.values());
        tensors.flatten().chain(&self.requires).try_for_each(Size::check)
    }

    /// Its inputs and outputs for a shape.
    pub fn tensors(&self, shape: &[usize]) -> Result<(Shapes, Shapes), String> {
        if shape.len() != self.sizes.len() {
            return Err(format!("a shape of {} sizes; the op has {}", shape.len(), self.sizes.join(", ")));
        }
        let names: Vec<(&str, u64)> =
            self.sizes.iter().map(String::as_str).zip(shape.iter().map(|size| *size as u64)).collect();
        for condition in &self.requires {
            if condition.value(&names)? == 0 {
                return Err(format!("it requires {condition}"));
            }
        }
        let of = |tensors: &IndexMap<String, Vec<Size>>| -> Result<Shapes, String> {
            let mut all = Shapes::new();
            for (name, sizes) in tensors {
                let mut dims = Vec::new();
                for size in sizes {
                    let value = size.value(&names)?;
                    let value = usize::try_from(value).ok().filter(|value| *value > 0);
                    dims.push(value.ok_or_else(|| format!("{name}: a size that is zero or too large"))?);
                }
                all.push((name.clone(), dims));
            }
            Ok(all)
        };
        Ok((of(&self.inputs)?, of(&self.outputs)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_follow_from_the_shape() {
        let text = "sizes = [\"m\", \"n\", \"k\"]\ninputs = { b = [\"k\", \"n\"], a = [\"m\", \"k\"] }\noutputs = { c = [\"m\", \"n\"] }\n\
            oracle = \"exact\"\nrequires = [\"k % 2 == 0\"]";
        let op: OpSpec = toml::from_str(text).unwrap();
        assert_eq!(
            serde_json::from_str::<OpSpec>(&serde_json::to_string(&op).unwrap())
                .unwrap()
                .inputs
                .keys()
                .next()
                .unwrap(),
            "b"
        );
        assert_eq!(op.check(), Ok(()));
        let (inputs, outputs) = op.tensors(&[2, 3, 4]).unwrap();
        assert_eq!(
            inputs,
            [("b".to_owned(), vec![4, 3]), ("a".to_owned(), vec![2, 4])],
            "in the order of the file"
        );
        assert_eq!(outputs, [("c".to_owned(), vec![2, 3])]);
        assert!(op.tensors(&[2, 3, 5]).unwrap_err().contains("it requires \"k % 2 == 0\""));
        assert!(op.tensors(&[2, 3]).unwrap_err().contains("m, n, k"));
        assert!(op.tensors(&[2, 0, 4]).unwrap_err().contains("zero"));
    }
}
