//! A page of our Markdown as HTML: one file that needs nothing else, with the picture in it.

use crate::text::escape_html;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

const STYLE: &str = include_str!("html.css");

/// The page. A picture is put where the Markdown names it.
pub fn page(markdown: &str, picture: Option<(&str, &str)>) -> String {
    let title = markdown.lines().next().unwrap_or_default().trim_start_matches('#').trim();
    let mut body = String::new();
    // Inside a picture that is put in, its description is left out.
    let mut is_inside = false;
    let events =
        Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match (event, picture) {
            (Event::Start(Tag::Image { dest_url, .. }), Some((name, svg))) if *dest_url == *name => {
                is_inside = true;
                Some(Event::InlineHtml(CowStr::from(inline(svg))))
            }
            (Event::End(TagEnd::Image), _) if is_inside => {
                is_inside = false;
                None
            }
            _ if is_inside => None,
            (event, _) => Some(event),
        });
    html::push_html(&mut body, events);
    // Wide tables are moved under the eye, not the page.
    let body = body.replace("<table>", "<div class=\"wide\"><table>").replace("</table>", "</table></div>");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        plain(title)
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
