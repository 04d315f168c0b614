//! All compilations of the built-in kernels, to be checked where there is no device.

use super::{ALL, COMPARE, DRAW};
use holdpoint_cuda::compile::{Config, Source, Unit};
use holdpoint_cuda::{Dtype, TIMING};

/// Architectures that kernels are checked for: Ampere, Ada, Hopper with its own instructions, Blackwell.
pub const ARCHS: &[&str] = &["sm_80", "sm_89", "sm_90a", "sm_100"];

/// The architecture that all of it is checked for; it has paths of its own in the sources.
pub(crate) const FULL_ARCH: &str = "sm_90a";

/// A kernel file of an op with what it is compiled with for the shapes of the built-in suites: element types, sets of constants such
/// as `THREADS=256 TILE=8`, architectures. What only tuning tries is left out.
pub struct KernelFile {
    pub source: &'static Source,
    pub dtypes: &'static [Dtype],
    pub configs: &'static [&'static str],
    pub archs: &'static [&'static str],
}

impl KernelFile {
    pub(crate) const fn new(source: &'static Source, configs: &'static [&'static str]) -> Self {
        Self { source, dtypes: ALL, configs, archs: ARCHS }
    }

    pub(crate) const fn in_dtypes(self, dtypes: &'static [Dtype]) -> Self {
        Self { dtypes, ..self }
    }
}

/// Kernels that are compiled whatever the op. Timing has no elements, so its type does not matter.
const SHARED: &[KernelFile] = &[
    KernelFile::new(&COMPARE, &[""]),
    KernelFile::new(&DRAW, &[""]),
    KernelFile::new(&TIMING, &[""]).in_dtypes(&[Dtype::F32]),
];

/// All kernel files, each with the folder it lies in.
fn files() -> impl Iterator<Item = (&'static str, &'static KernelFile)> {
    let ops = crate::OPS.iter().flat_map(|entry| entry.kernels.iter().map(|file| (entry.name, file)));
    ops.chain(SHARED.iter().map(|file| ("device", file)))
}

#[derive(Clone, Debug)]
pub struct Compilation {
    /// Folder of the kernel file: the op's name.
    pub folder: &'static str,
    pub unit: Unit,
    pub arch: &'static str,
}

/// All that is to be compiled. The tests on a device show that nothing is missing.
///
/// For Hopper all of it; for the others every second one, like the squares of one colour on a board: each set of constants and each
/// element type still meets each architecture, in little more than half of the time, which is two minutes of two CPUs.
pub fn checked_units() -> Vec<Compilation> {
    let mut units = Vec::new();
    for (folder, KernelFile { source, dtypes, configs, archs }) in files() {
        for (row, dtype) in dtypes.iter().enumerate() {
            for (column, text) in configs.iter().enumerate() {
                let is_checked = |(at, arch): &(usize, &&str)| {
                    **arch == FULL_ARCH || configs.len() == 1 || (row + column + at).is_multiple_of(2)
                };
                let unit = Unit { source, dtype: *dtype, config: config(text) };
                let archs = archs.iter().enumerate().filter(is_checked);
                units.extend(archs.map(|(_, arch)| Compilation { folder, unit: unit.clone(), arch }));
            }
        }
    }
    units
}

fn config(text: &str) -> Config {
    let constant = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.split_whitespace().filter_map(constant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_type_and_all_constants_of_a_source_meet_every_architecture() {
        let units = checked_units();
        let mut seen = BTreeSet::new();
        for Compilation { unit, arch, .. } in &units {
            assert!(seen.insert((unit.key(), *arch)), "{unit:?} comes twice");
        }
        for (_, KernelFile { source, dtypes, configs, archs }) in files() {
            for arch in *archs {
                let is_here =
                    |checked: &&Compilation| checked.unit.source.name == source.name && checked.arch == *arch;
                let here = || units.iter().filter(is_here).map(|checked| &checked.unit);
                for dtype in *dtypes {
                    assert!(here().any(|unit| unit.dtype == *dtype), "{} {dtype:?} {arch}", source.name);
                }
                for text in *configs {
                    assert!(here().any(|unit| unit.config == config(text)), "{} {text} {arch}", source.name);
                }
            }
        }
    }

    #[test]
    fn constants_are_read_as_they_are_written() {
        for (_, file) in files() {
            for text in file.configs {
                assert_eq!(
                    config(text).len(),
                    text.split_whitespace().count(),
                    "{}: {text}",
                    file.source.name
                );
            }
        }
        assert_eq!(config("A=1 B=-2"), Config::from([("A".to_owned(), 1), ("B".to_owned(), -2)]));
    }

    #[test]
    fn every_kernel_file_is_compiled_and_every_header_is_included() {
        fn walk(dir: &std::path::Path, found: &mut Vec<(String, String)>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                if path.is_dir() {
                    walk(&path, found);
                } else if name.ends_with(".cu") || name.ends_with(".cuh") {
                    found.push((name, std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        let mut found = Vec::new();
        walk(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert!(!found.is_empty());
        for (name, text) in found {
            let is_source = files()
                .any(|(_, file)| name == format!("{}.cu", file.source.name) && file.source.text == text);
            let is_header =
                files().any(|(_, file)| file.source.headers.contains(&(name.as_str(), text.as_str())));
            assert!(is_source || is_header, "{name} belongs to no op");
        }
    }
}
