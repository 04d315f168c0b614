//! The built-in ops, one folder each: definition, CPU version, CUDA version with its kernel, cases for fuzzing.
//!
//! A [`Definition`](op::Definition) says all there is to say about an op once; [`Prepared`] runs it on the CPU and
//! [`cuda::Prepared`] on a device, and both are checked by the same oracle. The `cpu` modules of the ops are plain functions, for tests.
//! Must not measure CPU time or read files.

pub mod attention;
pub mod buffer;
mod case;
pub mod cases;
pub mod compare;
mod copy;
mod cpu;
pub mod cuda;
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
mod overflow;
pub mod product;
pub mod rng;
pub mod select;
pub mod shape;
pub mod simd;
pub mod tensor;
pub mod tile_pack;
pub mod tile_ssm;
pub mod tile_unpack;
mod tiles;
pub mod values;

pub use case::Case;
pub use compare::{Check, Leeway, Tolerance};
pub use cpu::Prepared;
pub use error::{BuildError, OpError};
pub use holdpoint_cuda::Dtype;
pub use holdpoint_model::suite::{Variant, Work};
pub use op::{Backend, Entry, Load, Request, load, names, validate, validate_oracle};
pub use overflow::Overflow;
pub use tensor::{Domain, Element, Tensor};
pub use values::{Precision, Range};

/// All ops. A new one is a folder and a line here.
pub static OPS: &[Entry] = &[
    op::entry::<infer::Infer>(),
    op::entry::<tile_pack::TilePack>(),
    op::entry::<tile_unpack::TileUnpack>(),
    op::entry::<fusion_gate::FusionGate>(),
    op::entry::<tile_ssm::TileSsm>(),
    op::entry::<fused_pack_op_unpack::FusedPackOpUnpack>(),
    op::entry::<ff_path::FfPath>(),
    op::entry::<attention::Attention>(),
    op::entry::<copy::Copy>(),
    op::entry::<fma::Fma>(),
    op::entry::<mma::Mma>(),
    op::entry::<launch::Launch>(),
    op::entry::<fault::Fault>(),
];
