//! `holdpoint sweep`: a model at several input shapes, measured here or from files of trtexec.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::sealing::{self, Sealing};
use crate::interchange::imports;
use crate::request::EngineChoice;
use crate::run;
use crate::suites::engines;
use holdpoint_gate::HasExitCode;
use holdpoint_interop::apex::ApexSweepReport;
use holdpoint_model::suite::{OP_INFERENCE, ShapeCase, metric_name};
use holdpoint_model::{Measurement, Outcome, Report};
use holdpoint_render::markdown;
use std::path::{Path, PathBuf};

/// A model at several input shapes.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    pub source: SweepSource,
    /// Where the report goes.
    pub output: PathBuf,
    /// Where the sweep goes in Apex-X's format, and as Markdown.
    pub output_json: PathBuf,
    pub output_md: PathBuf,
    pub seal_key: Option<PathBuf>,
}

/// Where the times come from.
#[derive(Clone, Debug)]
pub enum SweepSource {
    /// Measured here: the shapes of all inputs that the model leaves open, case by case.
    Model { engine: EngineChoice, shape_cases: Vec<String> },
    /// SHAPES:FILE of `trtexec --exportTimes`.
    Times(Vec<String>),
}

pub fn run(request: &SweepRequest, watch: &dyn Watch) -> Result<CommandResult<Report>, FlowError> {
    let key = sealing::read_key(request.seal_key.as_deref())?;
    let (model, measured) = match &request.source {
        SweepSource::Model { engine, shape_cases } => {
            (engine.model.as_path(), Ok(engines::suite(engine, shape_cases)?))
        }
        SweepSource::Times(times) => (Path::new(""), Err(read_times(times)?)),
    };
    let _lock = run::begin(&request.output, watch)?;
    for path in [&request.output, &request.output_json, &request.output_md] {
        holdpoint_store::check_writable(path)?;
    }
    let (report, unsealed) = match measured {
        Ok(suite) => {
            let report = run::measure(&suite, watch);
            let sealing = Sealing::new(key, &request.output);
            let unsealed = run::save_sealed(sealing, &request.output, "sweep", &suite, &report)?;
            (report, unsealed)
        }
        // Nothing was measured here that a seal could vouch for.
        Err(report) => {
            holdpoint_store::write_json(&request.output, &report)?;
            (report, "")
        }
    };
    // The same numbers in another form, made of the report: the seal over that covers them.
    let sweep = ApexSweepReport::new(&report, &model.to_string_lossy());
    holdpoint_store::write_json(&request.output_json, &sweep)?;
    holdpoint_store::write_text(&request.output_md, &markdown::apex_sweep(&sweep))?;
    let note = format!(
        "report: {}{unsealed}\nsweep: {}, {}",
        request.output.display(),
        request.output_json.display(),
        request.output_md.display()
    );
    let exit = report.exit_code();
    Ok(CommandResult::new(report, exit).with_note(note))
}

/// The metric of trtexec's files that is the engine's own time.
const GPU_COMPUTE: &str = "gpu_compute";

/// A report of files that `trtexec --exportTimes` wrote, one for each case.
fn read_times(times: &[String]) -> Result<Report, FlowError> {
    let mut whole: Option<Report> = None;
    for text in times {
        let bad = |what: String| FlowError::Input(format!("--times {text:?}: {what}"));
        let (shapes, file) = text.rsplit_once(':').ok_or_else(|| {
            bad("give the shapes and the file of trtexec, as image=1x3x64x64:times.json".to_owned())
        })?;
        let case: ShapeCase = shapes.parse().map_err(|error| bad(format!("{error}")))?;
        let (mut report, _) = imports::read_report(Path::new(file))?;
        let found = report.benchmarks.swap_remove(GPU_COMPUTE);
        let measurement =
            found.ok_or_else(|| bad("it has no GPU times; make it with trtexec --exportTimes".to_owned()))?;
        let into = whole.get_or_insert_with(|| {
            report.benchmarks.clear();
            report.metrics.clear();
            report
        });
        if into.benchmarks.contains_key(&case.label()) {
            return Err(bad("these shapes are given twice".to_owned()));
        }
        add_case(into, &case, measurement);
    }
    whole.ok_or_else(|| FlowError::Input("give a model with --engine, or files with --times".to_owned()))
}

fn add_case(report: &mut Report, case: &ShapeCase, mut measurement: Measurement) {
    measurement.identity.op = OP_INFERENCE.to_owned();
    measurement.identity.params.insert("inputs".to_owned(), case.sorted().to_string().into());
    measurement.gated = ["p50_ms", "p95_ms"].map(str::to_owned).to_vec();
    if let Outcome::Measured(measured) = &measurement.outcome {
        let names = measurement.gated.iter();
        report.metrics.extend(
            names.filter_map(|name| Some((metric_name(&case.label(), name), measured.metric(name)?))),
        );
    }
    report.benchmarks.insert(case.label(), measurement);
}
