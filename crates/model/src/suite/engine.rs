//! Inference engines: a model and the input shapes at which it is measured.

use super::{Suite, Task, WorkerSpec, Workload};
use crate::toml_file::{TomlError, invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The op of a workload that runs a model.
pub const OP_INFERENCE: &str = "inference";
/// Name of the worker that runs a suite's model.
pub const WORKER_ENGINE: &str = "engine";
/// Label of the case whose shapes are the model's own, or those of `input_shapes`.
const LABEL_DEFAULT: &str = "default";
/// Longest label that is written out: models of language have dozens of inputs, and metrics are named after labels.
const LABEL_CHARS_MAX: usize = 120;

/// A model, measured by a Python worker (docs/engines.md). Each of its shape cases becomes a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineSpec {
    /// The model's file: `.onnx` and `.ort` run with ONNX Runtime, `.engine`, `.plan` and `.trt` with TensorRT;
    /// `plugin:TileSSMScan` is Apex-X's plugin alone.
    pub model: String,
    /// Input shapes of the workload `default`, such as `image=1x3x64x64`, one for each input whose shape the model leaves open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_shapes: Vec<String>,
    /// Cases, a workload each: the shapes of all open inputs, such as `image=1x3x64x64;mask=1x64`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape_cases: Vec<String>,
    /// Where ONNX Runtime computes.
    #[serde(default, skip_serializing_if = "Provider::is_cpu")]
    pub provider: Provider,
    /// Threads that ONNX Runtime computes with on the CPU.
    #[serde(default = "one_thread", skip_serializing_if = "is_one_thread")]
    pub threads: u32,
    /// Libraries with TensorRT plugins that the model needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// A model in ONNX that computes the right outputs on the CPU; where absent, the model itself without optimisations, if it is in
    /// ONNX.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Whether the model's outputs are checked.
    #[serde(default = "checked", skip_serializing_if = "Clone::clone")]
    pub check: bool,
    /// The Python interpreter that has the libraries; found by holdpoint where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
}

fn checked() -> bool {
    true
}

fn one_thread() -> u32 {
    1
}

fn is_one_thread(threads: &u32) -> bool {
    *threads == 1
}

/// Where ONNX Runtime computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    #[default]
    Cpu,
    Cuda,
}

impl Provider {
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Cuda];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    fn is_cpu(&self) -> bool {
        *self == Self::Cpu
    }
}

impl EngineSpec {
    /// A model with its own input shapes, on one thread of the CPU.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            input_shapes: Vec::new(),
            shape_cases: Vec::new(),
            provider: Provider::Cpu,
            threads: 1,
            plugins: Vec::new(),
            reference: None,
            check: true,
            python: None,
        }
    }

    /// The cases with their labels.
    fn cases(&self) -> Result<Vec<(String, ShapeCase)>, ShapeError> {
        let mut cases = Vec::new();
        // A model whose shapes are all open has no default: sizes of 1 would be nobody's.
        if !self.input_shapes.is_empty() || self.shape_cases.is_empty() {
            cases.push((LABEL_DEFAULT.to_owned(), ShapeCase::from_inputs(&self.input_shapes)?));
        }
        for text in &self.shape_cases {
            let case: ShapeCase = text.parse()?;
            if cases.iter().any(|(_, other)| other.sorted() == case.sorted()) {
                return Err(ShapeError::Twice(case.to_string()));
            }
            cases.push((case.label(), case));
        }
        Ok(cases)
    }

    fn worker(&self, cases: &[(String, ShapeCase)]) -> WorkerSpec {
        let python = self.python.clone().unwrap_or_else(|| "python3".to_owned());
        let mut command = vec![python];
        let threads = self.threads.to_string();
        let words = ["-m", "holdpoint", "engine", &self.model];
        let options = ["--provider", self.provider.as_str(), "--threads", &threads];
        command.extend(words.into_iter().chain(options).map(str::to_owned));
        for plugin in &self.plugins {
            command.extend(["--plugin".to_owned(), plugin.clone()]);
        }
        if let Some(model) = &self.reference {
            command.extend(["--reference".to_owned(), model.clone()]);
        }
        if !self.check {
            command.push("--no-check".to_owned());
        }
        for (label, case) in cases {
            command.extend(["--case".to_owned(), label.clone(), case.to_string()]);
        }
        let is_onnx = [".onnx", ".ort"].iter().any(|ending| self.model.ends_with(ending));
        WorkerSpec {
            command,
            single_threaded: is_onnx && self.threads == 1 && self.provider == Provider::Cpu,
            // By the host's clock, a process has its own speed.
            units_per_process: 1,
            all_workloads: false,
            dir: None,
        }
    }
}

