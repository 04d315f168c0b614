//! Parquet files, plain and uncompressed: the columns of the CSVs. The library for it takes a minute of CPU time to compile; this much
//! of the format (parquet.apache.org/docs/file-format) takes a page.

use super::thrift::Struct;
use super::{Export, Sample, UNIT};
use holdpoint_model::limits::one_line;

/// Begins and ends a file.
const MAGIC: &[u8] = b"PAR1";
/// Rows written at a time: a page's size is an i32, and readers hold a group in memory.
const GROUP_ROWS: usize = 100_000;
/// Numbers of Parquet's enums.
const REQUIRED: i32 = 0;
const UTF8: i32 = 0;
const UNCOMPRESSED: i32 = 0;
const DATA_PAGE: i32 = 0;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const FORMAT_VERSION: i32 = 1;

/// Physical types of columns, by their numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Type {
    Int32 = 1,
    Double = 5,
    ByteArray = 6,
}

/// A column: its name, its type, and its value in a row.
pub(super) struct Column<Row> {
    pub name: &'static str,
    pub kind: Type,
    pub append: fn(&Row, &mut Vec<u8>),
}

fn columns<'a>() -> [Column<Sample<'a>>; 8] {
    [
        Column { name: "name", kind: Type::ByteArray, append: |row, bytes| append_text(row.name, bytes) },
        Column { name: "metric", kind: Type::ByteArray, append: |row, bytes| append_text(row.metric, bytes) },
        Column {
            name: "value",
            kind: Type::Double,
            append: |row, bytes| bytes.extend(row.value_ns.to_le_bytes()),
        },
        Column { name: "unit", kind: Type::ByteArray, append: |_, bytes| append_text(UNIT, bytes) },
        Column { name: "side", kind: Type::ByteArray, append: |row, bytes| append_text(row.side, bytes) },
        Column {
            name: "process",
            kind: Type::Int32,
            append: |row, bytes| bytes.extend(row.process.to_le_bytes()),
        },
        Column {
            name: "round",
            kind: Type::Int32,
            append: |row, bytes| bytes.extend(row.round.to_le_bytes()),
        },
        Column {
            name: "position",
            kind: Type::Int32,
            append: |row, bytes| bytes.extend(row.position.to_le_bytes()),
        },
    ]
}

/// Text as in a cell of a CSV: on one line, without what paints or hides.
pub(super) fn append_text(text: &str, bytes: &mut Vec<u8>) {
    let text = one_line(text);
    bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// A row for each raw sample.
pub fn parquet(export: &Export<'_>) -> Vec<u8> {
    write("samples", &columns(), &export.samples)
}

/// A table as a file.
pub(super) fn write<Row>(name: &str, columns: &[Column<Row>], rows: &[Row]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let groups: Vec<Struct> =
        rows.chunks(GROUP_ROWS).map(|rows| append_group(columns, rows, &mut file)).collect();
    let metadata = Struct::default()
        .i32(1, FORMAT_VERSION)
        .structures(2, schema(name, columns).into_iter())
        .i64(3, rows.len())
        .structures(4, groups.into_iter())
        .text(6, concat!("holdpoint version ", env!("CARGO_PKG_VERSION")))
        .end();
    file.extend_from_slice(&metadata);
    file.extend(u32::try_from(metadata.len()).unwrap_or(u32::MAX).to_le_bytes());
    file.extend_from_slice(MAGIC);
    file
}

/// The root and its columns.
fn schema<Row>(name: &str, columns: &[Column<Row>]) -> Vec<Struct> {
    let root = Struct::default().text(4, name).i32(5, columns.len() as i32);
    let columns = columns.iter().map(|column| {
        let element = Struct::default().i32(1, column.kind as i32).i32(3, REQUIRED).text(4, column.name);
        if column.kind == Type::ByteArray { element.i32(6, UTF8) } else { element }
    });
    std::iter::once(root).chain(columns).collect()
}

/// Writes the pages of these rows; the metadata of the group.
fn append_group<Row>(columns: &[Column<Row>], rows: &[Row], file: &mut Vec<u8>) -> Struct {
    let begin = file.len();
    let chunks: Vec<Struct> = columns.iter().map(|column| append_column(column, rows, file)).collect();
    Struct::default().structures(1, chunks.into_iter()).i64(2, file.len() - begin).i64(3, rows.len())
}

/// Writes one column's page; the metadata of its chunk.
fn append_column<Row>(column: &Column<Row>, rows: &[Row], file: &mut Vec<u8>) -> Struct {
    let mut page = Vec::new();
    rows.iter().for_each(|row| (column.append)(row, &mut page));
    let size = i32::try_from(page.len()).unwrap_or(i32::MAX);
    let count = i32::try_from(rows.len()).unwrap_or(i32::MAX);
    let data = Struct::default().i32(1, count).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
    let header = Struct::default().i32(1, DATA_PAGE).i32(2, size).i32(3, size).structure(5, data).end();
    let begin = file.len();
    file.extend_from_slice(&header);
    file.append(&mut page);
    let metadata = Struct::default()
        .i32(1, column.kind as i32)
        .i32s(2, &[PLAIN, RLE])
        .texts(3, &[column.name])
        .i32(4, UNCOMPRESSED)
        .i64(5, rows.len())
        .i64(6, file.len() - begin)
        .i64(7, file.len() - begin)
        .i64(9, begin);
    Struct::default().i64(2, begin).structure(3, metadata)
}
