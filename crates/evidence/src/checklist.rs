//! The release checklist: our text between markers, everything else left as people wrote it, to the byte.
//!
//! `<!-- holdpoint:begin gates -->` and `<!-- holdpoint:end gates -->`, each on a line of its own, hold one block. A tick that a person
//! set in the last column of a row stays; where the row's evidence has changed since, it says so.

use crate::EvidenceError;

const BEGIN: &str = "<!-- holdpoint:begin ";
const END: &str = "<!-- holdpoint:end ";
const CLOSE: &str = " -->";
/// Some editors begin a file with it.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// A row that nobody has looked at.
pub const UNTICKED: &str = "[ ]";
const TICKED: &str = "[x]";
/// The tick of a row whose evidence has changed since.
const OUTDATED: &str = "[x] before this evidence";

enum Marker<'a> {
    Begin(&'a str),
    End(&'a str),
}

/// Whether a line is indented so far that it is code.
fn is_deep(line: &str) -> bool {
    line.starts_with("    ") || line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t')
}

fn marker(line: &str) -> Option<Marker<'_>> {
    let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    if !inner.to_lowercase().starts_with("holdpoint") {
        return None;
    }
    let Some(inner) = inner.strip_prefix("holdpoint:") else { return Some(Marker::Begin(inner)) };
    // A name must be apart from the word before it.
    let name = |word: &str| {
        let rest = inner.strip_prefix(word)?;
        (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
    };
    // Anything else is a typo, and reported as an unknown block.
    name("begin").map(Marker::Begin).or_else(|| name("end").map(Marker::End)).or(Some(Marker::Begin(inner)))
}

/// A block whose end has not come yet.
struct Open<'a> {
    name: &'a str,
    since: usize,
    block: String,
    line_end: &'static str,
    /// The old text: searched for ticks, then replaced.
    old: String,
}

/// A line that opens or closes a block of code, in which markers are ignored: its character, their count, and whether nothing follows.
fn fence(line: &str) -> Option<(char, usize, bool)> {
    if is_deep(line) {
        return None;
    }
    let line = line.trim();
    let first = line.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let count = line.chars().take_while(|c| *c == first).count();
    let rest = &line[count..];
    // With more of them behind it, it is code within a line.
    (count >= 3 && !(first == '`' && rest.contains('`'))).then_some((first, count, rest.is_empty()))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    pub text: String,
    /// Lines with markers that are shown as code, and so were left alone.
    pub shown: Vec<usize>,
}

/// Fills every block; `text_of` returns a block's text by its name.
///
/// # Errors
/// With the line, when markers do not match, a block is there twice, its name is unknown, or there is none at all.
pub fn fill(text: &str, mut text_of: impl FnMut(&str) -> Option<String>) -> Result<Filled, EvidenceError> {
    let refused = |line: usize, what: String| Err(EvidenceError::Marker { line, what });
    let mut out = String::with_capacity(text.len());
    let mut open: Option<Open<'_>> = None;
    let mut seen: Vec<&str> = Vec::new();
    let mut code: Option<(char, usize)> = None;
    let mut shown = Vec::new();
    let text = text.strip_prefix(BYTE_ORDER_MARK).inspect(|_| out.push(BYTE_ORDER_MARK)).unwrap_or(text);
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let number = at + 1;
        if open.is_none()
            && let Some((c, count, is_bare)) = fence(line)
        {
            code = match code {
                None => Some((c, count)),
                Some((began, least)) if c == began && count >= least && is_bare => None,
                still => still,
            };
        }
        let mut found = marker(line);
        if found.is_some() && open.is_none() && (code.is_some() || is_deep(line)) {
            shown.push(number);
            found = None;
        }
        match (found, &mut open) {
            (Some(Marker::Begin(name)), None) => {
                if seen.contains(&name) {
                    return refused(number, format!("block {name:?} is there twice; keep one"));
                }
                seen.push(name);
                let Some(block) = text_of(name) else {
                    return refused(
                        number,
                        format!(
                            "no block {name:?} is known; there are metadata, artifacts, gates and summary"
                        ),
                    );
                };
                let line_end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
                open = Some(Open { name, since: number, block, line_end, old: String::new() });
                out.push_str(line);
            }
            (Some(Marker::Begin(name)), Some(Open { name: outer, since, .. })) => {
                return refused(
                    number,
                    format!("block {name:?} begins inside block {outer:?}, which began in line {since}"),
                );
            }
            (Some(Marker::End(name)), Some(Open { name: began, since, .. })) if name != *began => {
                return refused(
                    number,
                    format!("block {began:?}, which began in line {since}, is ended as {name:?}"),
                );
            }
            (Some(Marker::End(_)), Some(_)) => {
                if let Some(Open { block, line_end, old, .. }) = open.take() {
                    out.push_str(&with_ticks(&block, &old).replace('\n', line_end));
                }
                out.push_str(line);
            }
            (Some(Marker::End(name)), None) => {
                return refused(
                    number,
                    format!("block {name:?} ends and has not begun; add {BEGIN}{name}{CLOSE}"),
                );
            }
            (None, Some(block)) => block.old.push_str(line),
            (None, None) => out.push_str(line),
        }
    }
    match open {
        Some(Open { name, since, .. }) => {
            refused(since, format!("block {name:?} has no end; add {END}{name}{CLOSE}"))
        }
        None if seen.is_empty() => refused(
            1,
            format!("no markers; put {BEGIN}gates{CLOSE} and {END}gates{CLOSE} where evidence belongs"),
        ),
        None => Ok(Filled { text: out, shown }),
    }
}

