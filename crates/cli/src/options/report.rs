//! Flags of `report`.

use super::values::{self, Words};
use holdpoint_flow::report::{ExportForm, ReportForm, ReportRequest};
use std::path::PathBuf;

/// `holdpoint report`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("page").args(["markdown", "html"]).multiple(true)))]
pub struct ReportArgs {
    /// A report, a comparison, an ab.json, a calibration, a search, a trend (NDJSON), or results of another tool
    #[arg(value_name = "REPORT", default_value = "artifacts/report.json")]
    pub report: PathBuf,
    /// Its comparison, to be shown with it
    #[arg(long, value_name = "FILE")]
    pub comparison: Option<PathBuf>,
    /// Also write it as Markdown, with the roofline if ceilings are stored for the report's device
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Also write it as a self-contained HTML page
    #[arg(long, value_name = "FILE", conflicts_with = "form")]
    pub html: Option<PathBuf>,
    /// With --html: the repository whose commits are linked, such as `https://host/owner/name` [default: the remote `origin` of the
    /// repository here, if it has the commit and is on a forge that is known]
    #[arg(long, value_name = "URL", requires = "html")]
    pub repository: Option<String>,
    /// With --markdown or --html: ceilings from this report of a ceilings suite
    #[arg(long, value_name = "REPORT", requires = "page", conflicts_with = "form")]
    pub ceilings: Option<PathBuf>,
    /// Show and write it in another program's format
    #[arg(long = "as", value_parser = values::word(FORMS), value_name = "FORM", conflicts_with = "comparison")]
    pub form: Option<ReportForm>,
    /// Where to write it in that format
    #[arg(long, short, value_name = "FILE", requires = "form")]
    pub output: Option<PathBuf>,
    /// With --as github or sarif: the file that findings point to, such as the suite
    #[arg(long, value_name = "PATH", requires = "form")]
    pub location: Option<String>,
}

requests! {
    ReportArgs => ReportRequest {
        report, comparison, markdown, html, repository, ceilings, form, output, location,
    }
}

const FORMS: Words<ReportForm> = &[
    (
        "apex-gpu",
        "The GPU report of Apex-X, from the report of a GPU suite (docs/gpu-reports.md)",
        ReportForm::ApexGpu,
    ),
    ("github", "Annotations of a GitHub Actions job, from a comparison", ReportForm::Github),
    ("junit", "JUnit's XML, from a comparison", ReportForm::Junit),
    ("sarif", "SARIF 2.1.0, from a comparison", ReportForm::Sarif),
    ("bmf", "Bencher Metric Format", ReportForm::Export(ExportForm::Bmf)),
    (
        "github-action-benchmark",
        "The input of github-action-benchmark, customSmallerIsBetter",
        ReportForm::Export(ExportForm::GithubActionBenchmark),
    ),
    ("openmetrics", "OpenMetrics text, for Prometheus", ReportForm::Export(ExportForm::Openmetrics)),
    ("csv", "A table with a row for each sample", ReportForm::Export(ExportForm::Csv)),
    ("parquet", "The same table as Parquet; needs --output", ReportForm::Export(ExportForm::Parquet)),
];
