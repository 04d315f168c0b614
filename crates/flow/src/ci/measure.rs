//! `holdpoint ci measure`: the part of `ci gate` that runs the change's code. Where it is isolated, it is a process of its own
//! that `ci gate` believes nothing but its exit code.

use super::CiResult;
use crate::ab::sides::{self, Base, Head, PlannedSides};
use crate::attest::{self, AttestationRequest};
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::gate::{BaselineQuestion, GateResult, StoredGate};
use crate::request::{EvidenceFiles, HistoryChoice, MeasureRequest, ProfileOn, SidesRequest, SuiteChoice};
use crate::rules::Rules;
use crate::suites::{self, LoadedSuite};
use crate::{Watch, ab, run};
use holdpoint_measure::builds::Builds;
use holdpoint_model::ExitCode;
use holdpoint_model::attest::RuntimeTarget;
use std::path::Path;

/// Measures, judges, and leaves the evidence with a draft of the release attestation.
pub fn run(request: &MeasureRequest, watch: &dyn Watch) -> Result<CommandResult<CiResult>, FlowError> {
    let judged = match &request.against {
        Some(revision) => against(request, revision, watch),
        None => with_baseline(request, watch),
    };
    draft(request, watch);
    judged.map(|done| done.map(|gated| CiResult::Measure(Box::new(gated))))
}

fn suite_choice(request: &MeasureRequest) -> SuiteChoice {
    SuiteChoice {
        name: request.suite.to_string_lossy().into_owned(),
        device: None,
        workdir: Some(request.workdir.clone()),
    }
}

/// The evidence, and the files that the base answers for.
fn evidence_files(request: &MeasureRequest) -> EvidenceFiles {
    EvidenceFiles {
        artifacts: request.artifacts.clone(),
        calibration_dir: request.settings.join("calibration"),
        waivers: Some(request.settings.join("waivers.toml")).filter(|path| path.is_file()),
        profile_on: ProfileOn::Never,
        history: HistoryChoice::None,
        seal_key: None,
    }
}

/// Compares with a revision, both alive at the same time.
fn against(
    request: &MeasureRequest,
    revision: &str,
    watch: &dyn Watch,
) -> Result<CommandResult<GateResult>, FlowError> {
    let _lock = artifacts::lock(&request.artifacts, watch)?;
    let suite = sides::revision_suite(&suite_choice(request))?;
    let files = evidence_files(request);
    let rules = Rules::read(&files, &suite)?;
    let head = Head::Rev(request.head.clone());
    let planned = PlannedSides::revisions(suite, Base::named(revision), &head)?;
    let done = ab::decide(planned, &rules, &SidesRequest::default(), &files, watch)?;
    Ok(done.map(GateResult::decided))
}

/// Builds the checkout and compares it with the baseline that the base has for this machine.
fn with_baseline(
    request: &MeasureRequest,
    watch: &dyn Watch,
) -> Result<CommandResult<GateResult>, FlowError> {
    let _lock = artifacts::lock(&request.artifacts, watch)?;
    let loaded = LoadedSuite::read(&suite_choice(request))?;
    let (files, suite) = (evidence_files(request), loaded.as_run.clone());
    let rules = Rules::read(&files, &suite)?;
    let question = BaselineQuestion {
        require_baseline: true,
        ..BaselineQuestion::new(request.settings.join("baselines"))
    };
    // A file that the suite names lies in the checkout, where the change could have written it.
    let gate = StoredGate::read(loaded, question, None, &files, &rules)?;
    if suite.build.is_some() {
        watch.progress("building");
        let builds = Builds::open(Path::new("."))?.in_folder(suite.dir.as_deref());
        builds.build_in_place(suite.build.as_ref())?;
    }
    let done = gate.run(watch)?;
    let report = request.artifacts.join(artifacts::REPORT);
    if matches!(done.end, Ok(ExitCode::Inconclusive)) && !report.exists() {
        // Nothing to compare with: the numbers are kept all the same.
        let suite = suites::list(suite)?;
        holdpoint_store::write_json(&report, &run::measure(&suite, watch))?;
    }
    Ok(done)
}

/// A draft of the release evidence: what it lacks is seen when a release is made of it.
fn draft(request: &MeasureRequest, watch: &dyn Watch) {
    let (target, gate) = match request.gpu {
        true => (RuntimeTarget::Triton, "gpu_perf_regression"),
        false => (RuntimeTarget::Cpu, "cpu_perf_regression"),
    };
    let name = match (request.gpu, request.trend) {
        (false, false) => "release_attestation_ci",
        (true, false) => "release_attestation_gpu_ci",
        (false, true) => "release_attestation_cpu_weekly",
        (true, true) => "release_attestation_gpu_weekly",
    };
    // Not every worker says that its times are a device's.
    let is_judged = request.artifacts.join(artifacts::COMPARISON).is_file();
    let draft = AttestationRequest {
        commit_sha: Some(request.head.clone()),
        runtime_target: target,
        gate_evidence: is_judged.then(|| format!("{gate}={}", artifacts::COMPARISON)).into_iter().collect(),
        output_json: Some(request.artifacts.join("release").join(format!("{name}.json"))),
        ..AttestationRequest::new(request.artifacts.clone())
    };
    if let Err(error) = attest::create(&draft) {
        watch.note(&format!("no draft of the release evidence: {error}"));
    }
}
