//! Words: foreign text made harmless, lists, plurals and wrapping.

use crate::paint::{COLORS, Ink, Style};
use holdpoint_model::Revision;
use holdpoint_model::attest::Compared;
use holdpoint_model::limits::{is_invisible, one_line};
use unicode_width::UnicodeWidthStr;

/// Column at which the text of an [`entry`] begins: the longest verdict word and two spaces.
const ENTRY_INDENT: usize = 14;
const COMMIT_CHARS: usize = 12;

/// Foreign text on one line, see [`one_line`].
pub(crate) fn clean(text: &str) -> String {
    one_line(text)
}

/// Text as it may go to a terminal: lines and tabs stay, and our own colours where the style has them. Everything else that could
/// paint, move the cursor, reorder or hide text is shown as its code point, wherever it came from.
pub fn for_terminal(text: &str, style: Style) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let own = COLORS.iter().find(|code| style.color && rest.starts_with(**code));
        let length = own.map_or(c.len_utf8(), |code| code.len());
        match c {
            _ if own.is_some() || matches!(c, '\n' | '\t') => out.push_str(&rest[..length]),
            _ if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
        rest = &rest[length..];
    }
    out
}

/// JSON as it may go to a terminal or a log: the same document, with what [`for_terminal`] would show as a code point in JSON's own
/// escapes, and no command to a runner. None of it is ever outside of a string.
pub fn json_for_terminal(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if c != '\n' && (c.is_control() || is_invisible(c)) {
            let units = &mut [0; 2];
            out.extend(c.encode_utf16(units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out.replace("##[", "#\\u0023[").replace("##vso[", "#\\u0023vso[")
}

/// Text for a log that a pipeline's runner reads along: nothing in it is a command to the runner. GitHub's takes `##[…]`
/// anywhere in a line and `::…::` at its beginning, Azure's `##vso[…]`.
pub fn for_log(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\r']) {
        let start = line.len() - line.trim_start().len();
        match line[start..].strip_prefix("::") {
            Some(rest) => out.extend([&line[..start], ": :", rest]),
            None => out.push_str(line),
        }
    }
    out.replace("##[", "# #[").replace("##vso[", "# #vso[")
}

pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The beginning and the end of a text, where it is longer: paths and commands often differ in their end.
pub(crate) fn clip_middle(text: &str, chars_max: usize) -> String {
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let first = chars_max / 2;
    let head: String = text.chars().take(first).collect();
    let tail: String = text.chars().skip(count + first + 1 - chars_max).collect();
    format!("{head}…{tail}")
}

/// Text between tags.
pub(crate) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A path as a part of a URI, which ends no link and no cell.
pub(crate) fn encode_path(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    let encode = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(encode).collect()
}

/// `a, b, c and 6 more`.
pub(crate) fn list<S: AsRef<str>>(items: &[S], shown_max: usize) -> String {
    let shown: Vec<&str> = items.iter().take(shown_max).map(AsRef::as_ref).collect();
    match items.len().saturating_sub(shown_max) {
        0 => shown.join(", "),
        more => format!("{} and {} more", shown.join(", "), crate::units::count(more as u64)),
    }
}

/// `base 0123…, head 4567… with uncommitted changes`, in full.
pub(crate) fn describe_compared(compared: &Compared) -> String {
    let name = |side: &str, revision: &Option<Revision>| match revision {
        None => format!("{side} of no known commit"),
        Some(Revision { commit, dirty: false }) => format!("{side} {commit}"),
        Some(Revision { commit, dirty: true }) => format!("{side} {commit} with uncommitted changes"),
    };
    format!("{}, {}", name("base", &compared.base), name("head", &compared.head))
}

/// `1 metric`, `9 metrics`.
pub(crate) fn plural(n: impl TryInto<u64>, noun: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", crate::units::count(n), if n == 1 { "" } else { "s" })
}

pub(crate) fn short_commit(commit: &str) -> String {
    commit.chars().take(COMMIT_CHARS).collect()
}

/// The commit, short, and whether it was changed.
pub(crate) fn revision(revision: &Revision) -> String {
    let commit = short_commit(&revision.commit);
    if revision.dirty { format!("{commit} (dirty)") } else { commit }
}

/// The first line: the title and what is known about it.
pub(crate) fn heading(style: Style, title: &str, facts: &[Option<String>]) -> String {
    let title = clean(title);
    let mut column = width(&title);
    let mut out = style.paint(Ink::Strong, &title);
    for fact in facts.iter().flatten().map(|fact| clean(fact)) {
        column += 3 + width(&fact);
        // A fact stays in one piece.
        if style.width.is_some_and(|columns| column > usize::from(columns)) {
            column = 2 + width(&fact);
            out.push_str("\n  ");
        } else {
            out.push_str(" · ");
        }
        out.push_str(&fact);
    }
    out + "\n"
}

/// A labelled paragraph with a hanging indent.
pub(crate) fn entry(style: Style, ink: Ink, label: &str, body: &str) -> String {
    let padded = format!("{label:<ENTRY_INDENT$}");
    let text = wrap(&format!("{padded}{}", clean(body)), style.width, ENTRY_INDENT);
    let rest = text.strip_prefix(label).unwrap_or(&text);
    format!("{}{rest}\n", style.paint(ink, label))
}

/// Lines quoted below an [`entry`].
pub(crate) fn quote(style: Style, lines: &[String]) -> String {
    let quoted = lines.iter().map(|line| {
        let line = format!("{:ENTRY_INDENT$}│ {}", "", clean(line));
        format!("{}\n", style.paint(Ink::Dim, line.trim_end()))
    });
    quoted.collect()
}

/// Units that stay on the line of their number.
const UNITS: [&str; 5] = ["%", "s", "ms", "µs", "ns"];

/// The words, each with the spaces behind it; a number keeps its unit and its thousands.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = 0;
        loop {
            end += rest[end..].find(' ').map_or(rest.len() - end, |space| space + 1);
            if end == rest.len() || !continues(&rest[..end], &rest[end..]) {
                break;
            }
        }
        let word;
        (word, rest) = rest.split_at(end);
        (!word.is_empty()).then_some(word)
    })
}

