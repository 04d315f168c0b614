//! Kernels compiled without a device. `cargo xtask kernels` compiles them all; here a few show that the way there works.

use holdpoint_cuda::compile::{Nvrtc, compile_for, search};
use holdpoint_ops::cuda::{Compilation, checked_units};
use std::collections::HashSet;
use std::io::Write;

/// The compiler, or a word to stderr: straight there, since what tests that pass print is held back.
fn nvrtc() -> Option<Nvrtc> {
    let found = search().and_then(|found| Nvrtc::load(&found));
    found.inspect_err(|error| drop(writeln!(std::io::stderr(), "skipped: no NVRTC ({error})"))).ok()
}

#[test]
fn small_kernels_compile_for_every_architecture_and_tell_what_they_need() {
    let Some(nvrtc) = nvrtc() else { return };
    let small = ["copy", "fault", "fma", "launch", "mma", "cuda"];
    let mut archs = HashSet::new();
    for Compilation { unit, arch, folder } in checked_units() {
        if !small.contains(&folder) {
            continue;
        }
        let kernels =
            compile_for(&nvrtc, &unit, arch).unwrap_or_else(|error| panic!("{unit:?} {arch}: {error}"));
        assert!(!kernels.is_empty() && kernels.iter().all(|kernel| kernel.registers > 0), "{kernels:?}");
        assert!(kernels.iter().all(|kernel| kernel.spill_bytes == 0), "{kernels:?}");
        archs.insert(arch);
    }
    assert!(archs.len() >= 4, "{archs:?}");
}

#[test]
fn a_compile_error_names_the_kernel_and_the_reason() {
    let Some(nvrtc) = nvrtc() else { return };
    let found = checked_units().into_iter().find(|checked| checked.folder == "copy");
    let Some(Compilation { mut unit, arch, .. }) = found else {
        panic!("there is no copy");
    };
    // A number where the source names its element type.
    unit.config.insert("elem".to_owned(), 1);
    let error = compile_for(&nvrtc, &unit, arch).expect_err("it compiles");
    assert!(error.detail.contains("copy") && error.detail.contains("error"), "{error}");
}