/// The new text, with the ticks that people set in the old one.
fn with_ticks(new: &str, old: &str) -> String {
    let old_rows: Vec<Vec<&str>> = old.lines().filter_map(cells).collect();
    // The head of a table names what its ticks are of.
    let is_of_this = old_rows.first() == new.lines().find_map(cells).as_ref();
    let mut out = String::with_capacity(new.len());
    for line in new.split_inclusive('\n') {
        let ticked = cells(line).and_then(|row| {
            let (last, evidence) = row.split_last()?;
            let before = old_rows.iter().find(|old| old.first() == row.first())?;
            let (tick, old_evidence) = before.split_last()?;
            let is_ticked = *last == UNTICKED && tick.to_lowercase().starts_with(TICKED);
            let is_current = is_of_this && evidence == old_evidence && tick.eq_ignore_ascii_case(TICKED);
            is_ticked.then_some(if is_current { TICKED } else { OUTDATED })
        });
        match (ticked, line.rfind(UNTICKED)) {
            (Some(tick), Some(at)) => {
                out.push_str(&line[..at]);
                out.push_str(tick);
                out.push_str(&line[at + UNTICKED.len()..]);
            }
            _ => out.push_str(line),
        }
    }
    out
}

/// The cells of a row of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, c) in inner.char_indices() {
        if c == '|' && !is_escaped {
            cells.push(inner[start..at].trim());
            start = at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    cells.push(inner[start..].trim());
    Some(cells)
}

/// A new checklist: Apex-X's five sections, blocks for evidence, and the rest for people.
pub const TEMPLATE: &str = "\
# Release checklist

Filled by `holdpoint checklist`. What stands between two `holdpoint` comments is written again each time, but for ticks in the last
column; everything else is yours.

## 1. Release Metadata

<!-- holdpoint:begin metadata -->
<!-- holdpoint:end metadata -->

## 2. Mandatory Artifacts

<!-- holdpoint:begin artifacts -->
<!-- holdpoint:end artifacts -->

## 3. Gating Checks

<!-- holdpoint:begin gates -->
<!-- holdpoint:end gates -->

<!-- holdpoint:begin summary -->
<!-- holdpoint:end summary -->

- [ ] Kernels for a GPU: `holdpoint sanitize` finds no error in any of them, at this commit:

## 4. Rollback Plan (mandatory)

- [ ] Last good release:
- [ ] How to go back:
- [ ] Who decides:

## 5. Sign-Off

