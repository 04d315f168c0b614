//! The table after `holdpoint doctor`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, words};
use crate::text::{entry, plural};
use crate::{remedy, units};
use holdpoint_model::caps::{
    Cap, CpuCaps, CudaCaps, CudaDeviceCaps, NvrtcCaps, RuntimeCaps, TensorRtCaps, ToolCaps,
};
use std::borrow::Cow;

const COLUMNS: &[Column] = &[words("what"), words("available"), names("detail")];

struct Capability<'a> {
    what: Cow<'static, str>,
    available: bool,
    detail: String,
    reason: Option<&'a str>,
    /// A more specific remedy than the reason's.
    found: Option<&'a str>,
    /// Whether the detail says what it is, and not only how it is.
    is_named: bool,
}

pub fn caps(c: &RuntimeCaps, style: Style) -> String {
    let rows = rows(c);
    let withheld = withheld(&c.withheld_variables, style);
    paragraphs(&[table(&rows, style), remedies(&rows, style), advice(&c.cpu, style), withheld, end(c, style)])
}

/// Most variables that are named.
const NAMED_MAX: usize = 8;

fn withheld(names: &[String], style: Style) -> String {
    if names.is_empty() {
        return String::new();
    }
    let named: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if names.len() > NAMED_MAX { ", …" } else { "" };
    let text = format!(
        "{} not passed on to builds and measured programs: {}{more}; pass_env in the suite, or HOLDPOINT_PASS, names those that they need",
        plural(names.len(), "variable"),
        named.join(", "),
    );
    entry(style, Ink::Calm, "environment", &text)
}

fn rows(c: &RuntimeCaps) -> Vec<Capability<'_>> {
    let mut rows = cpu(&c.cpu);
    rows.push(
        Capability::new("CUDA", c.cuda.available, cuda(&c.cuda), &c.cuda.reason)
            .found(c.cuda.detail.as_deref()),
    );
    rows.extend(c.cuda.devices.iter().map(device));
    rows.push(Capability::without_detail("NVML", &c.nvml));
    rows.extend(nvrtc(&c.nvrtc));
    let dtypes = c.fp8.supported_dtypes.join(", ");
    rows.push(Capability::new("FP8", c.fp8.available, dtypes, &c.fp8.reason));
    rows.push(tool("Nsight Compute", &c.ncu));
    rows.push(tool("compute-sanitizer", &c.compute_sanitizer));
    rows.push(Capability::new("Triton", c.triton.available, or_empty(&c.triton.version), &c.triton.reason));
    rows.extend(tensorrt(&c.tensorrt));
    rows
}

impl<'a> Capability<'a> {
    fn new(
        what: impl Into<Cow<'static, str>>,
        available: bool,
        detail: String,
        reason: &'a Option<String>,
    ) -> Self {
        let reason = reason.as_deref().filter(|_| !available);
        Self { what: what.into(), available, detail, reason, found: None, is_named: false }
    }

    fn without_detail(what: &'static str, cap: &'a Cap) -> Self {
        Self::new(what, cap.available, String::new(), &cap.reason)
    }

    fn found(self, found: Option<&'a str>) -> Self {
        Self { found, ..self }
    }
}

fn cpu(cpu: &CpuCaps) -> Vec<Capability<'_>> {
    let clock = units::time(cpu.timer_resolution_ns as f64 / 1e6);
    let model = format!("{}, {} CPUs, {}", cpu.model, cpu.cpus, cpu.features.join(" "));
    vec![
        Capability::new("CPU", true, model.trim_end_matches([' ', ',']).to_owned(), &None),
        Capability::new("host clock", true, format!("steps of {clock}"), &None),
        Capability::without_detail("CPU frequency", &cpu.frequency),
        Capability::without_detail("stolen time", &cpu.steal),
        Capability::without_detail("hardware counters", &cpu.perf_counters),
    ]
}

