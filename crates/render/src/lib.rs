//! Text from values, for the terminal, Markdown, HTML, pictures and other programs.
//!
//! Pure functions. Nothing here prints, reads a clock or the environment, or decides: a verdict is taken
//! from the judgement as it stands. Text that came from outside is neutralised on its way in, so that a
//! worker can neither paint on a terminal nor write HTML or Markdown of its own.

mod charts;
mod escape;
pub mod forms;
pub mod html;
pub mod judged;
mod links;
pub mod markdown;
pub mod notice;
mod paint;
mod remedy;
mod summary;
pub mod svg;
mod table;
pub mod terminal;
mod text;
pub mod units;

pub use judged::Judged;
pub use paint::Style;
pub use text::{for_log, for_terminal, json_for_terminal};
