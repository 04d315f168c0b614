//! CUDA graphs: calls captured once and launched as one.

use super::Call;
use crate::device::Device;
use crate::error::CudaError;
use cudarc::driver::sys::{self, CUstreamCaptureMode};
use cudarc::driver::{CudaStream, result};

pub struct Graph {
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
}

impl Graph {
    /// Captures `calls_count` calls in a row.
    pub fn capture(device: &Device, call: &mut dyn Call, calls_count: u64) -> Result<Self, CudaError> {
        let stream = device.stream.cu_stream();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive; what is queued until the end goes into the graph and nowhere else.
        unsafe { result::stream::begin_capture(stream, mode) }?;
        let queued = (0..calls_count).try_for_each(|_| call.enqueue(device));
        // SAFETY: begun above; ended whatever happened in between.
        let graph = unsafe { result::stream::end_capture(stream) };
        queued?;
        let graph = graph?;
        // SAFETY: just captured.
        let executable = unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) };
        let executable = executable.inspect_err(|_| {
            // SAFETY: not used any more.
            let _ = unsafe { result::graph::destroy(graph) };
        })?;
        // SAFETY: both are alive.
        unsafe { result::graph::upload(executable, stream) }?;
        Ok(Self { graph, executable })
    }

    pub fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: both are alive; the op that owns what the calls use outlives the graph.
        Ok(unsafe { result::graph::launch(self.executable, stream.cu_stream()) }?)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: created together, destroyed once.
        unsafe {
            let _ = result::graph::exec_destroy(self.executable);
            let _ = result::graph::destroy(self.graph);
        }
    }
}