/// The driver and how many devices it has; each has a row of its own.
fn cuda(cuda: &CudaCaps) -> String {
    let driver = cuda.driver_version.as_ref().map(|version| format!("driver {version}"));
    let runtime = cuda.cuda_version.as_ref().map(|version| format!("CUDA {version}"));
    let count = Some(plural(cuda.device_count, "device"));
    [driver, runtime, count].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn device(device: &CudaDeviceCaps) -> Capability<'_> {
    let fp8 = if device.fp8.available { ", FP8" } else { "" };
    let detail = format!("{}, compute capability {}{fp8}", device.name, device.compute_capability);
    let what = format!("CUDA device {}", device.ordinal);
    let row = Capability::new(what, device.available, detail, &device.reason).found(device.detail.as_deref());
    Capability { is_named: true, ..row }
}

fn nvrtc(nvrtc: &NvrtcCaps) -> [Capability<'_>; 3] {
    let library = [nvrtc.version.clone(), nvrtc.library_path.clone()];
    let library = library.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let kernels = format!("{} in {}", units::count(nvrtc.kernels_count.into()), nvrtc.kernels_dir);
    [
        Capability::new("NVRTC", nvrtc.available, library, &nvrtc.reason).found(nvrtc.detail.as_deref()),
        Capability::new("CUDA headers", nvrtc.header_path.is_some(), or_dash(&nvrtc.header_path), &None),
        Capability::new("compiled kernels", nvrtc.kernels_count > 0, kernels, &None),
    ]
}

fn tool<'a>(what: &'static str, tool: &'a ToolCaps) -> Capability<'a> {
    let detail = [tool.version.clone(), tool.path.clone()];
    let detail = detail.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Capability::new(what, tool.available, detail, &tool.reason).found(tool.detail.as_deref())
}

fn tensorrt(trt: &TensorRtCaps) -> [Capability<'_>; 3] {
    [
        Capability::new(
            "TensorRT (Python)",
            trt.python_available,
            or_empty(&trt.python_version),
            &trt.python_reason,
        ),
        Capability::new("TensorRT headers", trt.headers_available, or_dash(&trt.header_path), &None),
        Capability::new("TensorRT int8", trt.int8_available, String::new(), &trt.int8_reason),
    ]
}

fn or_empty(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

fn or_dash(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| units::MISSING.to_owned())
}

fn table(rows: &[Capability<'_>], style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    for row in rows {
        let available =
            if row.available { Cell::inked(Ink::Calm, "yes") } else { Cell::inked(Ink::Doubt, "no") };
        let detail = match row.reason {
            Some(reason) if row.is_named => format!("{}: {reason}", row.detail),
            Some(reason) => reason.to_owned(),
            None => row.detail.clone(),
        };
        grid.push([Cell::new(&row.what), available, Cell::new(&detail)]);
    }
    grid.render(style)
}

fn remedies(rows: &[Capability<'_>], style: Style) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut out = String::new();
    for row in rows {
        let help = |reason| row.found.or_else(|| remedy::find(reason));
        let Some((reason, remedy)) = row.reason.and_then(|reason| Some((reason, help(reason)?))) else {
            continue;
        };
        if !seen.contains(&remedy) {
            seen.push(remedy);
            let code = reason.split(':').next().unwrap_or(reason);
            out += &entry(style, Ink::Strong, "remedy", &format!("{code}: {remedy}"));
        }
    }
    out
}

/// Advice for steadier times.
fn advice(cpu: &CpuCaps, style: Style) -> String {
    let entries = cpu.advice.iter();
    entries
        .map(|a| entry(style, Ink::Doubt, "advice", &format!("{}: {}: {}", a.reason, a.detail, a.remedy)))
        .collect()
}

fn end(c: &RuntimeCaps, style: Style) -> String {
    let (ink, sentence) = match (c.cuda.available, c.any_gpu_runtime) {
        (true, _) if !c.nvrtc.available => {
            let sentence = "CPU workloads can be measured here, and CUDA workloads whose kernels were compiled here before";
            (Ink::Doubt, sentence)
        }
        (_, true) => (Ink::Calm, "CPU and GPU workloads can be measured here"),
        (true, false) => {
            (Ink::Calm, "CPU and CUDA workloads can be measured here, without Triton and TensorRT")
        }
        (false, false) => (Ink::Doubt, "CPU workloads can be measured here; GPU workloads are skipped"),
    };
    last_line(style, ink, "doctor", sentence)
}
