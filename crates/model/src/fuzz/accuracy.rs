//! Size and bias of the errors that stay within the tolerance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Errors beside those of a correctly rounded implementation: sums over ordinary values, so that cases can be added up. Every output is
/// divided by its own root mean square first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accuracy {
    /// Values that were compared; the sum of their squares, too.
    pub values_count: u64,
    /// Rows of values, each of which may err as one.
    pub rows_count: u64,
    /// Sum of the squares of the errors.
    pub error_squares: f64,
    /// Sum of the products of error and value: positive where answers are too large.
    pub products: f64,
    /// Sum over rows of the square of a row's products, which gives the standard error of `products`.
    pub row_products_squares: f64,
    /// Root mean square of the relative error that the roundings of a right kernel explain.
    pub expected: f64,
    /// A mean relative error that they explain as well.
    pub bias_expected: f64,
    /// Half of the distance from 1 to the next number of the element type.
    pub unit: f64,
}

impl Accuracy {
    /// Both together.
    pub fn join(self, other: Self) -> Self {
        Self {
            values_count: self.values_count + other.values_count,
            rows_count: self.rows_count + other.rows_count,
            error_squares: self.error_squares + other.error_squares,
            products: self.products + other.products,
            row_products_squares: self.row_products_squares + other.row_products_squares,
            expected: self.expected.max(other.expected),
            bias_expected: self.bias_expected.max(other.bias_expected),
            unit: self.unit.max(other.unit),
        }
    }

    /// Root mean square of the error, relative to that of the answers.
    pub fn error(&self) -> f64 {
        (self.error_squares / self.values_count.max(1) as f64).sqrt()
    }

    /// By how much answers are too large on average, as a share of them; negative where they are too small.
    pub fn bias(&self) -> f64 {
        self.products / self.values_count.max(1) as f64
    }

    /// The standard error of the bias.
    pub fn bias_deviation(&self) -> f64 {
        self.row_products_squares.sqrt() / self.values_count.max(1) as f64
    }
}
