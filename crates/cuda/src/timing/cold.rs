//! Empties the device's cache before a call, and verifies that it was emptied.

use crate::device::{Buffer, Device};
use crate::error::CudaError;
use crate::launch::{Arguments, Launch, Module};
use holdpoint_model::FailureCause;
use std::rc::Rc;

/// The flush reads this many times the cache's size.
const FLUSH_FACTOR: usize = 3;
/// A miss takes at least this many times as long as a hit.
const MISS_FACTOR: f64 = 1.3;
const PROBE_LINES: usize = 512;
/// Distance between them.
const LINE_BYTES: usize = 128;
const THREADS: u32 = 512;

/// Empties the cache. Its memory is taken when it is first needed.
pub(super) struct Flusher {
    module: Rc<Module>,
    buffers: Option<FlushBuffers>,
    is_verified: bool,
}

struct FlushBuffers {
    _data: Buffer,
    probed: Buffer,
    out: Buffer,
    flush: Launch,
    probe: Launch,
}

impl FlushBuffers {
    fn new(module: &Rc<Module>, device: &Device) -> Result<Self, CudaError> {
        let bytes = FLUSH_FACTOR * device.l2_bytes.max(1 << 20);
        let mut data = Buffer::new(device, bytes, 0)?;
        data.fill(0x5a)?;
        let mut probed = Buffer::new(device, PROBE_LINES * LINE_BYTES, 0)?;
        probed.fill(0)?;
        let out = Buffer::new(device, 8, 0)?;
        let flush = Arguments::new().buffer(&data).int(bytes / 16).buffer(&out);
        let flush = module.kernel("flush")?.launch(4 * device.multiprocessors, THREADS, flush);
        let probe = Arguments::new().buffer(&probed).int(PROBE_LINES).buffer(&out);
        let probe = module.kernel("probe")?.launch(1, 1, probe);
        Ok(Self { _data: data, probed, out, flush, probe })
    }
}

impl Flusher {
    pub(super) fn new(module: &Rc<Module>) -> Self {
        Self { module: module.clone(), buffers: None, is_verified: false }
    }

    fn buffers(&mut self, device: &Device) -> Result<&mut FlushBuffers, CudaError> {
        match &mut self.buffers {
            Some(buffers) => Ok(buffers),
            empty => Ok(empty.insert(FlushBuffers::new(&self.module, device)?)),
        }
    }

    pub(super) fn flush(&mut self, device: &Device) -> Result<(), CudaError> {
        self.buffers(device)?.flush.enqueue(device)
    }

    /// Reads lines that are cached, and again after a flush.
    pub(super) fn verify(&mut self, device: &Device) -> Result<(), CudaError> {
        if self.is_verified {
            return Ok(());
        }
        let buffers = self.buffers(device)?;
        let cycles = |buffers: &FlushBuffers| -> Result<f64, CudaError> {
            buffers.probe.enqueue(device)?;
            let bytes = buffers.out.download()?;
            let cycles = bytes.as_chunks().0.first().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            Ok(cycles as f64 / PROBE_LINES as f64)
        };
        buffers.probed.fill(0)?;
        cycles(buffers)?;
        let warm = cycles(buffers)?;
        buffers.flush.enqueue(device)?;
        let cold = cycles(buffers)?;
        if cold < MISS_FACTOR * warm {
            let detail = format!(
                "the cache could not be emptied: a read takes {warm:.0} cycles when cached and {cold:.0} after the flush"
            );
            return Err(CudaError::new(FailureCause::Mismatch, detail));
        }
        self.is_verified = true;
        Ok(())
    }
}
