//! Comparisons whose programs were not what was built.

use crate::builds::Inventory;
use holdpoint_model::ab::{Ended, SideFailure};
use holdpoint_model::report::Failure;
use holdpoint_model::{AbReport, FailureCause, SideName};

/// Fails all workloads where a build is not as it was handed out; these files may change. Returns whether it did.
pub fn refuse_changed_builds(
    report: &mut AbReport,
    [base, head]: &[Option<Inventory>; 2],
    ignored: &[String],
) -> bool {
    for (side, inventory) in [(SideName::Base, base), (SideName::Head, head)] {
        let Some(inventory) = inventory else { continue };
        if let Some(file) = inventory.touched(ignored) {
            inventory.discard();
            refuse(report, side, &file);
            return true;
        }
    }
    false
}

/// No workload has a result: any of its times may be another program's.
pub(super) fn refuse(report: &mut AbReport, side: SideName, file: &str) {
    let failure = Failure {
        cause: FailureCause::Mismatch,
        detail: format!(
            "{file} of its build was changed while base and head ran, so which program was timed cannot be told; let \
             benchmarks write to $TMPDIR, or name the file in ignore_files under [gate] if no workload reads it"
        ),
        stderr_tail: Vec::new(),
        samples: None,
    };
    for workload in report.workloads.values_mut().filter(|workload| workload.ended != Ended::Skipped) {
        (workload.ended, workload.failure) =
            (Ended::Failed, Some(SideFailure { side, failure: failure.clone() }));
    }
}
