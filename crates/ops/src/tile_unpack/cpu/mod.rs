//! TileUnpack: lays tiles back onto a copy of a base map. Must not require tile-aligned origins.
//!
//! Two families: [`priority`] asks a per-pixel priority map, [`levels`] sorts tiles by level beforehand.

pub mod levels;
pub mod priority;

use crate::error::OpError;
use crate::shape::TileSpec;

/// How a tile is combined with the map below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overlap {
    Override,
    /// `keep * current + take * incoming`; both weights already rounded to f32.
    Blend {
        keep: f32,
        take: f32,
    },
}

impl Overlap {
    pub fn parse(mode: &str, blend_alpha: f64) -> Result<Self, OpError> {
        if !(0.0..=1.0).contains(&blend_alpha) {
            return Err(OpError::BlendAlpha(blend_alpha));
        }
        match mode {
            "override" => Ok(Self::Override),
            // Each weight is rounded on its own: 1 - 0.3 is taken in f64 first, as the original does.
            "blend" => Ok(Self::Blend { keep: (1.0 - blend_alpha) as f32, take: blend_alpha as f32 }),
            _ => Err(OpError::OverlapMode(mode.to_owned())),
        }
    }

    #[inline(always)]
    pub fn apply(self, current: f32, incoming: f32) -> f32 {
        match self {
            Self::Override => incoming,
            Self::Blend { keep, take } => keep * current + take * incoming,
        }
    }
}

/// An unpacking and all that it reads.
#[derive(Clone, Copy, Debug)]
pub struct Unpack<'a> {
    pub spec: TileSpec,
    pub overlap: Overlap,
    /// `[B, C, H, W]`.
    pub base: &'a [f32],
    /// `[B, K, C, t, t]`.
    pub packed: &'a [f32],
    /// `[B, K]` corners as `[y, x]`.
    pub origins: &'a [[u32; 2]],
}

/// Writes one whole tile, every pixel allowed.
#[inline(always)]
fn put_tile(unpack: &Unpack<'_>, tile: &[f32], [y, x]: [u32; 2], sample: &mut [f32]) {
    let spec = &unpack.spec;
    match (spec.grid.tile, unpack.overlap) {
        (8, Overlap::Override) => put_rows::<8>(spec, tile, [y, x], sample),
        (16, Overlap::Override) => put_rows::<16>(spec, tile, [y, x], sample),
        (32, Overlap::Override) => put_rows::<32>(spec, tile, [y, x], sample),
        _ => put_any(unpack, tile, [y, x], sample),
    }
}

#[inline(always)]
fn put_rows<const T: usize>(spec: &TileSpec, tile: &[f32], [y, x]: [u32; 2], sample: &mut [f32]) {
    let (width, plane) = (spec.dims.width, spec.dims.plane());
    let (channels, _) = tile.as_chunks::<T>().0.as_chunks::<T>();
    for (c, rows) in channels.iter().enumerate() {
        let start = c * plane + y as usize * width + x as usize;
        let window = &mut sample[start..start + (T - 1) * width + T];
        for (dy, row) in rows.iter().enumerate() {
            window[dy * width..dy * width + T].copy_from_slice(row);
        }
    }
}

#[inline(always)]
fn put_any(unpack: &Unpack<'_>, tile: &[f32], [y, x]: [u32; 2], sample: &mut [f32]) {
    let (dims, t) = (unpack.spec.dims, unpack.spec.grid.tile);
    for (c, channel) in tile.chunks_exact(t * t).enumerate() {
        for (dy, row) in channel.chunks_exact(t).enumerate() {
            let start = c * dims.plane() + (y as usize + dy) * dims.width + x as usize;
            for (current, &incoming) in sample[start..start + t].iter_mut().zip(row) {
                *current = unpack.overlap.apply(*current, incoming);
            }
        }
    }
}
