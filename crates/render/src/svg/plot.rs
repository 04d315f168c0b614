//! A picture with axes: the marks that charts are made of, all in one place.

use super::{Area, Canvas, STYLE, Scale, escaped, short, text_width};
use std::fmt::Write;

const TOP: f64 = 20.0;
const BOTTOM: f64 = 34.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 8.0;

/// Size and axes of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) size: [f64; 2],
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    /// Room below the axis for [`Plot::lane`].
    pub(crate) lane: f64,
}

/// Writes a path in steps of whole units: pages hold thousands of places, and half a unit is not to be seen.
#[derive(Default)]
struct Pen {
    commands: String,
    at: Option<[i32; 2]>,
}

impl Pen {
    /// Lifts the pen and goes there.
    fn go(&mut self, place: [f64; 2]) -> &mut Self {
        let to = place.map(|part| part.round() as i32);
        match self.at {
            Some(at) => self.step("m", [to[0] - at[0], to[1] - at[1]]),
            None => self.step("M", to),
        }
        self.at = Some(to);
        self
    }

    /// Goes there, drawing. Level pieces in a row become one.
    fn draw(&mut self, place: [f64; 2]) {
        let to = place.map(|part| part.round() as i32);
        let Some(at) = self.at.replace(to) else { return };
        match [to[0] - at[0], to[1] - at[1]] {
            [across, 0] => {
                let before = self
                    .commands
                    .rfind('h')
                    .and_then(|at| Some((at, self.commands[at + 1..].parse::<i32>().ok()?)));
                let (kept, before) = before.unwrap_or((self.commands.len(), 0));
                self.commands.truncate(kept);
                let _ = write!(self.commands, "h{}", before + across);
            }
            step => self.step("l", step),
        }
    }

    fn step(&mut self, command: &str, [x, y]: [i32; 2]) {
        let between = if y < 0 { "" } else { " " };
        let _ = write!(self.commands, "{command}{x}{between}{y}");
    }

    /// Draws where it is.
    fn mark(&mut self, commands: &str) {
        self.commands.push_str(commands);
    }

    /// Draws an upright line and stays at its end.
    fn up_to(&mut self, y: f64) {
        let Some([x, from]) = self.at else { return };
        let to = y.round() as i32;
        if to != from {
            let _ = write!(self.commands, "v{}", to - from);
        }
        self.at = Some([x, to]);
    }

    /// Draws a level line and stays at its end.
    fn right_to(&mut self, x: f64) {
        let Some([from, y]) = self.at else { return };
        let to = x.round() as i32;
        let _ = write!(self.commands, "h{}", to - from);
        self.at = Some([to, y]);
    }

    fn cross(&mut self) {
        self.commands.push_str("l6 6m0-6l-6 6");
        self.at = self.at.map(|[x, y]| [x, y + 6]);
    }
}

/// A picture as it grows. Places are values on its axes.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    frame: Frame,
    area: Area,
    canvas: Canvas,
}

