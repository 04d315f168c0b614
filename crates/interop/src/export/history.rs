//! A row for each point of a history.

use super::csv::quote;
use super::parquet::{Column, Type, append_text, write};
use holdpoint_model::{Point, Series};
use std::fmt::Write;

/// A point, and the series that it is of.
struct SeriesPoint<'a> {
    series: &'a Series,
    point: &'a Point,
}

impl SeriesPoint<'_> {
    fn commit(&self) -> &str {
        self.point.revision.as_ref().map_or("", |revision| revision.commit.as_str())
    }

    fn machine(&self) -> &str {
        self.series.key.machine.as_deref().unwrap_or_default()
    }

    fn verdict(&self) -> &str {
        self.point.verdict.map_or("", |verdict| verdict.as_str())
    }

    /// An end of the interval; NaN where there is none, which no column of numbers confuses with a value.
    fn end(&self, end: usize) -> f64 {
        self.point.interval.map_or(f64::NAN, |interval| interval[end])
    }
}

fn rows(all: &[Series]) -> impl Iterator<Item = SeriesPoint<'_>> {
    all.iter().flat_map(|series| series.points.iter().map(move |point| SeriesPoint { series, point }))
}

pub fn csv(all: &[Series]) -> String {
    let mut text = String::from(
        "series,suite,workload,metric,machine,timestamp_utc,commit,value,low,high,samples,verdict,run\n",
    );
    for row in rows(all) {
        let (key, point) = (&row.series.key, row.point);
        let [suite, workload, metric] = [&key.suite, &key.workload, &key.metric].map(|cell| quote(cell));
        let end = |end: usize| point.interval.map(|ends| ends[end].to_string()).unwrap_or_default();
        let _ = writeln!(
            text,
            "{},{suite},{workload},{metric},{},{},{},{},{},{},{},{},{}",
            row.series.id,
            quote(row.machine()),
            point.at,
            quote(row.commit()),
            point.value,
            end(0),
            end(1),
            point.samples_count,
            row.verdict(),
            point.run
        );
    }
    text
}

fn columns<'a>() -> [Column<SeriesPoint<'a>>; 13] {
    [
        Column {
            name: "series",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(&row.series.id, bytes),
        },
        Column {
            name: "suite",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(&row.series.key.suite, bytes),
        },
        Column {
            name: "workload",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(&row.series.key.workload, bytes),
        },
        Column {
            name: "metric",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(&row.series.key.metric, bytes),
        },
        Column {
            name: "machine",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(row.machine(), bytes),
        },
        Column {
            name: "timestamp_utc",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(&row.point.at.to_string(), bytes),
        },
        Column {
            name: "commit",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(row.commit(), bytes),
        },
        Column {
            name: "value",
            kind: Type::Double,
            append: |row, bytes| bytes.extend(row.point.value.to_le_bytes()),
        },
        Column {
            name: "low",
            kind: Type::Double,
            append: |row, bytes| bytes.extend(row.end(0).to_le_bytes()),
        },
        Column {
            name: "high",
            kind: Type::Double,
            append: |row, bytes| bytes.extend(row.end(1).to_le_bytes()),
        },
        Column {
            name: "samples",
            kind: Type::Int32,
            append: |row, bytes| bytes.extend(row.point.samples_count.to_le_bytes()),
        },
        Column {
            name: "verdict",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(row.verdict(), bytes),
        },
        Column {
            name: "run",
            kind: Type::ByteArray,
            append: |row, bytes| append_text(&row.point.run.to_string(), bytes),
        },
    ]
}

pub fn parquet(all: &[Series]) -> Vec<u8> {
    write("points", &columns(), &rows(all).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::metric::Better;
    use holdpoint_model::{Revision, RunHash, SeriesKey, Taken, Timestamp, Verdict};

    fn series() -> Series {
        let point = |at, value, interval| Point {
            at: Timestamp::parse(at).unwrap(),
            revision: Some(Revision { commit: "abc".to_owned(), dirty: false }),
            value,
            interval,
            samples_count: 30,
            run: RunHash([0xab; 32]),
            versions: 0,
            verdict: Some(Verdict::Pass),
        };
        Series {
            id: "0123456789ab".to_owned(),
            key: SeriesKey {
                suite: "cpu".to_owned(),
                workload: "sort, \"big\"".to_owned(),
                metric: "p50_ms".to_owned(),
                identity: None,
                machine: None,
                taken: Taken::Alone,
            },
            machine: String::new(),
            better: Better::Lower,
            points: vec![point("2026-11-17", 1.5, Some([1.25, 1.75])), point("2026-11-18", 2.0, None)],
            versions: Vec::new(),
            accepted: Vec::new(),
        }
    }

    #[test]
    fn a_point_is_a_row_and_cells_are_quoted() {
        let run = "ab".repeat(32);
        let text = csv(&[series()]);
        let lines: Vec<&str> = text.lines().collect();
        let begin = "0123456789ab,cpu,\"sort, \"\"big\"\"\",p50_ms,,";
        assert_eq!(lines[1], format!("{begin}2026-11-17T00:00:00.000Z,abc,1.5,1.25,1.75,30,pass,{run}"));
        assert_eq!(lines[2], format!("{begin}2026-11-18T00:00:00.000Z,abc,2,,,30,pass,{run}"));
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn a_parquet_file_holds_every_column_and_value() {
        let file = parquet(&[series()]);
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
        let has = |bytes: &[u8]| file.windows(bytes.len()).any(|window| window == bytes);
        assert!(columns().iter().all(|column| has(column.name.as_bytes())));
        assert!(has(&1.5_f64.to_le_bytes()) && has(&f64::NAN.to_le_bytes()) && has(b"2026-11-18T00"));
    }
}
