//! Where the line ends go: objects are indented, arrays of numbers stay on one line, and each object of an
//! array has a line of its own.

use serde_json::ser::Formatter;
use std::io::{self, Write};

/// The open arrays and objects.
#[derive(Default)]
pub(super) struct Layout {
    open: Vec<Open>,
}

#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// An object with a line for each key.
    Block { empty: bool },
    /// An object on one line, and all that is in it.
    Inline { empty: bool },
    /// An array on one line; `first` until its second value.
    Row { first: bool },
    /// An array with a line for each object.
    Table,
}

impl Layout {
    fn new_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        let indented = self.open.iter().filter(|open| matches!(open, Open::Block { .. } | Open::Table));
        indented.into_iter().try_for_each(|_| writer.write_all(b"  "))
    }

    fn is_inline(&self) -> bool {
        self.open.iter().any(|open| matches!(open, Open::Inline { .. }))
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(Open::Row { first: true });
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        match self.open.last_mut() {
            _ if first => Ok(()),
            Some(Open::Table) => {
                writer.write_all(b",")?;
                self.new_line(writer)
            }
            Some(Open::Row { first }) => {
                *first = false;
                writer.write_all(b", ")
            }
            _ => writer.write_all(b", "),
        }
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.open.pop() == Some(Open::Table) {
            self.new_line(writer)?;
        }
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let (is_inline, top) = (self.is_inline(), self.open.len().saturating_sub(1));
        let opened = match self.open.last() {
            _ if is_inline => Open::Inline { empty: true },
            Some(Open::Row { first: true }) => {
                self.open[top] = Open::Table;
                self.new_line(writer)?;
                Open::Inline { empty: true }
            }
            Some(Open::Row { .. } | Open::Table) => Open::Inline { empty: true },
            _ => Open::Block { empty: true },
        };
        self.open.push(opened);
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        match self.open.last_mut() {
            Some(Open::Block { empty }) => {
                *empty = false;
                self.new_line(writer)
            }
            Some(Open::Inline { .. }) if !first => writer.write_all(b" "),
            _ => Ok(()),
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.open.pop() == Some(Open::Block { empty: false }) {
            self.new_line(writer)?;
        }
        writer.write_all(b"}")
    }
}
