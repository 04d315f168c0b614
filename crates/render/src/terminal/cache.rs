//! The table of `holdpoint cache`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::plural;
use crate::units;
use holdpoint_model::{CacheListing, CachedBuild};

const COLUMNS: &[Column] = &[
    names("repository"),
    words("commit"),
    words("built by").drop(1),
    numbers("size"),
    numbers("age").drop(2),
    numbers("last use"),
];

pub fn cache(listing: &CacheListing, style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    for build in &listing.builds {
        let commit = build.commit.as_deref().map_or("failed", |commit| commit.get(..12).unwrap_or(commit));
        let command = build.command.as_ref().map(|command| command.join(" "));
        let used = if build.in_use { "in use".to_owned() } else { units::age(build.unused_s) };
        grid.push([
            Cell::new(build.repository.as_deref().unwrap_or(units::MISSING)),
            Cell::name(commit),
            Cell::new(command.as_deref().unwrap_or(units::MISSING)),
            Cell::new(&size(&[build])),
            Cell::new(&units::age(build.age_s)),
            Cell::new(&used),
        ]);
    }
    let there = describe(&listing.builds);
    let (word, sentence) = if listing.removed.is_empty() {
        ("cache", format!("{there} in {}", listing.folder))
    } else {
        ("removed", format!("{}; {there} left in {}", describe(&listing.removed), listing.folder))
    };
    paragraphs(&[grid.render(style), last_line(style, Ink::Strong, word, &sentence)])
}

fn describe(builds: &[CachedBuild]) -> String {
    let all: Vec<&CachedBuild> = builds.iter().collect();
    format!("{}, {}", plural(builds.len(), "build"), size(&all))
}

fn size(builds: &[&CachedBuild]) -> String {
    units::memory(builds.iter().map(|build| build.size_bytes as f64).sum::<f64>() / 1e6)
}
