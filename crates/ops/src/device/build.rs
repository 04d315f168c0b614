//! An op's CUDA version: what it is built from, and what it launches. Must not time or check anything.

use super::{Gpu, KernelChoice};
use crate::description::{Input, Output};
use crate::error::BuildError;
use crate::request::Request;
use holdpoint_cuda::compile::{Source, UserKernelError};
use holdpoint_cuda::{Arguments, Buffer, CudaError, Dtype, Launch, LibraryCall};
use holdpoint_model::FailureCause;

#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Request(#[from] BuildError),
    /// The device cannot run it; a reason code.
    #[error("{0}")]
    Skipped(String),
    #[error(transparent)]
    Device(#[from] CudaError),
}

impl From<UserKernelError> for PrepareError {
    fn from(error: UserKernelError) -> Self {
        match error {
            UserKernelError::Missing(unavailable) => Self::Skipped(unavailable.reason.to_owned()),
            UserKernelError::Failed(error) => Self::Device(error),
        }
    }
}

impl From<PrepareError> for CudaError {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Device(error) => error,
            other => Self::new(FailureCause::WorkerError, other.to_string()),
        }
    }
}

/// The device, request and buffers that an op's CUDA version is built from.
pub struct Build<'a> {
    pub(crate) gpu: &'a mut Gpu,
    pub(crate) request: &'a Request,
    pub(crate) dtype: Dtype,
    pub(crate) inputs: &'a [DeviceInput],
    pub(crate) outputs: &'a [DeviceOutput],
}

impl Build<'_> {
    pub(crate) fn input(&self, at: usize) -> u64 {
        self.inputs[at].buffer.as_ref().map_or(0, |buffer| buffer.ptr)
    }

    /// The addresses of all inputs, then of all outputs.
    pub(crate) fn arguments(&self) -> Arguments {
        let arguments = (0..self.inputs.len()).fold(Arguments::new(), |all, at| all.ptr(self.input(at)));
        (0..self.outputs.len()).fold(arguments, |all, at| all.ptr(self.output(at)))
    }

    /// The values of an input that the host reads.
    pub(crate) fn host(&self, at: usize) -> &[f32] {
        &self.inputs[at].host
    }

    pub(crate) fn output(&self, at: usize) -> u64 {
        self.outputs[at].buffer.ptr
    }

    /// Absent where the host reads the input.
    pub(crate) fn input_buffer(&self, at: usize) -> Option<&Buffer> {
        self.inputs[at].buffer.as_ref()
    }

    pub(crate) fn choose(
        &self,
        source: &'static Source,
        names: [&'static str; 2],
        bucket: &[(&str, usize)],
    ) -> KernelChoice {
        KernelChoice::new(self.gpu, self.request, source, names, bucket, self.dtype)
    }

    pub(crate) fn scratch(&self, bytes: usize) -> Result<Buffer, CudaError> {
        Buffer::new(&self.gpu.device, bytes.max(1), 0)
    }

    pub(crate) fn upload<T: Copy>(&self, values: &[T]) -> Result<Buffer, CudaError> {
        let mut buffer = Buffer::new(&self.gpu.device, size_of_val(values), 0)?;
        buffer.upload(values)?;
        Ok(buffer)
    }
}

/// Work of the host before each call.
pub(crate) type HostPart = Box<dyn FnMut() -> Result<(), CudaError>>;

/// An op's CUDA version.
pub struct Launches {
    pub(crate) chosen: KernelChoice,
    pub(crate) launches: Vec<Launch>,
    /// A function of the user's that makes the launches instead.
    pub(crate) library: Option<LibraryCall>,
    pub(crate) host: Option<HostPart>,
    /// Other buffers that the launches use: indices, parameters, scratch, workspaces.
    pub(crate) held: Vec<Buffer>,
}

impl Launches {
    pub(crate) fn new(chosen: KernelChoice, launches: Vec<Launch>, held: Vec<Buffer>) -> Self {
        Self { chosen, launches, library: None, host: None, held }
    }
}

pub(crate) struct DeviceInput {
    pub spec: Input,
    /// Absent where the host reads it.
    pub buffer: Option<Buffer>,
    pub host: Vec<f32>,
}

pub(crate) struct DeviceOutput {
    pub spec: Output,
    pub dtype: Dtype,
    pub buffer: Buffer,
}