fn continues(number: &str, next: &str) -> bool {
    let next = next.split(' ').next().unwrap_or(next).trim_end_matches([')', ',', ';', ':', '.']);
    let is_group = next.len() == 3 && next.bytes().all(|byte| byte.is_ascii_digit());
    let digit = number.strip_suffix(' ').and_then(|number| number.bytes().last());
    digit.is_some_and(|digit| digit.is_ascii_digit()) && (is_group || UNITS.contains(&next))
}

/// Breaks at spaces so that no line is wider than `width`, where words allow; further lines are indented.
pub(crate) fn wrap(text: &str, columns: Option<u16>, indent: usize) -> String {
    let Some(columns) = columns.map(usize::from) else { return text.trim_end().to_owned() };
    let (mut out, mut line) = (String::new(), String::new());
    for word in words(text) {
        if !line.trim().is_empty() && width(&line) + width(word.trim_end()) > columns {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
        }
        line.push_str(word);
    }
    out.push_str(line.trim_end());
    out
}

/// Of a time that is nearer to what the machine can do than right kernels are.
pub(crate) fn near_peak(share: f64) -> String {
    format!(
        "at {:.0} % of what the machine can do at most: is its work counted right, and does every call do it?",
        100.0 * share
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_text_cannot_paint_reorder_or_break_the_line() {
        assert_eq!(clean("\u{1b}[31mred\u{7}"), "\\u{1b}[31mred\\u{7}");
        assert_eq!(clean("a\r\nb\tc\n"), "a b c");
        assert_eq!(clean("abc\u{202e}cba\u{200b}"), "abc\\u{202e}cba\\u{200b}");
        assert_eq!(clean("größe 漢字 µs"), "größe 漢字 µs");
        for hidden in "\u{ad}\u{34f}\u{115f}\u{1160}\u{2800}\u{3164}\u{ffa0}\u{fffb}\u{e0041}".chars() {
            assert_eq!(clean(&format!("a{hidden}b")), format!("a\\u{{{:x}}}b", u32::from(hidden)));
        }
    }

    #[test]
    fn only_our_own_colours_reach_a_terminal() {
        let (plain, colored) = (Style::default(), Style { color: true, width: None, ascii: false });
        let own = colored.paint(Ink::Bad, "regressed");
        assert_eq!(for_terminal(&own, colored), own);
        assert_eq!(for_terminal(&own, plain), "\\u{1b}[1;31mregressed\\u{1b}[0m");
        let foreign = "a\u{1b}]0;title\u{7}\u{9b}2J\u{202e}\rb\tc\n";
        let shown = "a\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}\\u{d}b\tc\n";
        assert_eq!([plain, colored].map(|style| for_terminal(foreign, style)), [shown; 2]);
        for ink in [Ink::Strong, Ink::Dim, Ink::Calm, Ink::Good, Ink::Doubt, Ink::Bad] {
            let own = colored.paint(ink, "x");
            assert_eq!(for_terminal(&own, colored), own, "{ink:?}");
        }
    }

    #[test]
    fn json_is_the_same_document_without_what_paints() {
        let text = "a\u{7f}\u{9b}\u{202e}\u{e0041}é##[x] ##vso[y]";
        let document = serde_json::to_string_pretty(&[text]).unwrap_or_default();
        let shown = json_for_terminal(&document);
        assert!(shown.chars().all(|c| c == '\n' || !(c.is_control() || is_invisible(c))), "{shown}");
        assert!(!shown.contains("##[") && !shown.contains("##vso["));
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap_or_default(), [text]);
    }

    #[test]
    fn a_log_has_no_command_to_a_runner() {
        assert_eq!(
            for_log("x ##[add-mask]e\n  ::error::y\r::z\n"),
            "x # #[add-mask]e\n  : :error::y\r: :z\n"
        );
        assert_eq!(for_log("###[a] ##vso[task]"), "## #[a] # #vso[task]");
        assert_eq!(for_log("a::b # [c]\n\n"), "a::b # [c]\n\n");
    }

    #[test]
    fn wrapped_lines_fit_and_hang() {
        let text = wrap("label         one two three four five six", Some(26), 14);
        assert_eq!(text, "label         one two\n              three four\n              five six");
        assert_eq!(wrap("averyveryverylongword b", Some(5), 2), "averyveryverylongword\n  b");
    }

    #[test]
    fn a_number_keeps_its_unit_and_its_thousands() {
        assert_eq!(wrap("slower than 1.0 %, in 2.1 s", Some(16), 0), "slower than\n1.0 %, in 2.1 s");
        assert_eq!(wrap("one of 10 000 metrics", Some(9), 0), "one of\n10 000\nmetrics");
        let any = " a  b 1 ms. 3 some 4 ";
        assert_eq!(words(any).collect::<String>(), any);
        assert_eq!(words("").count(), 0);
    }

    #[test]
    fn lists_say_how_many_they_leave_out() {
        assert_eq!(list(&["a", "b"], 3), "a, b");
        assert_eq!(list(&["a", "b", "c", "d", "e"], 3), "a, b, c and 2 more");
    }
}
