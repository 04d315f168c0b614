//! Pictures, as SVG that stands alone or inside a page: colours follow the reader's light or dark setting.

mod labels;
mod panel;
mod roofline;

pub use roofline::{has_points, roofline};

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

/// A piece of a picture as it is written. Writing to a string cannot fail.
#[derive(Default)]
struct Canvas(String);

impl Canvas {
    fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let _ = writeln!(
            self.0,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    fn circle(&mut self, class: &str, [x, y]: [f64; 2], radius: f64, title: &str) {
        let title = escaped(title);
        let _ = writeln!(
            self.0,
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"><title>{title}</title></circle>"#
        );
    }

    fn text(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let text = escaped(text);
        let _ = writeln!(self.0, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#);
    }
}
