//! Flags of `sweep`, and those of `run` for models.

use super::groups::SealArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use holdpoint_flow::request::EngineChoice;
use holdpoint_flow::sweep::{SweepRequest, SweepSource};
use holdpoint_model::suite::Provider;
use std::path::PathBuf;

/// A model and how it is run.
#[derive(Clone, Debug, clap::Args)]
pub struct EngineArgs {
    /// Measure this model: `.onnx` and `.ort` with ONNX Runtime, `.engine`, `.plan` and `.trt` with TensorRT (docs/engines.md)
    #[arg(long, value_name = "MODEL", help_heading = "Engine")]
    pub engine: Option<PathBuf>,
    /// Shape of an input that the model leaves open, such as image=1x3x64x64; one for each
    #[arg(long, value_name = "NAME=SIZES", requires = "engine", help_heading = "Engine")]
    pub input_shape: Vec<String>,
    /// Where ONNX Runtime computes [default: cpu]
    #[arg(long, value_name = "cpu|cuda", requires = "engine", value_parser = provider(), hide_possible_values = true, help_heading = "Engine")]
    pub provider: Option<Provider>,
    /// Threads of ONNX Runtime on the CPU [default: 1]
    #[arg(long, value_name = "N", requires = "engine", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Engine")]
    pub threads: Option<u32>,
    /// A library of TensorRT plugins that the model needs; may be given several times
    #[arg(long, value_name = "LIB", requires = "engine", help_heading = "Engine")]
    pub plugin: Vec<PathBuf>,
    /// The Python interpreter that has holdpoint's package and the library [default: the variable HOLDPOINT_PYTHON, that of the
    /// environment holdpoint is installed in, or python3]
    #[arg(long, value_name = "PATH", requires = "engine", help_heading = "Engine")]
    pub python: Option<String>,
    /// A model in ONNX that computes the right outputs [default: the model itself without optimisations, if it is in ONNX]
    #[arg(
        long,
        value_name = "MODEL",
        requires = "engine",
        conflicts_with = "no_check",
        help_heading = "Engine"
    )]
    pub reference: Option<PathBuf>,
    /// Do not check the model's outputs
    #[arg(long, requires = "engine", hide = true, help_heading = "Engine")]
    pub no_check: bool,
    /// Take exactly this many samples of each case, instead of measuring until the interval is narrow
    #[arg(long, value_name = "N", requires = "engine", hide = true, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Engine")]
    pub iters: Option<u32>,
    /// Seed of the inputs
    #[arg(
        long,
        value_name = "N",
        requires = "engine",
        hide = true,
        default_value_t = 123,
        help_heading = "Engine"
    )]
    pub seed: u64,
}

impl From<EngineArgs> for Option<EngineChoice> {
    fn from(args: EngineArgs) -> Self {
        Some(EngineChoice {
            model: args.engine?,
            input_shapes: args.input_shape,
            provider: args.provider,
            threads: args.threads,
            plugins: args.plugin,
            python: args.python,
            reference: args.reference,
            check: !args.no_check,
            iterations: args.iters,
            seed: args.seed,
        })
    }
}

fn provider() -> impl TypedValueParser<Value = Provider> {
    let names = Provider::ALL.map(Provider::as_str);
    PossibleValuesParser::new(names).map(|name| {
        let found = Provider::ALL.into_iter().find(|provider| provider.as_str() == name);
        found.unwrap_or_default()
    })
}

/// Examples of `holdpoint sweep -h`.
const EXAMPLES: &str = "\
Examples:
  holdpoint sweep --engine model.onnx --shape-case image=1x3x64x64 --shape-case image=8x3x64x64
  holdpoint sweep --engine model.onnx --shape-case 'tokens=1x128;mask=1x128'
  holdpoint sweep --times image=1x3x64x64:small.json --times image=8x3x64x64:large.json";

/// `holdpoint sweep`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("engine", |flag| flag.required_unless_present("times")))]
pub struct SweepArgs {
    /// The model.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// A case: the shapes of all inputs that the model leaves open, such as 'image=1x3x64x64;mask=1x64'; may be given several times
    #[arg(long, value_name = "SHAPES", requires = "engine", help_heading = "Engine")]
    pub shape_case: Vec<String>,
    /// Take the times of a case from a file of `trtexec --exportTimes` instead of measuring: 'image=1x3x64x64:times.json'; may be given
    /// several times
    #[arg(long, value_name = "SHAPES:FILE", conflicts_with = "engine", help_heading = "Engine")]
    pub times: Vec<String>,
    /// Where to write the report
    #[arg(long, short, value_name = "FILE", default_value = "artifacts/report.json")]
    pub output: PathBuf,
    /// Where to write the sweep in Apex-X's format
    #[arg(long, value_name = "FILE", default_value = "artifacts/perf_trt_shape_sweep.json")]
    pub output_json: PathBuf,
    /// Where to write the same as Markdown
    #[arg(long, value_name = "FILE", default_value = "artifacts/perf_trt_shape_sweep.md")]
    pub output_md: PathBuf,
    /// The seal's key.
    #[command(flatten)]
    pub seal_key: SealArgs,
}

impl From<SweepArgs> for SweepRequest {
    fn from(args: SweepArgs) -> Self {
        let SweepArgs { engine, shape_case: shape_cases, times, output, output_json, output_md, seal_key } =
            args;
        let source = match engine.into() {
            Some(engine) => SweepSource::Model { engine, shape_cases },
            None => SweepSource::Times(times),
        };
        Self { source, output, output_json, output_md, seal_key: seal_key.into() }
    }
}
