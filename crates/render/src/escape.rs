//! Foreign text in Markdown and HTML.

use crate::text::{clean, escape_html};
use holdpoint_model::limits::is_invisible;

/// Characters that mean something to Markdown somewhere in a line.
const MARKS: &str = "\\`*_{}[]()#+!|~$";

/// Text as text: nothing in it is markup, ends a table cell, links or calls for somebody.
pub(crate) fn text(raw: &str) -> String {
    let raw = clean(raw);
    let mut out = String::with_capacity(raw.len() + 8);
    for (i, c) in raw.char_indices() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A name called with @ gets a message from GitHub: a zero-width space comes between.
            '@' => out.push_str("@&#8203;"),
            // So does a number behind # or GH-, which GitHub links to an issue of somebody's.
            '#' if is_digit_next(&raw[i + 1..]) => out.push_str("\\#&#8203;"),
            '-' if ends_with_gh(&raw[..i]) && is_digit_next(&raw[i + 1..]) => out.push_str("-&#8203;"),
            // Bare addresses become links of themselves.
            ':' if raw[i..].starts_with("://") => out.push_str("&#58;"),
            // A word between two of them may become a picture.
            ':' if is_shortcode(&raw[i + 1..]) => out.push_str(":&#8203;"),
            '.' if ends_with_www(&raw[..i]) => out.push_str("&#46;"),
            _ if MARKS.contains(c) => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    begun(&out)
}

/// Text that begins no list, rule, heading or block of code where it stands first in a line.
fn begun(escaped: &str) -> String {
    let text = escaped.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let is_alone = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let is_mark = match rest.chars().next() {
        Some('-' | '+' | '=') if number.is_empty() => !is_digit_next(&rest[1..]),
        Some('.' | ')') if !number.is_empty() => is_alone(&rest[1..]),
        _ => false,
    };
    if is_mark { format!("{number}\\{rest}") } else { text.to_owned() }
}

/// Whether what follows a colon is a name and another colon. Two digits are a part of a time.
fn is_shortcode(rest: &str) -> bool {
    let Some((name, _)) = rest.split_once(':') else { return false };
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+-".contains(&b));
    is_name && !(name.len() <= 2 && name.bytes().all(|b| b.is_ascii_digit()))
}

fn is_digit_next(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn ends_with_gh(text: &str) -> bool {
    text.as_bytes().last_chunk::<2>().is_some_and(|end| end.eq_ignore_ascii_case(b"gh"))
}

fn ends_with_www(text: &str) -> bool {
    text.as_bytes().last_chunk::<3>().is_some_and(|end| end.eq_ignore_ascii_case(b"www"))
}

/// Prose of our own that quotes foreign text: readable where the text is ordinary.
pub(crate) fn prose(raw: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric();
    // Only `_` at the edge of a word is markup; inside a name it may stay as it is.
    let escaped = text(raw).replace("\\(", "(").replace("\\)", ")").replace("\\+", "+");
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped.as_str();
    while let Some(at) = rest.find("\\_") {
        let before = rest[..at].chars().next_back().or_else(|| out.chars().next_back());
        let after = rest[at + 2..].chars().next();
        let inside = before.is_some_and(is_word) && after.is_some_and(is_word);
        out.push_str(&rest[..at]);
        out.push_str(if inside { "_" } else { "\\_" });
        rest = &rest[at + 2..];
    }
    begun(&(out + rest))
}

/// A name as code if it is an ordinary one, else as text.
pub(crate) fn name(raw: &str) -> String {
    let is_plain = |c: char| (c.is_alphanumeric() && !is_invisible(c)) || "_-.:/+= ".contains(c);
    if !raw.trim().is_empty() && raw.trim() == raw && raw.chars().all(is_plain) {
        format!("`{raw}`")
    } else {
        text(raw)
    }
}

/// A line inside `<pre>`.
pub(crate) fn html(raw: &str) -> String {
    escape_html(&clean(raw))
}

/// Whether a name can stand in a shell command as it is, as every name in a suite file can.
pub(crate) fn is_command_word(raw: &str) -> bool {
    !raw.is_empty() && raw.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        assert_eq!(text("a|b`c<script>&\n\u{1b}"), "a\\|b\\`c&lt;script&gt;&amp; \\\\u\\{1b\\}");
        assert_eq!(text("ask @team"), "ask @&#8203;team");
        assert_eq!(text("https://x.y www.z"), "https&#58;//x.y www&#46;z");
        assert_eq!(text("fixes #12, gh-3, a#b"), "fixes \\#&#8203;12, gh-&#8203;3, a\\#b");
        assert_eq!(text("![x](y)"), "\\!\\[x\\]\\(y\\)");
    }

    #[test]
    fn text_begins_nothing() {
        for (raw, escaped) in [
            ("- a", "\\- a"),
            ("---", "\\---"),
            ("+ a", "\\+ a"),
            ("===", "\\==="),
            ("1. a", "1\\. a"),
            ("12) a", "12\\) a"),
            ("      a", "a"),
            (":shipit: :+1: :100:", ":&#8203;shipit: :&#8203;+1: :&#8203;100:"),
            ("+34.1 % at 15:26:27", "+34.1 % at 15:26:27"),
            ("-3 %, 1.5 s: a: b", "-3 %, 1.5 s: a: b"),
        ] {
            assert_eq!(prose(raw), escaped);
        }
        assert_eq!(text("1) a"), "1\\) a");
        assert_eq!(text("- a"), "\\- a");
    }

    #[test]
    fn prose_keeps_ordinary_names_readable() {
        assert_eq!(prose("infer_p50_ms +34.1 % (slow)"), "infer_p50_ms +34.1 % (slow)");
        assert_eq!(prose("__status__ a_b_"), "\\_\\_status\\_\\_ a_b\\_");
        assert_eq!(prose("[x](javascript:y)"), "\\[x\\](javascript:y)");
    }

    #[test]
    fn only_ordinary_names_are_code() {
        assert_eq!(name("tile_pack.p50_ms"), "`tile_pack.p50_ms`");
        assert_eq!(name("a`b|c"), "a\\`b\\|c");
        assert_eq!(name(" "), "");
        assert_eq!(name("a\u{3164}"), "a\\\\u\\{3164\\}");
    }

    #[test]
    fn a_command_word_is_one_word() {
        assert!(is_command_word("cpu-smoke.v2"));
        assert!(!is_command_word("a b; rm 'x'") && !is_command_word(""));
    }
}