impl Suite {
    /// The suite with the cases of its model as workloads; as it is where it has none.
    pub fn with_engine(mut self) -> Result<Self, TomlError> {
        let Some(engine) = self.engine.take() else { return Ok(self) };
        let cases = engine.cases().or_else(|error| invalid("engine", error.to_string()))?;
        for (label, case) in &cases {
            self.workloads.push(workload(label, case));
        }
        self.workers.insert(WORKER_ENGINE.to_owned(), engine.worker(&cases));
        self.completed()
    }

    pub(super) fn check_engine(&self) -> Result<(), TomlError> {
        let Some(engine) = &self.engine else { return Ok(()) };
        if engine.model.is_empty() || engine.model.starts_with('-') {
            return invalid("engine", "model: give the path of its file");
        }
        if engine.threads == 0 {
            return invalid("engine", "threads must be > 0");
        }
        if self.workers.contains_key(WORKER_ENGINE) {
            return invalid("workers.engine", "this name is taken by [engine]; choose another");
        }
        engine.cases().map(|_| ()).or_else(|error| invalid("engine", error.to_string()))
    }
}

/// The shapes tell cases apart; what the model makes of them is its own matter.
fn workload(label: &str, case: &ShapeCase) -> Workload {
    let mut workload = Workload::new(label, Task::Engine, OP_INFERENCE);
    if !case.0.is_empty() {
        workload.params.insert("inputs".to_owned(), Value::from(case.sorted().to_string()));
    }
    workload
}

/// Shapes of a model's inputs, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeCase(Vec<(String, Vec<u64>)>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("shape case must be non-empty, such as \"image=1x3x64x64;mask=1x64\"")]
    Empty,
    #[error("shape case must include at least one tensor shape: '{0}'")]
    NoTensor(String),
    #[error("invalid shape case entry: '{0}'; give it as name=1x3x64x64")]
    NoShape(String),
    #[error("invalid tensor name in shape case entry '{0}'")]
    NoName(String),
    #[error("invalid tensor dims in shape case entry '{0}'; give them as 1x3x64x64")]
    NoDims(String),
    #[error("tensor dims must be whole numbers in shape case entry '{0}'")]
    NotWhole(String),
    #[error("tensor dims must be > 0 in shape case entry '{0}'")]
    Zero(String),
    #[error("'{0}' is given two shapes in one shape case")]
    TwoShapes(String),
    #[error("the shapes {0} are given twice; each case is measured once")]
    Twice(String),
}

impl std::str::FromStr for ShapeCase {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        if text.trim().is_empty() {
            return Err(ShapeError::Empty);
        }
        let entries = text.split([';', ',']).map(str::trim).filter(|entry| !entry.is_empty());
        let case = entries.map(parse_entry).collect::<Result<Vec<_>, _>>()?;
        if case.is_empty() {
            return Err(ShapeError::NoTensor(text.trim().to_owned()));
        }
        Self(case).checked()
    }
}

fn parse_entry(entry: &str) -> Result<(String, Vec<u64>), ShapeError> {
    let error = |kind: fn(String) -> ShapeError| kind(entry.to_owned());
    let (name, dims) = entry.split_once('=').ok_or_else(|| error(ShapeError::NoShape))?;
    let name = name.trim();
    if name.is_empty() {
        return Err(error(ShapeError::NoName));
    }
    let words = dims.split(|c: char| c == 'x' || c.is_whitespace()).filter(|word| !word.is_empty());
    let dims = words.map(str::parse::<u64>).collect::<Result<Vec<_>, _>>();
    let dims = dims.map_err(|_| error(ShapeError::NotWhole))?;
    match dims.as_slice() {
        [] => Err(error(ShapeError::NoDims)),
        dims if dims.contains(&0) => Err(error(ShapeError::Zero)),
        _ => Ok((name.to_owned(), dims)),
    }
}

impl ShapeCase {
    /// One entry for each input.
    fn from_inputs(entries: &[String]) -> Result<Self, ShapeError> {
        Self(entries.iter().map(|entry| parse_entry(entry.trim())).collect::<Result<_, _>>()?).checked()
    }

    fn checked(self) -> Result<Self, ShapeError> {
        let sorted = self.sorted();
        match sorted.0.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(ShapeError::TwoShapes(pair[0].0.clone())),
            None => Ok(self),
        }
    }

    /// By name: the order in which shapes were typed makes no other case.
    pub fn sorted(&self) -> Self {
        let mut shapes = self.0.clone();
        shapes.sort();
        Self(shapes)
    }

    /// A name made of all tensors and sizes, the same wherever the case stands in a list.
    pub fn label(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let entry = |(name, dims): &(String, Vec<u64>)| {
            let name: String = name.chars().map(plain).collect();
            format!("{name}_{}", joined(dims))
        };
        let label = self.sorted().0.iter().map(entry).collect::<Vec<_>>().join("-");
        if label.len() <= LABEL_CHARS_MAX {
            return label;
        }
        format!("{}-{:016x}", &label[..LABEL_CHARS_MAX - 17], hash(&label))
    }
}

