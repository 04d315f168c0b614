//! Pictures, as SVG that stands alone or inside a page: colours follow the reader's light or dark setting.

mod labels;
mod panel;
mod plot;
mod roofline;
mod scale;
mod strip;

pub(crate) use plot::{Frame, Plot};
pub use roofline::{has_points, roofline};

pub(crate) use scale::{Scale, nice_ticks};
pub(crate) use strip::{Mark, Strips};

use crate::text::{clean, escape_html};
use std::fmt::Write;

/// Size of the text. Its characters are at most `CHAR_WIDTH` wide on average, in any of the usual fonts.
const FONT_SIZE: f64 = 11.0;
const CHAR_WIDTH: f64 = 6.1;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn overlaps(&self, other: &Self) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }

    fn holds(&self, other: &Self) -> bool {
        other.x >= self.x
            && other.y >= self.y
            && other.x + other.width <= self.x + self.width
            && other.y + other.height <= self.y + self.height
    }

    fn right(&self) -> f64 {
        self.x + self.width
    }

    fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// How wide a text will be, rather more than less.
fn text_width(text: &str) -> f64 {
    crate::text::width(text) as f64 * CHAR_WIDTH
}

/// Foreign text inside an element or an attribute.
fn escaped(text: &str) -> String {
    escape_html(&clean(text)).replace('"', "&quot;")
}

/// A number with at most one decimal, as short as it can be written: pages hold thousands of them.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A piece of a picture as it is written. Writing to a string cannot fail.
#[derive(Clone, Debug, Default)]
struct Canvas {
    body: String,
    /// Written behind every x and width: `%` in pictures that are as wide as their page.
    unit: &'static str,
}

impl Canvas {
    fn x(&self, value: f64) -> String {
        format!("{}{}", short(value), self.unit)
    }

    fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let ([x1, x2], [y1, y2]) = ([x1, x2].map(|x| self.x(x)), [y1, y2].map(short));
        let _ = writeln!(self.body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    fn rect(&mut self, class: &str, Area { x, y, width, height }: Area) {
        let ([x, width], [y, height]) = ([x, width].map(|x| self.x(x)), [y, height].map(short));
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        );
    }

    fn circle(&mut self, class: &str, [x, y]: [f64; 2], radius: f64, title: &str) {
        let (x, y, title) = (self.x(x), short(y), escaped(title));
        let _ = write!(self.body, r#"<circle class="{class}" cx="{x}" cy="{y}" r="{}""#, short(radius));
        let end = if title.is_empty() { "/>" } else { &format!("><title>{title}</title></circle>") };
        let _ = writeln!(self.body, "{end}");
    }

    fn text(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let (x, y, text) = (self.x(x), short(y), escaped(text));
        let class = if class.is_empty() { String::new() } else { format!(r#" class="{class}""#) };
        let _ = writeln!(self.body, r#"<text{class} x="{x}" y="{y}">{text}</text>"#);
    }

    /// A shape of many pieces, in SVG's own commands.
    fn path(&mut self, class: &str, commands: &str) {
        if !commands.is_empty() {
            let _ = writeln!(self.body, r#"<path class="{class}" d="{commands}"/>"#);
        }
    }
}

/// The colours and lines of every chart, for a page or a picture of its own.
pub(crate) const STYLE: &str = include_str!("chart.css");
