//! What an op takes, from the request alone: nothing is allocated to find out. Must not say less than what [`crate::build`] and
//! a check allocate.

use serde_json::Value;

use crate::{BuildError, Request};

/// What preparing, calling and checking an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Elements of all tensors, weights, working space and the oracle's answer.
    pub elements: u64,
    /// Steps of the oracle's innermost loops, about.
    pub operations: u64,
}

/// 2^31 elements, 8 GiB in f32: beyond that a typing error is likelier than a wish.
pub(super) const ELEMENTS_MAX: u64 = 1 << 31;

/// Queries that attention's fast version handles together, and what it pads widths to, twice over.
const ATTENTION_ROWS: u64 = 256;

/// Of a request, valid or not: parameters that make no sense count as their defaults.
#[must_use]
pub fn load(req: &Request<'_>) -> Load {
    let size = |at: usize| req.shape.get(at).map_or(1, |&size| size as u64);
    let main = (0..req.shape.len()).fold(1_u64, |all, at| all.saturating_mul(size(at)));
    let (elements, operations) = match req.op {
        // q, k, v, the answer and the oracle's; keys and values of a head once more, and a block of scores.
        "attention" => {
            let space = size(2).saturating_mul(ATTENTION_ROWS + 2 * size(3));
            (main.saturating_mul(5).saturating_add(space), main.saturating_mul(size(2)))
        }
        "tile_pack" | "tile_unpack" | "fused_pack_op_unpack" => {
            let (tiles, packed) = tiles(req, size);
            let all = main.saturating_add(packed).saturating_mul(5);
            // Tiles are sorted by insertion, or by looking for the next.
            (all, all.saturating_add(tiles.saturating_mul(tiles).saturating_mul(size(0))))
        }
        // Two paths of at most eight square matrices each, and maps of both levels.
        "ff_path" => {
            let weights = size(1).saturating_mul(size(1)).saturating_mul(16);
            (main.saturating_mul(24).saturating_add(weights), main.saturating_mul(size(1)))
        }
        "fma" => {
            let rounds = req.params.get("rounds").and_then(Value::as_u64).unwrap_or(4096);
            (main.saturating_mul(4), main.saturating_mul(rounds))
        }
        _ => (main.saturating_mul(8), main.saturating_mul(8)),
    };
    Load { elements, operations }
}

/// Tiles of a batch row, and elements of all packed tiles.
fn tiles(req: &Request<'_>, size: impl Fn(usize) -> u64) -> (u64, u64) {
    let edge = req.params.get("tile_size").and_then(Value::as_u64).unwrap_or(16).max(1);
    let tiles = match req.params.get("indices") {
        Some(Value::Array(indices)) => indices.len() as u64,
        _ => (size(2) / edge).saturating_mul(size(3) / edge),
    };
    let tile = edge.saturating_mul(edge).saturating_mul(size(1));
    (tiles, tiles.saturating_mul(size(0)).saturating_mul(tile))
}

/// Refuses what would not fit any machine that holdpoint is meant for.
pub(super) fn check(req: &Request<'_>) -> Result<(), BuildError> {
    let elements = load(req).elements;
    if elements <= ELEMENTS_MAX {
        return Ok(());
    }
    let problem =
        format!("its tensors and working space have {elements} elements, at most {ELEMENTS_MAX} fit");
    Err(super::shape_error(req, problem))
}
