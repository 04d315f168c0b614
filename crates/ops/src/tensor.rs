//! An op's inputs and outputs in memory, in any element type.

use crate::buffer::Buffer;
use holdpoint_cuda::Dtype;
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: Cow<'static, str>,
    /// The last varies fastest.
    pub dims: Vec<usize>,
    pub domain: Domain,
    pub data: Data,
}

/// Which values an input may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    Any,
    /// Any number, of which the op takes the exponential: large ones make it a step, and nothing can be said about rounding then.
    Exponent,
    /// Any number, which the op weighs and sums: a weight of zero makes nothing of what is not finite, so that is not planted here.
    Weighed,
    /// Weights, gains and probabilities, from 0 to 1.
    Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Float(Dtype),
    /// Ids and coordinates.
    U32,
    /// Priorities.
    I8,
}

#[derive(Clone, Debug)]
pub enum Data {
    Floats(Floats),
    U32(Vec<u32>),
    I8(Vec<i8>),
}

/// Floats that begin on a cache line, whatever their type.
#[derive(Clone, Debug)]
pub struct Floats {
    dtype: Dtype,
    len: usize,
    /// Holds the bytes; only for 32-bit floats are its values the tensor's.
    buffer: Buffer,
}

impl Floats {
    fn new(dtype: Dtype, len: usize) -> Self {
        Self { dtype, len, buffer: Buffer::zeros((len * dtype.bytes()).div_ceil(4)) }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.buffer)[..self.len * self.dtype.bytes()]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.len * self.dtype.bytes();
        &mut bytemuck::cast_slice_mut(&mut self.buffer)[..bytes]
    }
}

/// A type that floats are stored as on the CPU.
pub trait StoredFloat: bytemuck::Pod {
    const DTYPE: Dtype;
}

impl StoredFloat for f32 {
    const DTYPE: Dtype = Dtype::F32;
}

impl StoredFloat for half::f16 {
    const DTYPE: Dtype = Dtype::F16;
}

impl StoredFloat for half::bf16 {
    const DTYPE: Dtype = Dtype::Bf16;
}

/// Values that are worth a thread: a fraction of a millisecond.
const WIDENED_LEN_MIN: usize = 1 << 18;

impl Tensor {
    pub fn new(name: impl Into<Cow<'static, str>>, dims: &[usize], domain: Domain, element: Element) -> Self {
        let len = dims.iter().product();
        let data = match element {
            Element::Float(dtype) => Data::Floats(Floats::new(dtype, len)),
            Element::U32 => Data::U32(vec![0; len]),
            Element::I8 => Data::I8(vec![0; len]),
        };
        Self { name: name.into(), dims: dims.to_vec(), domain, data }
    }

    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Absent for whole numbers.
    pub fn dtype(&self) -> Option<Dtype> {
        match &self.data {
            Data::Floats(floats) => Some(floats.dtype),
            Data::U32(_) | Data::I8(_) => None,
        }
    }

    pub fn is_integer(&self) -> bool {
        !matches!(self.data, Data::Floats(_))
    }

    /// Empty where the tensor has another type.
    #[inline]
    pub fn floats<T: StoredFloat>(&self) -> &[T] {
        match &self.data {
            Data::Floats(floats) if floats.dtype == T::DTYPE => {
                &bytemuck::cast_slice(&floats.buffer)[..floats.len]
            }
            _ => &[],
        }
    }

    #[inline]
    pub(crate) fn floats_mut<T: StoredFloat>(&mut self) -> &mut [T] {
        match &mut self.data {
            Data::Floats(floats) if floats.dtype == T::DTYPE => {
                &mut bytemuck::cast_slice_mut(&mut floats.buffer)[..floats.len]
            }
            _ => &mut [],
        }
    }

    #[inline]
    pub fn f32(&self) -> &[f32] {
        self.floats()
    }

    #[inline]
    pub fn f32_mut(&mut self) -> &mut [f32] {
        self.floats_mut()
    }

