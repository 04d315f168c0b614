//! `holdpoint ci measure`: the part of `ci gate` that runs the change's code. Where it is isolated, it is a process of its own
//! that `ci gate` believes nothing but its exit code.

use super::CiResult;
use crate::ab::sides::{self, Base, Head, Planned};
use crate::attest::{self, AttestationRequest};
use crate::done::Done;
use crate::error::FlowError;
use crate::gate::{Gated, StoredGate};
use crate::options::{
    BaselineDir, DecideArgs, GateArgs, HistoryArg, PolicyArgs, ProfileOn, SealArgs, SuiteArg, WaiversArg,
};
use crate::support::artifacts;
use crate::support::rules::Rules;
use crate::support::suites;
use crate::{Watch, ab, run};
use holdpoint_measure::builds::Builds;
use holdpoint_model::ExitCode;
use holdpoint_model::attest::RuntimeTarget;
use std::path::{Path, PathBuf};

/// A revision to be measured: paths are absolute, and the current folder is the checkout.
#[derive(Clone, Debug)]
pub struct MeasureRequest {
    /// The suite, as it is at the base.
    pub suite: PathBuf,
    /// The folder of the checkout that paths in the suite are relative to.
    pub workdir: PathBuf,
    /// The folder `.holdpoint` of the base.
    pub settings: PathBuf,
    pub artifacts: PathBuf,
    /// The commit that is measured.
    pub head: String,
    /// The commit that it is compared with, side by side; a stored baseline if absent.
    pub against: Option<String>,
    pub gpu: bool,
    pub trend: bool,
}

/// Measures, judges, and leaves the evidence with a draft of the release attestation.
pub fn run(args: &MeasureRequest, watch: &dyn Watch) -> Result<Done<CiResult>, FlowError> {
    let judged = match &args.against {
        Some(revision) => against(args, revision, watch),
        None => with_baseline(args, watch),
    };
    draft(args, watch);
    judged.map(|done| done.map(|gated| CiResult::Gated(Box::new(gated))))
}

fn suite_arg(args: &MeasureRequest) -> SuiteArg {
    SuiteArg {
        suite: args.suite.to_string_lossy().into_owned(),
        device: None,
        workdir: Some(args.workdir.clone()),
    }
}

/// Slowdowns that the base answers for.
fn waivers(args: &MeasureRequest) -> WaiversArg {
    WaiversArg { waivers: Some(args.settings.join("waivers.toml")).filter(|path| path.is_file()) }
}

/// Compares with a revision, both alive at the same time.
fn against(args: &MeasureRequest, revision: &str, watch: &dyn Watch) -> Result<Done<Gated>, FlowError> {
    let _lock = artifacts::lock(&args.artifacts, watch)?;
    let suite = Box::new(sides::revision_suite(&suite_arg(args))?);
    let files = gate_args(args).files();
    let rules = Rules::read(&files, &suite)?;
    let head = Head::Rev(args.head.clone());
    let planned = Planned::Revisions { suite, base: Base::named(revision), head };
    let done = ab::decide(planned, &rules, &DecideArgs::default(), None, &files, watch)?;
    Ok(done.map(Gated::decided))
}

/// Builds the checkout and compares it with the baseline that the base has for this machine.
fn with_baseline(args: &MeasureRequest, watch: &dyn Watch) -> Result<Done<Gated>, FlowError> {
    let gate_args = gate_args(args);
    let _lock = artifacts::lock(&args.artifacts, watch)?;
    let suite = suites::load(&gate_args.suite)?;
    let rules = Rules::read(&gate_args.files(), &suite)?;
    // A file that the suite names lies in the checkout, where the change could have written it.
    let gate = StoredGate::read(&gate_args, suite.clone(), None, &rules)?;
    if suite.build.is_some() {
        watch.progress("building");
        let builds = Builds::open(Path::new("."))?.in_folder(suite.dir.as_deref());
        builds.build_in_place(suite.build.as_ref())?;
    }
    let done = gate.run(watch)?;
    let report = args.artifacts.join(artifacts::REPORT);
    if matches!(done.end, Ok(ExitCode::Inconclusive)) && !report.exists() {
        // Nothing to compare with: the numbers are kept all the same.
        let suite = suites::with_benches(suites::in_own_process(suite, &gate_args.suite)?)?;
        holdpoint_store::write_json(&report, &run::measure(&suite, watch))?;
    }
    Ok(done)
}

/// The settings of the base, as flags of a gate.
fn gate_args(args: &MeasureRequest) -> GateArgs {
    GateArgs {
        last_good: None,
        suite: suite_arg(args),
        against: None,
        dirty: false,
        resume: false,
        baseline: None,
        baseline_dir: BaselineDir { baseline_dir: args.settings.join("baselines") },
        policy: PolicyArgs::default(),
        decide: DecideArgs::default(),
        waivers: waivers(args),
        calibration_dir: args.settings.join("calibration"),
        artifacts: args.artifacts.clone(),
        profile_on: ProfileOn::Never,
        require_baseline: true,
        confirm: None,
        runs: None,
        history: HistoryArg::none(),
        seal: SealArgs::default(),
    }
}

/// A draft of the release evidence: what it lacks is seen when a release is made of it.
fn draft(args: &MeasureRequest, watch: &dyn Watch) {
    let (target, gate) = match args.gpu {
        true => (RuntimeTarget::Triton, "gpu_perf_regression"),
        false => (RuntimeTarget::Cpu, "cpu_perf_regression"),
    };
    let name = match (args.gpu, args.trend) {
        (false, false) => "release_attestation_ci",
        (true, false) => "release_attestation_gpu_ci",
        (false, true) => "release_attestation_cpu_weekly",
        (true, true) => "release_attestation_gpu_weekly",
    };
    // Not every worker says that its times are a device's.
    let is_judged = args.artifacts.join(artifacts::COMPARISON).is_file();
    let draft = AttestationRequest {
        commit_sha: Some(args.head.clone()),
        runtime_target: target,
        gate_evidence: is_judged.then(|| format!("{gate}={}", artifacts::COMPARISON)).into_iter().collect(),
        output_json: Some(args.artifacts.join("release").join(format!("{name}.json"))),
        ..AttestationRequest::new(args.artifacts.clone())
    };
    if let Err(error) = attest::create(&draft) {
        watch.note(&format!("no draft of the release evidence: {error}"));
    }
}