- [ ] Release owner:
- [ ] Performance:
- [ ] Security:
";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "| what | hash | seen |\n|---|---|---|\n| a | 1 | [ ] |\n| b\\|c | 2 | [ ] |\n";

    fn filled(text: &str) -> Result<String, EvidenceError> {
        fill(text, |name| (name == "gates").then(|| TABLE.to_owned())).map(|filled| filled.text)
    }

    fn page(inside: &str) -> String {
        format!(
            "# Mine\n\n- [x] done by me\n<!-- holdpoint:begin gates -->\n{inside}<!-- holdpoint:end gates -->\nend, no newline"
        )
    }

    #[test]
    fn only_what_is_between_the_markers_is_written_again_and_again() {
        let once = filled(&page("old\n")).unwrap();
        assert_eq!(once, page(TABLE));
        assert_eq!(filled(&once).unwrap(), once);
    }

    #[test]
    fn a_tick_stays_and_says_when_the_evidence_has_changed() {
        let ticked =
            page(&TABLE.replace("| 1 | [ ] |", "| 1 | [X] |").replace("| 2 | [ ] |", "| old | [x] |"));
        let now = filled(&ticked).unwrap();
        assert!(now.contains("| a | 1 | [x] |"), "{now}");
        assert!(now.contains("| b\\|c | 2 | [x] before this evidence |"), "{now}");
        assert_eq!(filled(&now).unwrap(), now, "until somebody ticks it again");
    }

    #[test]
    fn markers_that_do_not_fit_are_refused_with_their_line() {
        let refused = |text: &str| filled(text).unwrap_err().to_string();
        let (begin, end) = ("<!-- holdpoint:begin gates -->\n", "<!-- holdpoint:end gates -->\n");
        assert!(refused(&format!("a\n{begin}b\n")).starts_with("line 2: block \"gates\" has no end"));
        assert!(
            refused(&format!("a\n\n{end}")).starts_with("line 3: block \"gates\" ends and has not begun")
        );
        assert!(
            refused(&format!("{begin}{begin}{end}")).starts_with("line 2: block \"gates\" begins inside")
        );
        assert!(refused(&format!("{begin}<!-- holdpoint:end other -->\n")).contains("ended as \"other\""));
        assert!(
            refused(&format!("{begin}{end}{begin}{end}"))
                .starts_with("line 3: block \"gates\" is there twice")
        );
        assert!(refused("<!-- holdpoint:begin colours -->\n").contains("no block \"colours\""));
        assert!(refused("nothing\n").contains("no markers"));
    }

    #[test]
    fn markers_shown_as_code_are_no_markers() {
        let shown = format!("```\n<!-- holdpoint:begin gates -->\n```\n{}", page(""));
        assert!(filled(&shown).unwrap().starts_with("```\n<!-- holdpoint:begin gates -->\n```\n# Mine"));
    }

    #[test]
    fn markers_that_are_left_alone_are_told() {
        let shown = |text: &str| fill(text, |_| Some(TABLE.to_owned())).unwrap().shown;
        let end = "<!-- holdpoint:begin gates -->\n<!-- holdpoint:end gates -->\n";
        assert_eq!(shown(&format!("```\n<!-- holdpoint:begin x -->\n```\n{end}")), [2]);
        assert_eq!(shown(&format!("    <!-- holdpoint:begin x -->\n{end}")), [1], "indented code");
        // Deep in a list it opens no block of code, so what follows is filled.
        assert_eq!(shown(&format!("- a\n      ```\n{end}")), [0; 0]);
        assert!(shown(&format!("\u{feff}{end}")).is_empty());
    }

    #[test]
    fn a_tick_is_of_what_the_head_of_its_table_names() {
        let ticked = page(&TABLE.replace("| 1 | [ ] |", "| 1 | [x] |").replace("seen", "seen before"));
        assert!(filled(&ticked).unwrap().contains("| a | 1 | [x] before this evidence |"));
    }

    #[test]
    fn blanks_in_a_marker_do_not_matter_and_slips_are_refused() {
        let tight = "<!--holdpoint:begin gates-->\n<!--  holdpoint:end  gates  -->\n";
        assert!(filled(tight).unwrap().contains("| a | 1 | [ ] |"));
        let slip = filled("<!-- holdpoint:begin-gates -->\n").unwrap_err().to_string();
        assert!(slip.contains("no block \"begin-gates\""), "{slip}");
        for slip in ["Holdpoint:begin gates", "HOLDPOINT: begin gates", "holdpoint begin gates"] {
            assert!(
                filled(&format!("<!-- {slip} -->\n")).unwrap_err().to_string().contains("no block"),
                "{slip}"
            );
        }
    }

    #[test]
    fn a_block_of_code_ends_as_it_began() {
        for (open, inner) in [("````", "```"), ("~~~", "```"), ("```", "~~~"), ("```", "```rust")] {
            let shown = format!("{open}\n{inner}\n<!-- holdpoint:begin other -->\n{open}\n");
            let text = format!("{shown}{}", page(""));
            assert_eq!(filled(&text).unwrap(), format!("{shown}{}", page(TABLE)), "{open} {inner}");
        }
        let in_line = format!("```not code```\n{}", page(""));
        assert!(filled(&in_line).unwrap().contains("| a | 1 | [ ] |"));
    }

    #[test]
    fn the_template_can_be_filled_and_line_ends_stay() {
        let any = |text: &str| fill(text, |name| Some(format!("{name}!\n"))).map(|filled| filled.text);
        let out = any(TEMPLATE).unwrap();
        assert!(["metadata!", "artifacts!", "gates!", "summary!"].iter().all(|block| out.contains(block)));
        let windows = any(&TEMPLATE.replace('\n', "\r\n")).unwrap();
        assert_eq!(windows, out.replace('\n', "\r\n"));
    }

    fn outside(text: &str) -> Vec<String> {
        let mut is_inside = false;
        let mut kept = Vec::new();
        for line in text.split_inclusive('\n') {
            is_inside &= !line.starts_with(END);
            if !is_inside {
                kept.push(line.to_owned());
            }
            is_inside |= line.starts_with(BEGIN);
        }
        kept
    }

    proptest! {
        #[test]
        fn text_outside_the_markers_never_changes(
            before in "([-|x\\[\\] a`~ü\0\r]{0,12}\n){0,4}",
            inside in "([-|x\\[\\] aü\0]{0,12}\n){0,4}",
            after in "([-|x\\[\\] aü\0]{0,12}\n?){0,4}",
        ) {
            let text = format!("{before}<!-- holdpoint:begin gates -->\n{inside}<!-- holdpoint:end gates -->\n{after}");
            match filled(&text) {
                Ok(out) => {
                    prop_assert_eq!(outside(&out), outside(&text));
                    prop_assert_eq!(filled(&out).unwrap(), out.clone());
                    prop_assert!(out.contains("| a | 1 | ["));
                }
                // An open block of code hides them.
                Err(error) => prop_assert!(error.to_string().contains("no markers"), "{}", error),
            }
        }
    }
}