    /// Its 32-bit floats in their buffer, for versions that swap it with their own.
    pub(crate) fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        match &mut self.data {
            Data::Floats(floats) if floats.dtype == Dtype::F32 => Some(&mut floats.buffer),
            _ => None,
        }
    }

    pub fn values(&self) -> Cow<'_, [f32]> {
        match &self.data {
            Data::Floats(floats) if floats.dtype == Dtype::F32 => Cow::Borrowed(self.f32()),
            Data::Floats(floats) => floats.dtype.decode(floats.bytes()).into(),
            Data::U32(values) => values.iter().map(|value| *value as f32).collect(),
            Data::I8(values) => values.iter().map(|value| f32::from(*value)).collect(),
        }
    }

    /// Each value is rounded to the element type; whole numbers stay as they are.
    pub fn set(&mut self, values: &[f32]) {
        match &mut self.data {
            Data::Floats(floats) if floats.dtype == Dtype::F32 => self.f32_mut().copy_from_slice(values),
            Data::Floats(floats) => {
                let bytes = floats.dtype.encode(values);
                floats.bytes_mut().copy_from_slice(&bytes);
            }
            Data::U32(_) | Data::I8(_) => {}
        }
    }

    /// Takes values of another element type, on all cores where they are many. Only for 32-bit floats.
    pub(crate) fn widen_from(&mut self, dtype: Dtype, bytes: &[u8]) {
        let values = self.f32_mut();
        let threads_count = std::thread::available_parallelism().map_or(1, usize::from);
        let part = values.len().div_ceil(threads_count).max(WIDENED_LEN_MIN);
        if values.len() <= part {
            return dtype.decode_into(bytes, values);
        }
        std::thread::scope(|scope| {
            for (bytes, values) in bytes.chunks(part * dtype.bytes()).zip(values.chunks_mut(part)) {
                scope.spawn(move || dtype.decode_into(bytes, values));
            }
        });
    }

    /// As in files and protocols: floats as stored, whole numbers as 32 bits, little-endian.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.data {
            Data::Floats(floats) => floats.bytes().to_vec(),
            Data::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Data::I8(values) => values.iter().flat_map(|value| i32::from(*value).to_le_bytes()).collect(),
        }
    }

    /// Reads such bytes; a whole number that does not fit becomes one that no right answer has.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        match &mut self.data {
            Data::Floats(floats) => floats.bytes_mut().copy_from_slice(bytes),
            Data::U32(values) => {
                let from = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
                values.iter_mut().zip(from).for_each(|(value, from)| *value = from);
            }
            Data::I8(values) => {
                let from = bytes.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
                let kept = |from: i32| i8::try_from(from).unwrap_or(i8::MIN);
                values.iter_mut().zip(from).for_each(|(value, from)| *value = kept(from));
            }
        }
    }

    /// Fills it with the values of parts, one after the other; where one is missing, the rest stays as it is.
    pub(crate) fn join(&mut self, parts: &[&Self]) {
        let mut at = 0;
        for part in parts {
            let to = (at + part.len()).min(self.len());
            match (&mut self.data, &part.data) {
                (Data::Floats(_), Data::Floats(_)) => {
                    self.f32_mut()[at..to].copy_from_slice(&part.f32()[..to - at]);
                }
                (Data::U32(all), Data::U32(values)) => all[at..to].copy_from_slice(&values[..to - at]),
                (Data::I8(all), Data::I8(values)) => all[at..to].copy_from_slice(&values[..to - at]),
                _ => {}
            }
            at = to;
        }
    }

    /// Exchanges two values.
    pub(crate) fn swap(&mut self, a: usize, b: usize) {
        match &mut self.data {
            Data::Floats(floats) => {
                let width = floats.dtype.bytes();
                let bytes = floats.bytes_mut();
                (0..width).for_each(|at| bytes.swap(a * width + at, b * width + at));
            }
            Data::U32(values) => values.swap(a, b),
            Data::I8(values) => values.swap(a, b),
        }
    }

    /// Bytes of one value in a file.
    pub fn width(&self) -> usize {
        match &self.data {
            Data::Floats(floats) => floats.dtype.bytes(),
            Data::U32(_) | Data::I8(_) => 4,
        }
    }

    /// Fills it with values that no answer holds: NaN, or a whole number out of every range.
    pub fn poison(&mut self) {
        match &mut self.data {
            // All ones is not a number in every type, but only one of the quiet ones in 32 bits: there it is written as such.
            Data::Floats(floats) if floats.dtype == Dtype::F32 => floats.buffer.fill(f32::NAN),
            Data::Floats(floats) => floats.bytes_mut().fill(0xff),
            Data::U32(values) => values.fill(u32::MAX),
            // Below every priority a call can leave.
            Data::I8(values) => values.fill(i8::MIN),
        }
    }
}

/// Exchanges tensors with a version's own buffers, which takes no time.
pub(crate) fn swap_buffers(tensors: &mut [Tensor], buffers: [&mut Buffer; 4]) {
    for (tensor, buffer) in tensors.iter_mut().zip(buffers) {
        if let Some(values) = tensor.buffer_mut() {
            std::mem::swap(values, buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_keeps_what_it_can_hold_and_poison_is_no_answer() {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::E4m3] {
            let mut tensor = Tensor::new("x", &[3], Domain::Any, Element::Float(dtype));
            tensor.set(&[1.0, -0.5, 300.0]);
            assert!((tensor.values()[2] - 300.0).abs() <= 20.0 && tensor.values()[1] == -0.5, "{dtype:?}");
            let bytes = tensor.bytes();
            assert_eq!(bytes.len(), 3 * tensor.width());
            tensor.poison();
            assert!(tensor.values().iter().all(|value| value.is_nan()), "{dtype:?}");
            tensor.set_bytes(&bytes);
            assert_eq!(tensor.values()[0], 1.0);
        }
    }

    #[test]
    fn many_values_are_widened_as_few_are() {
        let len = 2 * WIDENED_LEN_MIN + 7;
        let values: Vec<f32> = (0..len).map(|at| (at % 101) as f32).collect();
        let mut tensor = Tensor::new("x", &[len], Domain::Any, Element::Float(Dtype::F32));
        tensor.widen_from(Dtype::F16, &Dtype::F16.encode(&values));
        assert_eq!(tensor.f32(), values);
    }

    #[test]
    fn whole_numbers_that_do_not_fit_match_no_right_answer() {
        let bytes: Vec<u8> = [3_i32, 300, -129].iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut priorities = Tensor::new("p", &[3], Domain::Any, Element::I8);
        priorities.set_bytes(&bytes);
        assert!(matches!(&priorities.data, Data::I8(values) if *values == [3, i8::MIN, i8::MIN]));
        let mut ids = Tensor::new("i", &[3], Domain::Any, Element::U32);
        ids.set_bytes(&bytes);
        assert_eq!(ids.bytes(), bytes);
    }
}
