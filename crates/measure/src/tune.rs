//! Tunes the kernels of a suite's `cuda` workloads. The choice itself is made by `holdpoint_ops::cuda::tune`.

use crate::physics::{self, Executor};
use crate::program::WorkerError;
use crate::worker::cuda::choose_timing;
use crate::worker::op_request;
use holdpoint_cuda::{CudaError, Timing, Unavailable};
use holdpoint_model::limits::clean_text;
use holdpoint_model::protocol::DeviceInfo;
use holdpoint_model::suite::{Variant, WORKER_CUDA, Work, Workload};
use holdpoint_model::tune::{Refused, TuneOutcome, TunedKernel, Tuning};
use holdpoint_model::{FailureCause, SCHEMA_VERSION, Suite};
use holdpoint_ops::Backend;
use holdpoint_ops::cuda::{self, Gpu, PrepareError};
use std::path::{Path, PathBuf};

/// Tunes a suite's kernels on one device, one after the other.
pub struct Tuner<'a> {
    suite: &'a Suite,
    gpu: Result<Gpu, Unavailable>,
    /// The workload that broke the device for all after it.
    broken: Option<String>,
    done: Vec<(&'a Workload, TuneOutcome)>,
}

/// Workloads that can be tuned: plain kernels have nothing to choose.
pub fn tunable(suite: &Suite) -> impl Iterator<Item = &Workload> {
    let is_tunable = |w: &&Workload| w.task.device().is_some() && w.variant == Variant::Fast;
    // A suite's own worker of that name has its own kernels.
    suite.workloads.iter().filter(is_tunable).filter(|_| !suite.workers.contains_key(WORKER_CUDA))
}

impl<'a> Tuner<'a> {
    /// Opens the suite's device; without one, every workload is skipped.
    pub fn new(suite: &'a Suite, cache_dir: &Path) -> Self {
        let gpu = Gpu::open(suite.device, cache_dir);
        Self { suite, gpu, broken: None, done: Vec::new() }
    }

    /// Where winners are stored; `None` without a device.
    pub fn registry_path(&self) -> Option<PathBuf> {
        self.gpu.as_ref().ok().map(|gpu| gpu.registry().path().to_owned())
    }

    pub fn tune(&mut self, spec: &'a Workload) -> Tuning {
        // Workloads that differ only in timer or cache share a registry entry: the first one decides.
        let known = self.done.iter().find(|(done, _)| is_same_kernel(done, spec));
        let outcome = match known {
            Some((_, outcome)) => outcome.clone(),
            None => self.outcome(spec),
        };
        self.done.push((spec, outcome.clone()));
        Tuning { schema_version: SCHEMA_VERSION, workload: spec.name.clone(), outcome }
    }

    fn outcome(&mut self, spec: &Workload) -> TuneOutcome {
        if let Some(workload) = &self.broken {
            let detail = format!("not tuned: the device was lost with workload {workload:?}");
            return failed(FailureCause::DeviceLost, &detail);
        }
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(Unavailable { reason, detail }) => return skipped(reason, Some(detail)),
        };
        let request = op_request(spec, self.suite.seed);
        // Tuning does not change the host's share of a call, which would only add noise.
        let timing = match choose_timing(spec) {
            (Timing::Host, cache) => (Timing::Graph, cache),
            timing => timing,
        };
        match cuda::tune(gpu, &request, timing) {
            Ok(tuned) => {
                let work = holdpoint_ops::work(&request, Backend::Cuda).unwrap_or_default();
                match why_impossible(&work, &request.dtype, gpu.info(), tuned.winner.p50_us * 1e3) {
                    Some(why) => failed(FailureCause::BadTime, &why),
                    None => TuneOutcome::Tuned(tuned_kernel(tuned)),
                }
            }
            Err(error) => {
                if matches!(&error, PrepareError::Device(CudaError { fatal: true, .. })) {
                    self.broken = Some(spec.name.clone());
                }
                failure_outcome(&error)
            }
        }
    }
}

/// Why a call cannot take so long.
fn why_impossible(work: &Work, dtype: &str, device: &DeviceInfo, call_ns: f64) -> Option<String> {
    let (least_ns, why) = physics::call_ns_min(work, dtype, &Executor::Device(Box::new(device.clone())))?;
    (call_ns < least_ns).then(|| {
        format!("a call of {call_ns:.0} ns cannot be: {why} takes at least {least_ns:.0} ns; empty the kernel cache")
    })
}

