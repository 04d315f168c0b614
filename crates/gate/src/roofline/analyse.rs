//! Where each workload of a report stands under the ceilings of its device.

use super::advice::advise;
use super::ceilings::{bandwidth_for, device_of, unit_of, working_set_bytes};
use holdpoint_model::SCHEMA_VERSION;
use holdpoint_model::report::{Measured, Measurement, Outcome, Report};
use holdpoint_model::roofline::{
    Bottleneck, Ceiling, CeilingUnit, Ceilings, Placed, Placement, PublicPeaks, Roofline, public_peaks,
};
use holdpoint_model::suite::Identity;

/// By how much a rate may pass a ceiling before something must be wrong: medians of the same copy minutes apart differed by up to
/// 3 % on an idle device.
const ABOVE: f64 = 1.05;

/// A workload is bound by its launch when at least this share of its time is what an empty launch takes.
const LAUNCH_SHARE: f64 = 0.5;

/// Measured ceilings further than this from the maker's numbers are told: below half of them something else was measured; above,
/// clocks were higher than those that the numbers are for, which is 8 % on an H200.
const PUBLIC_RANGE: std::ops::RangeInclusive<f64> = 0.5..=1.1;

/// Ceilings that say nothing about a report.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Mismatch {
    /// It does not say where it was made.
    #[error("the report names no machine, so no ceilings can be shown to be its own")]
    NoMachine,
    /// They are of something else.
    #[error("the ceilings are of {ceilings}, the report is of {report}")]
    Device { report: String, ceilings: String },
}

/// Places every workload of a report.
pub fn analyse(report: &Report, ceilings: Ceilings) -> Result<Roofline, Mismatch> {
    let (device, is_gpu) = device_of(report).ok_or(Mismatch::NoMachine)?;
    if (device, is_gpu) != (ceilings.device.as_str(), ceilings.is_gpu) {
        return Err(Mismatch::Device { report: device.to_owned(), ceilings: ceilings.device });
    }
    let placed = report.benchmarks.iter().map(|(name, m)| (name.clone(), place(m, &ceilings)));
    let public_peaks = public_peaks(device);
    let mut notes = public_peaks.as_ref().map(|peaks| against_public(&ceilings, peaks)).unwrap_or_default();
    let driver = report.toolchain.cuda.as_ref().map(|cuda| &cuda.driver);
    if let (Some(now), Some(then)) = (driver, &ceilings.driver)
        && now != then
    {
        notes.push(format!("the ceilings were measured with driver {then}, the report with {now}"));
    }
    Ok(Roofline {
        schema_version: SCHEMA_VERSION,
        suite: report.suite.clone(),
        timestamp_utc: report.timestamp_utc.clone(),
        device: device.to_owned(),
        workloads: placed.collect(),
        public_peaks,
        notes,
        ceilings,
    })
}

fn against_public(ceilings: &Ceilings, peaks: &PublicPeaks) -> Vec<String> {
    let memory = [("memory", ceilings.memory.gb_per_s, peaks.gb_per_s, "GB/s")];
    let compute = ceilings.compute.iter().filter_map(|(unit, compute)| {
        Some((unit.as_str(), compute.gflops / 1e3, *peaks.tflops.get(unit)?, "TFLOP/s"))
    });
    let odd =
        |(_, measured, public, _): &(&str, f64, f64, &str)| !PUBLIC_RANGE.contains(&(measured / public));
    let note = |(what, measured, public, unit): (&str, f64, f64, &str)| {
        let share = 100.0 * measured / public;
        format!("{what}: measured {measured:.0} {unit}, {share:.0} % of the {public:.0} its maker gives")
    };
    memory.into_iter().chain(compute).filter(odd).map(note).collect()
}

/// A rate and the roof over it.
struct Under {
    share: f64,
    bottleneck: Bottleneck,
    ceiling: Ceiling,
}

