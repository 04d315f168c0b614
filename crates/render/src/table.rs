//! Tables, for the terminal and for Markdown. On the terminal: no frame, one thin line below the titles, numbers to the right.

use crate::escape;
use crate::paint::{Ink, Style};
use crate::text;
use crate::units::{self, MISSING};
use holdpoint_model::Verdict;
use std::borrow::Cow;

/// Space between columns.
const GAP: usize = 2;
/// A name may be broken over lines rather than push other columns out, but not below this width.
const NAME_KEPT: usize = 44;
/// Below this width a broken name is harder to read than a line that is too long.
const NAME_MIN: usize = 16;

/// One cell. Its text may come from outside: it is made harmless when it is written.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    ink: Ink,
    markup: Markup,
}

/// How Markdown shows a cell; the terminal has inks instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Markup {
    Prose,
    Name,
    Bold,
    /// Markdown of our own.
    Raw,
}

impl Cell {
    pub(crate) fn new(text: &str) -> Self {
        Self::inked(Ink::Plain, text)
    }

    pub(crate) fn inked(ink: Ink, text: &str) -> Self {
        Self { text: text.to_owned(), ink, markup: Markup::Prose }
    }

    pub(crate) fn name(text: &str) -> Self {
        Self { markup: Markup::Name, ..Self::new(text) }
    }

    /// Markdown that is escaped already.
    pub(crate) fn markup(text: String) -> Self {
        Self { text, ink: Ink::Plain, markup: Markup::Raw }
    }

    /// The verdict's word, bold in Markdown where somebody has to act.
    pub(crate) fn verdict(verdict: Verdict) -> Self {
        let markup = if verdict > Verdict::Pass { Markup::Bold } else { Markup::Prose };
        Self { markup, ..Self::inked(verdict.into(), verdict.as_str()) }
    }

    /// A number if there is one, else a dash.
    pub(crate) fn number(value: Option<f64>, format: fn(f64) -> String) -> Self {
        Self::new(&units::number(value, format))
    }

    pub(crate) fn count(n: impl Into<u64>) -> Self {
        Self::new(&units::count(n.into()))
    }

    pub(crate) fn with(mut self, ink: Ink) -> Self {
        self.ink = ink;
        self
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() || self.text == MISSING
    }

    fn markdown(&self) -> String {
        match self.markup {
            Markup::Prose => escape::prose(&self.text),
            Markup::Name => escape::name(&self.text),
            Markup::Bold => format!("**{}**", self.text),
            Markup::Raw => self.text.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// To the left, on one line.
    Words,
    /// To the left, over several lines where it must be.
    Names,
    /// To the right, on one line.
    Numbers,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    title: Cow<'static, str>,
    kind: Kind,
    /// Columns with the highest number go first where the terminal is narrow; 0 stays.
    drop: u8,
}

pub(crate) const fn words(title: &'static str) -> Column {
    Column { title: Cow::Borrowed(title), kind: Kind::Words, drop: 0 }
}

pub(crate) const fn names(title: &'static str) -> Column {
    Column { title: Cow::Borrowed(title), kind: Kind::Names, drop: 0 }
}

pub(crate) const fn numbers(title: &'static str) -> Column {
    Column { title: Cow::Borrowed(title), kind: Kind::Numbers, drop: 0 }
}

impl Column {
    /// The same column with a title that is made of numbers.
    pub(crate) fn titled(self, title: String) -> Self {
        Self { title: Cow::Owned(title), ..self }
    }

    /// The same column, given up in this order where the terminal is narrow.
    pub(crate) const fn drop(mut self, drop: u8) -> Self {
        self.drop = drop;
        self
    }
}

/// Columns without any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyColumns {
    Keep,
    Drop,
}

#[derive(Debug)]
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// A line below the table.
    footer: Option<String>,
}

