//! A line over runs, drawn in characters: with the dots of Braille, or with plain ASCII.

/// Rows of a drawing.
const ROWS: usize = 6;

/// Values in order, and those that are marked below.
pub(super) struct Series<'a> {
    pub(super) values: &'a [Option<f64>],
    pub(super) marked: &'a [bool],
    /// Where a new level begins.
    pub(super) changed: &'a [bool],
    /// A level across the drawing.
    pub(super) limit: Option<f64>,
}

/// Dots of one character: Braille has two columns of four, ASCII has one dot.
#[derive(Clone, Copy)]
struct Grain {
    across: usize,
    down: usize,
}

struct Canvas {
    grain: Grain,
    columns: usize,
    /// For each character the dots that are set.
    cells: Vec<u8>,
}

impl Canvas {
    fn set(&mut self, x: usize, y: usize) {
        let (column, row) = (x / self.grain.across, y / self.grain.down);
        let bit = (x % self.grain.across) * 4 + y % self.grain.down;
        if column < self.columns && row < ROWS {
            self.cells[row * self.columns + column] |= 1 << bit;
        }
    }

    fn row(&self, row: usize, limit: Option<usize>) -> String {
        // Braille's bits for the left and the right column, from the top.
        const BITS: [u32; 8] = [0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80];
        let is_braille = self.grain.across == 2;
        let shown =
            self.cells[row * self.columns..][..self.columns].iter().map(|cell| match (cell, is_braille) {
                (0, true) if limit == Some(row) => '┄',
                (0, false) if limit == Some(row) => '-',
                (0, _) => ' ',
                (_, false) => '*',
                (dots, true) => {
                    let bits = (0..8).filter(|bit| dots >> bit & 1 == 1).map(|bit| BITS[bit]).sum::<u32>();
                    char::from_u32(0x2800 + bits).unwrap_or(' ')
                }
            });
        shown.collect::<String>().trim_end().to_owned()
    }
}

/// The lines of a drawing, so many characters wide, with the values of the top and the bottom before them; nothing without a value.
pub(super) fn lines(
    series: &Series<'_>,
    ends: [f64; 2],
    columns: usize,
    ascii: bool,
    format: fn(f64) -> String,
) -> Vec<String> {
    let count = series.values.len();
    if count == 0 || columns == 0 || series.values.iter().flatten().next().is_none() {
        return Vec::new();
    }
    let grain = if ascii { Grain { across: 1, down: 1 } } else { Grain { across: 2, down: 4 } };
    let columns = columns.min(count.max(2) * 4);
    let (width, height) = (columns * grain.across, ROWS * grain.down);
    let mut canvas = Canvas { grain, columns, cells: vec![0; columns * ROWS] };
    let x = |i: usize| i * (width - 1) / (count - 1).max(1);
    let [low, high] = ends;
    let y = |value: f64| {
        let share = ((high - value) / (high - low)).clamp(0.0, 1.0);
        (share * (height - 1) as f64).round() as usize
    };
    let mut before: Option<(usize, usize)> = None;
    for (i, value) in series.values.iter().enumerate() {
        let at = value.map(|value| (x(i), y(value)));
        if let Some((x, y)) = at {
            // A line from the run before: as many dots as there are columns or rows between.
            let (from_x, from_y) = before.unwrap_or((x, y));
            let steps = x.abs_diff(from_x).max(y.abs_diff(from_y)).max(1);
            for step in 0..=steps {
                let part = |from: usize, to: usize| {
                    let (from, to) = (from as f64, to as f64);
                    (from + (to - from) * step as f64 / steps as f64).round() as usize
                };
                canvas.set(part(from_x, x), part(from_y, y));
            }
        }
        before = at;
    }
    let limit = series.limit.filter(|limit| (low..=high).contains(limit)).map(|limit| y(limit) / grain.down);
    let [top, bottom] = [format(high), format(low)];
    let label_width = crate::text::width(&top).max(crate::text::width(&bottom));
    let (tick, axis) = if ascii { ("+", "|") } else { ("┤", "│") };
    let mut lines: Vec<String> = (0..ROWS)
        .map(|row| {
            let (label, edge) = match row {
                0 => (top.as_str(), tick),
                _ if row == ROWS - 1 => (bottom.as_str(), tick),
                _ => ("", axis),
            };
            let gap = label_width - crate::text::width(label);
            format!("{:gap$}{label} {edge}{}", "", canvas.row(row, limit)).trim_end().to_owned()
        })
        .collect();
    let mut marks = vec![' '; columns];
    // Those of runs that did not pass come last: they matter more where both are.
    for (places, mark) in
        [(series.changed, if ascii { '^' } else { '◆' }), (series.marked, if ascii { '!' } else { '▲' })]
    {
        for (i, _) in places.iter().enumerate().filter(|(_, is_marked)| **is_marked) {
            marks[x(i) / grain.across] = mark;
        }
    }
    let marks: String = marks.into_iter().collect();
    if !marks.trim().is_empty() {
        lines.push(format!("{:label_width$}  {}", "", marks.trim_end()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(values: &[f64], ascii: bool) -> String {
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        let marked: Vec<bool> = values.iter().map(|value| *value == Some(3.0)).collect();
        let series = Series { values: &values, marked: &marked, changed: &[], limit: Some(2.0) };
        lines(&series, [1.0, 3.0], 12, ascii, |value| format!("{value}")).join("\n")
    }

    #[test]
    fn a_line_goes_from_the_bottom_to_the_top_and_marks_its_end() {
        let plain = draw(&[1.0, 2.0, 3.0], true);
        assert!(plain.is_ascii(), "{plain}");
        assert_eq!(plain.lines().count(), ROWS + 1);
        assert!(plain.starts_with("3 +") && plain.ends_with('!') && plain.contains('-'), "{plain}");
        let braille = draw(&[1.0, 2.0, 3.0], false);
        assert!(braille.contains('▲') && braille.contains('┄') && !braille.contains('*'), "{braille}");
    }

    #[test]
    fn nothing_is_no_drawing_and_one_value_is_one() {
        let series = Series { values: &[None, None], marked: &[false; 2], changed: &[], limit: None };
        assert!(lines(&series, [0.0, 1.0], 10, false, |_| String::new()).is_empty());
        let series = Series { values: &[Some(0.5)], marked: &[true], changed: &[], limit: None };
        assert_eq!(lines(&series, [0.0, 1.0], 10, true, |_| String::new()).len(), ROWS + 1);
    }
}
