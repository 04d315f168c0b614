//! Advice on a workload, each sentence with the number that led to it.

use holdpoint_model::roofline::{Bottleneck, CeilingUnit, Ceilings, Placed};

/// Advice by bottleneck and by the least share of the roof that is reached; the first that fits counts.
const RULES: &[(Bottleneck, f64, &str)] = &[
    (
        Bottleneck::Memory,
        80.0,
        "only fewer bytes make it quicker: fuse it with its neighbours, or store fewer bits",
    ),
    (Bottleneck::Memory, 50.0, "look at the width and alignment of accesses, and at how many are under way"),
    (
        Bottleneck::Memory,
        0.0,
        "its nearest roof, but not what it waits for: give it more independent work, and look for latency with a profiler",
    ),
    (Bottleneck::Cache, 80.0, "only fewer bytes make it quicker: keep values in registers between steps"),
    (Bottleneck::Cache, 50.0, "look at the width and alignment of accesses, and at how many are under way"),
    (
        Bottleneck::Cache,
        0.0,
        "its nearest roof, but not what it waits for: give it more independent work, and look for latency with a profiler",
    ),
    (Bottleneck::Compute, 80.0, "only fewer or narrower operations make it quicker"),
    (Bottleneck::Compute, 50.0, "keep the units fed: more products under way, operands nearer"),
    (
        Bottleneck::Compute,
        0.0,
        "its nearest roof, but not what it waits for: look for operand traffic, dependent steps and idle units with a profiler",
    ),
    (Bottleneck::Launch, 0.0, "put more work into a call, or several calls into one launch"),
];

/// A narrower type is named where it does at least this much more: below, conversions eat the gain.
const NARROWER_GAIN: f64 = 1.5;

/// Below half of a roof, an empty launch is named from this share of the time on.
const LAUNCH_TOLD: f64 = 0.1;

pub(super) fn advise(
    placed: &Placed,
    unit: &str,
    launch_ms: Option<f64>,
    ceilings: &Ceilings,
) -> Vec<String> {
    let Some(efficiency) = placed.efficiency_pct else { return vec![above(placed, unit, ceilings)] };
    let of_roof = |rate: Option<f64>, roof: String, show: fn(f64) -> String| {
        format!("{} of {roof} measured ({})", show(rate.unwrap_or_default()), percent(efficiency))
    };
    let value = placed.ceiling.value;
    let fact = match placed.ceiling.unit {
        CeilingUnit::GbPerS => of_roof(placed.bandwidth_gb_s, bandwidth(value), bandwidth),
        CeilingUnit::Gflops => of_roof(placed.throughput_gflops, arithmetic(value), arithmetic),
        CeilingUnit::Ms => {
            let what = empty(ceilings);
            format!("{} of its {} are {what} ({})", time(value), time(placed.time_ms), percent(efficiency))
        }
    };
    let rule = RULES
        .iter()
        .find(|(bottleneck, least, _)| *bottleneck == placed.bottleneck && efficiency >= *least)
        .map_or("", |(_, _, advice)| advice);
    let mut all = vec![format!("{fact}: {rule}")];
    let launch_ms = launch_ms.filter(|ms| *ms >= LAUNCH_TOLD * placed.time_ms && efficiency < 50.0);
    if let (Some(ms), true) = (launch_ms, placed.bottleneck != Bottleneck::Launch) {
        let share = percent(100.0 * ms / placed.time_ms);
        all.push(format!("{} of its {} are {} ({share})", time(ms), time(placed.time_ms), empty(ceilings)));
    }
    all.extend(narrower(placed, unit, ceilings));
    all
}

/// Advice that would not help.
fn empty(ceilings: &Ceilings) -> &'static str {
    if ceilings.is_gpu { "what empty launches take" } else { "what an empty process takes" }
}

fn percent(value: f64) -> String {
    if value < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// Full precision where tensor cores of the same device would do much more.
fn narrower(placed: &Placed, unit: &str, ceilings: &Ceilings) -> Option<String> {
    if placed.bottleneck != Bottleneck::Compute || unit != "f32" {
        return None;
    }
    let roof = ceilings.compute.get("f16")?;
    let gain = roof.gflops / placed.ceiling.value;
    (gain >= NARROWER_GAIN).then(|| {
        format!("tensor cores do {} in f16, {gain:.0} times what f32 units do", arithmetic(roof.gflops))
    })
}

/// Quicker than it can be, and what may be wrong.
fn above(placed: &Placed, unit: &str, ceilings: &Ceilings) -> String {
    let value = placed.ceiling.value;
    let (rate, roof, what) = match placed.ceiling.unit {
        CeilingUnit::Gflops => {
            (placed.throughput_gflops.unwrap_or_default() / value, arithmetic(value), "operations")
        }
        _ => (placed.bandwidth_gb_s.unwrap_or_default() / value, bandwidth(value), "bytes"),
    };
    let tensor = match ceilings.compute.get("tf32") {
        Some(roof) if unit == "f32" && placed.throughput_gflops.is_some_and(|rate| rate <= roof.gflops) => {
            format!("; or it uses tensor cores, which do {} in tf32", arithmetic(roof.gflops))
        }
        _ => String::new(),
    };
    format!(
        "{rate:.2} times the {roof} measured as {}, which cannot be: it counts too many {what}, or the ceiling was measured on a slower \
         or a busy device{tensor}; measure the ceilings again, then look at the count",
        placed.ceiling.workload
    )
}

fn bandwidth(gb_per_s: f64) -> String {
    if gb_per_s >= 999.5 {
        format!("{} TB/s", three(gb_per_s / 1e3))
    } else {
        format!("{} GB/s", three(gb_per_s))
    }
}

fn arithmetic(gflops: f64) -> String {
    if gflops >= 999.5 {
        format!("{} TFLOP/s", three(gflops / 1e3))
    } else {
        format!("{} GFLOP/s", three(gflops))
    }
}

fn time(ms: f64) -> String {
    if ms < 0.9995 { format!("{} µs", three(ms * 1e3)) } else { format!("{} ms", three(ms)) }
}

/// Three significant digits.
fn three(value: f64) -> String {
    let decimals = match value.abs() {
        99.95.. => 0,
        9.995..99.95 => 1,
        0.9995..9.995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
