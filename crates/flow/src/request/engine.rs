//! A model and how it is run.

use holdpoint_model::suite::Provider;
use std::path::PathBuf;

/// Which model, and how it is run.
#[derive(Clone, Debug)]
pub struct EngineChoice {
    pub model: PathBuf,
    /// NAME=SIZES of the inputs that the model leaves open.
    pub input_shapes: Vec<String>,
    pub provider: Option<Provider>,
    pub threads: Option<u32>,
    pub plugins: Vec<PathBuf>,
    /// The Python interpreter that has the library.
    pub python: Option<String>,
    /// The model that computes the right outputs.
    pub reference: Option<PathBuf>,
    /// Whether the outputs are checked.
    pub check: bool,
    /// The number of samples of each case; until the interval is narrow, if absent.
    pub iterations: Option<u32>,
    /// Of the inputs.
    pub seed: u64,
}
