//! An op's memory, launches and host work on a device. Must not time or check anything.

use super::user_kernel;
use crate::description::{Description, Distribution};
use crate::device::{Build, DeviceInput, DeviceOutput, Gpu, Launches, PrepareError};
use crate::op::Op;
use crate::precision::Tolerance;
use crate::registry::{PlannedOp, plan};
use crate::request::{Backend, Request};
use crate::tensor::Element;
use holdpoint_cuda::{Arguments, Buffer, Call, CudaError, Device, Dtype};
use holdpoint_model::suite::Work;

/// Operations that the CPU's oracle may take, roughly: a tenth of a second of one core. Where all rows of a batch would take more, an
/// oracle on the device answers; or, where the op has none, some rows are checked against the CPU's, and all are compared on the device
/// with what the plain kernel makes of the same inputs.
pub(super) const ORACLE_COST_MAX: u64 = 100_000_000;
/// The same for one of many cases: ten milliseconds or so.
pub(super) const CASE_COST_MAX: u64 = 20_000_000;

/// Operations that fetching, widening and comparing a value count for: tens of nanoseconds.
const VALUE_COST: u64 = 40;

pub(crate) struct Program {
    pub(super) op: Box<dyn Op>,
    pub(super) dtype: Dtype,
    pub(super) work: Work,
    pub(super) tolerance: Tolerance,
    pub(super) rows: usize,
    pub(super) inputs: Vec<DeviceInput>,
    pub(super) outputs: Vec<DeviceOutput>,
    pub(super) version: Launches,
}

/// Values of inputs that the host reads, by position, in place of drawn ones.
pub(super) type HostInputs<'a> = Option<&'a dyn Fn(usize) -> Vec<f32>>;

impl Program {
    /// Allocates and compiles.
    pub(super) fn new(gpu: &mut Gpu, request: &Request, given: HostInputs<'_>) -> Result<Self, PrepareError> {
        let PlannedOp { op, dtype, entry, named_params } = plan(request, Some(Backend::Cuda))?;
        if let Some(kernel) = &request.kernel {
            return user_kernel::build(gpu, request, (entry, &named_params), kernel, given);
        }
        let description = op.describe(dtype);
        let mut inputs = Vec::new();
        for (at, spec) in description.inputs.into_iter().enumerate() {
            let bytes = spec.dims.iter().product::<usize>() * dtype.bytes();
            let (buffer, host) = match &spec.draw {
                Distribution::Host(drawn) => (None, given.map_or(drawn.clone(), |given| given(at))),
                _ => (Some(Buffer::new(&gpu.device, bytes, request.misalign)?), Vec::new()),
            };
            inputs.push(DeviceInput { spec, buffer, host });
        }
        let mut outputs = Vec::new();
        for spec in description.outputs {
            // Whole numbers follow from the request: the host has them.
            let Element::Float(dtype_out) = spec.element else { continue };
            let bytes = spec.dims.iter().product::<usize>() * dtype_out.bytes();
            let skip = request.misalign * dtype_out.bytes() / dtype.bytes();
            let buffer = Buffer::guarded(&gpu.device, bytes, skip)?;
            outputs.push(DeviceOutput { spec, dtype: dtype_out, buffer });
        }
        let version = op.cuda(&mut Build { gpu, request, dtype, inputs: &inputs, outputs: &outputs })?;
        let Description { work, tolerance, rows, .. } = description;
        Ok(Self { op, dtype, work, tolerance, rows, inputs, outputs, version })
    }

    /// Addresses of all inputs, then of all outputs; 0 where the host has one.
    pub(super) fn tensor_addresses(&self) -> Vec<u64> {
        let inputs = self.inputs.iter().map(|input| input.buffer.as_ref().map_or(0, |buffer| buffer.ptr));
        inputs.chain(self.outputs.iter().map(|output| output.buffer.ptr)).collect()
    }

    /// Fills all outputs with NaN, so that an old answer cannot pass for a new one.
    pub(super) fn poison(&mut self) -> Result<(), CudaError> {
        self.outputs.iter_mut().try_for_each(|output| output.buffer.poison())
    }

    /// The same as arguments.
    pub(super) fn tensor_arguments(&self) -> Arguments {
        self.tensor_addresses().into_iter().fold(Arguments::new(), |all, address| all.ptr(address))
    }

    /// How many rows the oracle can check in reasonable time; none where one takes too long.
    pub(super) fn oracle_rows(&self, cost_max: u64) -> usize {
        let values: usize =
            self.outputs.iter().map(|output| output.buffer.bytes / output.dtype.bytes()).sum();
        let rows = self.rows.max(1) as u64;
        let row_cost = (VALUE_COST * values as u64 + self.work.flops) / rows;
        (cost_max / row_cost.max(1)).min(rows) as usize
    }
}

impl Call for Program {
    fn host(&mut self) -> Result<(), CudaError> {
        self.version.host.as_mut().map_or(Ok(()), |host| host())
    }

    fn enqueue(&mut self, device: &Device) -> Result<(), CudaError> {
        self.version.launches.iter().try_for_each(|launch| launch.enqueue(device))?;
        self.version.library.as_ref().map_or(Ok(()), |call| call.enqueue(device))
    }
}