impl Plot {
    pub(crate) fn new(frame: Frame) -> Self {
        let [width, height] = frame.size;
        let area =
            Area { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: height - TOP - BOTTOM - frame.lane };
        Self { frame, area, canvas: Canvas::default() }
    }

    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        let (across, up) = (self.frame.x.share(x), self.frame.y.share(y));
        [self.area.x + across * self.area.width, self.area.bottom() - up * self.area.height]
    }

    /// Lines and numbers along both axes, and what is along them.
    pub(crate) fn axes(&mut self, x: &[(f64, String)], y: &[(f64, String)], titles: [&str; 2]) {
        let Area { x: left, .. } = self.area;
        let (right, bottom) = (self.area.right(), self.area.bottom() + self.frame.lane);
        let mut grid = String::new();
        // Numbers share their class in a group: a page has thousands.
        self.canvas.body.push_str("<g class=\"e\">");
        for (value, text) in y.iter().filter(|(value, _)| self.frame.y.holds(*value)) {
            let at = self.at(0.0, *value)[1].round();
            let _ = write!(grid, "M{} {}H{}", short(left), short(at), short(right));
            self.canvas.text("", [left - 5.0, at + 4.0], text);
        }
        self.canvas.body.push_str("</g>\n<g class=\"m\">");
        for (value, text) in x.iter().filter(|(value, _)| self.frame.x.holds(*value)) {
            let [at, _] = self.at(*value, 0.0);
            // No number leaves the picture.
            let half = text_width(text) / 2.0;
            let at = at.clamp(half, (self.frame.size[0] - half).max(half));
            self.canvas.text("", [at.round(), bottom + 14.0], text);
        }
        self.canvas.body.push_str("</g>\n");
        self.canvas.path("g", &grid);
        self.canvas.path("a", &format!("M{} {}H{}", short(left), short(self.area.bottom()), short(right)));
        self.canvas.text("", [2.0, 11.0], titles[0]);
        self.canvas.text("m", [left + self.area.width / 2.0, bottom + 29.0], titles[1]);
    }

    /// Words at the right end of the top line, the last one outermost, each in its own class.
    pub(crate) fn legend(&mut self, entries: &[(&str, &str)]) {
        let mut right = self.area.right();
        for (class, words) in entries.iter().rev() {
            self.canvas.text(format!("e {class}").trim_end(), [right.round(), 11.0], words);
            right -= text_width(words) + 18.0;
        }
    }

    /// One round or square dot for each place, by the style of the class.
    pub(crate) fn dots(&mut self, class: &str, places: impl IntoIterator<Item = [f64; 2]>) {
        let mut pen = Pen::default();
        places.into_iter().for_each(|[x, y]| pen.go(self.at(x, y)).mark("h0"));
        self.canvas.path(&format!("d {class}"), &pen.commands);
    }

    /// A dot that has something to say, and perhaps somewhere to lead.
    pub(crate) fn dot(&mut self, class: &str, place: [f64; 2], title: &str, url: Option<&str>) {
        let at = self.at(place[0], place[1]);
        let url = url.map(escaped);
        if let Some(url) = &url {
            let _ = write!(self.canvas.body, "<a href=\"{url}\">");
        }
        self.canvas.circle(class, at, 4.5, title);
        if url.is_some() {
            self.canvas.body.push_str("</a>\n");
        }
    }

    /// A circle around a place, so that not only its colour tells it from others.
    pub(crate) fn ring(&mut self, class: &str, place: [f64; 2], radius: f64) {
        let at = self.at(place[0], place[1]);
        self.canvas.circle(class, at, radius, "");
    }

    /// Upright lines from one value to another.
    pub(crate) fn spans(&mut self, class: &str, spans: impl IntoIterator<Item = (f64, [f64; 2])>) {
        let mut pen = Pen::default();
        for (x, [low, high]) in spans {
            pen.go(self.at(x, low)).up_to(self.at(x, high)[1]);
        }
        self.canvas.path(class, &pen.commands);
    }

    /// A line through places; a gap where there is none.
    pub(crate) fn line(&mut self, class: &str, places: impl IntoIterator<Item = Option<[f64; 2]>>) {
        let (mut pen, mut is_drawing) = (Pen::default(), false);
        for place in places {
            match place.map(|[x, y]| self.at(x, y)) {
                Some(at) if is_drawing => pen.draw(at),
                Some(at) => drop(pen.go(at)),
                None => {}
            }
            is_drawing = place.is_some();
        }
        self.canvas.path(&format!("l {class}"), &pen.commands);
    }

    /// Everything between two values of the y axis, over a part of the x axis.
    pub(crate) fn band(&mut self, class: &str, [from, to]: [f64; 2], [low, high]: [f64; 2]) {
        let ([x, bottom], [right, y]) = (self.at(from, low), self.at(to, high));
        self.canvas.rect(class, Area { x, y, width: right - x, height: bottom - y });
    }

    /// A level across the picture, with its name above its left end.
    pub(crate) fn level(&mut self, class: &str, value: f64, name: &str) {
        let (from, right) = (self.at(self.frame.x.ends()[0], value), self.area.right());
        self.canvas
            .path(&format!("l {class}"), &format!("M{} {}H{}", short(from[0]), short(from[1]), short(right)));
        if !name.is_empty() {
            self.canvas.text("", [from[0] + 4.0, from[1] - 4.0], name);
        }
    }

    /// A line from top to bottom.
    pub(crate) fn upright(&mut self, class: &str, value: f64) {
        let [x, _] = self.at(value, 0.0);
        let (top, bottom) = (self.area.y, self.area.bottom());
        self.canvas.path(&format!("l {class}"), &format!("M{} {}V{}", short(x), short(top), short(bottom)));
    }

    /// Words at a place, inside the picture.
    pub(crate) fn words(&mut self, class: &str, place: [f64; 2], words: &str) {
        let [x, y] = self.at(place[0], place[1]);
        let half = text_width(words) / 2.0;
        let x = x.clamp(self.area.x + half, (self.area.right() - half).max(self.area.x + half));
        self.canvas.text(&format!("m {class}"), [x, (y - 9.0).max(TOP - 1.0)], words);
    }

    /// A filled outline of steps: from a value on the x axis, each so wide, to values of the y axis, on a level.
    pub(crate) fn steps(&mut self, class: &str, level: f64, from: f64, width: f64, values: &[f64]) {
        let mut pen = Pen::default();
        pen.go(self.at(from, level));
        for (i, value) in values.iter().enumerate() {
            pen.up_to(self.at(from, *value)[1]);
            pen.right_to(self.at(from + (i + 1) as f64 * width, level)[0]);
        }
        pen.up_to(self.at(from, level)[1]);
        pen.mark("z");
        self.canvas.path(class, &pen.commands);
    }

    /// A lane below the axis: upright lines of a height from 0 to 1.
    pub(crate) fn lane(&mut self, class: &str, heights: impl IntoIterator<Item = (f64, f64)>) {
        let bottom = self.area.bottom() + self.frame.lane;
        let mut pen = Pen::default();
        for (x, height) in heights {
            let height = height.clamp(0.0, 1.0) * (self.frame.lane - 5.0);
            pen.go([self.at(x, 0.0)[0], bottom]).up_to(bottom - height.max(1.0));
        }
        self.canvas.path(class, &pen.commands);
    }

    /// Small crosses in the lane.
    pub(crate) fn crosses(&mut self, class: &str, places: impl IntoIterator<Item = f64>) {
        let y = self.area.bottom() + self.frame.lane / 2.0 - 3.0;
        let mut pen = Pen::default();
        places.into_iter().for_each(|x| pen.go([self.at(x, 0.0)[0] - 3.0, y]).cross());
        self.canvas.path(class, &pen.commands);
    }

    /// Small dots in the lane.
    pub(crate) fn lane_dots(&mut self, class: &str, places: impl IntoIterator<Item = f64>) {
        let y = self.area.bottom() + self.frame.lane / 2.0;
        let mut pen = Pen::default();
        places.into_iter().for_each(|x| pen.go([self.at(x, 0.0)[0], y]).mark("h0"));
        self.canvas.path(&format!("d {class}"), &pen.commands);
    }

    /// The name of the lane, beside it.
    pub(crate) fn lane_name(&mut self, words: &str) {
        let y = self.area.bottom() + self.frame.lane - 3.0;
        self.canvas.text("e", [self.area.x - 5.0, y], words);
    }

    /// The picture inside a page that has [`STYLE`], with its name for those who cannot see it.
    pub(crate) fn inline(&self, name: &str) -> String {
        let [width, height] = self.frame.size;
        let (name, body) = (escaped(name), &self.canvas.body);
        // A link inside of an image would be out of reach.
        let role = if body.contains("<a ") { "group" } else { "img" };
        format!(
            "<svg class=\"hp\" viewBox=\"0 0 {width} {height}\" role=\"{role}\" aria-label=\"{name}\">\n{body}</svg>\n"
        )
    }

    /// The picture as a document of its own.
    pub(crate) fn document(plots: &[(String, Self)]) -> String {
        let width = plots.iter().map(|(_, plot)| plot.frame.size[0]).fold(0.0, f64::max);
        let (mut body, mut top) = (String::new(), 0.0);
        for (title, plot) in plots {
            let [plot_width, height] = plot.frame.size;
            let title = escaped(title);
            let _ = write!(
                body,
                "<text class=\"h\" x=\"2\" y=\"{}\">{title}</text>\n<svg y=\"{}\" width=\"{plot_width}\" height=\"{height}\">\n{}</svg>\n",
                short(top + 18.0),
                short(top + 26.0),
                plot.canvas.body
            );
            top += height + 42.0;
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hp\" viewBox=\"-8 0 {} {top}\" width=\"{}\" height=\"{top}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n<rect class=\"bg\" x=\"-8\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n",
            width + 16.0,
            width + 16.0,
            escaped(&plots.iter().map(|(title, _)| title.as_str()).collect::<Vec<_>>().join(", "))
        )
    }
}
