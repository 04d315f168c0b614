//! Tensors that begin on a cache line, so that what a process measures does not hang on where its allocator put
//! them: a 64-byte tile row at an odd address is two lines to fetch instead of one.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// f32 values in a cache line of 64 bytes.
const LINE: usize = 16;

/// A tensor that begins on a cache line.
#[derive(Default)]
pub struct Buffer {
    values: Vec<f32>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// A tensor of so many values.
    #[must_use]
    pub fn filled(value: f32, len: usize) -> Self {
        let values = vec![value; len + LINE - 1];
        // Where the address cannot be told, it cannot matter either.
        let start = match values.as_ptr().align_offset(LINE * size_of::<f32>()) {
            offset if offset < LINE => offset,
            _ => 0,
        };
        Self { values, start, len }
    }

    /// Makes it longer or shorter; what is new has this value. Does not allocate below a length it once had.
    pub fn resize(&mut self, len: usize, value: f32) {
        if len + LINE - 1 > self.values.len() {
            let mut longer = Self::filled(value, len);
            longer[..self.len].copy_from_slice(self);
            *self = longer;
        } else if len > self.len {
            self.values[self.start + self.len..self.start + len].fill(value);
        }
        self.len = len;
    }

    /// A tensor of so many NaN: none of them is an answer.
    #[must_use]
    pub fn nan(len: usize) -> Self {
        Self::filled(f32::NAN, len)
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..][..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..][..self.len]
    }
}

impl FromIterator<f32> for Buffer {
    fn from_iter<I: IntoIterator<Item = f32>>(values: I) -> Self {
        Self::from(values.into_iter().collect::<Vec<_>>())
    }
}

impl From<Vec<f32>> for Buffer {
    fn from(values: Vec<f32>) -> Self {
        let mut buffer = Self::filled(0.0, values.len());
        buffer.copy_from_slice(&values);
        buffer
    }
}

/// A copy has an address of its own, and so a start of its own.
impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::from(self.to_vec())
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
        let mut buffer = Buffer::from(vec![1.0, 2.0, 3.0]);
        buffer.resize(2, 0.0);
        assert_eq!(*buffer, [1.0, 2.0]);
        buffer.resize(4, 9.0);
        assert_eq!(*buffer, [1.0, 2.0, 9.0, 9.0]);
        buffer.resize(100, 7.0);
        assert_eq!((buffer[1], buffer[3], buffer[4], buffer.len()), (2.0, 9.0, 7.0, 100));
        assert_eq!(buffer.as_ptr().align_offset(64), 0);
    }
}
