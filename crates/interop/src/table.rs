//! Comma-separated values: records of cells, quoted as RFC 4180 has it. The separator is the one of `,`, `;` and tab that the
//! first line has most of.

use crate::source::at_path;
use crate::{Imported, Source};
use holdpoint_model::FileError;
use holdpoint_model::document::value_error;
use holdpoint_model::limits::clean_text;
use std::borrow::Cow;

pub(crate) type Cells<'a> = Vec<Cow<'a, str>>;

pub(crate) struct Records<'a> {
    rest: &'a str,
    pub separator: char,
    /// Of the record read last, from 1.
    pub line: usize,
}

impl<'a> Records<'a> {
    pub fn new(text: &'a str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        let count = |separator: &char| first.matches(*separator).count();
        let separator = [',', ';', '\t'].into_iter().rev().max_by_key(count).unwrap_or(',');
        Self { rest: text, separator, line: 0 }
    }

    /// The names of the columns, trimmed.
    pub fn header(&mut self) -> Result<Vec<String>, FileError> {
        let mut cells = Vec::new();
        self.read(&mut cells)?;
        Ok(cells.iter().map(|cell| cell.trim().to_owned()).collect())
    }

    /// Reads the next record that is not empty; false at the end.
    pub fn read(&mut self, cells: &mut Cells<'a>) -> Result<bool, FileError> {
        cells.clear();
        while !self.rest.is_empty() {
            self.line += 1;
            if let Some(rest) = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n')) {
                self.rest = rest;
                continue;
            }
            let begun = self.line;
            while self.read_cell(cells)? {}
            let lines = self.line - begun;
            self.line = begun;
            self.check(cells)?;
            self.line += lines;
            return Ok(true);
        }
        Ok(false)
    }

    /// A NUL is the sign of another encoding, UTF-16 for one.
    fn check(&self, cells: &Cells<'a>) -> Result<(), FileError> {
        match cells.iter().any(|cell| cell.contains('\0')) {
            true => self.refuse("has NUL characters; write the file as UTF-8"),
            false => Ok(()),
        }
    }

    /// Reads a cell; whether the record goes on behind it.
    fn read_cell(&mut self, cells: &mut Cells<'a>) -> Result<bool, FileError> {
        let cell = match self.rest.strip_prefix('"') {
            Some(rest) => self.quoted(rest)?,
            None => {
                let end = self.rest.find([self.separator, '\n']).unwrap_or(self.rest.len());
                let (cell, rest) = self.rest.split_at(end);
                self.rest = rest;
                Cow::Borrowed(cell.strip_suffix('\r').unwrap_or(cell))
            }
        };
        cells.push(cell);
        self.rest = self.rest.strip_prefix('\r').unwrap_or(self.rest);
        match self.rest.chars().next() {
            None => Ok(false),
            Some('\n') => {
                self.rest = &self.rest[1..];
                Ok(false)
            }
            Some(c) if c == self.separator => {
                self.rest = &self.rest[c.len_utf8()..];
                Ok(true)
            }
            Some(_) => self.refuse("has text behind a closing quote"),
        }
    }

    fn quoted(&mut self, mut rest: &'a str) -> Result<Cow<'a, str>, FileError> {
        let mut cell = Cow::Borrowed("");
        loop {
            let Some((part, behind)) = rest.split_once('"') else {
                return self.refuse("has a quote that is not closed; is the file cut off?");
            };
            self.line += part.matches('\n').count();
            cell += part;
            match behind.strip_prefix('"') {
                Some(more) => {
                    cell += "\"";
                    rest = more;
                }
                None => {
                    self.rest = behind;
                    return Ok(cell);
                }
            }
        }
    }

    /// An error about the current line.
    pub fn refuse<T>(&self, what: &str) -> Result<T, FileError> {
        value_error(format!("line {}", self.line), what)
    }

    /// A number in a cell of the current line.
    pub fn number(&self, column: &str, cell: &str) -> Result<f64, FileError> {
        match cell.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => {
                self.refuse(&format!("{}: {:?} is not a number", clean_text(column), clean_text(cell.trim())))
            }
        }
    }
}

/// Reads a table, or every table of a folder that matches; there each metric's name starts with its file's.
pub(crate) fn read_each(
    source: &Source,
    matches: fn(&str) -> bool,
    read: fn(&str) -> Result<Imported, FileError>,
) -> Result<Imported, FileError> {
    let Source::Folder(files) = source else { return read(source.single().unwrap_or_default()) };
    let mut all = Imported::default();
    for (path, text) in files.iter().filter(|(path, text)| path.ends_with(".csv") && matches(text)) {
        let stem = path.trim_end_matches(".csv");
        let one = read(text).map_err(|error| at_path(path, error))?;
        all.extend(one, |name| format!("{stem}.{name}"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
        let (mut reader, mut cells, mut all) = (Records::new(text), Vec::new(), Vec::new());
        while reader.read(&mut cells).map_err(|error| error.to_string())? {
            all.push(cells.iter().map(|cell| cell.to_string()).collect());
        }
        Ok(all)
    }

    #[test]
    fn cells_are_separated_and_quoted() {
        assert_eq!(records("a,b\r\n1,2\n\n3,\n").unwrap(), [vec!["a", "b"], vec!["1", "2"], vec!["3", ""]]);
        assert_eq!(records("a;b\n\"x;\"\"y\"\"\nz\";2").unwrap(), [["a", "b"], ["x;\"y\"\nz", "2"]]);
        assert_eq!(records("a\tb,c").unwrap(), [["a\tb", "c"]]);
    }

    #[test]
    fn broken_quotes_are_refused_by_line() {
        assert!(records("a,b\n\"x,2").unwrap_err().starts_with("line 2: has a quote that is not closed"));
        assert!(records("a,b\n\"x\"y,2").unwrap_err().starts_with("line 2: has text behind"));
        assert!(records("a,b\n\0x,2").unwrap_err().starts_with("line 2: has NUL"));
    }
}
