//! Pages of HTML: one file that needs nothing else, for light and dark, phone and print.
//!
//! A page says the same as the Markdown of its document, in the same order and words, with the verdict in colour and charts
//! beside it. Foreign text is escaped by whoever puts it in; [`markup`] takes our own Markdown, in which it is escaped already.

mod baseline;
mod bisection;
mod calibration;
mod report;
mod rows;
mod sides;
mod trend;

pub use crate::links::Links;
pub use baseline::baseline;
pub use bisection::bisection;
pub use calibration::calibration;
pub use report::{judgement, report};
pub use trend::{picture as trend_picture, trend};

use crate::charts::Chart;
use crate::paint::{Ink, mark};
use crate::svg;
use crate::text::{clean, escape_html};
use holdpoint_model::Verdict;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

const STYLE: &str = include_str!("page.css");

/// Everything beside the document that a page shows.
#[derive(Clone, Debug, Default)]
pub struct Extras<'a> {
    pub links: Links,
    /// Why the document cannot be trusted.
    pub problem: Option<&'a str>,
    /// Our own Markdown below everything else.
    pub appendix: &'a str,
    /// A picture that the appendix names: its name and its SVG.
    pub picture: Option<(&'a str, &'a str)>,
}

/// The first lines of a page.
struct Banner<'a> {
    title: String,
    /// Class of the word, which has a colour and a mark in the style.
    ink: &'a str,
    word: &'a str,
    sentence: &'a str,
    /// The sides, the machine and the rule of a comparison.
    facts: Vec<String>,
}

impl<'a> Banner<'a> {
    fn of_verdict(suite: &str, verdict: Verdict, sentence: &'a str, facts: Vec<String>) -> Self {
        Self {
            title: format!("holdpoint: {suite}"),
            ink: verdict.as_str(),
            word: verdict.as_str(),
            sentence,
            facts,
        }
    }

    fn html(&self, extras: &Extras<'_>, commits: &[&str]) -> String {
        let [title, word, sentence] = [self.title.as_str(), self.word, self.sentence].map(escape);
        let facts = self.facts.iter().filter(|fact| !fact.is_empty());
        let facts: Vec<String> = facts.map(|fact| extras.links.in_text(&escape(fact), commits)).collect();
        let problem = extras.problem.map(|problem| {
            format!("<p class=\"problem\"><strong>✖ problem</strong>: {}</p>\n", escape(problem))
        });
        let facts = facts.iter().map(|fact| format!("<li>{fact}</li>")).collect::<String>();
        format!(
            "<header>\n<h1>{title}</h1>\n{}<div class=\"banner {}\"><p class=\"word v\">{word}</p>\n<p>{}</p></div>\n<ul class=\"facts\">{facts}</ul>\n</header>\n",
            problem.unwrap_or_default(),
            self.ink,
            extras.links.in_text(&sentence, commits),
        )
    }
}

/// The class of a word that is no verdict.
fn ink_class(ink: Ink) -> &'static str {
    match ink {
        Ink::Good => "good",
        Ink::Calm => "calm",
        Ink::Doubt => "doubt",
        Ink::Bad => "bad",
        Ink::Plain | Ink::Strong | Ink::Dim => "plain",
    }
}

/// A page of our Markdown. A picture is put where the Markdown names it.
pub fn page(markdown: &str, picture: Option<(&str, &str)>) -> String {
    let title = markdown.lines().next().unwrap_or_default().trim_start_matches('#').trim();
    document(&plain(title), &format!("<main>\n{}</main>\n", markup(markdown, picture)))
}

/// The banner, the parts below it, and the appendix.
fn banner_page(banner: &Banner<'_>, parts: &[String], extras: &Extras<'_>, commits: &[&str]) -> String {
    let appendix = markup(extras.appendix, extras.picture);
    let body: String = parts.iter().map(String::as_str).chain([appendix.as_str()]).collect();
    document(&escape(&banner.title), &format!("{}<main>\n{body}</main>\n", banner.html(extras, commits)))
}

/// Every verdict, to be written before its word by the style, so that its colour is never all there is.
const VERDICTS: [Verdict; 7] = [
    Verdict::Improved,
    Verdict::Pass,
    Verdict::Waived,
    Verdict::Skipped,
    Verdict::Inconclusive,
    Verdict::Regressed,
    Verdict::Broken,
];

fn document(title: &str, body: &str) -> String {
    let chart_style = svg::STYLE;
    let mark = |verdict: Verdict| {
        format!(".{0}.v::before,.{0}>.v::before{{content:'{1} '}}", verdict.as_str(), mark(verdict))
    };
    let marks: String = VERDICTS.map(mark).concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{marks}\n{chart_style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

/// Foreign text between tags or inside an attribute.
fn escape(text: &str) -> String {
    escape_html(&clean(text)).replace('"', "&quot;")
}

/// A section, unless it is empty.
fn section(title: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("<h2>{}</h2>\n{body}", escape(title)) }
}

/// A chart with its caption.
fn figure(chart: &Chart) -> String {
    let svg = chart.plot.inline(&chart.caption);
    format!("<figure>{svg}<figcaption>{}</figcaption></figure>\n", escape(&chart.caption))
}

/// Charts beside each other where there is room.
fn figures<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> String {
    let all: String = charts.into_iter().map(figure).collect();
    if all.is_empty() { all } else { format!("<div class=\"charts\">\n{all}</div>\n") }
}

/// Our own Markdown as HTML.
fn markup(markdown: &str, picture: Option<(&str, &str)>) -> String {
    let mut body = String::new();
    // Inside a picture that is put in, its description is left out.
    let mut is_inside = false;
    let events =
        Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match (event, picture) {
            (Event::Start(Tag::Image { dest_url, .. }), Some((name, svg))) if *dest_url == *name => {
                is_inside = true;
                Some(Event::InlineHtml(CowStr::from(broad("span", inline(svg)))))
            }
            (Event::End(TagEnd::Image), _) if is_inside => {
                is_inside = false;
                None
            }
            _ if is_inside => None,
            (event, _) => Some(event),
        });
    html::push_html(&mut body, events);
    // Wide tables are moved under the eye, not the page; by the keyboard too.
    let body = body
        .replace("<table>", "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table>")
        .replace("</table>", "</table></div>")
        .replace("<pre>", "<pre tabindex=\"0\">")
        // A short class for every number; to the left is where words are anyway.
        .replace(" style=\"text-align: right\"", " class=\"r\"")
        .replace(" style=\"text-align: left\"", "");
    colour_verdicts(body)
}

/// Cells that hold nothing but a verdict, in its colour and with its mark.
fn colour_verdicts(mut body: String) -> String {
    for verdict in VERDICTS {
        let word = verdict.as_str();
        let coloured = format!("<td><span class=\"v {word}\">{word}</span></td>");
        for cell in [format!("<td>{word}</td>"), format!("<td><strong>{word}</strong></td>")] {
            body = body.replace(&cell, &coloured);
        }
    }
    body
}

/// A picture that is moved under the eye where the page is narrow; by the keyboard too.
fn broad(element: &str, picture: &str) -> String {
    format!(
        "<{element} class=\"broad\" tabindex=\"0\" role=\"group\" aria-label=\"picture\">{picture}</{element}>\n"
    )
}

/// A picture without the line that only a file of its own may have.
fn inline(svg: &str) -> &str {
    svg.find("<svg").map_or(svg, |start| &svg[start..])
}

/// Text that is nothing but text, without Markdown's escapes.
fn plain(markdown: &str) -> String {
    let text = Parser::new(markdown).filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.into_string()),
        _ => None,
    });
    escape_html(&text.collect::<String>())
}
