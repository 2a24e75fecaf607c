//! Random numbers that a printed seed repeats.

/// xorshift64*: small, fast, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; 0 counts as 1.
    pub fn new(seed: u64) -> Self {
        Rng(seed.max(1))
    }

    /// A seed from the environment variable `SHOAL_SEED`, or the given one; printed, so that a failure can be
    /// repeated.
    pub fn seed(default: u64) -> u64 {
        let seed = std::env::var("SHOAL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(default);
        println!("seed {seed} (repeat with SHOAL_SEED={seed})");
        seed
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// Heads one time in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next_u64() as u8).collect()
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len());
        from.get(at).unwrap_or_else(|| panic!("nothing to pick from"))
    }
}
