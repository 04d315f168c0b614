//! The built-in ops, one folder each: definition, CPU version, CUDA version with its kernel, cases for fuzzing.
//!
//! A [`Definition`](op::Definition) describes an op once; [`Prepared`] runs it on the CPU and
//! [`cuda::Prepared`] on a device, and both are checked by the same oracle. The `cpu` modules of the ops are plain functions, for tests.
//! Must not measure CPU time or read files.

pub mod accuracy;
pub mod attention;
pub mod buffer;
mod case;
pub mod cases;
pub mod compare;
mod copy;
mod cpu;
pub mod cuda;
mod declared;
mod description;
mod device;
pub mod diagnostics;
mod error;
mod fault;
pub mod ff_path;
pub mod fma;
pub mod fused_pack_op_unpack;
pub mod fusion_gate;
pub mod infer;
mod launch;
mod mma;
pub mod op;
pub mod order;
mod precision;
mod prelude;
pub mod product;
mod registry;
mod request;
pub mod rms_norm;
pub mod rng;
pub mod select;
pub mod shape;
pub(crate) mod simd;
pub mod tensor;
pub mod tile_pack;
pub mod tile_ssm;
pub mod tile_unpack;
mod tiles;
pub mod values;

pub use accuracy::find_inaccuracy;
pub use case::Case;
pub use compare::{Check, Leeway};
pub use cpu::Prepared;
pub use error::{BuildError, OpError};
pub use holdpoint_cuda::Dtype;
pub use holdpoint_model::suite::{Variant, Work};
pub use op::Load;
pub use precision::{Precision, Tolerance};
pub use registry::{Entry, load, names, validate, validate_oracle, work};
pub use request::{Backend, Request};
pub use tensor::{Domain, Element, Tensor};

/// All ops. A new one is a folder and a line here.
pub(crate) static OPS: &[Entry] = &[
    registry::entry::<infer::Infer>(),
    registry::entry::<tile_pack::TilePack>(),
    registry::entry::<tile_unpack::TileUnpack>(),
    registry::entry::<fusion_gate::FusionGate>(),
    registry::entry::<tile_ssm::TileSsm>(),
    registry::entry::<fused_pack_op_unpack::FusedPackOpUnpack>(),
    registry::entry::<ff_path::FfPath>(),
    registry::entry::<attention::Attention>(),
    registry::entry::<rms_norm::RmsNorm>(),
    registry::entry::<copy::Copy>(),
    registry::entry::<fma::Fma>(),
    registry::entry::<mma::Mma>(),
    registry::entry::<launch::Launch>(),
    registry::entry::<fault::Fault>(),
];
