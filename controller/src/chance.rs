//! Chance for jitter: nothing here needs to be hard to guess.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A number between 0 and 1, different each time.
pub fn fraction() -> f64 {
    // The standard library seeds its hashers by chance, each one differently.
    let bits = u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or(u32::MAX);
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lies_between_0_and_1_and_varies() {
        let draws: Vec<f64> = (0..200).map(|_| fraction()).collect();
        assert!(draws.iter().all(|draw| (0.0..=1.0).contains(draw)));
        assert!(draws.iter().any(|draw| *draw < 0.5) && draws.iter().any(|draw| *draw > 0.5));
    }
}
