//! Ceilings from the report of a ceilings suite.

use holdpoint_model::report::{Measured, Measurement, Outcome, Report};
use holdpoint_model::roofline::{Bandwidth, Ceilings, Compute};
use holdpoint_model::suite::{Identity, TIMER_PROCESS};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A report that holds no ceilings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CeilingsError {
    /// It does not say where it was made.
    #[error("the report names no machine, so its ceilings are nobody's")]
    NoMachine,
    /// Nothing was copied.
    #[error(
        "no `copy` was measured in suite {suite:?}, so it holds no ceilings; measure them with \"holdpoint roofline --measure\""
    )]
    NoCopy { suite: String },
}

/// The device that a report is about: the GPU where there is one, else the CPU; and whether it is a GPU.
pub fn device_of(report: &Report) -> Option<(&str, bool)> {
    let machine = report.machine.as_ref()?;
    Some(
        machine.devices.first().map_or((machine.cpu_model.as_str(), false), |device| (device.as_str(), true)),
    )
}

/// Reads ceilings from the report of a ceilings suite.
pub fn ceilings_from(report: &Report) -> Result<Ceilings, CeilingsError> {
    let (device, is_gpu) = device_of(report).ok_or(CeilingsError::NoMachine)?;
    let mut copies: Vec<Bandwidth> = Vec::new();
    let mut compute: BTreeMap<String, Compute> = BTreeMap::new();
    let mut launch_ms = BTreeMap::new();
    for (name, Measurement { identity, outcome, .. }) in &report.benchmarks {
        let Outcome::Measured(measured) = outcome else { continue };
        match identity.op.as_str() {
            "copy" => copies.extend(bandwidth(name, identity, measured)),
            "fma" | "mma" => {
                let Some(gflops) = best(measured, "gflops") else { continue };
                let here = compute.entry(unit_of(identity));
                let known = here.or_insert_with(|| Compute { workload: name.clone(), gflops });
                if gflops > known.gflops {
                    *known = Compute { workload: name.clone(), gflops };
                }
            }
            // Typically, not at best: it is a cost, not a rate to be reached.
            "launch" => drop(launch_ms.insert(identity.timer.clone(), measured.p50_ms)),
            "command" if identity.params.get("command") == Some(&json!(["true"])) => {
                launch_ms.insert(TIMER_PROCESS.to_owned(), measured.p50_ms);
            }
            _ => {}
        }
    }
    copies.sort_by(|a, b| a.working_set_bytes.total_cmp(&b.working_set_bytes));
    let memory = copies.pop().ok_or_else(|| CeilingsError::NoCopy { suite: report.suite.clone() })?;
    // One that is no quicker than a larger one is never the roof.
    let mut best = memory.gb_per_s;
    let mut caches: Vec<Bandwidth> = Vec::new();
    for copy in copies.into_iter().rev().filter(|copy| copy.gb_per_s > memory.gb_per_s) {
        if copy.gb_per_s > best {
            best = copy.gb_per_s;
            caches.insert(0, copy);
        }
    }
    Ok(Ceilings {
        device: device.to_owned(),
        is_gpu,
        driver: report.toolchain.cuda.as_ref().map(|cuda| cuda.driver.clone()),
        timestamp_utc: report.timestamp_utc.clone(),
        memory,
        caches,
        compute,
        launch_ms,
    })
}

/// The bandwidth that data of this size can have: the best of what was measured over as much or more.
pub(super) fn bandwidth_for(ceilings: &Ceilings, working_set_bytes: f64) -> &Bandwidth {
    let fitting = ceilings.caches.iter().filter(|cache| cache.working_set_bytes >= working_set_bytes);
    fitting.max_by(|a, b| a.gb_per_s.total_cmp(&b.gb_per_s)).unwrap_or(&ceilings.memory)
}

/// A rate of the quickest sample; the report has it of the median.
fn best(measured: &Measured, key: &str) -> Option<f64> {
    let rate = measured.throughput.get(key)? * measured.p50_ms / measured.min_ms;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

fn bandwidth(name: &str, identity: &Identity, measured: &Measured) -> Option<Bandwidth> {
    let gb_per_s = best(measured, "gb_per_s")?;
    let bytes = measured.throughput.get("gb_per_s")? * measured.p50_ms * 1e6;
    Some(Bandwidth {
        workload: name.to_owned(),
        gb_per_s,
        working_set_bytes: working_set_bytes(identity, bytes),
    })
}

/// The bytes that a call touches. All ops count each byte once, except a copy that touches the same ones several times.
pub(super) fn working_set_bytes(identity: &Identity, bytes: f64) -> f64 {
    let rounds = identity.params.get("rounds").and_then(Value::as_f64).filter(|rounds| *rounds >= 1.0);
    match (identity.op.as_str(), rounds) {
        ("copy", Some(rounds)) => bytes / rounds,
        _ => bytes,
    }
}

/// The arithmetic that an element type means: one word for each, whatever a worker calls it. Sums of fp32 elements go through
/// ordinary units, unless the op is one of tensor cores.
pub(super) fn unit_of(identity: &Identity) -> String {
    match (identity.dtype.as_str(), identity.op.as_str()) {
        ("f32" | "fp32" | "float32", "mma") | ("tf32", _) => "tf32",
        ("f32" | "fp32" | "float32", _) => "f32",
        ("f16" | "fp16" | "float16" | "half", _) => "f16",
        ("bf16" | "bfloat16", _) => "bf16",
        ("e4m3" | "fp8" | "float8_e4m3fn", _) => "e4m3",
        (other, _) => other,
    }
    .to_owned()
}
