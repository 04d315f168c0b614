//! Imports of every op's definition.

pub(crate) use crate::accuracy::Roundings;
pub(crate) use crate::cases::{Cases, Draw};
pub(crate) use crate::device::{
    ALL, Build, COMMON, KernelFile, Launches, PrepareError, UNITS, WIDE, combinations, grid_x, map_sizes,
    plain_launch, unit_bytes,
};
pub(crate) use crate::error::{BuildError, OpError};
pub(crate) use crate::op::{
    Cpu, Definition, Description, Distribution, Input, Load, NamedParams, Op, Output, params, product,
    version,
};
pub(crate) use crate::precision::Precision;
pub(crate) use crate::precision::Tolerance;
pub(crate) use crate::request::{Backend, Request};
pub(crate) use crate::shape::Nchw;
pub(crate) use crate::tensor::{Data, Domain, Element, Tensor};
pub(crate) use holdpoint_cuda::compile::{Config, Source};
pub(crate) use holdpoint_cuda::{Arguments, Dtype};
pub(crate) use holdpoint_model::suite::{Variant, Work};
pub(crate) use serde::Deserialize;
pub(crate) use serde_json::{Value, json};
pub(crate) use std::ops::Range;
