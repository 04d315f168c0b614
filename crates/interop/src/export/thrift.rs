//! Thrift's compact protocol, as far as Parquet's metadata need it: structs of integers, texts, lists and structs.

/// Types of fields.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// A struct that is being written; fields come in the order of their numbers.
#[derive(Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub fn i32(self, field: u8, value: i32) -> Self {
        self.field(field, I32, &varint(zigzag(i64::from(value))))
    }

    pub fn i64(self, field: u8, value: usize) -> Self {
        self.field(field, I64, &varint(zigzag(i64::try_from(value).unwrap_or(i64::MAX))))
    }

    pub fn text(self, field: u8, value: &str) -> Self {
        self.field(field, BINARY, &text(value))
    }

    pub(crate) fn structure(self, field: u8, value: Self) -> Self {
        self.field(field, STRUCT, &value.end())
    }

    pub(crate) fn structures(self, field: u8, values: impl ExactSizeIterator<Item = Self>) -> Self {
        let head = list_head(values.len(), STRUCT);
        let body: Vec<u8> = values.flat_map(Self::end).collect();
        self.field(field, LIST, &[head, body].concat())
    }

    pub(crate) fn i32s(self, field: u8, values: &[i32]) -> Self {
        let body: Vec<u8> = values.iter().flat_map(|value| varint(zigzag(i64::from(*value)))).collect();
        self.field(field, LIST, &[list_head(values.len(), I32), body].concat())
    }

    pub fn texts(self, field: u8, values: &[&str]) -> Self {
        let body: Vec<u8> = values.iter().flat_map(|value| text(value)).collect();
        self.field(field, LIST, &[list_head(values.len(), BINARY), body].concat())
    }

    /// The bytes of the whole struct.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(mut self, field: u8, kind: u8, value: &[u8]) -> Self {
        self.bytes.push((field - self.last) << 4 | kind);
        self.bytes.extend_from_slice(value);
        self.last = field;
        self
    }
}

fn list_head(count: usize, kind: u8) -> Vec<u8> {
    match u8::try_from(count) {
        Ok(few) if few < 15 => vec![few << 4 | kind],
        _ => [vec![0xf0 | kind], varint(count as u64)].concat(),
    }
}

fn text(value: &str) -> Vec<u8> {
    [varint(value.len() as u64), value.as_bytes().to_vec()].concat()
}

/// Small numbers of either sign become small numbers without one.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_zigzag_and_seven_bits_a_byte() {
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
        assert_eq!(varint(300), [0xac, 0x02]);
        let bytes = Struct::default().i32(1, -1).text(4, "ab").i32s(5, &[1]).end();
        assert_eq!(bytes, [0x15, 1, 0x38, 2, b'a', b'b', 0x19, 0x15, 2, 0]);
        assert_eq!(list_head(15, STRUCT), [0xfc, 15]);
    }
}
