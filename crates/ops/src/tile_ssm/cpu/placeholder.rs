//! The CPU model's scan: one fixed decay, no gains.

pub const ALPHA: f32 = 0.85;

/// Scans `[K, C]` tokens into `mixed`; `state` ends as the last row. Alpha is clipped to [1e-4, 0.999].
pub fn tile_ssm_scan(tokens: &[f32], channels: usize, alpha: f32, mixed: &mut [f32], state: &mut [f32]) {
    let alpha = alpha.clamp(1e-4, 0.999);
    state.fill(0.0);
    for (tokens, mixed) in tokens.chunks_exact(channels).zip(mixed.chunks_exact_mut(channels)) {
        for c in 0..channels {
            state[c] = alpha * state[c] + (1.0 - alpha) * tokens[c];
            mixed[c] = state[c];
        }
    }
}