fn place(Measurement { identity, outcome, .. }: &Measurement, ceilings: &Ceilings) -> Placement {
    let unplaced = |reason: &str| Placement::Unplaced { reason: reason.to_owned() };
    let measured = match outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Skipped { reason } => return unplaced(&format!("skipped: {reason}")),
        Outcome::Failed(failure) => return unplaced(&format!("failed: {}", failure.cause.as_str())),
    };
    let on_gpu = measured.kernel.is_some() || identity.timer.starts_with("cuda");
    if on_gpu != ceilings.is_gpu {
        let (ran, roofs) = if on_gpu { ("on a GPU", "the CPU's") } else { ("on the CPU", "a GPU's") };
        return unplaced(&format!("it ran {ran}, the ceilings are {roofs}"));
    }
    let rate =
        |key: &str| measured.throughput.get(key).copied().filter(|rate| rate.is_finite() && *rate > 0.0);
    let (gb_per_s, gflops) = (rate("gb_per_s"), rate("gflops"));
    let bytes = gb_per_s.map(|rate| rate * measured.p50_ms * 1e6);
    let memory = gb_per_s.zip(bytes).map(|(rate, bytes)| under_memory(identity, rate, bytes, ceilings));
    let compute = gflops.and_then(|rate| under_compute(identity, rate, ceilings));
    let highest = [memory, compute].into_iter().flatten().max_by(|a, b| a.share.total_cmp(&b.share));
    let launch = under_launch(identity, measured, ceilings);
    let launch_ms = launch.as_ref().map(|launch| launch.ceiling.value);
    let under = match (launch, highest) {
        (_, Some(highest)) if highest.share > ABOVE => above(highest),
        (Some(launch), Some(highest)) if launch.share >= LAUNCH_SHARE && launch.share > highest.share => {
            launch
        }
        (_, Some(highest)) => highest,
        (Some(launch), None) if launch.share >= LAUNCH_SHARE => launch,
        (_, None) if gflops.is_some() => {
            return unplaced(&format!("no ceiling was measured for {}", identity.dtype));
        }
        (_, None) => {
            return unplaced("it declares no bytes and no operations; give it work = { bytes, flops }");
        }
    };
    let is_above = under.bottleneck == Bottleneck::AboveCeiling;
    let mut placed = Placed {
        dtype: identity.dtype.clone(),
        time_ms: measured.p50_ms,
        bytes,
        flops: gflops.map(|rate| rate * measured.p50_ms * 1e6),
        arithmetic_intensity: gflops.zip(gb_per_s).map(|(flops, bytes)| flops / bytes),
        throughput_gflops: gflops,
        bandwidth_gb_s: gb_per_s,
        bottleneck: under.bottleneck,
        ceiling: under.ceiling,
        efficiency_pct: (!is_above).then(|| 100.0 * under.share.min(1.0)),
        recommendations: Vec::new(),
    };
    placed.recommendations = advise(&placed, &unit_of(identity), launch_ms, ceilings);
    Placement::Placed(Box::new(placed))
}

/// Quicker than it can be: said of the roof that it passes.
fn above(highest: Under) -> Under {
    Under { bottleneck: Bottleneck::AboveCeiling, ..highest }
}

/// Data that fits a cache is measured by that cache, but for calls that found it empty.
fn under_memory(identity: &Identity, gb_per_s: f64, bytes: f64, ceilings: &Ceilings) -> Under {
    let is_cold = identity.params.get("cache").is_some_and(|cache| cache == "cold");
    let roof = match is_cold {
        true => &ceilings.memory,
        false => bandwidth_for(ceilings, working_set_bytes(identity, bytes)),
    };
    let is_memory = roof == &ceilings.memory;
    Under {
        share: gb_per_s / roof.gb_per_s,
        bottleneck: if is_memory { Bottleneck::Memory } else { Bottleneck::Cache },
        ceiling: Ceiling { workload: roof.workload.clone(), value: roof.gb_per_s, unit: CeilingUnit::GbPerS },
    }
}

fn under_compute(identity: &Identity, gflops: f64, ceilings: &Ceilings) -> Option<Under> {
    let roof = ceilings.compute.get(&unit_of(identity))?;
    let ceiling = Ceiling { workload: roof.workload.clone(), value: roof.gflops, unit: CeilingUnit::Gflops };
    Some(Under { share: gflops / roof.gflops, bottleneck: Bottleneck::Compute, ceiling })
}

fn under_launch(identity: &Identity, measured: &Measured, ceilings: &Ceilings) -> Option<Under> {
    let first_ms = ceilings.launch_ms.get(&identity.timer)?;
    let launches = measured.kernel.as_ref().map_or(1, |kernel| kernel.launches_per_call.max(1));
    // A clock's own cost comes once; each further launch costs what the quickest way of launching does.
    let further_ms = ceilings.launch_ms.values().copied().fold(*first_ms, f64::min);
    let value = first_ms + f64::from(launches - 1) * further_ms;
    let workload = if ceilings.is_gpu { "launch" } else { "process" };
    let ceiling = Ceiling { workload: workload.to_owned(), value, unit: CeilingUnit::Ms };
    let share = (value / measured.p50_ms).min(1.0);
    Some(Under { share, bottleneck: Bottleneck::Launch, ceiling })
}
