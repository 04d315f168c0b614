//! Series in a table: a row for each point with a column `value`, and names of series and runs beside it; or a column of numbers
//! for each series.

use super::{point, timestamp};
use crate::table::{Cells, Records};
use holdpoint_model::document::value_error;
use holdpoint_model::suite::metric_name;
use holdpoint_model::{FileError, Track};
use std::collections::BTreeMap;

/// Names of columns that say something about a run, each with its other names.
const COMMIT: &[&str] = &["commit", "revision", "rev", "sha"];
const TIME: &[&str] = &["timestamp_utc", "timestamp", "time", "date"];
const NAME: &[&str] = &["name", "benchmark", "metric"];

struct Columns {
    value: Option<usize>,
    commit: Option<usize>,
    time: Option<usize>,
    name: Option<usize>,
    workload: Option<usize>,
    suite: Option<usize>,
    machine: Option<usize>,
    series: Option<usize>,
}

impl Columns {
    fn new(header: &[String]) -> Self {
        let find =
            |names: &[&str]| header.iter().position(|cell| names.contains(&cell.to_lowercase().as_str()));
        Self {
            value: find(&["value"]),
            commit: find(COMMIT),
            time: find(TIME),
            name: find(NAME),
            workload: find(&["workload"]),
            suite: find(&["suite"]),
            machine: find(&["machine"]),
            series: find(&["series"]),
        }
    }

    fn is_about_run(&self, column: usize) -> bool {
        [self.commit, self.time].contains(&Some(column))
    }
}

pub(super) fn read(text: &str, file_name: &str) -> Result<Vec<Track>, FileError> {
    let mut records = Records::new(text);
    let header = records.header()?;
    if header.is_empty() {
        return value_error("line 1".to_owned(), "is missing: the file is empty");
    }
    // A table that begins with numbers has no header.
    let is_number = |cell: &String| cell.parse::<f64>().is_ok();
    if header.iter().all(is_number) {
        records = Records::new(text);
        let names = match header.len() {
            1 => vec![file_name.to_owned()],
            count => (1..=count).map(|column| format!("{file_name}[{column}]")).collect(),
        };
        return wide(records, &Columns::new(&[]), &names);
    }
    let columns = Columns::new(&header);
    match columns.value {
        Some(value) => long(records, &columns, header.len(), value, file_name),
        None => wide(records, &columns, &header),
    }
}

/// A row for each point.
fn long(
    mut records: Records<'_>,
    columns: &Columns,
    width: usize,
    value: usize,
    file_name: &str,
) -> Result<Vec<Track>, FileError> {
    let mut tracks: Vec<Track> = Vec::new();
    let mut places: BTreeMap<[String; 4], usize> = BTreeMap::new();
    let mut cells = Vec::new();
    while next(&mut records, width, &mut cells)? {
        let cell = |column: Option<usize>| column.map_or("", |column| cells[column].trim());
        let key = [columns.series, columns.suite, columns.workload, columns.name]
            .map(|column| cell(column).to_owned());
        let machine = cell(columns.machine);
        let place = *places.entry(key).or_insert_with(|| {
            let name = match (cell(columns.workload), cell(columns.name)) {
                ("", "") => {
                    if cell(columns.series).is_empty() { file_name } else { cell(columns.series) }.to_owned()
                }
                ("", name) => name.to_owned(),
                (workload, "") => workload.to_owned(),
                (workload, metric) => metric_name(workload, metric),
            };
            let suite = cell(columns.suite).to_owned();
            let machine = (!machine.is_empty()).then(|| machine.to_owned());
            tracks.push(Track { suite, name, machine, ..Track::default() });
            tracks.len() - 1
        });
        let number = number(&records, "value", cell(Some(value)))?;
        tracks[place].points.push(point(number, timestamp(cell(columns.time)), Some(cell(columns.commit))));
    }
    if tracks.is_empty() { value_error("line 1".to_owned(), "has no rows below it") } else { Ok(tracks) }
}

/// A column for each series.
fn wide(mut records: Records<'_>, columns: &Columns, names: &[String]) -> Result<Vec<Track>, FileError> {
    let series: Vec<usize> = (0..names.len()).filter(|column| !columns.is_about_run(*column)).collect();
    let mut tracks: Vec<Track> =
        series.iter().map(|column| Track { name: names[*column].clone(), ..Track::default() }).collect();
    let mut cells = Vec::new();
    while next(&mut records, names.len(), &mut cells)? {
        let cell = |column: Option<usize>| column.map_or("", |column| cells[column].trim());
        for (track, column) in tracks.iter_mut().zip(&series) {
            let value = number(&records, &names[*column], cell(Some(*column)))?;
            track.points.push(point(value, timestamp(cell(columns.time)), Some(cell(columns.commit))));
        }
    }
    if tracks.iter().all(|track| track.points.is_empty()) {
        return value_error("line 1".to_owned(), "has no column of numbers below it");
    }
    Ok(tracks)
}

fn next<'a>(records: &mut Records<'a>, width: usize, cells: &mut Cells<'a>) -> Result<bool, FileError> {
    let found = records.read(cells)?;
    if found && cells.len() != width {
        return records.refuse(&format!("has {} cells, the first line {width}", cells.len()));
    }
    Ok(found)
}

/// An empty cell is a run without a value.
fn number(records: &Records<'_>, column: &str, cell: &str) -> Result<f64, FileError> {
    if cell.is_empty() { Ok(f64::NAN) } else { records.number(column, cell) }
}
