//! An op that a suite declares, on a device: its tensors are known, its kernels are the user's, its oracle is a worker elsewhere.

use crate::device::{Build, KernelChoice, Launches, PrepareError};
use crate::error::BuildError;
use crate::op::{Cpu, Description, Input, Op, Output, version};
use crate::precision::Precision;
use crate::request::Request;
use crate::tensor::Tensor;
use holdpoint_cuda::Dtype;
use holdpoint_cuda::compile::Source;
use holdpoint_model::suite::{OpSpec, Shapes, Variant, Work};

/// In place of a source of ours: nothing of it is ever compiled.
static NONE: Source = Source { name: "declared", text: "", headers: &[] };

pub(crate) struct Declared {
    inputs: Shapes,
    outputs: Shapes,
}

impl Declared {
    pub(crate) fn plan(request: &Request, op: &OpSpec) -> Result<Self, BuildError> {
        let (inputs, outputs) = op.tensors(&request.shape).map_err(|problem| request.shape_error(problem))?;
        if request.kernel.is_none() && request.variant == Variant::Fast {
            return Err(request.shape_error("worker \"cuda\" runs a declared op with [workload.kernel] only"));
        }
        Ok(Self { inputs, outputs })
    }
}

impl Op for Declared {
    fn describe(&self, dtype: Dtype) -> Description {
        let elements = |shapes: &Shapes| -> usize {
            shapes.iter().map(|(_, dims)| dims.iter().product::<usize>()).sum()
        };
        let bytes = (elements(&self.inputs) + elements(&self.outputs)) * dtype.bytes();
        Description {
            inputs: self.inputs.iter().map(|(name, dims)| Input::normal(name.clone(), dims)).collect(),
            outputs: self.outputs.iter().map(|(name, dims)| Output::new(name.clone(), dims, dtype)).collect(),
            work: Work { bytes: bytes as u64, flops: 0, items: 1, item: "calls".to_owned() },
            tolerance: dtype.tolerance(),
            rows: 1,
        }
    }

    /// There is no oracle here: what is left as it is passes no check.
    fn cpu(&self, _: Variant, _: Dtype) -> Box<dyn Cpu> {
        version(|_: &[Tensor], _: &mut [Tensor]| {})
    }

    /// Without launches, to which a user's kernel adds its own.
    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        let chosen: KernelChoice = build.choose(&NONE, ["declared"; 2], &[]);
        Ok(Launches::new(chosen, Vec::new(), Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Backend;
    use crate::validate;
    use serde_json::{Map, json};

    fn request(shape: &[usize], kernel: serde_json::Value) -> Request {
        // As text: a JSON value would sort its keys.
        let op = r#"{ "sizes": ["m", "k"], "inputs": { "x": ["m", "k"], "a": ["k"] }, "outputs": { "y": ["m"] },
            "oracle": "exact", "requires": ["k % 4 == 0"] }"#;
        Request {
            declared: serde_json::from_str(op).unwrap(),
            kernel: serde_json::from_value(kernel).unwrap(),
            ..Request::new("mine", shape, "f16", &Map::new())
        }
    }

    #[test]
    fn tensors_come_in_the_order_of_the_file_and_sizes_by_their_names() {
        let kernel = json!({ "source": "a.cu", "entry": "a", "grid": ["ceil_div(m, 8)"], "block": [32],
            "arguments": ["x", "a", "y", "m * k"], "workspace": [{ "name": "w", "bytes": "4 * m" }] });
        let request = request(&[10, 8], kernel);
        assert_eq!(validate(&request, Backend::Cuda), Ok(()));
        let op = Declared::plan(&request, request.declared.as_ref().unwrap()).unwrap();
        let description = op.describe(Dtype::F16);
        let names: Vec<&str> = description.inputs.iter().map(|input| &*input.name).collect();
        assert_eq!((names, description.work.bytes), (vec!["x", "a"], 2 * (80 + 8 + 10)));
    }

    #[test]
    fn what_cannot_be_launched_is_refused_before_any_device_is_asked() {
        let kernel = json!({ "source": "a.cu", "entry": "a", "grid": ["n"], "block": [32] });
        for (request, word) in [
            (request(&[10, 8], kernel.clone()), "no size is called \"n\"; there are m, k"),
            (request(&[10, 6], kernel), "it requires \"k % 4 == 0\""),
            (request(&[10, 8], json!(null)), "[workload.kernel]"),
        ] {
            let problem = validate(&request, Backend::Cuda).unwrap_err().to_string();
            assert!(problem.contains(word), "{problem}");
        }
    }
}