/// FNV-1a: labels stay the same from version to version.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn joined(dims: &[u64]) -> String {
    dims.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

/// The normal form: `image=1x3x64x64;mask=1x64`.
impl fmt::Display for ShapeCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.iter().map(|(name, dims)| format!("{name}={}", joined(dims)));
        f.write_str(&entries.collect::<Vec<_>>().join(";"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ShapeCase, ShapeError> {
        text.parse()
    }

    #[test]
    fn a_case_has_one_normal_form() {
        let case = parse(" image=1x3x128x128 ; centers= 1024 x 2 ;, strides=1024 ").unwrap();
        assert_eq!(case.to_string(), "image=1x3x128x128;centers=1024x2;strides=1024");
        assert_eq!(case.label(), "centers_1024x2-image_1x3x128x128-strides_1024");
        assert_eq!(parse("image=1 3 128 128").unwrap(), parse("image=1x3x128x128").unwrap());
    }

    #[test]
    fn a_bad_case_is_named() {
        for (text, expected) in [
            ("  ", "shape case must be non-empty"),
            (" ; , ", "shape case must include at least one tensor shape"),
            ("image:1x3x8", "invalid shape case entry: 'image:1x3x8'"),
            ("=1x3", "invalid tensor name in shape case entry"),
            ("image=", "invalid tensor dims in shape case entry"),
            ("image=1x0x8", "tensor dims must be > 0 in shape case entry"),
            ("image=1x-3", "tensor dims must be whole numbers"),
            ("image=1x3;image=1x4", "'image' is given two shapes"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_label_depends_on_all_sizes_and_not_on_their_order() {
        let label = |text: &str| parse(text).unwrap().label();
        assert_eq!(label("a=1x3;b=1x8"), label("b=1x8;a=1x3"));
        assert_ne!(label("a=1x3;b=1x8"), label("a=1x3;b=1x9"));
        let long = |size| {
            let inputs = (0..40).map(|i| format!("past_key_values.{i}.key=1x8x{size}x64"));
            label(&inputs.collect::<Vec<_>>().join(";"))
        };
        assert_eq!(long(128).len(), LABEL_CHARS_MAX);
        assert_ne!(long(128), long(129));
    }

    proptest::proptest! {
        #[test]
        fn the_normal_form_is_read_as_the_same_case(text in "[a-z0-9=x;, :é-]{0,40}") {
            if let Ok(case) = parse(&text) {
                proptest::prop_assert_eq!(parse(&case.to_string()), Ok(case.clone()));
                proptest::prop_assert!(case.label().is_ascii());
            }
        }
    }

    const SUITE: &str = "name = \"m\"\n[engine]\nmodel = \"m.onnx\"\n";

    #[test]
    fn each_case_of_a_model_is_a_workload() {
        let text = format!("{SUITE}shape_cases = [\"b=1x8;a=1x3\", \"a=2x3;b=2x8\"]");
        let suite = Suite::parse(&text).unwrap().with_engine().unwrap();
        let names: Vec<&str> = suite.workloads.iter().map(|workload| workload.name.as_str()).collect();
        assert_eq!(names, ["a_1x3-b_1x8", "a_2x3-b_2x8"]);
        assert_eq!(suite.workloads[0].params["inputs"], "a=1x3;b=1x8");
        let worker = &suite.workers[WORKER_ENGINE];
        let command = "python3 -m holdpoint engine m.onnx --provider cpu --threads 1 --case a_1x3-b_1x8 b=1x8;a=1x3 \
                       --case a_2x3-b_2x8 a=2x3;b=2x8";
        assert_eq!(worker.command.join(" "), command);
        assert!(worker.single_threaded);
    }

    #[test]
    fn the_default_case_is_measured_where_its_shapes_are_known() {
        let names = |keys: &str| {
            let suite = Suite::parse(&format!("{SUITE}{keys}")).unwrap().with_engine().unwrap();
            suite.workloads.into_iter().map(|workload| workload.name).collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["default"]);
        assert_eq!(names("input_shapes = [\"a=1x3\"]"), ["default"]);
        assert_eq!(names("shape_cases = [\"a=1x3\"]"), ["a_1x3"]);
        assert_eq!(names("input_shapes = [\"a=2x3\"]\nshape_cases = [\"a=1x3\"]"), ["default", "a_1x3"]);
    }

    #[test]
    fn a_bad_engine_is_refused_when_the_suite_is_read() {
        for (keys, expected) in [
            ("shape_cases = [\"a=1x3\", \"a=1x0\"]", "engine: tensor dims must be > 0"),
            ("shape_cases = [\"a=1x3\", \"a=1 3\"]", "engine: the shapes a=1x3 are given twice"),
            ("threads = 0", "engine: threads must be > 0"),
            ("[workers.engine]\ncommand = [\"x\"]", "taken by [engine]"),
        ] {
            let error = Suite::parse(&format!("{SUITE}{keys}")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
