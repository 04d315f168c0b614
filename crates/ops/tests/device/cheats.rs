//! Kernels that leave out what an earlier call has done: none may be timed.

use super::{on_device, params, request};
use holdpoint_cuda::{Dtype, Timing};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::Cache;
use holdpoint_ops::Request;
use holdpoint_ops::cuda::{Gpu, Prepared};
use serde_json::json;

const SOURCE: &str = include_str!("../../../../campaigns/device-cheats/cheats.cu");
const TIMINGS: [Timing; 3] = [Timing::Graph, Timing::Events, Timing::Host];

/// The plain attention, or a way to cheat in it.
fn attention(folder: &tempfile::TempDir, cheat: &str) -> Request {
    let source = folder.path().join("cheats.cu");
    std::fs::write(&source, SOURCE).unwrap();
    let kernel = json!({
        "source": source, "entry": "attention", "grid": ["ceil_div(steps, 64)", "batch * heads"], "block": [64],
        "flags": [format!("-DCHEAT={cheat}")],
    });
    let request = request("attention", &[2, 4, 256, 64], &params(json!({})), Dtype::F32);
    Request { kernel: Some(serde_json::from_value(kernel).unwrap()), ..request }
}

/// Why a kernel is not timed, within so many requests; the first times where it is.
fn blamed(gpu: &mut Gpu, request: &Request, timing: Timing, cache: Cache) -> Option<FailureCause> {
    let mut prepared = Prepared::new(gpu, request).unwrap();
    assert!(prepared.check(gpu).unwrap().passed, "{request:?}");
    (0..4).find_map(|_| prepared.run(gpu, (timing, cache), 3, 8, 0.0).err().map(|error| error.cause))
}

#[test]
fn a_kernel_that_works_only_where_nothing_was_done_yet_is_not_timed() {
    on_device(|gpu| {
        let folder = tempfile::tempdir().unwrap();
        for cheat in ["WRITTEN", "FINGERPRINT", "EVERY_OTHER", "IN_A_HURRY"] {
            let request = attention(&folder, cheat);
            for timing in TIMINGS {
                for cache in [Cache::Warm, Cache::Cold] {
                    let cause = blamed(gpu, &request, timing, cache);
                    let is_blamed = matches!(cause, Some(FailureCause::BadTime | FailureCause::WrongAnswer));
                    assert!(is_blamed, "{cheat} {timing:?} {cache:?}: {cause:?}");
                }
            }
        }
    });
}

#[test]
fn a_kernel_that_does_its_work_is_timed_by_every_clock() {
    on_device(|gpu| {
        let folder = tempfile::tempdir().unwrap();
        for timing in TIMINGS {
            for cache in [Cache::Warm, Cache::Cold] {
                assert_eq!(
                    blamed(gpu, &attention(&folder, "NONE"), timing, cache),
                    None,
                    "{timing:?} {cache:?}"
                );
            }
        }
    });
}
