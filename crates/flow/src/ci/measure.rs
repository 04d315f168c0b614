//! `holdpoint ci measure`: the part of `ci gate` that runs the change's code. Where it is isolated, it is a process of its own
//! that `ci gate` believes nothing but its exit code.

use super::CiResult;
use crate::ab::sides::{self, Head};
use crate::done::Done;
use crate::error::FlowError;
use crate::gate::{self, Gated};
use crate::options::{
    AbFiles, AttestArgs, AttestCommand, AttestCreateArgs, BaselineDir, DecideArgs, GateArgs, HistoryArg,
    MeasureArgs, PolicyArgs, ProfileOn, ReleaseArgs, SealArgs, SuiteArg, TargetName, WaiversArg,
};
use crate::support::artifacts::{self, Writer};
use crate::support::suites;
use crate::{Watch, ab, attest, run};
use holdpoint_measure::builds::Builds;
use holdpoint_model::ExitCode;
use std::path::{Path, PathBuf};

/// Measures, judges, and leaves the evidence with a draft of the release attestation.
pub fn run(args: &MeasureArgs, watch: &dyn Watch) -> Result<Done<CiResult>, FlowError> {
    let judged = match &args.against {
        Some(revision) => against(args, revision, watch),
        None => with_baseline(args, watch),
    };
    draft(args, watch);
    judged.map(|done| done.map(|gated| CiResult::Gated(Box::new(gated))))
}

fn suite_arg(args: &MeasureArgs) -> SuiteArg {
    SuiteArg {
        suite: args.suite.to_string_lossy().into_owned(),
        device: None,
        workdir: Some(args.workdir.clone()),
    }
}

/// Slowdowns that the base answers for.
fn waivers(args: &MeasureArgs) -> WaiversArg {
    WaiversArg { waivers: Some(args.settings.join("waivers.toml")).filter(|path| path.is_file()) }
}

/// Compares with a revision, both alive at the same time.
fn against(args: &MeasureArgs, revision: &str, watch: &dyn Watch) -> Result<Done<Gated>, FlowError> {
    let decide = DecideArgs::default();
    let _lock = artifacts::lock(&args.artifacts, watch)?;
    let prepared = sides::revisions(&suite_arg(args), revision, Head::Rev(&args.head), &decide, watch);
    let prepared = artifacts::clear_unless_input(prepared, &args.artifacts, Writer::Sides { resume: false })?;
    let files = AbFiles {
        artifacts: args.artifacts.clone(),
        resume: false,
        calibration_dir: args.settings.join("calibration"),
        waivers: waivers(args),
        profile_on: ProfileOn::Never,
        history: HistoryArg::none(),
        seal: SealArgs::default(),
    };
    let done = ab::decide(&prepared, &decide, None, &files, watch)?;
    Ok(done.map(|decided| Gated::Decided(Box::new(decided))))
}

/// Builds the checkout and compares it with the baseline that the base has for this machine.
fn with_baseline(args: &MeasureArgs, watch: &dyn Watch) -> Result<Done<Gated>, FlowError> {
    let suite = suite_arg(args);
    let unbuilt = suites::unbuilt(&suite)?;
    if unbuilt.build.is_some() {
        watch.progress("building");
        let builds = Builds::open(Path::new("."))?.in_folder(unbuilt.dir.as_deref());
        builds.build_in_place(unbuilt.build.as_ref())?;
    }
    let done = gate::run(
        &GateArgs {
            last_good: None,
            suite: suite.clone(),
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
        },
        watch,
    )?;
    let report = args.artifacts.join(artifacts::REPORT);
    if matches!(done.end, Ok(ExitCode::Inconclusive)) && !report.exists() {
        // Nothing to compare with: the numbers are kept all the same.
        holdpoint_store::write_json(&report, &run::measure(&suites::runnable(&suite)?, watch))?;
    }
    Ok(done)
}

/// A draft of the release evidence: what it lacks is seen when a release is made of it.
fn draft(args: &MeasureArgs, watch: &dyn Watch) {
    let (target, gate) = match args.gpu {
        true => (TargetName::Triton, "gpu_perf_regression"),
        false => (TargetName::Cpu, "cpu_perf_regression"),
    };
    let name = match (args.gpu, args.trend) {
        (false, false) => "release_attestation_ci",
        (true, false) => "release_attestation_gpu_ci",
        (false, true) => "release_attestation_cpu_weekly",
        (true, true) => "release_attestation_gpu_weekly",
    };
    // Not every worker says that its times are a device's.
    let is_judged = args.artifacts.join(artifacts::COMPARISON).is_file();
    let create = AttestCreateArgs {
        artifacts: args.artifacts.clone(),
        release_tag: None,
        commit_sha: Some(args.head.clone()),
        release_owner: None,
        runtime_target: target,
        ci_run_url: None,
        artifact_path: Vec::new(),
        gate_evidence: is_judged.then(|| format!("{gate}={}", artifacts::COMPARISON)).into_iter().collect(),
        without: Vec::new(),
        output_json: Some(args.artifacts.join("release").join(format!("{name}.json"))),
        output_md: None,
        release_file: Vec::new(),
        release: ReleaseArgs { policy: None, release_dir: PathBuf::from(".") },
    };
    if let Err(error) = attest::run(&AttestArgs { command: AttestCommand::Create(create) }) {
        watch.note(&format!("no draft of the release evidence: {error}"));
    }
}
