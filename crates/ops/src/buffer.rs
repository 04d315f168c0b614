//! Tensors whose place in memory does not depend on luck: they begin on a cache line, and large ones lie on huge
//! pages where the system has them.
//!
//! A 64-byte tile row at an odd address is two lines to fetch instead of one, and which 4 KiB pages a process was
//! given decides what its caches and TLB can hold: both would show as differences between processes.

use memmap2::MmapMut;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A cache line of 64 bytes.
const LINE_BYTES: usize = 64;
/// A huge page.
const HUGE_BYTES: usize = 2 << 20;
/// Buffers of at least this size lie on huge pages: a few of them fill a level-2 cache, and which 4 KiB pages they got would
/// decide how well.
const HUGE_FROM_BYTES: usize = 128 << 10;
const F32_BYTES: usize = size_of::<f32>();

/// Floats that begin on a cache line.
pub struct Buffer {
    memory: Memory,
    start: usize,
    len: usize,
}

enum Memory {
    Heap(Vec<f32>),
    Huge(MmapMut),
}

impl Memory {
    /// Room for at least `len` values.
    fn new(len: usize) -> Self {
        if len * F32_BYTES < HUGE_FROM_BYTES {
            return Self::Heap(vec![0.0; len]);
        }
        match MmapMut::map_anon(len * F32_BYTES) {
            Ok(map) => {
                // Where there are no huge pages, ordinary ones will do.
                #[cfg(target_os = "linux")]
                let _ = map.advise(memmap2::Advice::HugePage);
                Self::Huge(map)
            }
            Err(_) => Self::Heap(vec![0.0; len]),
        }
    }

    fn alignment_bytes(&self) -> usize {
        match self {
            Self::Heap(_) => LINE_BYTES,
            Self::Huge(_) => HUGE_BYTES,
        }
    }

    fn values(&self) -> &[f32] {
        match self {
            Self::Heap(values) => values,
            Self::Huge(map) => bytemuck::cast_slice(map),
        }
    }

    fn values_mut(&mut self) -> &mut [f32] {
        match self {
            Self::Heap(values) => values,
            Self::Huge(map) => bytemuck::cast_slice_mut(map),
        }
    }
}

impl Buffer {
    /// `len` zeros as the system hands them out, not yet touched: the caller writes them all.
    pub(crate) fn zeros(len: usize) -> Self {
        let slack_bytes = if len * F32_BYTES < HUGE_FROM_BYTES { LINE_BYTES } else { HUGE_BYTES };
        let memory = Memory::new(len + slack_bytes / F32_BYTES);
        let capacity = memory.values().len();
        // Where the address cannot be told, it cannot matter either.
        let start = match memory.values().as_ptr().align_offset(memory.alignment_bytes()) {
            offset if offset + len <= capacity => offset,
            _ => 0,
        };
        Self { memory, start, len }
    }

    pub fn filled(value: f32, len: usize) -> Self {
        let mut buffer = Self::zeros(len);
        buffer.fill(value);
        buffer
    }

    /// Makes it longer or shorter, padding with `value`. Does not allocate below a length it once had.
    pub fn resize(&mut self, len: usize, value: f32) {
        let before = self.len;
        if self.start + len > self.memory.values().len() {
            let mut longer = Self::filled(value, len);
            longer[..before].copy_from_slice(self);
            *self = longer;
        }
        self.len = len;
        if len > before {
            self[before..].fill(value);
        }
    }

    pub fn nan(len: usize) -> Self {
        Self::filled(f32::NAN, len)
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory.values()[self.start..][..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory.values_mut()[self.start..][..self.len]
    }
}

/// A copy has an address of its own, and so a start of its own.
impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_and_every_copy_begins_on_a_cache_line() {
        for len in [0, 1, 15, 16, 17, 40_000, 3 << 20] {
            let buffer = Buffer::filled(1.5, len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|value| *value == 1.5));
            assert_eq!(buffer.as_ptr().align_offset(64), 0);
            assert_eq!(buffer.clone().as_ptr().align_offset(64), 0);
            assert_eq!(buffer.clone(), buffer);
        }
    }

    #[test]
    fn a_buffer_keeps_its_values_as_it_grows_and_shrinks() {
        let mut buffer = Buffer::zeros(3);
        buffer.copy_from_slice(&[1.0, 2.0, 3.0]);
        buffer.resize(2, 0.0);
        assert_eq!(*buffer, [1.0, 2.0]);
        buffer.resize(4, 9.0);
        assert_eq!(*buffer, [1.0, 2.0, 9.0, 9.0]);
        buffer.resize(100, 7.0);
        assert_eq!((buffer[1], buffer[3], buffer[4], buffer.len()), (2.0, 9.0, 7.0, 100));
        assert_eq!(buffer.as_ptr().align_offset(64), 0);
    }
}