impl Grid {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), footer: None }
    }

    pub(crate) fn push(&mut self, row: impl Into<Vec<Cell>>) {
        self.rows.push(row.into());
    }

    pub(crate) fn with_footer(self, footer: Option<String>) -> Self {
        Self { footer, ..self }
    }

    /// Shows a name in the first column only once where it stands in several rows in a row.
    pub(crate) fn blank_repeated_names(mut self) -> Self {
        for i in (1..self.rows.len()).rev() {
            if self.rows[i][0].text == self.rows[i - 1][0].text {
                self.rows[i][0].text.clear();
            }
        }
        self
    }

    /// The table in Markdown; nothing where there is no row.
    pub(crate) fn markdown(mut self, empty: EmptyColumns) -> String {
        if empty == EmptyColumns::Drop {
            self.drop_empty();
        }
        if self.rows.is_empty() {
            return String::new();
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let titles = line(self.columns.iter().map(|column| column.title.to_string()).collect());
        let sides =
            self.columns.iter().map(|column| if column.kind == Kind::Numbers { "--:" } else { ":--" });
        let sides = sides.collect::<Vec<_>>().join("|");
        let rows = self.rows.iter().map(|row| line(row.iter().map(Cell::markdown).collect()));
        let footer = self.footer.map(|footer| format!("\n{footer}\n")).unwrap_or_default();
        format!("{titles}|{sides}|\n{}{footer}", rows.collect::<String>())
    }

    /// The table as text with a line feed after each line; nothing where there is no row.
    pub(crate) fn render(mut self, style: Style) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        for cell in self.rows.iter_mut().flatten() {
            cell.text = text::clean(&cell.text);
        }
        self.drop_empty();
        self.drop_until_it_fits(style);
        let widths = self.widths(style);
        let titles = self.columns.iter().map(|column| (Ink::Dim, &*column.title));
        let mut out = self.row(&titles.collect::<Vec<_>>(), &widths, style);
        let rule = "─".repeat(widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1));
        out.push_str(&format!("{}\n", style.paint(Ink::Dim, &rule)));
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(|cell| (cell.ink, cell.text.as_str())).collect();
            out.push_str(&self.row(&cells, &widths, style));
        }
        out.extend(self.footer.map(|footer| style.paint(Ink::Dim, &footer) + "\n"));
        out
    }

    fn drop_empty(&mut self) {
        for i in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row[i].is_empty()) {
                self.remove(i);
            }
        }
    }

    fn drop_until_it_fits(&mut self, style: Style) {
        let Some(columns) = style.width.map(usize::from) else { return };
        while self.width(NAME_KEPT) > columns {
            let last = (0..self.columns.len()).max_by_key(|i| (self.columns[*i].drop, *i));
            match last.filter(|i| self.columns[*i].drop > 0) {
                Some(i) => self.remove(i),
                None => return,
            }
        }
    }

    fn remove(&mut self, column: usize) {
        self.columns.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }

    /// The width of the table where names take no more than `name_max`.
    fn width(&self, name_max: usize) -> usize {
        let widths = (0..self.columns.len()).map(|i| match self.columns[i].kind {
            Kind::Names => self.widest(i).min(name_max),
            Kind::Words | Kind::Numbers => self.widest(i),
        });
        widths.sum::<usize>() + GAP * self.columns.len().saturating_sub(1)
    }

    /// The width of the widest cell of a column.
    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| text::width(&row[column].text));
        cells.max().unwrap_or(0).max(text::width(&self.columns[column].title))
    }

    /// The width of each column: names are broken where the table would be too wide and they stay readable.
    fn widths(&self, style: Style) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len()).map(|i| self.widest(i)).collect();
        let most = style.width.map(usize::from).filter(|most| self.width(NAME_MIN) <= *most);
        let most = most.map_or(usize::MAX, |most| most - GAP * self.columns.len().saturating_sub(1));
        if widths.iter().sum::<usize>() <= most {
            return widths;
        }
        while widths.iter().sum::<usize>() > most {
            let names = (0..widths.len()).filter(|i| self.columns[*i].kind == Kind::Names);
            let Some(widest) = names.max_by_key(|i| widths[*i]) else { break };
            widths[widest] -= 1;
        }
        // Broken names may need less than they were given.
        for (i, width) in widths.iter_mut().enumerate() {
            let lines = self.rows.iter().flat_map(|row| fold(&row[i].text, *width));
            let widest = lines.map(|line| text::width(&line)).max().unwrap_or(0);
            *width = widest.max(text::width(&self.columns[i].title));
        }
        widths
    }

    /// A row, over as many lines as its longest name takes.
    fn row(&self, cells: &[(Ink, &str)], widths: &[usize], style: Style) -> String {
        let folded: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|((_, text), width)| fold(text, *width)).collect();
        let height = folded.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = String::new();
        for at in 0..height {
            let mut line = String::new();
            for (i, lines) in folded.iter().enumerate() {
                let part = lines.get(at).map_or("", String::as_str);
                let (space, part) =
                    (" ".repeat(widths[i].saturating_sub(text::width(part))), style.paint(cells[i].0, part));
                let is_number = self.columns[i].kind == Kind::Numbers;
                let cell = if is_number { space + &part } else { part + &space };
                line.push_str(&cell);
                line.push_str(&" ".repeat(GAP));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// The text in lines of at most this width, broken between words, and within those that are longer than a line.
fn fold(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        let (begun, long) = (text::width(&line), text::width(word.trim_end()));
        if begun + long > columns && long <= columns {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if text::width(&line) + text::width(c.encode_utf8(&mut [0; 4])) > columns {
                lines.push(std::mem::take(&mut line));
            }
            // A line that goes on does not begin with the space between two words.
            if c != ' ' || !line.is_empty() || lines.is_empty() {
                line.push(c);
            }
        }
    }
    lines.push(line);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
