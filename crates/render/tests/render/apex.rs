//! The page of a GPU report in Apex-X's form.

use crate::values::HOSTILE;
use holdpoint_interop::apex::ApexGpuReport;
use holdpoint_model::{Outcome, Report, RunStatus, document};
use holdpoint_render::markdown;
use insta::assert_snapshot;

/// A run of the GPU suite on an H200.
pub fn h200() -> Report {
    let path = format!("{}/../model/tests/data/report-gpu-h200.json", env!("CARGO_MANIFEST_DIR"));
    document::read::<Report>(&std::fs::read_to_string(path).expect("the file")).expect("a report")
}

fn page(report: &Report) -> String {
    markdown::apex_gpu(&ApexGpuReport::try_from(report).expect("a GPU report"))
}

fn copy(report: &mut Report, from: &str, to: &str) {
    let measurement = report.benchmarks[from].clone();
    report.benchmarks.insert(to.to_owned(), measurement);
}

#[test]
fn a_run_on_a_device() {
    assert_snapshot!(page(&h200()));
}

#[test]
fn a_run_without_a_device_ends_with_its_reason() {
    let mut report = h200();
    (report.status, report.reason) = (RunStatus::Skipped, Some("cuda_unavailable".to_owned()));
    report.environment.cuda_available = false;
    for measurement in report.benchmarks.values_mut() {
        measurement.outcome = Outcome::Skipped { reason: "cuda_unavailable".to_owned() };
    }
    assert_snapshot!(page(&report));
}

#[test]
fn a_run_in_part_shows_what_it_has_and_what_it_lacks() {
    let mut report = h200();
    (report.status, report.reason) = (RunStatus::Partial, Some("compute_capability_below_sm90".to_owned()));
    report.benchmarks.retain(|name, _| !name.contains("tileunpack"));
    let attention = &mut report.benchmarks["attention.dispatch"];
    attention.identity.dtype = "e4m3".to_owned();
    attention.outcome = Outcome::Skipped { reason: "compute_capability_below_sm90".to_owned() };
    copy(&mut report, "fused_stage1.dispatch", "end_to_end_infer.torch_eager");
    let Outcome::Measured(eager) = &mut report.benchmarks["end_to_end_infer.torch_eager"].outcome else {
        panic!("it was measured");
    };
    eager.throughput.insert("frames_per_s".to_owned(), 275.375);
    assert_snapshot!(page(&report));
}

#[test]
fn hostile_text_is_escaped() {
    let mut report = h200();
    (report.status, report.reason) = (RunStatus::Partial, Some(HOSTILE.to_owned()));
    report.timestamp_utc = HOSTILE.to_owned();
    copy(&mut report, "fused_stage1.dispatch", &format!("more.{}", HOSTILE.replace('.', "")));
    report.benchmarks["fused_stage1.dispatch"].outcome = Outcome::Skipped { reason: HOSTILE.to_owned() };
    for measurement in report.benchmarks.values_mut() {
        measurement.identity.dtype = HOSTILE.to_owned();
        if let Outcome::Measured(measured) = &mut measurement.outcome
            && let Some(kernel) = &mut measured.kernel
        {
            kernel.selected_config.insert(HOSTILE.to_owned(), 1);
            let texts = [&mut kernel.op_name, &mut kernel.kernel_name, &mut kernel.shape_bucket];
            texts.into_iter().for_each(|text| *text = HOSTILE.to_owned());
            kernel.selection_source = HOSTILE.to_owned();
        }
    }
    let text = page(&report);
    for harm in ["<script>", "\u{1b}", "\u{202e}", "https://", "![x](y)", "@all"] {
        assert!(!text.contains(harm), "{harm:?}");
    }
    assert_snapshot!(text);
}
