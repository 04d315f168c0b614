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
    ready: Option<FlushBuffers>,
    is_verified: bool,
}

struct FlushBuffers {
    _data: Buffer,
    probed: Buffer,
    out: Buffer,
    flush: Launch,
    probe: Launch,
}

impl Flusher {
    pub(super) fn new(module: &Rc<Module>) -> Self {
        Self { module: module.clone(), ready: None, is_verified: false }
    }

    fn ready(&mut self, device: &Device) -> Result<&mut FlushBuffers, CudaError> {
        if self.ready.is_none() {
            let bytes = FLUSH_FACTOR * device.l2_bytes.max(1 << 20);
            let mut data = Buffer::new(device, bytes, 0)?;
            data.fill(0x5a)?;
            let mut probed = Buffer::new(device, PROBE_LINES * LINE_BYTES, 0)?;
            probed.fill(0)?;
            let out = Buffer::new(device, 8, 0)?;
            let flush = Arguments::new().buffer(&data).int(bytes / 16).buffer(&out);
            let flush = self.module.kernel("flush")?.launch(4 * device.multiprocessors, THREADS, flush);
            let probe = Arguments::new().buffer(&probed).int(PROBE_LINES).buffer(&out);
            let probe = self.module.kernel("probe")?.launch(1, 1, probe);
            self.ready = Some(FlushBuffers { _data: data, probed, out, flush, probe });
        }
        match &mut self.ready {
            Some(ready) => Ok(ready),
            None => Err(CudaError::new(FailureCause::WorkerError, "the cache flush is not ready")),
        }
    }

    pub(super) fn flush(&mut self, device: &Device) -> Result<(), CudaError> {
        let ready = self.ready(device)?;
        ready.flush.enqueue(device)
    }

    /// Reads lines that are cached, and again after a flush.
    pub(super) fn verify(&mut self, device: &Device) -> Result<(), CudaError> {
        if self.is_verified {
            return Ok(());
        }
        let ready = self.ready(device)?;
        let cycles = |ready: &FlushBuffers| -> Result<f64, CudaError> {
            ready.probe.enqueue(device)?;
            let bytes = ready.out.download()?;
            let cycles = bytes.as_chunks().0.first().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            Ok(cycles as f64 / PROBE_LINES as f64)
        };
        ready.probed.fill(0)?;
        cycles(ready)?;
        let warm = cycles(ready)?;
        ready.flush.enqueue(device)?;
        let cold = cycles(ready)?;
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
