//! Element types on the device.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Values decoded together: they stay in the first cache.
const BLOCK: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    F32,
    /// 16-bit float, IEEE.
    F16,
    /// 16-bit float, the upper half of a 32-bit one.
    Bf16,
    /// 8-bit float, 4 bits of exponent; no infinity, at most 448.
    E4m3,
}

impl Dtype {
    /// By its name in a suite or in the originals.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "f32" | "fp32" | "float32" => Self::F32,
            "f16" | "fp16" | "float16" => Self::F16,
            "bf16" | "bfloat16" => Self::Bf16,
            "e4m3" | "fp8" | "float8_e4m3fn" => Self::E4m3,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::E4m3 => "e4m3",
        }
    }

    /// The macro that chooses it in a kernel's source.
    pub(crate) fn macro_name(self) -> &'static str {
        match self {
            Self::F32 => "ELEM_F32",
            Self::F16 => "ELEM_F16",
            Self::Bf16 => "ELEM_BF16",
            Self::E4m3 => "ELEM_E4M3",
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::E4m3 => 1,
        }
    }

    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let mut values = vec![0.0; bytes.len() / self.bytes()];
        self.decode_into(bytes, &mut values);
        values
    }

    /// Decodes as many values as there are of both.
    pub fn decode_into(self, bytes: &[u8], values: &mut [f32]) {
        let pairs = bytes.chunks(BLOCK * self.bytes()).zip(values.chunks_mut(BLOCK));
        for (bytes, values) in pairs {
            match self {
                Self::F32 => {
                    let from = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                    values.iter_mut().zip(from).for_each(|(value, from)| *value = from);
                }
                // A block at a time: whether the CPU has an instruction for it is asked once for each call.
                Self::F16 => {
                    let mut block = [f16::ZERO; BLOCK];
                    let from = bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b));
                    block.iter_mut().zip(from).for_each(|(value, from)| *value = from);
                    let count = (bytes.len() / 2).min(values.len());
                    block[..count].convert_to_f32_slice(&mut values[..count]);
                }
                Self::Bf16 => {
                    let from = bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32());
                    values.iter_mut().zip(from).for_each(|(value, from)| *value = from);
                }
                Self::E4m3 => {
                    let from = bytes.iter().map(|b| e4m3_to_f32(*b));
                    values.iter_mut().zip(from).for_each(|(value, from)| *value = from);
                }
            }
        }
    }

    /// Each value is rounded to the nearest.
    pub fn encode(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::F32 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::F16 => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
            Self::Bf16 => values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
            Self::E4m3 => values.iter().map(|v| e4m3_from_f32(*v)).collect(),
        }
    }
}

/// 4 bits of exponent with a bias of 7, 3 of mantissa; all ones is not a number.
fn e4m3_to_f32(bits: u8) -> f32 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 3 & 0xf), f32::from(bits & 7));
    match (exponent, bits & 7) {
        (15, 7) => f32::NAN,
        (0, _) => sign * mantissa / 8.0 * 2f32.powi(-6),
        _ => sign * (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
    }
}

/// The nearest; ties to even; beyond 448 stays there.
fn e4m3_from_f32(value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let size = value.abs();
    if size.is_nan() {
        return 0x7f;
    }
    // In units of the last bit: 2^-9 up to 2^-6, then an eighth of the power of two below.
    let exponent = (size.max(2f32.powi(-6)).log2().floor() as i32).min(8);
    let unit = 2f32.powi(exponent - 3);
    let steps = (size / unit).round_ties_even();
    let bits = steps as u32 + ((exponent + 6) as u32) * 8;
    sign | u8::try_from(bits.min(0x7e)).unwrap_or(0x7e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_8_bit_value_survives_the_way_there_and_back() {
        for bits in 0..=u8::MAX {
            let value = e4m3_to_f32(bits);
            if !value.is_nan() {
                assert_eq!(e4m3_from_f32(value), bits, "{bits:#x} is {value}");
            }
        }
        assert_eq!((e4m3_to_f32(0x7e), e4m3_to_f32(0x01)), (448.0, 2f32.powi(-9)));
        assert_eq!((e4m3_from_f32(1e9), e4m3_from_f32(-1e9)), (0x7e, 0xfe));
        assert!(e4m3_to_f32(e4m3_from_f32(f32::NAN)).is_nan());
    }

    #[test]
    fn values_between_two_8_bit_values_round_to_the_nearer_and_ties_to_even() {
        for bits in 0..0x7e_u8 {
            let (low, high) = (e4m3_to_f32(bits), e4m3_to_f32(bits + 1));
            assert_eq!(e4m3_from_f32(low + (high - low) * 0.49), bits);
            assert_eq!(e4m3_from_f32(low + (high - low) * 0.51), bits + 1);
            assert_eq!(e4m3_from_f32(f32::midpoint(low, high)), bits + (bits & 1));
        }
    }

    #[test]
    fn any_number_of_values_is_decoded() {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::E4m3] {
            for len in [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5] {
                let values: Vec<f32> = (0..len).map(|at| (at % 13) as f32 - 6.0).collect();
                assert_eq!(dtype.decode(&dtype.encode(&values)), values, "{dtype:?} {len}");
            }
        }
    }

    #[test]
    fn encoding_and_decoding_agree() {
        let values = [0.0, -1.5, 0.333, 300.0, f32::NAN];
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::E4m3] {
            let bytes = dtype.encode(&values);
            assert_eq!(bytes.len(), values.len() * dtype.bytes());
            for (got, want) in dtype.decode(&bytes).iter().zip(values) {
                assert!((got - want).abs() <= want.abs() / 16.0 || (got.is_nan() && want.is_nan()));
            }
        }
    }
}
