//! What the ops compile, as a list: what is checked where there is no device.

use super::{Config, SOURCES, Unit};
use crate::dtype::Dtype;

/// Architectures that kernels are checked for: Ampere, Ada, Hopper with its own instructions, Blackwell.
pub const ARCHS: &[&str] = &["sm_80", "sm_89", "sm_90a", "sm_100"];

/// The architecture that all of it is checked for; it has paths of its own in the sources.
const WHOLE: &str = "sm_90a";

const ALL: &[Dtype] = &[Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::E4m3];
/// The products of the FF path are not written for 8 bits.
const WIDE: &[Dtype] = &[Dtype::F32, Dtype::F16, Dtype::Bf16];
const HALF: &[Dtype] = &[Dtype::F16, Dtype::Bf16];
/// Sources without elements; the type makes no difference to them.
const NONE: &[Dtype] = &[Dtype::F32];

/// What a source is compiled with: element types, sets of constants, architectures.
struct Taken {
    dtypes: &'static [Dtype],
    configs: &'static [&'static str],
    archs: &'static [&'static str],
}

/// What the ops compile for the shapes of the built-in suites, with the architecture to compile it for; what only tuning tries is
/// left out. The tests on a device show that nothing is missing.
///
/// For Hopper all of it; for the others every second one, like the squares of one colour on a board: each set of constants and each
/// element type still meets each architecture, in little more than half of the time, which is two minutes of two CPUs.
#[must_use]
pub fn checked_units() -> Vec<(Unit, &'static str)> {
    let mut units = Vec::new();
    for (source, _) in SOURCES {
        let Taken { dtypes, configs, archs } = taken(source);
        for (row, dtype) in dtypes.iter().enumerate() {
            for (column, text) in configs.iter().enumerate() {
                let is_checked = |(at, arch): &(usize, &&str)| {
                    **arch == WHOLE || configs.len() == 1 || (row + column + at).is_multiple_of(2)
                };
                let unit = Unit { source, dtype: *dtype, config: config(text) };
                let archs = archs.iter().enumerate().filter(is_checked);
                units.extend(archs.map(|(_, arch)| (unit.clone(), *arch)));
            }
        }
    }
    units
}

