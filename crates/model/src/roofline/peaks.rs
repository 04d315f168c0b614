//! Peak rates as vendors state them: dense products (sparsity doubles them on paper), summed in fp32, at boost clocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One device of the table, in TFLOP/s and GB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Names that the driver gives it, without its maker's; compared as a whole, so that an L4 is no L40S.
    pub names: &'static [&'static str],
    /// Ordinary arithmetic.
    pub f32: f64,
    /// fp32 operands on tensor cores; 0 where there are none.
    pub tf32: f64,
    /// 16-bit operands.
    pub f16: f64,
    /// The same with the upper half of fp32; 0 where there are none.
    pub bf16: f64,
    /// 8-bit operands; 0 where there are none.
    pub e4m3: f64,
    /// Memory.
    pub gb_per_s: f64,
    /// Where the numbers stand.
    pub source: &'static str,
    /// When that was published.
    pub dated: &'static str,
}

const fn peak(
    names: &'static [&'static str],
    [f32, tf32, f16, bf16, e4m3]: [f64; 5],
    gb_per_s: f64,
    source: &'static str,
    dated: &'static str,
) -> Peak {
    Peak { names, f32, tf32, f16, bf16, e4m3, gb_per_s, source, dated }
}

const A100_SHEET: &str = "NVIDIA A100 Tensor Core GPU data sheet";
const H100_SHEET: &str =
    "NVIDIA H100 Tensor Core GPU data sheet; dense is half of what it prints with sparsity";
const H200_SHEET: &str =
    "NVIDIA H200 Tensor Core GPU data sheet; dense is half of what it prints with sparsity";

/// The table. [fp32, tf32, fp16, bf16, fp8], then GB/s.
pub const PEAKS: &[Peak] = &[
    peak(
        &["V100-SXM2-16GB", "V100-SXM2-32GB"],
        [15.7, 0.0, 125.0, 0.0, 0.0],
        900.0,
        "NVIDIA V100 Tensor Core GPU data sheet",
        "2020-01",
    ),
    peak(
        &["V100-PCIE-16GB", "V100-PCIE-32GB"],
        [14.0, 0.0, 112.0, 0.0, 0.0],
        900.0,
        "NVIDIA V100 Tensor Core GPU data sheet",
        "2020-01",
    ),
    peak(
        &["A100-SXM4-40GB", "A100-PCIE-40GB"],
        [19.5, 156.0, 312.0, 312.0, 0.0],
        1555.0,
        A100_SHEET,
        "2021-06",
    ),
    peak(&["A100-SXM4-80GB"], [19.5, 156.0, 312.0, 312.0, 0.0], 2039.0, A100_SHEET, "2021-06"),
    peak(&["A100 80GB PCIe"], [19.5, 156.0, 312.0, 312.0, 0.0], 1935.0, A100_SHEET, "2021-06"),
    peak(
        &["A10"],
        [31.2, 62.5, 125.0, 125.0, 0.0],
        600.0,
        "NVIDIA A10 Tensor Core GPU data sheet",
        "2021-04",
    ),
    peak(
        &["GeForce RTX 3090"],
        [35.6, 35.6, 71.2, 71.2, 0.0],
        936.0,
        "NVIDIA Ampere GA102 whitepaper",
        "2020-09",
    ),
    peak(&["H100 80GB HBM3"], [67.0, 494.5, 989.5, 989.5, 1979.0], 3350.0, H100_SHEET, "2023-03"),
    peak(&["H100 PCIe"], [51.0, 378.0, 756.0, 756.0, 1513.0], 2000.0, H100_SHEET, "2023-03"),
    peak(&["H100 NVL"], [60.0, 417.5, 835.5, 835.5, 1670.5], 3938.0, H100_SHEET, "2024-01"),
    peak(&["H200"], [67.0, 494.5, 989.5, 989.5, 1979.0], 4800.0, H200_SHEET, "2024-11"),
    peak(&["H200 NVL"], [60.0, 417.5, 835.5, 835.5, 1670.5], 4800.0, H200_SHEET, "2024-11"),
    peak(
        &["L4"],
        [30.3, 60.0, 121.0, 121.0, 242.5],
        300.0,
        "NVIDIA L4 data sheet; dense is half of what it prints",
        "2023-03",
    ),
    peak(&["L40"], [90.5, 90.5, 181.05, 181.05, 362.0], 864.0, "NVIDIA L40 data sheet", "2023-05"),
    peak(&["L40S"], [91.6, 183.0, 362.05, 362.05, 733.0], 864.0, "NVIDIA L40S data sheet", "2023-08"),
    peak(
        &["GeForce RTX 4090"],
        [82.6, 82.6, 165.2, 165.2, 330.3],
        1008.0,
        "NVIDIA Ada GPU architecture whitepaper",
        "2022-09",
    ),
    peak(
        &["GeForce RTX 5090"],
        [104.8, 104.8, 209.5, 209.5, 419.0],
        1792.0,
        "NVIDIA RTX Blackwell GPU architecture whitepaper",
        "2025-01",
    ),
    peak(
        &["B200"],
        [80.0, 1100.0, 2250.0, 2250.0, 4500.0],
        8000.0,
        "NVIDIA Blackwell architecture technical brief, HGX B200",
        "2024-03",
    ),
];

/// The vendor's figures for a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublicPeaks {
    /// TFLOP/s by element type, dense.
    pub tflops: BTreeMap<String, f64>,
    /// 10⁹ bytes per second.
    pub gb_per_s: f64,
    /// Where the numbers stand.
    pub source: String,
    /// When that was published.
    pub dated: String,
}

/// The vendor's figures for a device by its name, if they are known.
pub fn public_peaks(device: &str) -> Option<PublicPeaks> {
    let name = device.trim_start_matches("NVIDIA ").trim_start_matches("Tesla ");
    let peak = PEAKS.iter().find(|peak| peak.names.contains(&name))?;
    let Peak { f32, tf32, f16, bf16, e4m3, .. } = *peak;
    let all = [("f32", f32), ("tf32", tf32), ("f16", f16), ("bf16", bf16), ("e4m3", e4m3)];
    let there = all.into_iter().filter(|(_, tflops)| *tflops > 0.0);
    Some(PublicPeaks {
        tflops: there.map(|(unit, tflops)| (unit.to_owned(), tflops)).collect(),
        gb_per_s: peak.gb_per_s,
        source: peak.source.to_owned(),
        dated: peak.dated.to_owned(),
    })
}
