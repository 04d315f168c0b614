//! The list of workloads: verdict, name and a strip on one scale, each with its charts folded below it.

use super::escape;

/// Workloads that are unfolded at first.
const OPEN_MAX: usize = 3;

/// One row, its text already escaped.
pub(super) struct ListRow {
    /// Class of the word, which has a colour and a mark in the style.
    pub(super) class: &'static str,
    pub(super) word: String,
    pub(super) name: String,
    pub(super) number: String,
    pub(super) strip: String,
    /// Charts and reasons; nothing to unfold without them.
    pub(super) body: String,
    pub(super) wants_attention: bool,
}

/// The rows, and the axis below them.
pub(super) fn list(rows: &[ListRow], axis: &str, caption: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut open = 0;
    let mut out = String::from("<div class=\"rows\">\n");
    for row in rows {
        let ListRow { class, word, name, number, strip, body, .. } = row;
        let (word, name, number) = (escape(word), escape(name), escape(number));
        let line = format!(
            "<span class=\"v {class}\">{word}</span><span class=\"name\">{name}</span><span class=\"n\">{number}</span>{strip}"
        );
        if body.is_empty() {
            out.push_str(&format!("<div class=\"row\">{line}</div>\n"));
            continue;
        }
        let is_open = rows.len() == 1 || row.wants_attention && open < OPEN_MAX;
        open += usize::from(is_open);
        let attribute = if is_open { " open" } else { "" };
        out.push_str(&format!(
            "<details{attribute}><summary class=\"row\">{line}</summary>\n{body}</details>\n"
        ));
    }
    if !axis.is_empty() {
        out.push_str(&format!("<div class=\"row axis\" aria-hidden=\"true\"><span></span><span></span><span></span>{axis}</div>\n"));
    }
    out + &format!("</div>\n<p class=\"reading\">{caption}</p>\n")
}