/// A source that is not named takes every type, has constants of its own, and runs everywhere.
fn taken(source: &str) -> Taken {
    let any = Taken { dtypes: ALL, configs: &[""], archs: ARCHS };
    match source {
        "attention" => Taken {
            configs: &[
                "BLOCK_N=64 CAUSAL=0 HEAD_DIM=32 STAGES=2 WARPS=4",
                "BLOCK_N=64 CAUSAL=0 HEAD_DIM=64 STAGES=2 WARPS=4",
                "BLOCK_N=64 CAUSAL=0 HEAD_DIM=96 STAGES=2 WARPS=4",
                "BLOCK_N=64 CAUSAL=0 HEAD_DIM=128 STAGES=2 WARPS=4",
                // Shifted by one: both colours have every width, causal and not.
                "BLOCK_N=64 CAUSAL=1 HEAD_DIM=128 STAGES=2 WARPS=4",
                "BLOCK_N=64 CAUSAL=1 HEAD_DIM=32 STAGES=2 WARPS=4",
                "BLOCK_N=64 CAUSAL=1 HEAD_DIM=64 STAGES=2 WARPS=4",
                "BLOCK_N=64 CAUSAL=1 HEAD_DIM=96 STAGES=2 WARPS=4",
            ],
            ..any
        },
        "attention_wgmma" => Taken {
            dtypes: HALF,
            configs: &[
                "BLOCK_N=64 CAUSAL=0 HEAD_DIM=32 STAGES=4 WARPGROUPS=2",
                "BLOCK_N=64 CAUSAL=0 HEAD_DIM=64 STAGES=4 WARPGROUPS=2",
                "BLOCK_N=64 CAUSAL=0 HEAD_DIM=96 STAGES=3 WARPGROUPS=2",
                "BLOCK_N=96 CAUSAL=0 HEAD_DIM=128 STAGES=3 WARPGROUPS=3",
                "BLOCK_N=64 CAUSAL=1 HEAD_DIM=32 STAGES=4 WARPGROUPS=2",
                "BLOCK_N=64 CAUSAL=1 HEAD_DIM=64 STAGES=4 WARPGROUPS=2",
                "BLOCK_N=64 CAUSAL=1 HEAD_DIM=96 STAGES=3 WARPGROUPS=2",
                "BLOCK_N=96 CAUSAL=1 HEAD_DIM=128 STAGES=3 WARPGROUPS=3",
            ],
            archs: &[WHOLE],
        },
        "copy" => Taken { configs: &["ITEMS=4 THREADS=512"], ..any },
        "fault" | "timing" => Taken { dtypes: NONE, ..any },
        // Level 0 reads the map, level 1 what level 0 left unrounded.
        "ff_path" => Taken { dtypes: WIDE, configs: &["TILE=16", "SOURCE_F32=1 TILE=8"], ..any },
        // The source chooses CLUSTER by the architecture, as the op does.
        "ff_refine" => Taken {
            dtypes: WIDE,
            configs: &["ALIGNED=1 CHANNELS=128 TILE=16", "ALIGNED=1 CHANNELS=128 SOURCE_F32=1 TILE=8"],
            ..any
        },
        "fma" => Taken { dtypes: NONE, configs: &["CHAINS=8 THREADS=256"], ..any },
        "fused_pack_op_unpack" => Taken { configs: &["ITEMS=4 THREADS=256 TILE=8"], ..any },
        "fusion_gate" => Taken { configs: &["ITEMS=4 ROUNDS=1 THREADS=256"], ..any },
        "tile_pack" => Taken {
            configs: &["GROUP=1 ITEMS=4 THREADS=128 TILE=8", "GROUP=16 ITEMS=4 THREADS=128 TILE=8"],
            ..any
        },
        // Few tokens, many, and both ways.
        "tile_ssm" => Taken {
            configs: &[
                "ACROSS=2 BLOCKS=1 CHANNELS=4 DIRECTION=0 ITEMS=2 THREADS=256",
                "ACROSS=16 BLOCKS=3 CHANNELS=4 DIRECTION=0 ITEMS=16 THREADS=256",
                "ACROSS=2 BLOCKS=1 CHANNELS=4 DIRECTION=1 ITEMS=2 THREADS=256",
                "ACROSS=16 BLOCKS=3 CHANNELS=4 DIRECTION=1 ITEMS=16 THREADS=256",
                "ACROSS=8 CHANNELS=4 DIRECTION=2 ITEMS=4 THREADS=256",
            ],
            ..any
        },
        "tile_ssm_stream" => Taken {
            configs: &[
                "DIRECTION=0 ITEMS=16 STAGES=3 THREADS=256",
                "DIRECTION=0 ITEMS=16 STAGES=2 THREADS=256",
                "DIRECTION=0 ITEMS=8 STAGES=2 THREADS=256",
                "DIRECTION=1 ITEMS=16 STAGES=3 THREADS=256",
                "DIRECTION=1 ITEMS=16 STAGES=2 THREADS=256",
                "DIRECTION=1 ITEMS=8 STAGES=2 THREADS=256",
            ],
            ..any
        },
        "tile_unpack" => Taken {
            configs: &[
                "BLEND=0 ITEMS=4 SPAN=32 THREADS=256 TILE=8",
                "BLEND=1 ITEMS=4 SPAN=32 THREADS=256 TILE=8",
            ],
            ..any
        },
        _ => any,
    }
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

    #[test]
    fn every_type_and_all_constants_of_a_source_meet_every_architecture() {
        let units = checked_units();
        for (index, unit) in units.iter().enumerate() {
            assert!(!units[index + 1..].contains(unit), "{unit:?} comes twice");
        }
        for (source, _) in SOURCES {
            let Taken { dtypes, configs, archs } = taken(source);
            for arch in archs {
                let here = || units.iter().filter(|(unit, a)| unit.source == *source && a == arch);
                for dtype in dtypes {
                    assert!(here().any(|(unit, _)| unit.dtype == *dtype), "{source} {dtype:?} {arch}");
                }
                for text in configs {
                    assert!(here().any(|(unit, _)| unit.config == config(text)), "{source} {text} {arch}");
                }
            }
        }
    }

    #[test]
    fn constants_are_read_as_they_are_written() {
        for (source, _) in SOURCES {
            for text in taken(source).configs {
                assert_eq!(config(text).len(), text.split_whitespace().count(), "{source}: {text}");
            }
        }
        assert_eq!(config("A=1 B=-2"), Config::from([("A".to_owned(), 1), ("B".to_owned(), -2)]));
    }
}
