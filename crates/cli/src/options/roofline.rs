//! Flags of `roofline`.

use holdpoint_flow::roofline::RooflineRequest;
use std::path::PathBuf;

/// `holdpoint roofline`.
#[derive(Debug, clap::Args)]
pub struct RooflineArgs {
    /// The report to place below the ceilings [default: artifacts/report.json, or none with --measure]
    #[arg(value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Ceilings from this report of a ceilings suite, instead of those kept for the report's machine, device and driver
    #[arg(long, value_name = "REPORT", conflicts_with = "measure")]
    pub ceilings: Option<PathBuf>,
    /// Measure the ceilings and keep them: those of the report's device; without a report the CPU's, and those of a CUDA device
    /// where there is one
    #[arg(long)]
    pub measure: bool,
    /// The CUDA device to measure, counted from 0
    #[arg(long, value_name = "N", requires = "measure")]
    pub device: Option<u32>,
    /// Where to write the picture, as SVG
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

requests! { RooflineArgs => RooflineRequest { report, ceilings, measure, device, output } }