/// Whether the registry has one entry for both.
fn is_same_kernel(a: &Workload, b: &Workload) -> bool {
    (&a.op, &a.shape, &a.dtype, &a.params) == (&b.op, &b.shape, &b.dtype, &b.params)
}

fn failure_outcome(error: &PrepareError) -> TuneOutcome {
    match error {
        PrepareError::Skipped(reason) => skipped(reason, None),
        // Without a compiler there are no candidates: a fact about the machine.
        PrepareError::Device(error) if error.cause == FailureCause::NotStarted => {
            skipped("nvrtc_not_found", Some(&error.detail))
        }
        PrepareError::Device(error) => failed(error.cause, &error.detail),
        PrepareError::Request(error) => failed(FailureCause::WorkerError, &error.to_string()),
    }
}

fn skipped(reason: &str, detail: Option<&str>) -> TuneOutcome {
    TuneOutcome::Skipped { reason: reason.to_owned(), detail: detail.map(str::to_owned) }
}

fn failed(cause: FailureCause, detail: &str) -> TuneOutcome {
    TuneOutcome::Failed(WorkerError::new(cause, detail).into())
}

fn tuned_kernel(tuned: cuda::TuneResult) -> TunedKernel {
    let refused = tuned.refused.into_iter();
    TunedKernel {
        kernel_name: tuned.kernel_name,
        shape_bucket: tuned.shape_bucket,
        selected_config: tuned.winner.config,
        default_ms: tuned.winner.default_us / 1e3,
        best_ms: tuned.winner.p50_us / 1e3,
        candidates_count: tuned.winner.candidates_count,
        refused: refused.map(|(config, reason)| Refused { config, reason: clean_text(&reason) }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = r#"
        schema_version = 1
        name = "s"
        [[workload]]
        name = "plain"
        op = "copy"
        worker = "cuda"
        variant = "reference"
        shape = [64]
        dtype = "f16"
        [[workload]]
        name = "quick"
        op = "copy"
        worker = "cuda"
        shape = [64]
        dtype = "f16"
        [[workload]]
        name = "cpu"
        op = "tile_pack"
        shape = [1, 8, 32, 32]
        dtype = "f32"
    "#;

    #[test]
    fn quick_kernels_of_the_device_are_tuned_and_nothing_else() {
        let suite = Suite::parse(SUITE).unwrap();
        let names: Vec<&str> = tunable(&suite).map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["quick"]);
    }

    #[test]
    fn where_there_is_no_such_device_every_workload_is_skipped_with_the_reason_and_what_helps() {
        let mut suite = Suite::parse(SUITE).unwrap();
        suite.device = u32::MAX;
        let dir = tempfile::tempdir().unwrap();
        let mut tuner = Tuner::new(&suite, dir.path());
        assert_eq!(tuner.registry_path(), None);
        for spec in tunable(&suite) {
            let outcome = tuner.tune(spec).outcome;
            let TuneOutcome::Skipped { reason, detail: Some(detail) } = &outcome else {
                panic!("{outcome:?}");
            };
            assert!(reason.starts_with("cuda_") && !detail.is_empty(), "{outcome:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is written");
    }

    #[test]
    fn a_winner_beyond_what_the_device_can_do_is_refused() {
        let device = DeviceInfo { name: "NVIDIA H200".to_owned(), ..DeviceInfo::default() };
        let work = Work { flops: 1_000_000_000, ..Work::default() };
        assert_eq!(why_impossible(&work, "f16", &device, 2_000.0), None);
        assert!(why_impossible(&work, "f16", &device, 20.0).unwrap().contains("cannot be"));
    }

    #[test]
    fn errors_keep_their_meaning() {
        let lost = PrepareError::Skipped("compute_capability_below_sm90".to_owned());
        assert!(matches!(failure_outcome(&lost), TuneOutcome::Skipped { detail: None, .. }));
        let error =
            |cause| PrepareError::Device(CudaError { cause, detail: "what".to_owned(), fatal: false });
        let skipped = failure_outcome(&error(FailureCause::NotStarted));
        assert!(matches!(skipped, TuneOutcome::Skipped { reason, .. } if reason == "nvrtc_not_found"));
        let failed = failure_outcome(&error(FailureCause::WrongAnswer));
        assert!(matches!(failed, TuneOutcome::Failed(f) if f.cause == FailureCause::WrongAnswer));
    }
}
